//! Cumulative sum along one axis. `y[j] = Σ_{k ≤ j} x[k]`; exclusive: `k < j`;
//! reverse: summed from the end. The backward is the scan in the other direction.

use crate::error::Result;
use crate::gpu::Span;
use crate::kernels::cumsum::{BlockSums, Params, Scan};
use crate::op::{Call, Host, Op};
use crate::self_test::{Case, Values};
use crate::shape::{Dtype, Spec, Split, to_u32};
use crate::tensor::Operand;
use std::rc::Rc;

/// The forward, or with `backward` its gradient; one operand of any shape of
/// rank 1 or more.
pub struct Cumsum {
    /// The axis; negative counts from the end.
    pub axis: i64,
    /// Leave out the element itself.
    pub exclusive: bool,
    /// Sum from the end.
    pub reverse: bool,
    /// Compute dx from dy.
    pub backward: bool,
}

/// How workgroups cover [outer, n, inner].
struct Tiling {
    /// Neighbouring lines of a workgroup.
    width: u32,
    /// Elements that a lane takes in a row.
    run: u32,
}

impl Tiling {
    fn of(inner: u32) -> Tiling {
        match inner {
            1 => Tiling { width: 1, run: 4 },
            2..=16 => Tiling { width: 8, run: 8 },
            _ => Tiling { width: 32, run: 16 },
        }
    }

    /// Elements of the axis that a workgroup covers.
    fn block(&self) -> u32 {
        256 / self.width * self.run
    }

    fn overrides(&self, has_carry: bool) -> [(&'static str, f64); 3] {
        [("WIDTH", self.width.into()), ("RUN", self.run.into()), ("HAS_CARRY", u8::from(has_carry).into())]
    }
}

impl Cumsum {
    fn split(&self, spec: &Spec) -> Result<Split> {
        to_u32(self.inputs()[0], spec.shape.count())?;
        spec.shape.split(self.axis)
    }

    /// Whether the sum runs from the end.
    fn runs_back(&self) -> bool {
        self.reverse != self.backward
    }

    /// Scans `x` into `y`: within blocks at once, or, for a longer axis, after
    /// the sums of the blocks have been scanned in the same way.
    fn scan(
        &self,
        call: &Call,
        x: Span,
        y: Span,
        n: u32,
        sides: (u32, u32),
        direction: (bool, bool),
    ) -> Result<()> {
        let ((outer, inner), (exclusive, reverse)) = (sides, direction);
        let tiling = Tiling::of(inner);
        let (blocks, tiles) = (n.div_ceil(tiling.block()), inner.div_ceil(tiling.width));
        let groups = to_u32(self.inputs()[0], u64::from(outer) * u64::from(blocks) * u64::from(tiles))?;
        let params = Params {
            n,
            inner,
            blocks,
            tiles,
            groups,
            exclusive: exclusive.into(),
            reverse: reverse.into(),
            ..Params::default()
        };
        let long = blocks > 1;
        let sums_count = if long { u64::from(outer) * u64::from(blocks) * u64::from(inner) } else { 1 };
        let carry: Operand = call.scratch(Dtype::F32, sums_count)?;
        if long {
            let sums: Operand = call.scratch(Dtype::F32, sums_count)?;
            let operands = BlockSums { x: x.clone(), sums: sums.span.clone() };
            call.gpu.dispatch(
                self.name(),
                operands,
                &tiling.overrides(false)[..2],
                &params,
                groups.into(),
            )?;
            self.scan(call, sums.span.clone(), carry.span.clone(), blocks, sides, (true, false))?;
        }
        let operands = Scan { x, y, carry: carry.span.clone() };
        call.gpu.dispatch(self.name(), operands, &tiling.overrides(long), &params, groups.into())
    }
}

impl Op for Cumsum {
    fn name(&self) -> &'static str {
        if self.backward { "cumsumBackward" } else { "cumsum" }
    }

    fn inputs(&self) -> &'static [&'static str] {
        if self.backward { &["dy"] } else { &["x"] }
    }

    fn outputs(&self) -> Vec<&'static str> {
        vec![if self.backward { "dx" } else { "out" }]
    }

    fn infer(&self, inputs: &[Spec]) -> Result<Vec<Spec>> {
        inputs[0].expect_dtype(self.inputs()[0], &[Dtype::F32])?;
        self.split(&inputs[0])?;
        Ok(vec![inputs[0].clone()])
    }

    fn record(&self, call: &Call) -> Result<()> {
        let split = self.split(&call.inputs[0].spec)?;
        if call.inputs[0].spec.shape.count() == 0 {
            return Ok(());
        }
        let name = self.inputs()[0];
        let sides = (to_u32(name, split.outer)?, to_u32(name, split.inner)?);
        let (x, y) = (call.inputs[0].span.clone(), call.outputs[0].span.clone());
        self.scan(call, x, y, split.n, sides, (self.exclusive, self.runs_back()))
    }

    fn compute(&self, inputs: &[Host], outputs: &mut [Host]) -> Result<()> {
        let split = self.split(&inputs[0].spec)?;
        let (x, y) = (inputs[0].f32(), outputs[0].f32_mut());
        let (n, inner) = (split.n as usize, split.inner as usize);
        for line in 0..split.outer as usize * inner {
            let base = line / inner * n * inner + line % inner;
            let mut running = 0.0f64;
            for j in 0..n {
                let along = if self.runs_back() { n - 1 - j } else { j };
                let at = base + along * inner;
                let next = running + f64::from(x[at]);
                y[at] = (if self.exclusive { running } else { next }) as f32;
                running = next;
            }
        }
        Ok(())
    }
}

/// All four directions, and small terms beside a large one.
pub fn self_test() -> Vec<Case> {
    let case = |backward, exclusive, reverse, x: &[f32], want: &[f32]| Case {
        op: Rc::new(Cumsum { axis: -1, exclusive, reverse, backward }),
        inputs: vec![(Values::F32(x.to_vec()), vec![x.len() as u32])],
        wants: vec![want.to_vec()],
    };
    let x = [1.0, 10.0, 100.0];
    vec![
        case(false, false, false, &x, &[1.0, 11.0, 111.0]),
        case(false, true, true, &x, &[110.0, 100.0, 0.0]),
        case(true, false, false, &x, &[111.0, 110.0, 100.0]),
        case(true, true, false, &x, &[110.0, 100.0, 0.0]),
        case(true, false, true, &x, &[1.0, 11.0, 111.0]),
        case(true, true, true, &x, &[0.0, 1.0, 11.0]),
        case(true, false, false, &[1e8, 1.0, 1.0, 1.0], &[1e8, 3.0, 2.0, 1.0]),
    ]
}

/// What JavaScript calls.
#[cfg(target_arch = "wasm32")]
mod exports {

    use super::Cumsum;
    use crate::error::Result;
    use crate::js::{self, Call, JsArena, Options, tensor};
    use crate::shape::Dtype;
    use js_sys::Promise;
    use wasm_bindgen::JsValue;
    use wasm_bindgen::prelude::wasm_bindgen;

    #[wasm_bindgen(typescript_custom_section)]
    const TYPES: &str = r#"
export interface CumsumOptions extends OutOptions {
  /** The axis; negative counts from the end. Default -1. */
  axis?: number;
  /** Leave out the element itself. Default false. */
  exclusive?: boolean;
  /** Sum from the end. Default false. */
  reverse?: boolean;
}

/** Operands as byte offsets into the arena, multiples of 256. dy, dx: [rows, cols], scanned along cols. */
export interface RunCumsumBackward extends OpOptions {
  dy: number;
  dx: number;
  rows: number;
  cols: number;
  /** Default false. */
  exclusive?: boolean;
}
"#;

    fn call(backward: bool, x: &JsValue, options: &JsValue) -> Result<Call> {
        let options = Options::read(options, &["axis", "exclusive", "reverse", "out", "path"])?;
        let inputs = vec![tensor(if backward { "dy" } else { "x" }, x)?];
        let axis = options.integer("axis", i32::MIN.into(), i32::MAX.into())?.unwrap_or(-1);
        let op = Cumsum {
            axis,
            exclusive: options.flag("exclusive")?,
            reverse: options.flag("reverse")?,
            backward,
        };
        Call::new(op, inputs, &options)
    }

    /// Cumulative sum along an axis: `y[j] = Σ_{k ≤ j} x[k]`; exclusive: `k < j`; reverse:
    /// from the end. Summed by blocks, so a million values stay within 1e-5 of exact.
    ///
    /// x: any shape of rank 1 or more. Settles when queued. Rejects with `dtype`, `argument`,
    /// `shape`, `alias`, `disposed`, `limit`, `out-of-memory` or `device-lost` before anything is queued.
    #[wasm_bindgen(unchecked_return_type = "Promise<Tensor>")]
    pub fn cumsum(
        #[wasm_bindgen(unchecked_param_type = "Tensor")] x: &JsValue,
        #[wasm_bindgen(unchecked_optional_param_type = "CumsumOptions")] options: &JsValue,
    ) -> Promise {
        js::one("cumsum", || call(false, x, options))
    }

    /// `dx` of cumsum from dy, with the forward's options: the scan in the other direction,
    /// never a total minus a prefix. Shapes, settling and errors as `cumsum`.
    #[wasm_bindgen(js_name = cumsumBackward, unchecked_return_type = "Promise<Tensor>")]
    pub fn cumsum_backward(
        #[wasm_bindgen(unchecked_param_type = "Tensor")] dy: &JsValue,
        #[wasm_bindgen(unchecked_optional_param_type = "CumsumOptions")] options: &JsValue,
    ) -> Promise {
        js::one("cumsumBackward", || call(true, dy, options))
    }

    #[wasm_bindgen(js_class = Arena)]
    impl JsArena {
        /// `cumsumBackward` on byte offsets; writes dx. Settles and rejects as `cumsum`.
        #[wasm_bindgen(js_name = runCumsumBackward, unchecked_return_type = "Promise<void>")]
        pub fn run_cumsum_backward(
            &self,
            #[wasm_bindgen(unchecked_param_type = "RunCumsumBackward")] operands: &JsValue,
        ) -> Promise {
            js::none("runCumsumBackward", || {
                let options = Options::read(operands, &["dy", "dx", "rows", "cols", "exclusive", "path"])?;
                let dims = [options.count("rows")?, options.count("cols")?];
                let at = |name| self.operand_at(&options, name, &dims, Dtype::F32);
                let op = Cumsum {
                    axis: -1,
                    exclusive: options.flag("exclusive")?,
                    reverse: false,
                    backward: true,
                };
                Ok(Call::new(op, vec![at("dy")?], &options)?.writing_to("dx", at("dx")?))
            })
        }
    }
}
