//! Known answers, run on this device: `gpu.selfTest()`.

use crate::error::Result;
use crate::gpu::Gpu;
use crate::op::{self, Op, Path};
use crate::ops::SELF_TESTS;
use crate::shape::{Dtype, Shape, Spec};
use crate::tensor::Tensor;
use std::rc::Rc;

/// Values of an operand.
#[derive(Clone)]
pub enum Values {
    /// Floats.
    F32(Vec<f32>),
    /// Indices.
    U32(Vec<u32>),
}

/// An op, operands, and the right results, worked out by hand or in f64.
pub struct Case {
    /// The op with its options.
    pub op: Rc<dyn Op>,
    /// Values and shape of each operand.
    pub inputs: Vec<(Values, Vec<u32>)>,
    /// Values of each result.
    pub wants: Vec<Vec<f32>>,
}

/// How one case went on one path.
pub struct Outcome {
    /// The op's name.
    pub op: &'static str,
    /// Where it ran.
    pub path: Path,
    /// The largest |got − want|/(1e-6 + 1e-5·|want|); passed if at most 1.
    pub error: Result<f64>,
}

impl Outcome {
    /// Whether every value was right.
    pub fn passed(&self) -> bool {
        matches!(self.error, Ok(error) if error <= 1.0)
    }
}

/// Runs every case on both paths.
pub async fn run(gpu: &Rc<Gpu>) -> Result<Vec<Outcome>> {
    gpu.alive()?;
    let mut outcomes = Vec::new();
    for case in SELF_TESTS.iter().flat_map(|cases| cases()) {
        for path in [Path::Gpu, Path::Host] {
            let error = run_case(gpu, &case, path).await;
            outcomes.push(Outcome { op: case.op.name(), path, error });
        }
    }
    Ok(outcomes)
}

async fn run_case(gpu: &Rc<Gpu>, case: &Case, path: Path) -> Result<f64> {
    let arena = gpu.default_arena()?;
    let inputs = case
        .inputs
        .iter()
        .map(|(values, dims)| {
            let shape = Shape::new(dims.clone())?;
            match values {
                Values::F32(values) => {
                    Tensor::upload_bytes(&arena, bytemuck::cast_slice(values), Spec::f32(shape))
                }
                Values::U32(values) => {
                    let spec = Spec { shape, dtype: Dtype::U32 };
                    Tensor::upload_bytes(&arena, bytemuck::cast_slice(values), spec)
                }
            }
        })
        .collect::<Result<Vec<Tensor>>>()?;
    let results = op::run(case.op.clone(), &inputs.iter().collect::<Vec<_>>(), &[], path)?.await?;
    let mut worst = 0.0f64;
    for (result, want) in results.iter().zip(&case.wants) {
        let got = result.read_f32().await?;
        if got.len() != want.len() {
            return Ok(f64::INFINITY);
        }
        for (&got, &want) in got.iter().zip(want) {
            let bound = 1e-6 + 1e-5 * f64::from(want).abs();
            let error = (f64::from(got) - f64::from(want)).abs() / bound;
            // A NaN must count as the worst, and `max` would drop it.
            worst = if error.is_nan() { f64::INFINITY } else { worst.max(error) };
        }
    }
    Ok(worst)
}
