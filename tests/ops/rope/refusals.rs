//! Calls of rope and its gradient that must be refused, and how.

use crate::common::gpu_test;
use wasm_bindgen_test::wasm_bindgen_test;
use wgrad::error::Code;
use wgrad::ops::rope::{Rope, Style};
use wgrad::shape::Dtype;

fn rope(head_dim: u32, n_rot: u32, backward: bool) -> Rope {
    Rope { head_dim, n_rot, style: Style::Neox, backward }
}

#[wasm_bindgen_test]
async fn rope_wrong_shapes_types_and_options() {
    gpu_test(async |lab| {
        let (x, table) = (lab.tensor(&[2, 3, 8]), lab.tensor(&[3, 2]));
        for (backward, first) in [(false, "x"), (true, "dy")] {
            let op = |head_dim, n_rot| rope(head_dim, n_rot, backward);
            let mut refuses = |op, inputs: [&_; 3], code, operand, fault: &str| {
                lab.refuses(op, &inputs, &[], (code, operand, fault));
            };
            let good = [&x, &table, &table];
            refuses(op(0, 0), good, Code::Argument, "headDim", "must be 1 or more, got 0");
            for n_rot in [3, 5, 6] {
                let fault = format!("must be even and at most headDim = 4, got {n_rot}");
                refuses(op(4, n_rot), good, Code::Argument, "nRot", &fault);
            }
            let fault = "must have a multiple of headDim = 5 lanes a token, got [2, 3, 8]";
            refuses(op(5, 4), good, Code::Shape, first, fault);
        }
    })
    .await;
}

#[wasm_bindgen_test]
async fn rope_wrong_tables() {
    gpu_test(async |lab| {
        let (x, table) = (lab.tensor(&[2, 3, 8]), lab.tensor(&[3, 2]));
        let want = "must be [3, 2 or more] or [6, 2 or more], got";
        for dims in [&[3, 1][..], &[2, 2], &[5, 2], &[7, 2], &[6], &[]] {
            let bad = lab.tensor(dims);
            let fault = format!("{want} {dims:?}");
            lab.refuses(rope(4, 4, false), &[&x, &bad, &bad], &[], (Code::Shape, "cos", &fault));
        }
        for dims in [&[3, 3][..], &[6, 2], &[6]] {
            let bad = lab.tensor(dims);
            let fault = format!("must have shape [3, 2], got {dims:?}");
            lab.refuses(rope(4, 4, true), &[&x, &table, &bad], &[], (Code::Shape, "sin", &fault));
        }
        let (signed, whole) = (lab.tensor_of(Dtype::I32, &[3, 2]), lab.tensor_of(Dtype::U32, &[2, 3, 8]));
        let dtype = |operand, fault| (Code::Dtype, operand, fault);
        lab.refuses(rope(4, 4, false), &[&x, &signed, &table], &[], dtype("cos", "must be f32, got i32"));
        lab.refuses(rope(4, 4, false), &[&x, &table, &signed], &[], dtype("sin", "must be f32, got i32"));
        lab.refuses(rope(4, 4, true), &[&whole, &table, &table], &[], dtype("dy", "must be f32, got u32"));
    })
    .await;
}

#[wasm_bindgen_test]
async fn rope_wrong_ranks_and_results() {
    gpu_test(async |lab| {
        let (x, cos, sin) = (lab.tensor(&[2, 3, 8]), lab.tensor(&[3, 2]), lab.tensor(&[3, 2]));
        for dims in [&[][..], &[8], &[3, 8], &[2, 3, 4, 2], &[1, 2, 3, 2, 4]] {
            let bad = lab.tensor(dims);
            let want = "must be [batch, seq, heads*headDim] or [batch, seq, heads, headDim], got";
            let fault = format!("{want} {dims:?}");
            lab.refuses(rope(4, 4, false), &[&bad, &cos, &sin], &[], (Code::Shape, "x", &fault));
        }
        let over = |name| format!("overlaps {name}; give it memory of its own");
        let inputs = [&x, &cos, &sin];
        lab.refuses(rope(4, 4, false), &inputs, &[Some(&x)], (Code::Alias, "out", &over("x")));
        lab.refuses(rope(4, 4, true), &inputs, &[Some(&x)], (Code::Alias, "dx", &over("dy")));
        let flat = lab.tensor(&[48]);
        let fault = "must have shape [2, 3, 8], got [48]";
        lab.refuses(rope(4, 4, true), &inputs, &[Some(&flat)], (Code::Shape, "dx", fault));
        sin.free();
        let fault = "was freed, or its arena reset or destroyed";
        lab.refuses(rope(4, 4, true), &inputs, &[], (Code::Disposed, "sin", fault));
    })
    .await;
}
