//! RMSNorm (Zhang & Sennrich 2019) of x [rows, h]: `r = 1/sqrt(mean(x²) + eps)`
//! per row, `y = x·r·gamma + beta`.

mod host;
#[cfg(target_arch = "wasm32")]
mod js;

use crate::error::{Code, Error, Result, show};
use crate::kernels::rms_norm::{BackwardInput, ColumnPartials, ColumnSums, Forward, Params, RowScale};
use crate::op::{Call, Host, Op};
use crate::self_test::{Case, Values};
use crate::shape::{Dtype, Spec, to_u32};
use crate::tensor::Operand;
use std::rc::Rc;

/// Rows and row length of x.
#[derive(Clone, Copy)]
struct Dims {
    rows: u32,
    h: u32,
}

impl Dims {
    fn of(x: &Spec) -> Result<Dims> {
        x.expect_dtype("x", &[Dtype::F32])?;
        if x.shape.rank() == 0 || x.shape.last() == 0 {
            return Err(Error::operand(
                Code::Shape,
                "x",
                format!("must be [rows, h] with h > 0, got {}", x.shape),
            ));
        }
        to_u32("x", x.shape.count())?;
        Ok(Dims { rows: to_u32("x", x.shape.rows())?, h: x.shape.last() })
    }

    /// Lanes that share a row. A lane with but one or two columns spends its time in
    /// barriers, so short rows take few.
    fn lanes(self) -> u32 {
        match self.h {
            0..=16 => 8,
            17..=128 => 16,
            129..=512 => 64,
            _ => 256,
        }
    }

    /// Workgroups of the kernels that work row by row.
    fn row_groups(self) -> u32 {
        self.rows.div_ceil(256 / self.lanes())
    }

    /// How the column sums cut the rows: chunks of 64 rows and more, at most 512.
    fn chunks(self) -> (u32, u32) {
        let chunk_rows = self.rows.div_ceil(512).max(64);
        (self.rows.div_ceil(chunk_rows).max(1), chunk_rows)
    }

    fn params(self, eps: f32, groups: u32) -> Params {
        let (chunks, chunk_rows) = self.chunks();
        Params { rows: self.rows, h: self.h, eps, groups, chunks, chunk_rows, ..Params::default() }
    }
}

fn check_eps(eps: f32) -> Result<()> {
    if eps.is_finite() && eps >= 0.0 {
        return Ok(());
    }
    let fault = format!("must be a finite number of 0 or more, got {}", show(eps.into()));
    Err(Error::operand(Code::Argument, "eps", fault))
}

/// `y = x·r·gamma (+ beta)`; operands x [.., h], gamma [h] (, beta [h]).
pub struct RmsNorm {
    /// Added to the mean square.
    pub eps: f32,
    /// Whether there is a third operand.
    pub beta: bool,
}

impl Op for RmsNorm {
    fn name(&self) -> &'static str {
        "rmsNorm"
    }

    fn inputs(&self) -> &'static [&'static str] {
        if self.beta { &["x", "gamma", "beta"] } else { &["x", "gamma"] }
    }

    fn outputs(&self) -> Vec<&'static str> {
        vec!["out"]
    }

    fn infer(&self, inputs: &[Spec]) -> Result<Vec<Spec>> {
        check_eps(self.eps)?;
        let dims = Dims::of(&inputs[0])?;
        for (name, spec) in self.inputs().iter().zip(inputs).skip(1) {
            spec.expect_dtype(name, &[Dtype::F32])?;
            spec.expect_shape(name, &[dims.h])?;
        }
        Ok(vec![inputs[0].clone()])
    }

    fn record(&self, call: &Call) -> Result<()> {
        let dims = Dims::of(&call.inputs[0].spec)?;
        // A binding must hold something even where the kernel does not read it.
        let beta = call.inputs.get(2).cloned().map_or_else(|| call.scratch(Dtype::F32, 1), Ok)?;
        let [x, gamma] = [0, 1].map(|i: usize| call.inputs[i].span.clone());
        let operands = Forward { x, gamma, beta: beta.span, y: call.outputs[0].span.clone() };
        let overrides = [("LANES", f64::from(dims.lanes())), ("HAS_BETA", f64::from(u8::from(self.beta)))];
        let groups = dims.row_groups();
        call.gpu.dispatch(self.name(), operands, &overrides, &dims.params(self.eps, groups), groups.into())
    }

    fn compute(&self, inputs: &[Host], outputs: &mut [Host]) -> Result<()> {
        let beta = inputs.get(2).map(Host::f32);
        host::forward(inputs[0].f32(), inputs[1].f32(), beta, self.eps, outputs[0].f32_mut());
        Ok(())
    }
}

/// Any of `dx = r·(gamma·dy − x·r²·mean(gamma·dy·x))`, `dgamma = Σ_rows dy·x·r`
/// and `dbeta = Σ_rows dy`; operands x [.., h], gamma [h], dy like x.
pub struct RmsNormBackward {
    /// The JavaScript name it was called by.
    pub name: &'static str,
    /// As in the forward.
    pub eps: f32,
    /// Which of dx, dgamma and dbeta to compute.
    pub wants: [bool; 3],
}

/// Names of the results of [`RmsNormBackward`].
pub const GRADIENTS: [&str; 3] = ["dx", "dgamma", "dbeta"];

impl RmsNormBackward {
    fn wanted<'a, T>(&'a self, results: &'a [T]) -> [Option<&'a T>; 3] {
        let mut results = results.iter();
        self.wants.map(|want| if want { results.next() } else { None })
    }
}

impl Op for RmsNormBackward {
    fn name(&self) -> &'static str {
        self.name
    }

    fn inputs(&self) -> &'static [&'static str] {
        &["x", "gamma", "dy"]
    }

    fn outputs(&self) -> Vec<&'static str> {
        (0..3).filter(|&i| self.wants[i]).map(|i| GRADIENTS[i]).collect()
    }

    fn infer(&self, inputs: &[Spec]) -> Result<Vec<Spec>> {
        check_eps(self.eps)?;
        let [x, gamma, dy] = [0, 1, 2].map(|i: usize| &inputs[i]);
        let dims = Dims::of(x)?;
        gamma.expect_dtype("gamma", &[Dtype::F32])?;
        gamma.expect_shape("gamma", &[dims.h])?;
        dy.expect_dtype("dy", &[Dtype::F32])?;
        dy.expect_shape("dy", x.shape.dims())?;
        Ok((0..3)
            .filter(|&i| self.wants[i])
            .map(|i| if i == 0 { x.clone() } else { gamma.clone() })
            .collect())
    }

    fn record(&self, call: &Call) -> Result<()> {
        let dims = Dims::of(&call.inputs[0].spec)?;
        let [dx, dgamma, dbeta] = self.wanted(&call.outputs);
        let or_scratch =
            |given: Option<&Operand>| given.cloned().map_or_else(|| call.scratch(Dtype::F32, 1), Ok);
        let columns = dgamma.is_some() || dbeta.is_some();
        let (chunks, _) = dims.chunks();
        let partial_count = if columns { 2 * u64::from(chunks) * u64::from(dims.h) } else { 1 };
        let scale = call.scratch(Dtype::F32, dims.rows.into())?;
        let partials = call.scratch(Dtype::F32, partial_count)?;
        let (dgamma_out, dbeta_out) = (or_scratch(dgamma)?, or_scratch(dbeta)?);

        let [x, gamma, dy] = [0, 1, 2].map(|i: usize| call.inputs[i].span.clone());
        let lanes = [("LANES", f64::from(dims.lanes()))];
        let groups = dims.row_groups();
        let params = dims.params(self.eps, groups);
        if let Some(dx) = dx {
            let operands = BackwardInput {
                x: x.clone(),
                gamma,
                dy: dy.clone(),
                dx: dx.span.clone(),
                scale: scale.span.clone(),
            };
            call.gpu.dispatch(self.name, operands, &lanes, &params, groups.into())?;
        } else if dgamma.is_some() {
            let operands = RowScale { x: x.clone(), scale: scale.span.clone() };
            call.gpu.dispatch(self.name, operands, &lanes, &params, groups.into())?;
        }
        if !columns {
            return Ok(());
        }
        let want = |gradient: Option<&Operand>| f64::from(u8::from(gradient.is_some()));
        let tiles = dims.h.div_ceil(32);
        let groups = to_u32("x", u64::from(chunks) * u64::from(tiles))?;
        let operands = ColumnPartials { x, dy, scale: scale.span.clone(), partials: partials.span.clone() };
        let overrides = [("WANT_DGAMMA", want(dgamma))];
        call.gpu.dispatch(self.name, operands, &overrides, &dims.params(self.eps, groups), groups.into())?;
        let operands = ColumnSums { partials: partials.span, dgamma: dgamma_out.span, dbeta: dbeta_out.span };
        let overrides = [("WANT_DGAMMA", want(dgamma)), ("WANT_DBETA", want(dbeta))];
        call.gpu.dispatch(self.name, operands, &overrides, &dims.params(self.eps, tiles), tiles.into())
    }

    fn compute(&self, inputs: &[Host], outputs: &mut [Host]) -> Result<()> {
        let [x, gamma, dy] = [0, 1, 2].map(|i: usize| inputs[i].f32());
        let mut outputs = outputs.iter_mut();
        let [dx, dgamma, dbeta] =
            self.wants.map(|want| if want { outputs.next().map(Host::f32_mut) } else { None });
        host::backward(x, gamma, dy, self.eps, dx, dgamma, dbeta)
    }
}

/// Rows 1 and 4 of the public faults that the tests hold: a gamma left out of the
/// row product, and a row of zeros.
pub fn self_test() -> Vec<Case> {
    let f32s = |values: &[f32], dims: &[u32]| (Values::F32(values.to_vec()), dims.to_vec());
    let x = f32s(&[1.0, 2.0, -3.0, 4.0, 0.5, -1.0, 2.0, 0.25], &[2, 4]);
    let gamma = f32s(&[1.0, 0.5, -2.0, 3.0], &[4]);
    let dy = f32s(&[1.0, -1.0, 2.0, 0.5, 0.25, 1.0, -0.5, 2.0], &[2, 4]);
    let dx = vec![
        0.146_059_5,
        -0.620_751_2,
        -0.803_326_8,
        -0.328_632_1,
        -0.038_279_8,
        0.944_278_1,
        -0.153_119_1,
        5.078_706_7,
    ];
    let dgamma = vec![0.473_612_9, -1.598_014_8, -3.058_607_3, 1.164_155_5];
    let dbeta = vec![1.25, 0.0, 1.5, 2.5];
    let backward = |name, wants, results: Vec<Vec<f32>>| Case {
        op: Rc::new(RmsNormBackward { name, eps: 1e-5, wants }),
        inputs: vec![x.clone(), gamma.clone(), dy.clone()],
        wants: results,
    };
    vec![
        Case {
            op: Rc::new(RmsNorm { eps: 1e-6, beta: true }),
            inputs: vec![
                f32s(&[0.0, 0.0, 0.0, 0.0, 3.0, 4.0, 0.0, 0.0], &[2, 4]),
                f32s(&[1.0, 2.0, 3.0, 4.0], &[4]),
                f32s(&[0.5, 0.5, 0.5, 0.5], &[4]),
            ],
            // r of the second row is 1/√(25/4 + 1e-6).
            wants: vec![vec![0.5, 0.5, 0.5, 0.5, 1.699_999_9, 3.699_999_7, 0.5, 0.5]],
        },
        backward("rmsNormBackward", [true; 3], vec![dx.clone(), dgamma.clone(), dbeta.clone()]),
        backward("rmsNormBackwardInput", [true, false, false], vec![dx]),
        backward("rmsNormBackwardGamma", [false, true, false], vec![dgamma]),
        backward("rmsNormBackwardBeta", [false, false, true], vec![dbeta]),
    ]
}
