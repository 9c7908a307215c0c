//! More values and more workgroups than one grid axis takes: the grid is folded in two.
// cases: row 64, ggml-org/llama.cpp#23750

use crate::common::{Bound, LargeResult, Repeated, gpu_test, repeated_f32};
use wasm_bindgen_test::wasm_bindgen_test;
use wgrad::ops::cumsum::Cumsum;
use wgrad::ops::gather::{Gather, GatherBackward};
use wgrad::ops::rms_norm::RmsNormBackward;
use wgrad::ops::rope::{Rope, Style};
use wgrad::shape::Dtype;

/// One more than 65,535 groups of 64 or of 256 hold.
const COUNTS: [u32; 2] = [4_194_241, 16_776_961];
static ONES: [f32; 1 << 16] = [1.0; 1 << 16];
static ZEROS: [f32; 1 << 16] = [0.0; 1 << 16];

fn ones(dims: &[u32]) -> Repeated<'static> {
    repeated_f32(&ONES, dims)
}

fn result<'a>(dims: &[u32], want: &'a dyn Fn(u64) -> f32) -> LargeResult<'a> {
    LargeResult { dims: dims.to_vec(), want, bound: Bound::EXACT }
}

#[wasm_bindgen_test]
async fn large_cumsum() {
    gpu_test(async |lab| {
        for (n, backward) in COUNTS.into_iter().zip([false, true]) {
            // Sums up to 2^24 are exact.
            let want = |i| if backward { u64::from(n) - i } else { i + 1 } as f32;
            let op = Cumsum { axis: 0, exclusive: false, reverse: false, backward };
            lab.check_large(op, &[ones(&[n])], &[result(&[n], &want)]).await;
        }
    })
    .await;
}

/// A workgroup for each of 65,537 lines.
#[wasm_bindgen_test]
async fn large_cumsum_of_many_lines() {
    gpu_test(async |lab| {
        let op = Cumsum { axis: 1, exclusive: true, reverse: false, backward: true };
        let dims = [65_537, 3];
        lab.check_large(op, &[ones(&dims)], &[result(&dims, &|i| (2 - i % 3) as f32)]).await;
    })
    .await;
}

#[wasm_bindgen_test]
async fn large_gather() {
    gpu_test(async |lab| {
        let table: Vec<f32> = (0..1000).map(|i| i as f32).collect();
        // Rows whose order tells an index that is off by a group.
        let rows: Vec<u32> = (0..65_521).map(|i| i * 7 % 1000).collect();
        for count in COUNTS {
            let indices = Repeated { words: &rows, dtype: Dtype::U32, dims: vec![count] };
            let operands = [repeated_f32(&table, &[1000]), indices];
            let want = |i| rows[i as usize % rows.len()] as f32;
            lab.check_large(Gather { axis: 0 }, &operands, &[result(&[count], &want)]).await;
        }
    })
    .await;
}

/// Large results from few indices; the keys of the last one take four passes of the sort.
#[wasm_bindgen_test]
async fn large_gather_backward_tables() {
    gpu_test(async |lab| {
        let dy = [1.0, 2.0, 4.0, 8.0];
        for count in COUNTS.into_iter().chain([16_777_217]) {
            let indices = [count - 1, 5, count - 1, count / 2];
            let operands =
                [repeated_f32(&dy, &[4]), Repeated { words: &indices, dtype: Dtype::I32, dims: vec![4] }];
            let hits =
                |i| indices.iter().zip(dy).filter(|&(&row, _)| u64::from(row) == i).map(|(_, dy)| dy).sum();
            let op = GatherBackward { axis: 0, axis_dim: count };
            lab.check_large(op, &operands, &[result(&[count], &hits)]).await;
        }
    })
    .await;
}

/// Large dy, of few rows.
#[wasm_bindgen_test]
async fn large_gather_backward_rows() {
    gpu_test(async |lab| {
        let wide = COUNTS[0];
        let values: Vec<f32> = (0..65_521).map(|i| i as f32).collect();
        let indices = Repeated { words: &[1, 0, 1], dtype: Dtype::U32, dims: vec![3] };
        let operands = [repeated_f32(&values, &[3, wide]), indices];
        let dy = |row: u64, t: u64| ((row * u64::from(wide) + t) % 65_521) as f32;
        let want = |i: u64| match (i / u64::from(wide), i % u64::from(wide)) {
            (0, t) => dy(1, t),
            (_, t) => dy(0, t) + dy(2, t),
        };
        let op = GatherBackward { axis: 0, axis_dim: 2 };
        lab.check_large(op, &operands, &[result(&[2, wide], &want)]).await;
    })
    .await;
}

/// Heads of 257 lanes, of which one pair turns by a quarter: 65,537 groups of 256.
#[wasm_bindgen_test]
async fn large_rope() {
    gpu_test(async |lab| {
        let dims = [1, 65_537, 257];
        let values: Vec<f32> = (0..65_521).map(|i| i as f32).collect();
        let x = |i: u64| values[i as usize % values.len()];
        let table = [1, 65_537, 1];
        for backward in [false, true] {
            let operands = [repeated_f32(&values, &dims), repeated_f32(&ZEROS, &table), ones(&table)];
            let sign = if backward { -1.0 } else { 1.0 };
            let want = |i: u64| match i % 257 {
                0 => -sign * x(i + 1),
                1 => sign * x(i - 1),
                _ => x(i),
            };
            let op = Rope { head_dim: 257, n_rot: 2, style: Style::Neox, backward };
            lab.check_large(op, &operands, &[result(&dims, &want)]).await;
        }
    })
    .await;
}

/// Rows of one value, 32 of them a group: 65,537 groups.
#[wasm_bindgen_test]
async fn large_rms_norm() {
    gpu_test(async |lab| {
        let dims = [32 * 65_536 + 1, 1];
        // With eps = 0 and h = 1 the scale is 1/|x|, so that dx is 0.
        let x: Vec<f32> = (0..65_521).map(|i| if i % 3 == 0 { -2.0 } else { 4.0 }).collect();
        let thirds = |n: u64| n / 65_521 * 65_521u64.div_ceil(3) + (n % 65_521).div_ceil(3);
        let rows = u64::from(dims[0]);
        let dgamma = |_| (rows as i64 - 2 * thirds(rows) as i64) as f32;
        let op = RmsNormBackward { name: "rmsNormBackward", eps: 0.0, wants: [true; 3] };
        let operands = [repeated_f32(&x, &dims), ones(&[1]), ones(&dims)];
        let near = |dims, want| LargeResult { bound: Bound::USUAL, ..result(dims, want) };
        let dbeta = |_| rows as f32;
        let results = [near(&dims, &|_| 0.0), near(&[1], &dgamma), result(&[1], &dbeta)];
        lab.check_large(op, &operands, &results).await;
    })
    .await;
}
