//! An op with operands and the right results.

use std::rc::Rc;
use wgrad::error::Error;
use wgrad::op::Op;
use wgrad::shape::{Dtype, Shape, Spec};

/// What an operand holds.
#[derive(Clone)]
pub enum Values {
    F32(Vec<f32>),
    U32(Vec<u32>),
    I32(Vec<i32>),
}

impl Values {
    pub fn dtype(&self) -> Dtype {
        match self {
            Values::F32(_) => Dtype::F32,
            Values::U32(_) => Dtype::U32,
            Values::I32(_) => Dtype::I32,
        }
    }

    pub fn bytes(&self) -> &[u8] {
        match self {
            Values::F32(values) => bytemuck::cast_slice(values),
            Values::U32(values) => bytemuck::cast_slice(values),
            Values::I32(values) => bytemuck::cast_slice(values),
        }
    }
}

/// An operand.
#[derive(Clone)]
pub enum Input {
    /// A tensor of these values and dimensions.
    New(Values, Vec<u32>),
    /// The very tensor of an earlier operand.
    Same(usize),
}

pub fn f32s(values: &[f32], dims: &[u32]) -> Input {
    Input::New(Values::F32(values.to_vec()), dims.to_vec())
}

pub fn u32s(values: &[u32], dims: &[u32]) -> Input {
    Input::New(Values::U32(values.to_vec()), dims.to_vec())
}

pub fn i32s(values: &[i32], dims: &[u32]) -> Input {
    Input::New(Values::I32(values.to_vec()), dims.to_vec())
}

/// f64 copies, for the references.
pub fn wide(values: &[f32]) -> Vec<f64> {
    values.iter().map(|&value| f64::from(value)).collect()
}

/// Dimensions of a golden array.
pub fn dims(shape: &[usize]) -> Vec<u32> {
    shape.iter().map(|&n| u32::try_from(n).expect("a dimension fits u32")).collect()
}

/// How far off a value may be: `abs + rel·|want|`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bound {
    pub abs: f64,
    pub rel: f64,
}

impl Bound {
    /// What the library promises.
    pub const USUAL: Bound = Bound { abs: 1e-6, rel: 1e-5 };
    /// Equal once both are f32.
    pub const EXACT: Bound = Bound { abs: 0.0, rel: 0.0 };
    /// The rounding of one f32, of which golden files are made; absolute for zeros
    /// that come out of f64 sums as 1e-17.
    pub const ROUNDED: Bound = Bound { abs: 1e-12, rel: 1e-7 };

    pub fn abs(abs: f64) -> Bound {
        Bound { abs, rel: 0.0 }
    }

    pub fn of(self, want: f64) -> f64 {
        self.abs + self.rel * want.abs()
    }
}

/// The right values of a result, from an f64 reference.
#[derive(Clone)]
pub struct Want {
    pub values: Vec<f64>,
    pub bound: Bound,
}

impl Want {
    pub fn new(values: Vec<f64>) -> Want {
        Want { values, bound: Bound::USUAL }
    }

    /// For values so coarse that every order of f32 sums is exact, and for copies.
    pub fn exact(self) -> Want {
        Want { bound: Bound::EXACT, ..self }
    }

    /// For values far from 1, where 1e-6 would be all or nothing: the same bound in
    /// units of the largest value.
    pub fn scaled(self) -> Want {
        let largest = self.values.iter().fold(0.0f64, |a, b| a.max(b.abs()));
        Want { bound: Bound { abs: 1e-6 * largest, rel: 1e-5 }, ..self }
    }
}

/// Values known from elsewhere (a public report, a golden file).
pub struct Known {
    pub output: usize,
    pub from: usize,
    pub values: Vec<f64>,
    pub bound: Bound,
    /// How well the reference must know them.
    pub reference_bound: Bound,
}

/// A call and its right results.
pub struct Case {
    pub name: String,
    pub op: Rc<dyn Op>,
    pub inputs: Vec<Input>,
    pub wants: Vec<Want>,
    pub known: Vec<Known>,
    /// The fault it must report, with results whole.
    pub fault: Option<Error>,
}

impl Case {
    pub fn new(name: impl Into<String>, op: impl Op, inputs: Vec<Input>, wants: Vec<Want>) -> Case {
        Case { name: name.into(), op: Rc::new(op), inputs, wants, known: Vec::new(), fault: None }
    }

    /// Result `output` is known to hold `values` from element `from` on.
    pub fn says(self, output: usize, from: usize, values: &[f64]) -> Case {
        self.says_within(Bound::USUAL, output, from, values)
    }

    /// [`Case::says`] with another bound; say why where it is used.
    pub fn says_within(mut self, bound: Bound, output: usize, from: usize, values: &[f64]) -> Case {
        self.known.push(Known { output, from, values: values.to_vec(), bound, reference_bound: bound });
        self
    }

    /// The whole of a result as a golden file has it.
    pub fn golden(mut self, output: usize, values: &[f32]) -> Case {
        let (values, bound) = (wide(values), self.wants[output].bound);
        self.known.push(Known { output, from: 0, values, bound, reference_bound: Bound::ROUNDED });
        self
    }

    pub fn faulting(self, fault: Error) -> Case {
        Case { fault: Some(fault), ..self }
    }

    /// Results compared for equality.
    pub fn exact(self) -> Case {
        Case { wants: self.wants.into_iter().map(Want::exact).collect(), ..self }
    }

    /// Results compared in units of their largest value.
    pub fn scaled(self) -> Case {
        Case { wants: self.wants.into_iter().map(Want::scaled).collect(), ..self }
    }

    /// Values and shape of operand `i`, seen through [`Input::Same`].
    pub fn input(&self, i: usize) -> (&Values, Spec) {
        match &self.inputs[i] {
            Input::Same(earlier) => self.input(*earlier),
            Input::New(values, dims) => {
                let shape = Shape::new(dims.clone()).expect("a case has a small shape");
                (values, Spec { shape, dtype: values.dtype() })
            }
        }
    }

    pub fn specs(&self) -> Vec<Spec> {
        (0..self.inputs.len()).map(|i| self.input(i).1).collect()
    }
}
