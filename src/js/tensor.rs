//! `Tensor`.

use super::{Pending, args, no_constructor, or_throw, promise, raw};
use crate::error::{Code, Error, Result};
use crate::gpu::Arena;
use crate::shape::{Dtype, Shape, Spec};
use crate::tensor::{Tensor, check_length};
use js_sys::{Array, Float32Array, Int32Array, Object, Promise, Uint32Array};
use std::rc::Rc;
use wasm_bindgen::prelude::wasm_bindgen;
use wasm_bindgen::{JsCast, JsValue};

type Thrown<T> = std::result::Result<T, JsValue>;

#[wasm_bindgen(typescript_custom_section)]
const TYPES: &str = r#"
/** Element types, four bytes each. */
export type Dtype = "f32" | "u32" | "i32";

/** Values of a tensor: the array's type is the dtype. */
export type TensorData = Float32Array | Uint32Array | Int32Array;
"#;

/// A contiguous row-major tensor in GPU memory. Free it when done: JavaScript's
/// garbage collector does not see GPU memory.
#[wasm_bindgen(js_name = Tensor)]
pub struct JsTensor(Tensor);

impl JsTensor {
    /// The JavaScript side of a tensor.
    pub fn new(tensor: Tensor) -> JsTensor {
        JsTensor(tensor)
    }

    /// The JavaScript object for a tensor.
    pub fn wrap(tensor: Tensor) -> JsValue {
        JsTensor(tensor).into()
    }
}

impl JsTensor {
    fn start_read(&self) -> Result<Pending> {
        let operand = self.0.operand("tensor")?;
        let dtype = operand.spec.dtype;
        let read = operand.gpu().read(vec![operand.span.clone()], move |mapped| {
            let buffer = raw::copy_out(mapped.view().as_uint8array(), mapped.range(0))?.buffer();
            Ok(match dtype {
                Dtype::F32 => Float32Array::new(&buffer).into(),
                Dtype::U32 => Uint32Array::new(&buffer).into(),
                Dtype::I32 => Int32Array::new(&buffer).into(),
            })
        })?;
        Ok(Box::pin(async move { read.await? }))
    }
}

/// A new tensor holding a typed array.
pub fn upload(arena: &Rc<Arena>, data: &JsValue, shape: &JsValue) -> Result<JsTensor> {
    let shape = args::shape(shape)?;
    let (dtype, length) = typed_array(data)?;
    let spec = Spec { shape, dtype };
    check_length(&spec, u64::from(length) * dtype.bytes())?;
    let tensor = Tensor::new(arena, spec)?;
    raw::write(arena.gpu(), &tensor.operand("tensor")?.span, data.unchecked_ref())?;
    Ok(JsTensor(tensor))
}

fn typed_array(data: &JsValue) -> Result<(Dtype, u32)> {
    if let Some(data) = data.dyn_ref::<Float32Array>() {
        Ok((Dtype::F32, data.length()))
    } else if let Some(data) = data.dyn_ref::<Uint32Array>() {
        Ok((Dtype::U32, data.length()))
    } else if let Some(data) = data.dyn_ref::<Int32Array>() {
        Ok((Dtype::I32, data.length()))
    } else {
        let fault = format!("must be a Float32Array, Uint32Array or Int32Array, got {}", args::kind(data));
        Err(Error::operand(Code::Dtype, "data", fault))
    }
}

#[wasm_bindgen(js_class = Tensor)]
impl JsTensor {
    /// Throws: without this, `new` would make an object of nothing.
    #[wasm_bindgen(constructor, skip_typescript)]
    pub fn refuse_new() -> Thrown<JsTensor> {
        no_constructor("Tensor")
    }

    /// Its dimensions; `[]` for a scalar.
    #[wasm_bindgen(getter, unchecked_return_type = "number[]")]
    pub fn shape(&self) -> Array {
        self.0.shape().dims().iter().map(|&dim| JsValue::from(dim)).collect()
    }

    /// Its element type.
    #[wasm_bindgen(getter, unchecked_return_type = "Dtype")]
    pub fn dtype(&self) -> String {
        self.0.spec().dtype.as_str().into()
    }

    /// How many elements it has.
    #[wasm_bindgen(getter)]
    pub fn length(&self) -> f64 {
        self.0.shape().count() as f64
    }

    /// Where it starts in `buffer`, in bytes. Throws `disposed`.
    #[wasm_bindgen(getter, js_name = byteOffset)]
    pub fn byte_offset(&self) -> Thrown<f64> {
        or_throw("byteOffset", self.0.operand("tensor")).map(|operand| operand.span.offset as f64)
    }

    /// The `GPUBuffer` it lies in, for other libraries on the same `gpu.device`.
    /// Work of wgrad is in the device's queue once its promise has settled. Throws `disposed`.
    #[wasm_bindgen(getter, unchecked_return_type = "GPUBuffer")]
    pub fn buffer(&self) -> Thrown<JsValue> {
        or_throw("buffer", self.0.operand("tensor")).map(|operand| raw::buffer(&operand.span))
    }

    /// Whether the handle still has its memory.
    #[wasm_bindgen(getter)]
    pub fn disposed(&self) -> bool {
        self.0.operand("tensor").is_err()
    }

    /// The values, after everything queued so far, in an array that JavaScript owns.
    /// The tensor may be freed or written to while the promise is pending.
    ///
    /// Settles when the GPU is done. Rejects with `disposed`, `device-lost`,
    /// `index-out-of-range` (an op before met a bad index; read again for the values)
    /// or an error of earlier work.
    #[wasm_bindgen(unchecked_return_type = "Promise<TensorData>")]
    pub fn read(&self) -> Promise {
        promise("read", self.start_read())
    }

    /// Replaces the values, after everything queued so far. `data` is copied at
    /// once; its type must be the tensor's. Throws `disposed`, `dtype` or `shape`.
    pub fn write(&self, #[wasm_bindgen(unchecked_param_type = "TensorData")] data: &JsValue) -> Thrown<()> {
        let write = || {
            let operand = self.0.operand("tensor")?;
            let (dtype, length) = typed_array(data)?;
            if dtype != operand.spec.dtype {
                let fault = format!(
                    "must be {} like the tensor, got {}",
                    operand.spec.dtype.as_str(),
                    dtype.as_str()
                );
                return Err(Error::operand(Code::Dtype, "data", fault));
            }
            check_length(&operand.spec, u64::from(length) * dtype.bytes())?;
            raw::write(operand.gpu(), &operand.span, data.unchecked_ref::<Object>())
        };
        or_throw("write", write())
    }

    /// Gives the memory back. Later uses are `disposed` errors; calls in flight
    /// finish; freeing twice is harmless.
    #[wasm_bindgen(skip_typescript)] // wasm-bindgen declares it with [Symbol.dispose]
    pub fn free(&self) {
        self.0.free();
    }

    /// How `args::tensor` gets at the handle without consuming the JavaScript object.
    #[wasm_bindgen(js_name = __handOver, skip_typescript)]
    pub fn hand_over(&self) {
        args::receive(self.0.clone());
    }
}

/// A tensor with unspecified values.
pub fn alloc(arena: &Rc<Arena>, shape: Shape, dtype: Dtype) -> Result<JsTensor> {
    Ok(JsTensor(Tensor::new(arena, Spec { shape, dtype })?))
}
