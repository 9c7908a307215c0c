//! Calls of cumsum and its gradient that must be refused, and how.

use crate::common::gpu_test;
use wasm_bindgen_test::wasm_bindgen_test;
use wgrad::error::Code;
use wgrad::ops::cumsum::Cumsum;
use wgrad::shape::Dtype;

fn cumsum(axis: i64, backward: bool) -> Cumsum {
    Cumsum { axis, exclusive: false, reverse: false, backward }
}

#[wasm_bindgen_test]
async fn cumsum_wrong_calls() {
    gpu_test(async |lab| {
        let (x, scalar, whole) = (lab.tensor(&[2, 3]), lab.tensor(&[]), lab.tensor_of(Dtype::U32, &[2, 3]));
        let wrong = lab.tensor(&[3, 2]);
        for (backward, first, result) in [(false, "x", "out"), (true, "dy", "dx")] {
            for axis in [2, -3, 1 << 40, i64::MIN] {
                let fault = format!("must be in [-2, 2) for shape [2, 3], got {axis}");
                lab.refuses(cumsum(axis, backward), &[&x], &[], (Code::Argument, "axis", &fault));
            }
            for axis in [0, -1] {
                let fault = format!("must be in [-0, 0) for shape [], got {axis}");
                lab.refuses(cumsum(axis, backward), &[&scalar], &[], (Code::Argument, "axis", &fault));
            }
            let op = || cumsum(-1, backward);
            lab.refuses(op(), &[&whole], &[], (Code::Dtype, first, "must be f32, got u32"));
            lab.refuses(op(), &[&x], &[Some(&whole)], (Code::Dtype, result, "must be f32, got u32"));
            let fault = "must have shape [2, 3], got [3, 2]";
            lab.refuses(op(), &[&x], &[Some(&wrong)], (Code::Shape, result, fault));
            let fault = format!("overlaps {first}; give it memory of its own");
            lab.refuses(op(), &[&x], &[Some(&x)], (Code::Alias, result, &fault));
        }
        x.free();
        let fault = "was freed, or its arena reset or destroyed";
        lab.refuses(cumsum(0, true), &[&x], &[], (Code::Disposed, "dy", fault));
    })
    .await;
}
