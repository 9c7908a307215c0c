//! Errors as JavaScript `Error`s.

use super::set;
use crate::error::Error;
use wasm_bindgen::JsValue;
use wasm_bindgen::prelude::wasm_bindgen;

#[wasm_bindgen(typescript_custom_section)]
const TYPES: &str = r#"
/** What went wrong. */
export type WgradErrorCode =
  /** No WebGPU, no adapter, or a page that is not a secure context; the message says which. */
  | "unsupported"
  /** A shape does not fit the op or another operand. */
  | "shape"
  /** An operand holds another element type than the op takes. */
  | "dtype"
  /** An option, offset or value is not acceptable. */
  | "argument"
  /** An output shares memory with another operand. */
  | "alias"
  /** The handle was freed, or its arena or Gpu destroyed. */
  | "disposed"
  /** Memory could not be had. */
  | "out-of-memory"
  /** More than the device allows in one piece; the message names the limit. */
  | "limit"
  /** An index pointed outside its axis. It contributed nowhere; the values stay readable. */
  | "index-out-of-range"
  /** A value that must be finite is not. */
  | "non-finite"
  /** A shader did not compile; the message has line and column. */
  | "shader"
  /** The GPU device was lost. Make a new Gpu. */
  | "device-lost"
  /** A fault of wgrad or of the browser. */
  | "internal";

/** Every error of this library: an `Error` with a code. */
export interface WgradError extends Error {
  name: "WgradError";
  code: WgradErrorCode;
  /** The op or method at fault. */
  op?: string;
  /** The operand or option at fault. */
  operand?: string;
}
"#;

/// The error as a `WgradError`.
pub fn to_js(error: &Error) -> JsValue {
    let js = js_sys::Error::new(&error.to_string());
    js.set_name("WgradError");
    set(&js, "code", &error.code.as_str().into());
    if let Some(op) = error.op {
        set(&js, "op", &op.into());
    }
    if let Some(operand) = &error.operand {
        set(&js, "operand", &operand.as_str().into());
    }
    js.into()
}
