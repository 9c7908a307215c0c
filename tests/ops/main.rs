//! Numeric tests of every op: against f64 references, PyTorch's golden files, and
//! inputs on which public libraries have failed.
#[cfg(target_arch = "wasm32")]
wasm_bindgen_test::wasm_bindgen_test_configure!(run_in_browser);

mod common;
#[path = "../golden/reader.rs"]
mod golden;

// One line an op.
mod cumsum;
mod gather;
mod rms_norm;
mod rope;

// What concerns all of them.
#[cfg(target_arch = "wasm32")]
mod large;
#[cfg(target_arch = "wasm32")]
mod session;
