//! Rotary position embedding (Su et al. 2021) of x [batch, seq, heads·head_dim].
//! The first `n_rot` lanes of each head are rotated in pairs (a, b):
//! `y1 = a·cos − b·sin`, `y2 = b·cos + a·sin`. The backward is the same with −sin.

use super::WORKGROUP;
use crate::error::{Code, Error, Result};
use crate::kernels::rope::{Params, Rotate};
use crate::op::{Call, Host, Op};
use crate::self_test::{Case, Values};
use crate::shape::{Dtype, Shape, Spec, to_u32};
use std::rc::Rc;

/// Which lanes of a head form a pair.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Style {
    /// i and i + n_rot/2, as in GPT-NeoX and Llama checkpoints of Hugging Face.
    #[default]
    Neox,
    /// 2i and 2i + 1, as in GPT-J.
    Gptj,
}

/// The forward, or with `backward` its gradient; operands x or dy
/// [batch, seq, heads·head_dim] (or [batch, seq, heads, head_dim]), cos and sin
/// [seq, ≥ n_rot/2] shared by the batch or [batch·seq, ≥ n_rot/2] for each token.
pub struct Rope {
    /// Lanes of a head.
    pub head_dim: u32,
    /// Lanes that are rotated: even, at most `head_dim`. The rest pass through.
    pub n_rot: u32,
    /// The pairing.
    pub style: Style,
    /// Rotate the other way.
    pub backward: bool,
}

struct Dims {
    tokens: u64,
    heads: u32,
    table_rows: u32,
    table_stride: u32,
}

impl Rope {
    fn first(&self) -> &'static str {
        self.inputs()[0]
    }

    fn check_options(&self) -> Result<()> {
        let argument = |name, fault: String| Err(Error::operand(Code::Argument, name, fault));
        if self.head_dim == 0 {
            return argument("headDim", "must be 1 or more, got 0".into());
        }
        if !self.n_rot.is_multiple_of(2) || self.n_rot > self.head_dim {
            return argument(
                "nRot",
                format!("must be even and at most headDim = {}, got {}", self.head_dim, self.n_rot),
            );
        }
        Ok(())
    }

    fn dims(&self, inputs: &[Spec]) -> Result<Dims> {
        let shape = |name, fault: String| Err(Error::operand(Code::Shape, name, fault));
        let (x, cos) = (&inputs[0].shape, &inputs[1].shape);
        let hidden = match *x.dims() {
            [_, _, hidden] => hidden,
            [_, _, heads, head_dim] if head_dim == self.head_dim => {
                to_u32(self.first(), u64::from(heads) * u64::from(head_dim))?
            }
            _ => {
                return shape(
                    self.first(),
                    format!("must be [batch, seq, heads*headDim] or [batch, seq, heads, headDim], got {x}"),
                );
            }
        };
        if !hidden.is_multiple_of(self.head_dim) {
            return shape(
                self.first(),
                format!("must have a multiple of headDim = {} lanes a token, got {x}", self.head_dim),
            );
        }
        let (batch, seq) = (u64::from(x.dims()[0]), u64::from(x.dims()[1]));
        let (rows, stride) = (cos.rows(), cos.last());
        if cos.rank() < 2 || stride < self.n_rot / 2 || (rows != seq && rows != batch * seq) {
            let half = self.n_rot / 2;
            let fault =
                format!("must be [{seq}, {half} or more] or [{}, {half} or more], got {cos}", batch * seq);
            return shape("cos", fault);
        }
        inputs[2].expect_shape("sin", cos.dims())?;
        to_u32(self.first(), x.count())?;
        Ok(Dims {
            tokens: batch * seq,
            heads: hidden / self.head_dim,
            table_rows: to_u32("cos", rows)?,
            table_stride: stride,
        })
    }
}

impl Op for Rope {
    fn name(&self) -> &'static str {
        if self.backward { "ropeBackward" } else { "rope" }
    }

    fn inputs(&self) -> &'static [&'static str] {
        if self.backward { &["dy", "cos", "sin"] } else { &["x", "cos", "sin"] }
    }

    fn outputs(&self) -> Vec<&'static str> {
        vec![if self.backward { "dx" } else { "out" }]
    }

    fn infer(&self, inputs: &[Spec]) -> Result<Vec<Spec>> {
        self.check_options()?;
        for (name, spec) in self.inputs().iter().zip(inputs) {
            spec.expect_dtype(name, &[Dtype::F32])?;
        }
        self.dims(inputs)?;
        Ok(vec![inputs[0].clone()])
    }

    fn record(&self, call: &Call) -> Result<()> {
        let specs: Vec<Spec> = call.inputs.iter().map(|input| input.spec.clone()).collect();
        let dims = self.dims(&specs)?;
        let items = dims.tokens * u64::from(dims.heads) * u64::from(self.head_dim - self.n_rot / 2);
        let params = Params {
            items: to_u32(self.first(), items)?,
            heads: dims.heads,
            head_dim: self.head_dim,
            n_rot: self.n_rot,
            table_rows: dims.table_rows,
            table_stride: dims.table_stride,
            sign: if self.backward { -1.0 } else { 1.0 },
            ..Params::default()
        };
        let [x, cos_table, sin_table] = [0, 1, 2].map(|i: usize| call.inputs[i].span.clone());
        let operands = Rotate { x, cos_table, sin_table, y: call.outputs[0].span.clone() };
        let overrides = [("GPTJ", f64::from(u8::from(self.style == Style::Gptj)))];
        call.gpu.dispatch(self.name(), operands, &overrides, &params, items.div_ceil(WORKGROUP))
    }

    fn compute(&self, inputs: &[Host], outputs: &mut [Host]) -> Result<()> {
        let specs: Vec<Spec> = inputs.iter().map(|input| input.spec.clone()).collect();
        let dims = self.dims(&specs)?;
        let [x, cos, sin] = [0, 1, 2].map(|i: usize| inputs[i].f32());
        let y = outputs[0].f32_mut();
        let (head_dim, pairs) = (self.head_dim as usize, self.n_rot as usize / 2);
        let sign = if self.backward { -1.0 } else { 1.0 };
        y.copy_from_slice(x);
        for (head, base) in (0..x.len()).step_by(head_dim).enumerate() {
            let row = (head / dims.heads as usize) % dims.table_rows as usize * dims.table_stride as usize;
            for i in 0..pairs {
                let (first, second) = match self.style {
                    Style::Neox => (base + i, base + i + pairs),
                    Style::Gptj => (base + 2 * i, base + 2 * i + 1),
                };
                let (c, s) = (f64::from(cos[row + i]), sign * f64::from(sin[row + i]));
                let (a, b) = (f64::from(x[first]), f64::from(x[second]));
                y[first] = (a * c - b * s) as f32;
                y[second] = (b * c + a * s) as f32;
            }
        }
        Ok(())
    }
}

/// The shape of the tables that `arena.runRopeBackward` means by their length:
/// rows of headDim/2 entries, or of nRot/2, for each position or each token.
pub fn table_shape(len: u64, batch: u32, seq: u32, head_dim: u32, n_rot: u32) -> Result<Shape> {
    for stride in [head_dim / 2, n_rot / 2] {
        for rows in [u64::from(seq), u64::from(batch) * u64::from(seq)] {
            if rows * u64::from(stride) == len {
                return Shape::new([to_u32("cosLen", rows)?, stride]);
            }
        }
    }
    let fault = format!("must be seq or batch*seq rows of headDim/2 or nRot/2 entries, got {len}");
    Err(Error::operand(Code::Argument, "cosLen", fault))
}

/// Partial rotation, where pairing over head_dim instead of n_rot goes wrong.
pub fn self_test() -> Vec<Case> {
    let (cos, sin) = (vec![0.540_302_3, 0.999_95], vec![0.841_471, 0.009_999_8]);
    let case = |style, backward, want: [f32; 6]| Case {
        op: Rc::new(Rope { head_dim: 6, n_rot: 4, style, backward }),
        inputs: vec![
            (Values::F32(vec![1.0, 2.0, 3.0, 4.0, 5.0, 6.0]), vec![1, 1, 6]),
            (Values::F32(cos.clone()), vec![1, 2]),
            (Values::F32(sin.clone()), vec![1, 2]),
        ],
        wants: vec![want.to_vec()],
    };
    vec![
        case(Style::Neox, false, [-1.984_110_6, 1.959_900_7, 2.462_377_9, 4.019_799_7, 5.0, 6.0]),
        case(Style::Neox, true, [3.064_715_3, 2.039_899_3, 0.779_435_9, 3.979_800_3, 5.0, 6.0]),
        case(Style::Gptj, true, [2.223_244_3, 0.239_133_6, 3.039_849_3, 3.969_800_5, 5.0, 6.0]),
    ]
}

/// What JavaScript calls.
#[cfg(target_arch = "wasm32")]
mod exports {

    use super::{Rope, Style, table_shape};
    use crate::error::{Code, Error, Result};
    use crate::js::{self, Call, JsArena, Options, tensor};
    use crate::shape::Dtype;
    use js_sys::Promise;
    use wasm_bindgen::JsValue;
    use wasm_bindgen::prelude::wasm_bindgen;

    #[wasm_bindgen(typescript_custom_section)]
    const TYPES: &str = r#"
export interface RopeOptions extends OutOptions {
  /** Lanes of a head. */
  headDim: number;
  /** Lanes of a head that are rotated, the first ones: even, at most headDim. Default: all, less one if odd. */
  nRot?: number;
  /** Which lanes pair: i with i + nRot/2 ("neox", default: Llama, GPT-NeoX), or 2i with 2i + 1 ("gptj"). */
  style?: "neox" | "gptj";
}

/** Operands as byte offsets into the arena, multiples of 256. dy, dx: [batch, seq, hidden], neox pairing. */
export interface RunRopeBackward extends OpOptions {
  dy: number;
  cos: number;
  sin: number;
  dx: number;
  batch: number;
  seq: number;
  hidden: number;
  headDim: number;
  nRot: number;
  /** Elements of each table: seq or batch·seq rows of headDim/2 entries, else of nRot/2. */
  cosLen: number;
}
"#;

    fn call(backward: bool, x: &JsValue, cos: &JsValue, sin: &JsValue, options: &JsValue) -> Result<Call> {
        let options = Options::read(options, &["headDim", "nRot", "style", "out", "path"])?;
        let first = if backward { "dy" } else { "x" };
        let inputs = vec![tensor(first, x)?, tensor("cos", cos)?, tensor("sin", sin)?];
        if options.get("headDim")?.is_none() {
            return Err(Error::operand(Code::Argument, "headDim", "must be given"));
        }
        let head_dim = options.count("headDim")?;
        let n_rot = options.integer("nRot", 0, u32::MAX.into())?.map_or(head_dim & !1, |n| n as u32);
        let style = [Style::Neox, Style::Gptj][options.choice("style", &["neox", "gptj"])?];
        Call::new(Rope { head_dim, n_rot, style, backward }, inputs, &options)
    }

    /// Rotary position embedding: `y1 = a·cos − b·sin`, `y2 = b·cos + a·sin` for each
    /// pair (a, b) among the first `nRot` lanes of every head; the other lanes pass.
    ///
    /// x: [batch, seq, heads·headDim] or [batch, seq, heads, headDim]; cos, sin: [seq, nRot/2 or
    /// more] for all of the batch or [batch·seq, …] for each token; entries past nRot/2 are not
    /// read. Settles when queued. Rejects with `shape`, `dtype`, `argument`, `alias`, `disposed`,
    /// `limit`, `out-of-memory` or `device-lost` before anything is queued. Source: Su et al. 2021.
    #[wasm_bindgen(unchecked_return_type = "Promise<Tensor>")]
    pub fn rope(
        #[wasm_bindgen(unchecked_param_type = "Tensor")] x: &JsValue,
        #[wasm_bindgen(unchecked_param_type = "Tensor")] cos: &JsValue,
        #[wasm_bindgen(unchecked_param_type = "Tensor")] sin: &JsValue,
        #[wasm_bindgen(unchecked_param_type = "RopeOptions")] options: &JsValue,
    ) -> Promise {
        js::one("rope", || call(false, x, cos, sin, options))
    }

    /// `dx` of rope from dy: the rotation with −sin. Shapes, settling and errors as `rope`.
    #[wasm_bindgen(js_name = ropeBackward, unchecked_return_type = "Promise<Tensor>")]
    pub fn rope_backward(
        #[wasm_bindgen(unchecked_param_type = "Tensor")] dy: &JsValue,
        #[wasm_bindgen(unchecked_param_type = "Tensor")] cos: &JsValue,
        #[wasm_bindgen(unchecked_param_type = "Tensor")] sin: &JsValue,
        #[wasm_bindgen(unchecked_param_type = "RopeOptions")] options: &JsValue,
    ) -> Promise {
        js::one("ropeBackward", || call(true, dy, cos, sin, options))
    }

    #[wasm_bindgen(js_class = Arena)]
    impl JsArena {
        /// `ropeBackward` on byte offsets; writes dx. Settles and rejects as `rope`.
        #[wasm_bindgen(js_name = runRopeBackward, unchecked_return_type = "Promise<void>")]
        pub fn run_rope_backward(
            &self,
            #[wasm_bindgen(unchecked_param_type = "RunRopeBackward")] operands: &JsValue,
        ) -> Promise {
            js::none("runRopeBackward", || {
                let known =
                    ["dy", "cos", "sin", "dx", "batch", "seq", "hidden", "headDim", "nRot", "cosLen", "path"];
                let options = Options::read(operands, &known)?;
                let [batch, seq, hidden] =
                    [options.count("batch")?, options.count("seq")?, options.count("hidden")?];
                let (head_dim, n_rot) = (options.count("headDim")?, options.count("nRot")?);
                let table = table_shape(options.count("cosLen")?.into(), batch, seq, head_dim, n_rot)?;
                let at = |name, dims: &[u32]| self.operand_at(&options, name, dims, Dtype::F32);
                let full = [batch, seq, hidden];
                let inputs = vec![at("dy", &full)?, at("cos", table.dims())?, at("sin", table.dims())?];
                let op = Rope { head_dim, n_rot, style: Style::Neox, backward: true };
                Ok(Call::new(op, inputs, &options)?.writing_to("dx", at("dx", &full)?))
            })
        }
    }
}
