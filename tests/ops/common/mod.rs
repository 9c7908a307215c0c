//! What the tests of every op share: cases with right answers, the comparison, and
//! the runs that hold an op to them, on the host natively and on the GPU in a browser.

mod case;
mod compare;
mod rng;

pub use case::{Bound, Case, Input, Values, Want, dims, f32s, i32s, u32s, wide};
pub use compare::Report;
pub use rng::Rng;

#[cfg(not(target_arch = "wasm32"))]
mod native;
#[cfg(not(target_arch = "wasm32"))]
pub use native::{check_compute, check_gradient};

#[cfg(target_arch = "wasm32")]
mod lab;
#[cfg(target_arch = "wasm32")]
mod large;
#[cfg(target_arch = "wasm32")]
mod memory;
#[cfg(target_arch = "wasm32")]
mod refuse;
#[cfg(target_arch = "wasm32")]
mod run;
#[cfg(target_arch = "wasm32")]
pub use lab::{Lab, gpu_test};
#[cfg(target_arch = "wasm32")]
pub use large::{LargeResult, Repeated, repeated_f32};
#[cfg(target_arch = "wasm32")]
pub use memory::NAN;

/// Prints a line, also from a browser.
pub fn say(line: &str) {
    #[cfg(target_arch = "wasm32")]
    wasm_bindgen_test::console_log!("{line}");
    #[cfg(not(target_arch = "wasm32"))]
    println!("{line}");
}
