//! The browser's own objects, where wgpu's calls would copy data through wasm
//! memory or have no counterpart.

use crate::error::{Code, Error, Result};
use crate::gpu::{Gpu, Span};
use js_sys::{Object, Uint8Array};
use std::ops::Range;
use std::rc::Rc;
use wasm_bindgen::prelude::wasm_bindgen;
use wasm_bindgen::{JsCast, JsValue};

#[wasm_bindgen]
extern "C" {
    type RawQueue;
    #[wasm_bindgen(method, structural, catch, js_name = writeBuffer)]
    fn write_buffer(
        this: &RawQueue,
        buffer: &JsValue,
        offset: f64,
        data: &Object,
    ) -> std::result::Result<(), JsValue>;
}

#[wasm_bindgen]
extern "C" {
    type RawBytes;
    #[wasm_bindgen(method, structural, catch)]
    fn slice(this: &RawBytes, start: f64, end: f64) -> std::result::Result<Uint8Array, JsValue>;
}

/// A copy of some bytes that JavaScript owns.
pub fn copy_out(bytes: &Uint8Array, range: Range<u64>) -> Result<Uint8Array> {
    let copy = bytes.unchecked_ref::<RawBytes>().slice(range.start as f64, range.end as f64);
    copy.map_err(|e| Error::new(Code::OutOfMemory, format!("JavaScript has no room for the values: {e:?}")))
}

/// The `GPUDevice`.
pub fn device(gpu: &Gpu) -> JsValue {
    gpu.device.as_webgpu().map_or(JsValue::UNDEFINED, |device| device.clone().into())
}

/// The `GPUBuffer`.
pub fn buffer(span: &Span) -> JsValue {
    span.buffer.as_webgpu().map_or(JsValue::UNDEFINED, |buffer| buffer.clone().into())
}

/// Writes a typed array after everything queued so far.
pub fn write(gpu: &Rc<Gpu>, span: &Span, data: &Object) -> Result<()> {
    gpu.alive()?;
    gpu.flush();
    let queue = gpu.queue.as_webgpu().map_or(JsValue::UNDEFINED, |queue| queue.clone().into());
    queue
        .unchecked_ref::<RawQueue>()
        .write_buffer(&buffer(span), span.offset as f64, data)
        .map_err(|e| Error::new(Code::Internal, format!("the browser refused the data: {e:?}")))
}
