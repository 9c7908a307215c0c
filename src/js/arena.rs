//! `Arena`.

use super::{JsTensor, Options, args, no_constructor, or_throw, set, tensor as js_tensor};
use crate::error::Result;
use crate::gpu::{Arena, Memory};
use crate::shape::{Dtype, Shape, Spec};
use crate::tensor::Tensor;
use js_sys::Object;
use std::rc::Rc;
use wasm_bindgen::JsValue;
use wasm_bindgen::prelude::wasm_bindgen;

type Thrown<T> = std::result::Result<T, JsValue>;

#[wasm_bindgen(typescript_custom_section)]
const TYPES: &str = r#"
/** Bytes of GPU memory. */
export interface Memory {
  /** In buffers that exist. */
  allocated: number;
  /** In live tensors, each rounded up to 256 bytes. */
  used: number;
  /** The most that was ever in use at once. */
  peak: number;
}
"#;

/// GPU memory for tensors, in a few large buffers. Data never moves.
#[wasm_bindgen(js_name = Arena)]
pub struct JsArena(Rc<Arena>);

impl JsArena {
    /// The JavaScript side of an arena.
    pub fn new(arena: Rc<Arena>) -> JsArena {
        JsArena(arena)
    }

    /// The operand at the byte offset in option `name`, for the `run…` methods.
    pub fn operand_at(
        &self,
        options: &Options,
        name: &'static str,
        dims: &[u32],
        dtype: Dtype,
    ) -> Result<Tensor> {
        let value = options.get(name)?.unwrap_or(JsValue::UNDEFINED);
        let offset = args::integer(name, &value, 0, MAX_OFFSET)?;
        let at = Tensor::at(&self.0, offset as u64, Spec { shape: Shape::new(dims)?, dtype });
        at.map_err(|e| crate::error::Error {
            message: format!("{name}: {}", e.message),
            operand: Some(name.into()),
            ..e
        })
    }
}

/// 2^53, past which JavaScript's numbers skip integers.
const MAX_OFFSET: i64 = 1 << 53;

/// Memory as a JavaScript object.
pub fn memory(memory: Memory) -> Object {
    let object = Object::new();
    set(&object, "allocated", &(memory.allocated as f64).into());
    set(&object, "used", &(memory.used as f64).into());
    set(&object, "peak", &(memory.peak as f64).into());
    object
}

#[wasm_bindgen(js_class = Arena)]
impl JsArena {
    /// Throws: without this, `new` would make an object of nothing.
    #[wasm_bindgen(constructor, skip_typescript)]
    pub fn refuse_new() -> Thrown<JsArena> {
        no_constructor("Arena")
    }

    /// A new tensor; its values are unspecified until written.
    ///
    /// Throws `shape`, `dtype`, `limit` (more than one binding holds), `out-of-memory`,
    /// `disposed` or `device-lost`, and leaves the arena as it was.
    pub fn alloc(
        &self,
        #[wasm_bindgen(unchecked_param_type = "readonly number[]")] shape: &JsValue,
        #[wasm_bindgen(unchecked_optional_param_type = "Dtype")] dtype: &JsValue,
    ) -> Thrown<JsTensor> {
        or_throw(
            "alloc",
            args::shape(shape).and_then(|shape| js_tensor::alloc(&self.0, shape, args::dtype(dtype)?)),
        )
    }

    /// A new tensor with the values of a typed array, whose type is the dtype.
    /// `data` is copied at once. Throws as `alloc` does.
    pub fn upload(
        &self,
        #[wasm_bindgen(unchecked_param_type = "TensorData")] data: &JsValue,
        #[wasm_bindgen(unchecked_param_type = "readonly number[]")] shape: &JsValue,
    ) -> Thrown<JsTensor> {
        or_throw("upload", js_tensor::upload(&self.0, data, shape))
    }

    /// A view of the arena's first buffer (the bytes that `gpu.arena(bytes)` asked for)
    /// from `byteOffset`, a multiple of 256. It owns nothing: what `alloc` hands out
    /// may overlap it, so lay out an arena either by hand or by `alloc`.
    ///
    /// Throws `argument` if the offset is not a multiple of 256 or the view does not fit.
    pub fn at(
        &self,
        #[wasm_bindgen(js_name = byteOffset, unchecked_param_type = "number")] byte_offset: &JsValue,
        #[wasm_bindgen(unchecked_param_type = "readonly number[]")] shape: &JsValue,
        #[wasm_bindgen(unchecked_optional_param_type = "Dtype")] dtype: &JsValue,
    ) -> Thrown<JsTensor> {
        let at = || {
            let offset = args::integer("byteOffset", byte_offset, 0, MAX_OFFSET)?;
            let spec = Spec { shape: args::shape(shape)?, dtype: args::dtype(dtype)? };
            Ok(JsTensor::new(Tensor::at(&self.0, offset as u64, spec)?))
        };
        or_throw("at", at())
    }

    /// Bytes of this arena.
    #[wasm_bindgen(unchecked_return_type = "Memory")]
    pub fn memory(&self) -> Object {
        memory(self.0.memory())
    }

    /// Forgets all tensors, whose handles are disposed; keeps the memory for new ones.
    /// Throws `disposed` or `device-lost`.
    pub fn reset(&self) -> Thrown<()> {
        or_throw("reset", self.0.reset())
    }

    /// Frees the GPU memory; all tensors are disposed. Calls queued before still finish.
    pub fn destroy(&self) {
        self.0.destroy();
    }

    /// The same as `destroy`, for `using`.
    #[wasm_bindgen(skip_typescript)] // wasm-bindgen declares it with [Symbol.dispose]
    pub fn free(&self) {
        self.0.destroy();
    }
}
