//! Rows of a table by index: `y[o, i, t] = table[o, indices[i], t]`, and its
//! backward `dtable[o, a, t] = Σ_{i: indices[i] = a} dy[o, i, t]`. An index out
//! of range gives 0, contributes nowhere, and is reported.

use super::WORKGROUP;
use super::radix_sort::{self, Pairs};
use crate::error::{Code, Error, Result};
use crate::gpu::out_of_range;
use crate::kernels::gather::{Backward, ChunkSums, Forward, MakeKeys, Params};
use crate::op::{Call, Host, Op, try_vec};
use crate::self_test::{Case, Values};
use crate::shape::{Dtype, Spec, Split, to_u32};
use std::rc::Rc;

/// `CHUNK` of the shader.
const CHUNK: u32 = 64;
/// From how many indices on summing whole chunks beforehand pays.
const CHUNKS_FROM: u32 = 1024;

fn check_indices(indices: &Spec) -> Result<u32> {
    indices.expect_dtype("indices", &[Dtype::U32, Dtype::I32])?;
    if indices.shape.rank() > 1 {
        return Err(Error::operand(
            Code::Shape,
            "indices",
            format!("must be [num_idx] or a scalar, got {}", indices.shape),
        ));
    }
    to_u32("indices", indices.shape.count())
}

/// Operands table [.., axis_dim, ..] and indices [num_idx], u32 or i32; a scalar
/// index counts as [1].
pub struct Gather {
    /// The axis of the table; negative counts from the end.
    pub axis: i64,
}

impl Op for Gather {
    fn name(&self) -> &'static str {
        "gather"
    }

    fn inputs(&self) -> &'static [&'static str] {
        &["table", "indices"]
    }

    fn outputs(&self) -> Vec<&'static str> {
        vec!["out"]
    }

    fn infer(&self, inputs: &[Spec]) -> Result<Vec<Spec>> {
        inputs[0].expect_dtype("table", &[Dtype::F32])?;
        let num_idx = check_indices(&inputs[1])?;
        to_u32("table", inputs[0].shape.count())?;
        let split = inputs[0].shape.split(self.axis)?;
        let shape = inputs[0].shape.replace(split.axis, &[num_idx])?;
        to_u32("out", shape.count())?;
        Ok(vec![Spec::f32(shape)])
    }

    fn record(&self, call: &Call) -> Result<()> {
        let split = call.inputs[0].spec.shape.split(self.axis)?;
        let items = call.outputs[0].spec.shape.count();
        let (faults, fault_slot) = call.gpu.fault_slot(self.name(), "indices");
        let params = Params {
            items: to_u32("out", items)?,
            num_idx: to_u32("indices", call.inputs[1].spec.shape.count())?,
            axis_dim: split.n,
            trailing: to_u32("table", split.inner)?,
            fault_slot,
            ..Params::default()
        };
        let [table, indices] = [0, 1].map(|i: usize| call.inputs[i].span.clone());
        let operands = Forward { table, indices, y: call.outputs[0].span.clone(), faults };
        let threads = items.max(params.num_idx.into());
        call.gpu.dispatch(self.name(), operands, &[], &params, threads.div_ceil(WORKGROUP))
    }

    fn compute(&self, inputs: &[Host], outputs: &mut [Host]) -> Result<()> {
        let split = inputs[0].spec.shape.split(self.axis)?;
        let (table, y) = (inputs[0].f32(), outputs[0].f32_mut());
        each(&split, inputs[1].words(), y.len(), self.name(), |row, item| {
            y[item] = row.map_or(0.0, |row| table[row]);
        })
    }
}

/// Operands dy [.., num_idx, ..] and indices [num_idx]; result [.., axis_dim, ..].
pub struct GatherBackward {
    /// The axis, as in the forward.
    pub axis: i64,
    /// Rows of the table along it.
    pub axis_dim: u32,
}

impl GatherBackward {
    /// dy's shape around the axis, `n` being axis_dim.
    fn split(&self, dy: &Spec) -> Result<Split> {
        Ok(Split { n: self.axis_dim, ..dy.shape.split(self.axis)? })
    }
}

impl Op for GatherBackward {
    fn name(&self) -> &'static str {
        "gatherBackward"
    }

    fn inputs(&self) -> &'static [&'static str] {
        &["dy", "indices"]
    }

    fn outputs(&self) -> Vec<&'static str> {
        vec!["dtable"]
    }

    fn infer(&self, inputs: &[Spec]) -> Result<Vec<Spec>> {
        inputs[0].expect_dtype("dy", &[Dtype::F32])?;
        let num_idx = check_indices(&inputs[1])?;
        let split = inputs[0].shape.split(self.axis)?;
        if split.n != num_idx {
            let fault = format!(
                "must have {num_idx} rows along the axis, one an index; got shape {}",
                inputs[0].shape
            );
            return Err(Error::operand(Code::Shape, "dy", fault));
        }
        to_u32("dy", inputs[0].shape.count())?;
        let shape = inputs[0].shape.replace(split.axis, &[self.axis_dim])?;
        to_u32("dtable", shape.count())?;
        Ok(vec![Spec::f32(shape)])
    }

    fn record(&self, call: &Call) -> Result<()> {
        let split = self.split(&call.inputs[0].spec)?;
        let num_idx = to_u32("indices", call.inputs[1].spec.shape.count())?;
        let has_chunks = num_idx >= CHUNKS_FROM;
        let chunk_items =
            if has_chunks { split.outer * u64::from(num_idx.div_ceil(CHUNK)) * split.inner } else { 0 };
        let chunks = call.scratch(Dtype::F32, chunk_items.max(1))?;
        let pairs = Pairs::scratch(call, num_idx)?;
        let (faults, fault_slot) = call.gpu.fault_slot(self.name(), "indices");
        let items = call.outputs[0].spec.shape.count();
        let params = Params {
            items: to_u32("dtable", items)?,
            num_idx,
            axis_dim: self.axis_dim,
            trailing: to_u32("dy", split.inner)?,
            fault_slot,
            ..Params::default()
        };
        let [dy, indices] = [0, 1].map(|i: usize| call.inputs[i].span.clone());
        let operands =
            MakeKeys { indices, faults, keys: pairs.keys.span.clone(), order: pairs.values.span.clone() };
        call.gpu.dispatch(self.name(), operands, &[], &params, u64::from(num_idx).div_ceil(WORKGROUP))?;
        let sorted = radix_sort::sort(call, self.name(), pairs, num_idx, self.axis_dim)?;
        let (keys, order) = (sorted.keys.span.clone(), sorted.values.span.clone());
        if has_chunks {
            let params = Params { items: to_u32("dy", chunk_items)?, ..params };
            let operands = ChunkSums {
                keys: keys.clone(),
                order: order.clone(),
                dy: dy.clone(),
                chunks: chunks.span.clone(),
            };
            call.gpu.dispatch(self.name(), operands, &[], &params, chunk_items.div_ceil(WORKGROUP))?;
        }
        let dtable = call.outputs[0].span.clone();
        let operands = Backward { keys, order, dy, chunks: chunks.span.clone(), dtable };
        let overrides = [("HAS_CHUNKS", f64::from(u8::from(has_chunks)))];
        call.gpu.dispatch(self.name(), operands, &overrides, &params, items.div_ceil(WORKGROUP))
    }

    fn compute(&self, inputs: &[Host], outputs: &mut [Host]) -> Result<()> {
        let split = self.split(&inputs[0].spec)?;
        let dy = inputs[0].f32();
        let mut sums = try_vec(0.0f64, outputs[0].words().len())?;
        let fault = each(&split, inputs[1].words(), dy.len(), self.name(), |row, item| {
            if let Some(row) = row {
                sums[row] += f64::from(dy[item]);
            }
        });
        outputs[0].f32_mut().iter_mut().zip(&sums).for_each(|(out, &sum)| *out = sum as f32);
        fault
    }
}

/// Calls `visit(place in the table or None, item)` for each of the `items` of
/// [outer, num_idx, trailing] in order, then reports the first bad index.
fn each(
    split: &Split,
    indices: &[u32],
    items: usize,
    op: &'static str,
    mut visit: impl FnMut(Option<usize>, usize),
) -> Result<()> {
    let (n, inner) = (split.n as usize, split.inner as usize);
    for item in 0..items {
        let (t, i) = (item % inner, item / inner % indices.len());
        let outer = item / inner / indices.len();
        let row = indices[i] as usize;
        visit((row < n).then(|| (outer * n + row) * inner + t), item);
    }
    match indices.iter().position(|&row| row >= split.n) {
        Some(position) => Err(out_of_range(op, "indices", position as u32)),
        None => Ok(()),
    }
}

/// Duplicates, and an axis in the middle.
pub fn self_test() -> Vec<Case> {
    let count = |n: u16| (1..=n).map(f32::from).collect::<Vec<f32>>();
    let middle = (Values::U32(vec![2, 0, 2, 2]), vec![4]);
    vec![
        Case {
            op: Rc::new(Gather { axis: 1 }),
            inputs: vec![(Values::F32(count(12)), vec![2, 3, 2]), (Values::U32(vec![2, 0, 2, 2]), vec![4])],
            wants: vec![vec![
                5.0, 6.0, 1.0, 2.0, 5.0, 6.0, 5.0, 6.0, 11.0, 12.0, 7.0, 8.0, 11.0, 12.0, 11.0, 12.0,
            ]],
        },
        Case {
            op: Rc::new(GatherBackward { axis: 1, axis_dim: 3 }),
            inputs: vec![(Values::F32(count(16)), vec![2, 4, 2]), middle],
            wants: vec![vec![3.0, 4.0, 0.0, 0.0, 13.0, 16.0, 11.0, 12.0, 0.0, 0.0, 37.0, 40.0]],
        },
    ]
}

/// What JavaScript calls.
#[cfg(target_arch = "wasm32")]
mod exports {

    use super::{Gather, GatherBackward};
    use crate::js::{self, Call, JsArena, Options, tensor};
    use crate::shape::Dtype;
    use js_sys::Promise;
    use wasm_bindgen::JsValue;
    use wasm_bindgen::prelude::wasm_bindgen;

    #[wasm_bindgen(typescript_custom_section)]
    const TYPES: &str = r#"
export interface GatherOptions extends OutOptions {
  /** The axis of the table; negative counts from the end. Default 0. */
  axis?: number;
}

export interface GatherBackwardOptions extends GatherOptions {
  /** Rows of the table along the axis. */
  axisDim: number;
}

/** Operands as byte offsets into the arena, multiples of 256. dy: [outer, numIdx, trailing]; indices: [numIdx], u32 or i32; dst: [outer, axisDim, trailing]. */
export interface RunGatherBackward extends OpOptions {
  dy: number;
  indices: number;
  dst: number;
  outer: number;
  axisDim: number;
  numIdx: number;
  trailing: number;
}
"#;

    fn axis(options: &Options) -> crate::error::Result<i64> {
        Ok(options.integer("axis", i32::MIN.into(), i32::MAX.into())?.unwrap_or(0))
    }

    /// Rows of a table by index: `y[o, i, t] = table[o, indices[i], t]`.
    ///
    /// table: [.., axisDim, ..]; indices: [numIdx] (or a scalar), u32 or i32; result: the table's
    /// shape with numIdx for axisDim. An index out of range gives zeros, and the next `read` or
    /// `sync` rejects once with `index-out-of-range` (with `path: "host"`, this call does).
    /// Settles when queued. Rejects with `shape`, `dtype`, `argument`, `alias`, `disposed`,
    /// `limit`, `out-of-memory` or `device-lost` before anything is queued.
    #[wasm_bindgen(unchecked_return_type = "Promise<Tensor>")]
    pub fn gather(
        #[wasm_bindgen(unchecked_param_type = "Tensor")] table: &JsValue,
        #[wasm_bindgen(unchecked_param_type = "Tensor")] indices: &JsValue,
        #[wasm_bindgen(unchecked_optional_param_type = "GatherOptions")] options: &JsValue,
    ) -> Promise {
        js::one("gather", || {
            let options = Options::read(options, &["axis", "out", "path"])?;
            let inputs = vec![tensor("table", table)?, tensor("indices", indices)?];
            Call::new(Gather { axis: axis(&options)? }, inputs, &options)
        })
    }

    /// The gradient of gather for the table: `dtable[o, a, t] = Σ_{i: indices[i] = a} dy[o, i, t]`.
    /// Duplicates add up in the order of i; rows that no index names are zero; the same bits every run.
    ///
    /// dy: [.., numIdx, ..]; indices: [numIdx], u32 or i32; result: dy's shape with axisDim for
    /// numIdx. An index out of range contributes nowhere. Settles, reports and rejects as `gather`.
    #[wasm_bindgen(js_name = gatherBackward, unchecked_return_type = "Promise<Tensor>")]
    pub fn gather_backward(
        #[wasm_bindgen(unchecked_param_type = "Tensor")] dy: &JsValue,
        #[wasm_bindgen(unchecked_param_type = "Tensor")] indices: &JsValue,
        #[wasm_bindgen(unchecked_param_type = "GatherBackwardOptions")] options: &JsValue,
    ) -> Promise {
        js::one("gatherBackward", || {
            let options = Options::read(options, &["axis", "axisDim", "out", "path"])?;
            let inputs = vec![tensor("dy", dy)?, tensor("indices", indices)?];
            let op = GatherBackward { axis: axis(&options)?, axis_dim: options.count("axisDim")? };
            Call::new(op, inputs, &options)
        })
    }

    #[wasm_bindgen(js_class = Arena)]
    impl JsArena {
        /// `gatherBackward` on byte offsets; writes dst. Settles and rejects as `gather`.
        #[wasm_bindgen(js_name = runGatherBackward, unchecked_return_type = "Promise<void>")]
        pub fn run_gather_backward(
            &self,
            #[wasm_bindgen(unchecked_param_type = "RunGatherBackward")] operands: &JsValue,
        ) -> Promise {
            js::none("runGatherBackward", || {
                let known = ["dy", "indices", "dst", "outer", "axisDim", "numIdx", "trailing", "path"];
                let options = Options::read(operands, &known)?;
                let [outer, axis_dim, num_idx, trailing] = [
                    options.count("outer")?,
                    options.count("axisDim")?,
                    options.count("numIdx")?,
                    options.count("trailing")?,
                ];
                let at = |name, dims: &[u32], dtype| self.operand_at(&options, name, dims, dtype);
                let dy = at("dy", &[outer, num_idx, trailing], Dtype::F32)?;
                let indices = at("indices", &[num_idx], Dtype::U32)?;
                let dst = at("dst", &[outer, axis_dim, trailing], Dtype::F32)?;
                Ok(Call::new(GatherBackward { axis: 1, axis_dim }, vec![dy, indices], &options)?
                    .writing_to("dst", dst))
            })
        }
    }
}
