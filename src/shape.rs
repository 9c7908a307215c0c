//! Shapes, element types, and the checked arithmetic on them.

use crate::error::{Code, Error, Result};
use std::fmt;

/// Element types. All are four bytes wide.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dtype {
    /// 32-bit float.
    F32,
    /// 32-bit unsigned integer.
    U32,
    /// 32-bit signed integer.
    I32,
}

impl Dtype {
    /// Bytes an element takes.
    pub const fn bytes(self) -> u64 {
        4
    }

    /// The name JavaScript uses.
    pub fn as_str(self) -> &'static str {
        match self {
            Dtype::F32 => "f32",
            Dtype::U32 => "u32",
            Dtype::I32 => "i32",
        }
    }

    /// The element type of that name.
    pub fn parse(name: &str) -> Option<Self> {
        [Dtype::F32, Dtype::U32, Dtype::I32].into_iter().find(|d| d.as_str() == name)
    }
}

/// Dimensions of a contiguous row-major tensor; `[]` is a scalar.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shape(Vec<u32>);

impl Shape {
    /// A shape, refused if its element count or byte count passes 2^53.
    pub fn new(dims: impl Into<Vec<u32>>) -> Result<Self> {
        let dims = dims.into();
        // JavaScript cannot count past 2^53, and no buffer is that large.
        let count = dims.iter().try_fold(1u64, |n, &d| n.checked_mul(u64::from(d)));
        match count.and_then(|n| n.checked_mul(4)) {
            Some(bytes) if bytes <= 1 << 53 => Ok(Shape(dims)),
            _ => Err(Error::operand(
                Code::Limit,
                "shape",
                format!("{dims:?} has more elements than can be counted"),
            )),
        }
    }

    /// The dimensions.
    pub fn dims(&self) -> &[u32] {
        &self.0
    }

    /// How many dimensions there are.
    pub fn rank(&self) -> usize {
        self.0.len()
    }

    /// How many elements there are.
    pub fn count(&self) -> u64 {
        self.0.iter().map(|&d| u64::from(d)).product()
    }

    /// The last dimension, 1 for a scalar.
    pub fn last(&self) -> u32 {
        self.0.last().copied().unwrap_or(1)
    }

    /// The product of all dimensions but the last.
    pub fn rows(&self) -> u64 {
        self.0.iter().rev().skip(1).map(|&d| u64::from(d)).product()
    }

    /// Resolves an axis (negative counts from the end) and splits the shape at it.
    pub fn split(&self, axis: i64) -> Result<Split> {
        let rank = self.rank() as i64;
        let index = if axis < 0 { axis + rank } else { axis };
        if !(0..rank).contains(&index) {
            return Err(Error::operand(
                Code::Argument,
                "axis",
                format!("must be in [-{rank}, {rank}) for shape {self}, got {axis}"),
            ));
        }
        let index = index as usize;
        let product = |dims: &[u32]| dims.iter().map(|&d| u64::from(d)).product();
        Ok(Split {
            axis: index,
            outer: product(&self.0[..index]),
            n: self.0[index],
            inner: product(&self.0[index + 1..]),
        })
    }

    /// The same shape with `dims` in place of the dimension at `axis`.
    pub fn replace(&self, axis: usize, dims: &[u32]) -> Result<Shape> {
        Shape::new([&self.0[..axis], dims, &self.0[axis + 1..]].concat())
    }
}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.0)
    }
}

/// A shape seen as `[outer, n, inner]` around one axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Split {
    /// The axis, counted from the front.
    pub axis: usize,
    /// Elements before the axis.
    pub outer: u64,
    /// The axis itself.
    pub n: u32,
    /// Elements after it.
    pub inner: u64,
}

/// What an operand is, without its memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spec {
    /// Dimensions.
    pub shape: Shape,
    /// Element type.
    pub dtype: Dtype,
}

impl Spec {
    /// An f32 operand.
    pub fn f32(shape: Shape) -> Self {
        Spec { shape, dtype: Dtype::F32 }
    }

    /// Its size in bytes.
    pub fn bytes(&self) -> u64 {
        self.shape.count() * self.dtype.bytes()
    }

    /// Fails unless the element type is one of `allowed`.
    pub fn expect_dtype(&self, operand: &str, allowed: &[Dtype]) -> Result<()> {
        if allowed.contains(&self.dtype) {
            return Ok(());
        }
        let names: Vec<_> = allowed.iter().map(|d| d.as_str()).collect();
        let fault = format!("must be {}, got {}", names.join(" or "), self.dtype.as_str());
        Err(Error::operand(Code::Dtype, operand, fault))
    }

    /// Fails unless the shape is exactly `dims`.
    pub fn expect_shape(&self, operand: &str, dims: &[u32]) -> Result<()> {
        if self.shape.dims() == dims {
            return Ok(());
        }
        Err(Error::operand(Code::Shape, operand, format!("must have shape {dims:?}, got {}", self.shape)))
    }
}

/// `n` as a kernel counts it, or an error naming the dimension.
pub fn to_u32(operand: &str, n: u64) -> Result<u32> {
    u32::try_from(n).map_err(|_| {
        Error::operand(
            Code::Limit,
            operand,
            format!("has {n} elements or rows; a kernel counts to {}", u32::MAX),
        )
    })
}
