//! What JavaScript sees: classes, promises and errors. Exports are plain
//! functions that clone handles and return a promise, so that a handle may be
//! freed, or a second call made, while a promise is pending.

mod arena;
mod args;
mod error;
mod gpu;
mod raw;
mod tensor;

pub use arena::JsArena;
pub use args::{Options, elements, tensor};
pub use gpu::JsGpu;
pub use tensor::JsTensor;

use crate::error::{Code, Error, Result};
use crate::op::{self, Op};
use crate::tensor::Tensor;
use js_sys::{Object, Promise, Reflect};
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use wasm_bindgen::JsValue;
use wasm_bindgen::prelude::wasm_bindgen;

#[wasm_bindgen(typescript_custom_section)]
const TYPES: &str = r#"
/** Where an op runs: `"gpu"` (WGSL kernels, the default) or `"host"` (operands are read back, computed in wasm, results written). */
export type Path = "gpu" | "host";

/** Options that every op takes. */
export interface OpOptions {
  /** Where to run; the results are the same up to rounding. Default `"gpu"`. */
  path?: Path;
}

/** Options of every op with one result. */
export interface OutOptions extends OpOptions {
  /** Tensor that receives the result: of the right shape and dtype, overlapping no operand. Default: a new one in the first operand's arena. */
  out?: Tensor;
}
"#;

/// Work in flight. Boxed, since a copy of the promise machinery for each kind of
/// future would be most of the wasm file.
pub type Pending = Pin<Box<dyn Future<Output = Result<JsValue>>>>;

/// The outcome of a call, made already, as a promise.
pub fn promise(name: &'static str, call: Result<Pending>) -> Promise {
    match call {
        Ok(future) => wasm_bindgen_futures::future_to_promise(async move {
            future.await.map_err(|e| error::to_js(&e.in_op(name)))
        }),
        Err(e) => Promise::reject(&error::to_js(&e.called(name))),
    }
}

/// What `new` gives for a class that is made by a call.
pub fn no_constructor<T>(class: &'static str) -> std::result::Result<T, JsValue> {
    or_throw(
        class,
        Err(Error::new(Code::Argument, "is not made by new: Gpu.create() gives a Gpu, that the rest")),
    )
}

/// A value, or a thrown `WgradError`.
pub fn or_throw<T>(name: &'static str, result: Result<T>) -> std::result::Result<T, JsValue> {
    result.map_err(|e| error::to_js(&e.called(name)))
}

/// Runs an op with one result as a `Promise<Tensor>`. `call` reads the arguments.
pub fn one(name: &'static str, call: impl FnOnce() -> Result<Call>) -> Promise {
    start(name, call(), |_, results| results.into_iter().next().map_or(JsValue::UNDEFINED, JsTensor::wrap))
}

/// Runs an op with several results as a promise of an object of them.
pub fn several(name: &'static str, call: impl FnOnce() -> Result<Call>) -> Promise {
    start(name, call(), |names, results| {
        let object = Object::new();
        for (name, tensor) in names.into_iter().zip(results) {
            set(&object, name, &JsTensor::wrap(tensor));
        }
        object.into()
    })
}

/// Runs an op whose results are given, as a `Promise<void>`.
pub fn none(name: &'static str, call: impl FnOnce() -> Result<Call>) -> Promise {
    start(name, call(), |_, _| JsValue::UNDEFINED)
}

fn start(
    name: &'static str,
    call: Result<Call>,
    wrap: fn(Vec<&'static str>, Vec<Tensor>) -> JsValue,
) -> Promise {
    let pending = call.and_then(|call| {
        let names = call.op.outputs();
        let results = call.run()?;
        let pending: Pending = Box::pin(async move { Ok(wrap(names, results.await?)) });
        Ok(pending)
    });
    promise(name, pending)
}

/// An op with its arguments, read from JavaScript.
pub struct Call {
    op: Rc<dyn Op>,
    inputs: Vec<Tensor>,
    out: Vec<Option<Tensor>>,
    path: op::Path,
    /// The option that names the one result, where it is not the op's own word for it.
    option: Option<&'static str>,
}

impl Call {
    /// A call with the `out` and `path` of `options`.
    pub fn new(op: impl Op, inputs: Vec<Tensor>, options: &Options) -> Result<Call> {
        let out = options.tensor("out")?;
        let (option, path) = (out.as_ref().map(|_| "out"), options.path()?);
        Ok(Call { op: Rc::new(op), inputs, out: vec![out], path, option })
    }

    /// A call with the `path` of `options`, whose `out` names a tensor for any of the results.
    pub fn with_outs(op: impl Op, inputs: Vec<Tensor>, options: &Options) -> Result<Call> {
        let names = op.outputs();
        let outs = Options::read_as("out", &options.get("out")?.unwrap_or(JsValue::UNDEFINED), &names)?;
        let out = names.into_iter().map(|name| outs.tensor(name)).collect::<Result<_>>()?;
        Ok(Call { op: Rc::new(op), inputs, out, path: options.path()?, option: None })
    }

    /// The same call, writing to `out`, which the caller calls `name`.
    pub fn writing_to(self, name: &'static str, out: Tensor) -> Call {
        Call { out: vec![Some(out)], option: Some(name), ..self }
    }

    fn run(self) -> Result<impl Future<Output = Result<Vec<Tensor>>> + use<>> {
        let inputs: Vec<&Tensor> = self.inputs.iter().collect();
        let out: Vec<Option<&Tensor>> = self.out.iter().map(Option::as_ref).collect();
        let result = self.op.outputs()[0];
        let call = op::run(self.op, &inputs, &out, self.path);
        call.map_err(|e| match self.option {
            Some(option) if e.operand.as_deref() == Some(result) => e.renamed(result, option),
            _ => e,
        })
    }
}

/// Sets a property of an object of our own making, which cannot fail.
pub(crate) fn set(object: &Object, name: &str, value: &JsValue) {
    let _ = Reflect::set(object, &name.into(), value);
}
