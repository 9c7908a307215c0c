//! Faults that were reported in public against cumulative sums of other libraries, and kin.

use super::{FLAGS, Scan};
use crate::common::Case;

/// A case of which the whole result is known, to the bit.
fn says(
    name: &str,
    dims: &[u32],
    axis: i64,
    flags: (bool, bool),
    x: &[f32],
    backward: bool,
    y: &[f64],
) -> Case {
    let case = Scan::of(dims, axis, flags, x.to_vec()).named(name).case(backward).exact();
    let bound = case.wants[0].bound;
    case.says_within(bound, 0, 0, y)
}

pub fn public() -> Vec<Case> {
    // cases: row 26. Which way the sum runs, not which way the result is laid out.
    let name = "tensorflow/tensorflow#2711";
    let dy = [1.0, 10.0, 100.0];
    let (first, last) = ([1.0, 11.0, 111.0], [111.0, 110.0, 100.0]);
    let (before, after) = ([0.0, 1.0, 11.0], [110.0, 100.0, 0.0]);
    let mut cases = Vec::new();
    for (flags, y, dx) in [
        ((false, false), first, last),
        ((true, false), before, after),
        ((false, true), last, first),
        ((true, true), after, before),
    ] {
        cases.push(says(name, &[3], -1, flags, &dy, false, &y));
        cases.push(says(name, &[3], -1, flags, &dy, true, &dx));
    }
    // cases: row 27. Accumulated, not a total minus a prefix.
    let name = "pytorch/pytorch#53711";
    cases.push(says(name, &[4], 0, (false, false), &[1e8, 1.0, 1.0, 1.0], true, &[1e8, 3.0, 2.0, 1.0]));
    cases.push(says(name, &[4], 0, (true, false), &[1e8, 1.0, 1.0, 1.0], true, &[3.0, 2.0, 1.0, 0.0]));
    // cases: row 28. An axis in the middle.
    let name = "tensorflow/tfjs-core#1054";
    let dy: Vec<f32> = (1..=12u16).map(f32::from).collect();
    let incl = [9.0, 12.0, 8.0, 10.0, 5.0, 6.0, 27.0, 30.0, 20.0, 22.0, 11.0, 12.0];
    let excl = [8.0, 10.0, 5.0, 6.0, 0.0, 0.0, 20.0, 22.0, 11.0, 12.0, 0.0, 0.0];
    for (exclusive, dx) in [(false, incl), (true, excl)] {
        for axis in [1, -2] {
            cases.push(says(name, &[2, 3, 2], axis, (exclusive, false), &dy, true, &dx));
        }
    }
    cases
}

// cases: row 29, Jittor/jittor#330. An axis longer than what a workgroup takes.
pub fn longer_than_a_block() -> Vec<Case> {
    let mut cases = Vec::new();
    for n in [255u32, 256, 257, 1023, 1024, 1025, 4096, 4097, 5000] {
        for exclusive in [false, true] {
            let dx: Vec<f64> = (0..n).map(|i| f64::from(n - i - u32::from(exclusive))).collect();
            let (name, ones) = ("Jittor/jittor#330", vec![1.0; n as usize]);
            cases.push(says(name, &[n], 0, (exclusive, false), &ones, true, &dx));
        }
    }
    cases
}

// cases: row 56, tinygrad/tinygrad#10201. What is not finite must reach all sums that it
// is part of, and no other.
pub fn non_finite() -> Vec<Case> {
    let x = [1.0, f32::INFINITY, f32::NAN];
    let mut cases: Vec<Case> =
        FLAGS.iter().flat_map(|&flags| Scan::of(&[3], 0, flags, x.to_vec()).both()).collect();
    for (dims, at) in [([300, 1], 100), ([1500, 1], 600), ([300, 5], 901), ([300, 20], 3001)] {
        for (flags, bad) in FLAGS.into_iter().zip([f32::NAN, f32::INFINITY, f32::NEG_INFINITY, f32::NAN]) {
            let mut scan = Scan::random(&dims, 0, flags).named(&format!("[{at}] {bad}"));
            scan.x[at] = bad;
            cases.extend(scan.both().map(Case::exact));
        }
    }
    cases
}

#[cfg(target_arch = "wasm32")]
mod browser {
    use super::Scan;
    use crate::common::{Bound, Case, gpu_test, say};
    use wasm_bindgen_test::wasm_bindgen_test;
    use wgrad::op::{self, Path};

    #[wasm_bindgen_test]
    async fn cumsum_public_faults() {
        gpu_test(async |lab| lab.check(&super::public()).await).await;
    }

    #[wasm_bindgen_test]
    async fn cumsum_longer_than_a_block() {
        gpu_test(async |lab| lab.check(&super::longer_than_a_block()).await).await;
    }

    #[wasm_bindgen_test]
    async fn cumsum_non_finite_values() {
        gpu_test(async |lab| lab.check(&super::non_finite()).await).await;
    }

    fn million(name: &str, dy: f32) -> Scan {
        Scan::of(&[1_000_000], 0, (false, false), vec![dy; 1_000_000]).named(name)
    }

    // cases: row 31, tenstorrent/tt-metal#55542. A serial f32 chain would be off by 1 %.
    #[wasm_bindgen_test]
    async fn cumsum_precision_of_a_million() {
        gpu_test(async |lab| {
            let case = million("tenstorrent/tt-metal#55542", 0.1).case(true);
            lab.check(&[case.says(0, 0, &[100_000.001_5])]).await;
        })
        .await;
    }

    // cases: row 32, tensorflow/tfjs#1867. Exact, and in milliseconds on a GPU. On a
    // processor that other work shares it takes up to a second; the limit is for minutes.
    #[wasm_bindgen_test]
    async fn cumsum_time_of_a_million() {
        gpu_test(async |lab| {
            let case = million("tensorflow/tfjs#1867", 1.0).case(true).exact();
            let case = case.says_within(Bound::EXACT, 0, 0, &[1e6]);
            let case: Case = case.says_within(Bound::EXACT, 0, 999_999, &[1.0]);
            let cases = [case];
            lab.check(&cases).await;
            // The check above has compiled the kernels.
            let inputs = lab.operands(&cases[0]);
            lab.gpu.sync().unwrap().await.unwrap();
            let start = js_sys::Date::now();
            let result = op::run(cases[0].op.clone(), &[&inputs[0]], &[], Path::Gpu).unwrap().await.unwrap();
            lab.gpu.sync().unwrap().await.unwrap();
            let took = js_sys::Date::now() - start;
            say(&format!("time: cumsumBackward of 1e6 values on this adapter: {took} ms"));
            assert!(took < 10_000.0, "took {took} ms");
            drop(result);
        })
        .await;
    }
}
