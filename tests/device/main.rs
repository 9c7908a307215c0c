//! The arena, the readback and the kernel cache on a real device, in each browser. The
//! other half of their tests is in tests/js, through the JavaScript classes.
#![cfg(target_arch = "wasm32")]

mod arena;
mod kernels;
mod lab;
mod lost;
mod readback;

wasm_bindgen_test::wasm_bindgen_test_configure!(run_in_browser);
