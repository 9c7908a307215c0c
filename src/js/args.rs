//! Reading arguments, so that a wrong one is a `WgradError` and never a trap.

use crate::error::{Code, Error, Result, show};
use crate::op::Path;
use crate::shape::{Dtype, Shape};
use crate::tensor::Tensor;
use js_sys::{Object, Reflect};
use std::cell::RefCell;
use wasm_bindgen::prelude::wasm_bindgen;
use wasm_bindgen::{JsCast, JsValue};

thread_local! {
    static HANDED: RefCell<Option<Tensor>> = const { RefCell::new(None) };
}

#[wasm_bindgen]
extern "C" {
    type MaybeTensor;
    #[wasm_bindgen(method, structural, catch, js_name = __handOver)]
    // No value comes back: when a call throws, wasm-bindgen loses the slot that it took for one.
    fn hand_over(this: &MaybeTensor) -> std::result::Result<(), JsValue>;
    // js-sys's own does not catch what a revoked proxy throws.
    #[wasm_bindgen(catch, js_namespace = Array, js_name = isArray)]
    fn is_array(value: &JsValue) -> std::result::Result<bool, JsValue>;
}

/// Called by `Tensor.__handOver`.
pub fn receive(tensor: Tensor) {
    HANDED.set(Some(tensor));
}

/// The tensor behind a JavaScript value. wasm-bindgen's own conversion of a
/// class would throw a plain `Error` for anything else.
pub fn tensor(name: &'static str, value: &JsValue) -> Result<Tensor> {
    HANDED.take();
    // On anything but a Tensor of this module, nothing is handed over.
    let _ = value.unchecked_ref::<MaybeTensor>().hand_over();
    HANDED
        .take()
        .ok_or_else(|| Error::operand(Code::Argument, name, format!("must be a Tensor, got {}", kind(value))))
}

/// A few words on what a value is.
pub fn kind(value: &JsValue) -> String {
    if value.is_null() {
        return "null".into();
    }
    if let Some(number) = value.as_f64() {
        return show(number);
    }
    if let Some(text) = value.as_string() {
        return format!("{text:?}");
    }
    let kind = value.js_typeof().as_string().unwrap_or_default();
    if !value.is_object() {
        return kind;
    }
    // Any step may be missing or throw: an object need not have a prototype.
    let get = |object: &JsValue, name: &str| Reflect::get(object, &name.into());
    let name = get(value, "constructor").and_then(|class| get(&class, "name"));
    name.ok().and_then(|name| name.as_string()).unwrap_or(kind)
}

/// A whole number between `low` and `high`.
pub fn integer(name: &str, value: &JsValue, low: i64, high: i64) -> Result<i64> {
    match value.as_f64() {
        // Past 2^53 the cast saturates, and the range refuses it.
        Some(n) if n.fract() == 0.0 && (low..=high).contains(&(n as i64)) => Ok(n as i64),
        _ => {
            let fault = format!("must be an integer from {low} to {high}, got {}", kind(value));
            Err(Error::operand(Code::Argument, name, fault))
        }
    }
}

fn unreadable(name: &str) -> Error {
    Error::operand(Code::Argument, name, "cannot be read")
}

/// A property, of which a getter or proxy may make a throw.
fn property(object: &JsValue, key: &JsValue, name: &str) -> Result<JsValue> {
    Reflect::get(object, key).map_err(|_| unreadable(name))
}

/// The elements of an array, or `None` if it is none.
pub fn elements(name: &str, value: &JsValue) -> Result<Option<Vec<JsValue>>> {
    if !is_array(value).map_err(|_| unreadable(name))? {
        return Ok(None);
    }
    let length = property(value, &"length".into(), name)?.as_f64().unwrap_or(0.0) as u32;
    (0..length).map(|i| property(value, &i.into(), name)).collect::<Result<_>>().map(Some)
}

/// A shape given as an array of numbers.
pub fn shape(value: &JsValue) -> Result<Shape> {
    let as_shape = |e| Error { code: Code::Shape, ..e };
    let Some(dims) = elements("shape", value).map_err(as_shape)? else {
        let fault = format!("must be an array of integers, got {}", kind(value));
        return Err(Error::operand(Code::Shape, "shape", fault));
    };
    let dim = |dim: &JsValue| integer("shape", dim, 0, u32::MAX.into()).map(|n| n as u32);
    Shape::new(dims.iter().map(dim).collect::<Result<Vec<u32>>>().map_err(as_shape)?)
}

/// An optional element type name.
pub fn dtype(value: &JsValue) -> Result<Dtype> {
    if value.is_undefined() {
        return Ok(Dtype::F32);
    }
    let known = value.as_string().and_then(|name| Dtype::parse(&name));
    known.ok_or_else(|| {
        Error::operand(
            Code::Dtype,
            "dtype",
            format!("must be \"f32\", \"u32\" or \"i32\", got {}", kind(value)),
        )
    })
}

/// An object of options, each of a known name.
pub struct Options(JsValue);

impl Options {
    /// Fails if `value` is not an object (or absent) or has an option not in `known`.
    pub fn read(value: &JsValue, known: &[&str]) -> Result<Options> {
        Options::read_as("options", value, known)
    }

    /// The same for an option that is itself an object.
    pub fn read_as(name: &str, value: &JsValue, known: &[&str]) -> Result<Options> {
        if value.is_undefined() || (value.is_null() && name == "options") {
            return Ok(Options(JsValue::UNDEFINED));
        }
        // A forgotten brace puts an operand where the options belong.
        let is_operand = value.is_object() && tensor("options", value).is_ok();
        if !value.is_object() || is_operand || is_array(value).map_err(|_| unreadable(name))? {
            let fault = format!("must be an object, got {}", kind(value));
            return Err(Error::operand(Code::Argument, name, fault));
        }
        let object: &Object = value.unchecked_ref();
        let keys = Reflect::own_keys(object).map_err(|_| unreadable(name))?;
        for key in keys.iter().filter_map(|key| key.as_string()) {
            if !known.contains(&key.as_str()) {
                let fault = format!("is not an option here; the options are {}", known.join(", "));
                return Err(Error::operand(Code::Argument, &key, fault));
            }
        }
        Ok(Options(value.clone()))
    }

    /// The raw value, if given and not undefined.
    pub fn get(&self, name: &str) -> Result<Option<JsValue>> {
        if self.0.is_undefined() {
            return Ok(None);
        }
        let value = property(&self.0, &name.into(), name)?;
        Ok((!value.is_undefined()).then_some(value))
    }

    /// A number.
    pub fn number(&self, name: &str, default: f64) -> Result<f64> {
        let Some(value) = self.get(name)? else { return Ok(default) };
        value.as_f64().ok_or_else(|| {
            Error::operand(Code::Argument, name, format!("must be a number, got {}", kind(&value)))
        })
    }

    /// A whole number between `low` and `high`, if given.
    pub fn integer(&self, name: &str, low: i64, high: i64) -> Result<Option<i64>> {
        self.get(name)?.map(|value| integer(name, &value, low, high)).transpose()
    }

    /// A count that must be given.
    pub fn count(&self, name: &str) -> Result<u32> {
        Ok(integer(name, &self.get(name)?.unwrap_or(JsValue::UNDEFINED), 0, u32::MAX.into())? as u32)
    }

    /// A truth value, false by default.
    pub fn flag(&self, name: &str) -> Result<bool> {
        let Some(value) = self.get(name)? else { return Ok(false) };
        value.as_bool().ok_or_else(|| {
            Error::operand(Code::Argument, name, format!("must be true or false, got {}", kind(&value)))
        })
    }

    /// One of `choices`, the first by default: its place among them.
    pub fn choice(&self, name: &str, choices: &[&str]) -> Result<usize> {
        let Some(value) = self.get(name)? else { return Ok(0) };
        let text = value.as_string();
        choices.iter().position(|choice| text.as_deref() == Some(choice)).ok_or_else(|| {
            Error::operand(
                Code::Argument,
                name,
                format!("must be one of {}, got {}", choices.join(", "), kind(&value)),
            )
        })
    }

    /// A tensor, if given.
    pub fn tensor(&self, name: &'static str) -> Result<Option<Tensor>> {
        self.get(name)?.map(|value| tensor(name, &value)).transpose()
    }

    /// The `path` option.
    pub fn path(&self) -> Result<Path> {
        Ok([Path::Gpu, Path::Host][self.choice("path", &["gpu", "host"])?])
    }
}
