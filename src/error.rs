//! The one error type: a code that programs can match on, the op and operand at
//! fault, and a message for people.

use std::fmt;

/// What went wrong, in the words that JavaScript sees in `error.code`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Code {
    /// No WebGPU, no adapter, or a page that is not a secure context.
    Unsupported,
    /// A shape does not fit the op or another operand.
    Shape,
    /// An operand holds another element type than the op takes.
    Dtype,
    /// An option, offset or value is not acceptable.
    Argument,
    /// An output shares memory with another operand.
    Alias,
    /// The handle was freed, or its arena or GPU destroyed.
    Disposed,
    /// Memory could not be had.
    OutOfMemory,
    /// More than the device allows in one piece.
    Limit,
    /// An index pointed outside its axis.
    IndexOutOfRange,
    /// A value that must be finite is not.
    NonFinite,
    /// A shader did not compile.
    Shader,
    /// The GPU device was lost.
    DeviceLost,
    /// A fault of wgrad itself or of the browser.
    Internal,
}

impl Code {
    /// The code as JavaScript sees it.
    pub fn as_str(self) -> &'static str {
        match self {
            Code::Unsupported => "unsupported",
            Code::Shape => "shape",
            Code::Dtype => "dtype",
            Code::Argument => "argument",
            Code::Alias => "alias",
            Code::Disposed => "disposed",
            Code::OutOfMemory => "out-of-memory",
            Code::Limit => "limit",
            Code::IndexOutOfRange => "index-out-of-range",
            Code::NonFinite => "non-finite",
            Code::Shader => "shader",
            Code::DeviceLost => "device-lost",
            Code::Internal => "internal",
        }
    }
}

/// A `WgradError`. Its text is `op: message`, and the message names the operand.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    /// What kind of fault.
    pub code: Code,
    /// The op or call at fault, by its JavaScript name.
    pub op: Option<&'static str>,
    /// The operand or option at fault.
    pub operand: Option<String>,
    /// What was expected and what came.
    pub message: String,
}

/// Results of this crate.
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    /// An error that concerns no single operand.
    pub fn new(code: Code, message: impl Into<String>) -> Self {
        Error { code, op: None, operand: None, message: message.into() }
    }

    /// An error about one operand; `fault` continues a sentence that starts with its name.
    pub fn operand(code: Code, operand: &str, fault: impl fmt::Display) -> Self {
        let message = format!("{operand} {fault}");
        Error { code, op: None, operand: Some(operand.to_string()), message }
    }

    /// The same error with the operand, at the start of the message, by another name.
    pub fn renamed(mut self, from: &str, to: &str) -> Self {
        if let Some(rest) = self.message.strip_prefix(from) {
            self.message = format!("{to}{rest}");
        }
        self.operand = Some(to.into());
        self
    }

    /// The same error, told to be of `op`, the name it was called by.
    pub fn called(mut self, op: &'static str) -> Self {
        self.op = Some(op);
        self
    }

    /// The same error, told to be of `op` unless it is known to be of another.
    pub fn in_op(mut self, op: &'static str) -> Self {
        self.op = self.op.or(Some(op));
        self
    }
}

/// A number for a message. In the browser JavaScript formats it, since Rust's code
/// for that takes 20 kB.
pub fn show(number: f64) -> String {
    #[cfg(target_arch = "wasm32")]
    return js_sys::Number::from(number).to_string_with_radix(10).unwrap_or_default().into();
    #[cfg(not(target_arch = "wasm32"))]
    number.to_string()
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.op {
            Some(op) => write!(f, "{op}: {}", self.message),
            None => f.write_str(&self.message),
        }
    }
}

impl std::error::Error for Error {}
