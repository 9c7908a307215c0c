//! wgrad: the backward passes of a language model as promises, on the user's own GPU.
//!
//! JavaScript uses the exports of [`js`] and of the last section of each file in
//! [`ops`]; `ARCHITECTURE.md` says how the layers hang together.

#![warn(missing_docs)]

pub mod error;
pub mod gpu;
#[cfg(target_arch = "wasm32")]
pub mod js;
pub mod op;
pub mod ops;
pub mod self_test;
pub mod shape;
pub mod tensor;

/// What the build script read from `shaders/`.
pub mod kernels {
    include!(concat!(env!("OUT_DIR"), "/kernels.rs"));
}
