//! Faults that were reported in public against gathers of other libraries, and kin.

use super::Lookup;
use crate::common::{Bound, Case, u32s};

fn count(to: u16) -> Vec<f32> {
    (1..=to).map(f32::from).collect()
}

pub fn public() -> Vec<Case> {
    let exactly = |case: Case, dtable: &[f64]| case.says_within(Bound::EXACT, 0, 0, dtable);
    let mut cases = Vec::new();
    // cases: row 33. Repeated rows add up, rows that none names are zero.
    let repeats = Lookup::new("ooples/AiDotNet.Tensors#894", &[4, 2], 0, &[1, 3, 1]);
    let repeats = repeats.with_dy(&[1.0, 2.0, 3.0, 4.0, 10.0, 20.0]);
    cases.push(exactly(repeats.backward(), &[0.0, 0.0, 11.0, 22.0, 0.0, 0.0, 3.0, 4.0]));
    cases.push(exactly(repeats.signed().backward(), &[0.0, 0.0, 11.0, 22.0, 0.0, 0.0, 3.0, 4.0]));
    // cases: row 34. An axis in the middle.
    let middle = Lookup::new("tensorflow/tfjs-core#981", &[2, 3, 2], 1, &[2, 0, 2, 2]).with_dy(&count(16));
    let dtable = [3.0, 4.0, 0.0, 0.0, 13.0, 16.0, 11.0, 12.0, 0.0, 0.0, 37.0, 40.0];
    cases.push(exactly(middle.backward(), &dtable));
    // cases: row 35. Adding the bits of floats looks right until a row repeats.
    for (dy, sum) in [([1.0, 1.0], 2.0), ([1.5, 2.5], 4.0)] {
        let twice = Lookup::new("mni-ml/framework#29", &[1], 0, &[0, 0]).with_dy(&dy);
        cases.push(exactly(twice.backward(), &[sum]));
    }
    // Not a report: repeats are added in the order of the indices, as documented. Any other
    // order loses the 1 beside 1e8.
    let ordered = Lookup::new("in order", &[3], 0, &[2, 0, 2, 1, 2]).with_dy(&[1e8, 5.0, -1e8, 7.0, 1.0]);
    cases.push(exactly(ordered.backward(), &[5.0, 7.0, 1.0]));
    // cases: row 38. 768 and a little more on one row.
    for hits in [768, 769, 770] {
        let name = "pytorch/pytorch#28716";
        let many = Lookup::new(name, &[10, 8], 0, &vec![0; hits]).with_dy(&vec![1.0; 8 * hits]);
        let mut dtable = vec![0.0; 80];
        dtable[..8].fill(hits as f64);
        cases.push(exactly(many.backward(), &dtable));
    }
    // cases: row 39. One index, as a scalar and as a list, and none.
    let single = Lookup::new("pytorch/pytorch#82809", &[10, 5], 0, &[5]).with_dy(&[1.0; 5]);
    let mut dtable = [0.0; 50];
    dtable[25..30].fill(1.0);
    cases.push(exactly(single.backward(), &dtable));
    let scalar = Lookup { operand: u32s(&[5], &[]), ..single };
    cases.extend([exactly(scalar.backward(), &dtable), scalar.forward()]);
    let none = Lookup::new("pytorch/pytorch#82809, none", &[10, 5], 0, &[]);
    cases.extend([exactly(none.backward(), &[0.0; 50]), none.forward()]);
    cases
}

// cases: row 56, tinygrad/tinygrad#10201, and row 37, ml-explore/mlx#3492. What is not
// finite must come out, in its row alone, and must not hang the sum.
pub fn non_finite() -> Vec<Case> {
    let (nan, inf) = (f32::NAN, f32::INFINITY);
    let stuck = Lookup::new("ml-explore/mlx#3492", &[4], 0, &[0, 0, 0, 1]).with_dy(&[nan, 2.0, 3.0, 5.0]);
    let mut cases = vec![stuck.backward().says_within(Bound::EXACT, 0, 0, &[f64::NAN, 5.0, 0.0, 0.0])];
    let spread = Lookup::new("tinygrad/tinygrad#10201", &[5], 0, &[4, 1, 3]).with_dy(&[1.0, inf, nan]);
    let dtable = [0.0, f64::INFINITY, 0.0, f64::NAN, 1.0];
    cases.push(spread.backward().says_within(Bound::EXACT, 0, 0, &dtable));
    let mut table = Lookup::random(&[6, 3], 0, 20);
    (table.table[4], table.table[9], table.table[17]) = (nan, inf, -inf);
    cases.push(table.forward());
    // In a row that is summed by chunks, beside one that must stay finite.
    let mut hot = Lookup::random(&[2], 0, 3000);
    hot.dy[1234] = nan;
    cases.push(hot.backward());
    let opposite = Lookup::new("inf - inf", &[3], 0, &[0, 1, 0]).with_dy(&[inf, 1.0, -inf]);
    cases.push(opposite.backward());
    cases
}

// cases: row 40, jax-ml/jax#5760. An index out of range contributes nowhere in either
// direction, is told of once, and never wraps around or writes beside the result.
pub fn out_of_range() -> Vec<Case> {
    let mut cases = Vec::new();
    for signed in [false, true] {
        let of = |name: &str, dims: &[u32], axis, indices: &[u32]| {
            let lookup = Lookup::new(name, dims, axis, indices);
            if signed { lookup.signed() } else { lookup }
        };
        let reported = of("jax-ml/jax#5760", &[3, 1], 0, &[0, 3, u32::MAX]).with_dy(&[1.0, 2.0, 4.0]);
        cases.push(reported.backward().says_within(Bound::EXACT, 0, 0, &[1.0, 0.0, 0.0]));
        cases.push(reported.forward());
        cases.extend(of("only the last is wrong", &[3, 2], 0, &[2, 1, 0, 0x8000_0000]).both());
        cases.extend(of("all are wrong", &[2, 3, 2], 1, &[3, 4, 5, u32::MAX]).both());
    }
    // The keys of the sort are one more than the table's: 256 takes a second pass.
    cases.extend(Lookup::new("just past a digit", &[255], 0, &[254, 255, 256, 0]).both());
    cases.extend(Lookup::new("just past two digits", &[65_535], 0, &[65_535, 65_534, 65_536, 0]).both());
    cases.extend(Lookup::new("no row to point at", &[0, 3], 0, &[0]).both());
    let mut many = Lookup::random(&[4, 3], 0, 3000).indices;
    many.iter_mut().skip(1000).step_by(3).for_each(|row| *row = 4);
    cases.extend(Lookup::new("a third of many", &[4, 3], 0, &many).both());
    let scalar = Lookup::new("scalar", &[3, 2], 0, &[3]);
    cases.extend(Lookup { operand: u32s(&[3], &[]), ..scalar }.both());
    // Nothing to read or write, and still a wrong index.
    cases.extend(Lookup::new("empty rows", &[3, 0], 0, &[1, 7]).both());
    cases.extend(Lookup::new("no rows", &[0, 3], 1, &[1, 7]).both());
    cases
}

#[cfg(target_arch = "wasm32")]
mod browser {
    use super::Lookup;
    use crate::common::{Case, Lab, gpu_test};
    use std::rc::Rc;
    use wasm_bindgen_test::wasm_bindgen_test;
    use wgrad::gpu::out_of_range;
    use wgrad::op::{self, Path};
    use wgrad::ops::gather::Gather;
    use wgrad::shape::{Dtype, Shape, Spec};
    use wgrad::tensor::Tensor;

    #[wasm_bindgen_test]
    async fn gather_public_faults() {
        gpu_test(async |lab| lab.check(&super::public()).await).await;
    }

    #[wasm_bindgen_test]
    async fn gather_non_finite_values() {
        gpu_test(async |lab| lab.check(&super::non_finite()).await).await;
    }

    #[wasm_bindgen_test]
    async fn gather_indices_out_of_range() {
        gpu_test(async |lab| lab.check(&super::out_of_range()).await).await;
    }

    async fn run(lab: &Lab, case: &Case) -> Vec<Tensor> {
        let inputs = lab.operands(case);
        op::run(case.op.clone(), &inputs.iter().collect::<Vec<_>>(), &[], Path::Gpu).unwrap().await.unwrap()
    }

    /// The call that reports is the first to wait, whatever it waits for, and the only one.
    #[wasm_bindgen_test]
    async fn gather_faults_are_told_once() {
        gpu_test(async |lab| {
            let case = Lookup::new("told once", &[3], 0, &[0, 1, 2, 9, 8]).forward();
            let fault = out_of_range("gather", "indices", 3);
            let result = run(lab, &case).await;
            assert_eq!(lab.gpu.sync().unwrap().await, Err(fault.clone()));
            assert_eq!(lab.gpu.sync().unwrap().await, Ok(()));
            assert_eq!(result[0].read_f32().await.unwrap()[3..], [0.0, 0.0]);
            // A read of another tensor tells of it too; later runs are told of again.
            let other = lab.upload(&[1.0], &[1]);
            drop(run(lab, &case).await);
            assert_eq!(other.read_f32().await, Err(fault.clone()));
            assert_eq!(other.read_f32().await, Ok(vec![1.0]));
            // Two reads at once: the first has it.
            drop(run(lab, &case).await);
            let (first, second) = (other.read().unwrap(), other.read().unwrap());
            assert_eq!(first.await, Err(fault));
            assert_eq!(second.await, Ok(1f32.to_le_bytes().to_vec()));
            assert!(fault_free(lab).await);
        })
        .await;
    }

    /// A right call after a wrong one is not blamed.
    async fn fault_free(lab: &Lab) -> bool {
        drop(run(lab, &Lookup::new("right", &[3], 0, &[0, 1, 2]).forward()).await);
        lab.gpu.sync().unwrap().await.is_ok()
    }

    /// The table and the indices as overlapping views: one is read from a copy.
    #[wasm_bindgen_test]
    async fn gather_table_over_indices() {
        gpu_test(async |lab| {
            let words = [5, 4, 4, 5, 1.5f32.to_bits(), 2.5f32.to_bits()];
            let spec = |dtype, count: u32| Spec { shape: Shape::new([count]).unwrap(), dtype };
            let bytes = bytemuck::cast_slice(&words);
            let memory = Tensor::upload_bytes(&lab.arena, bytes, spec(Dtype::U32, 6)).unwrap();
            let offset = memory.operand("memory").unwrap().span.offset;
            let view = |spec| Tensor::at(&lab.arena, offset, spec).unwrap();
            let (table, indices) = (view(spec(Dtype::F32, 6)), view(spec(Dtype::U32, 4)));
            for path in [Path::Gpu, Path::Host] {
                let op = Rc::new(Gather { axis: 0 });
                let result = op::run(op, &[&table, &indices], &[], path).unwrap().await.unwrap();
                assert_eq!(result[0].read_f32().await.unwrap(), [2.5, 1.5, 1.5, 2.5], "{path:?}");
            }
        })
        .await;
    }
}
