//! Calls of rmsNorm and its gradients that must be refused, and how.

use super::faults::llm_c_763;
use crate::common::gpu_test;
use wasm_bindgen_test::wasm_bindgen_test;
use wgrad::error::{Code, Error};
use wgrad::ops::rms_norm::{RmsNorm, RmsNormBackward};
use wgrad::shape::Dtype;

fn all(eps: f32) -> RmsNormBackward {
    RmsNormBackward { name: "rmsNormBackward", eps, wants: [true; 3] }
}

#[wasm_bindgen_test]
async fn rms_norm_wrong_shapes_types_and_options() {
    gpu_test(async |lab| {
        let (x, gamma, dy) = (lab.tensor(&[2, 4]), lab.tensor(&[4]), lab.tensor(&[2, 4]));
        let (short, wide, flat) = (lab.tensor(&[3]), lab.tensor(&[2, 5]), lab.tensor(&[8]));
        let (scalar, hollow) = (lab.tensor(&[]), lab.tensor(&[2, 0]));
        let (whole, signed) = (lab.tensor_of(Dtype::U32, &[4]), lab.tensor_of(Dtype::I32, &[2, 4]));
        let norm = |beta| RmsNorm { eps: 1e-5, beta };

        let (shape, dtype, argument) = (Code::Shape, Code::Dtype, Code::Argument);
        let gamma_shape = (shape, "gamma", "must have shape [4], got [3]");
        lab.refuses(norm(false), &[&x, &short], &[], gamma_shape);
        lab.refuses(all(1e-5), &[&x, &short, &dy], &[], gamma_shape);
        lab.refuses(norm(true), &[&x, &gamma, &short], &[], (shape, "beta", "must have shape [4], got [3]"));
        let dy_shape = |got| format!("must have shape [2, 4], got {got}");
        lab.refuses(all(1e-5), &[&x, &gamma, &wide], &[], (shape, "dy", &dy_shape("[2, 5]")));
        // The count alone does not make it fit.
        lab.refuses(all(1e-5), &[&x, &gamma, &flat], &[], (shape, "dy", &dy_shape("[8]")));
        let no_row = |got| format!("must be [rows, h] with h > 0, got {got}");
        lab.refuses(norm(false), &[&scalar, &gamma], &[], (shape, "x", &no_row("[]")));
        lab.refuses(all(1e-5), &[&hollow, &gamma, &hollow], &[], (shape, "x", &no_row("[2, 0]")));
        lab.refuses(norm(false), &[&signed, &gamma], &[], (dtype, "x", "must be f32, got i32"));
        lab.refuses(norm(false), &[&x, &whole], &[], (dtype, "gamma", "must be f32, got u32"));
        lab.refuses(norm(true), &[&x, &gamma, &whole], &[], (dtype, "beta", "must be f32, got u32"));
        lab.refuses(all(1e-5), &[&x, &gamma, &signed], &[], (dtype, "dy", "must be f32, got i32"));
        for (eps, shown) in [(-1.0, "-1"), (f32::NAN, "NaN"), (f32::INFINITY, "Infinity")] {
            let fault = format!("must be a finite number of 0 or more, got {shown}");
            lab.refuses(all(eps), &[&x, &gamma, &dy], &[], (argument, "eps", &fault));
            lab.refuses(RmsNorm { eps, beta: false }, &[&x, &gamma], &[], (argument, "eps", &fault));
        }
        let count = Error::new(Code::Argument, "takes 3 operands, got 2");
        lab.refuses_with(all(1e-5), &[&x, &gamma], &[], count);

        let out = (shape, "out", "must have shape [2, 4], got [2, 5]");
        lab.refuses(norm(false), &[&x, &gamma], &[Some(&wide)], out);
        let out = (dtype, "dgamma", "must be f32, got u32");
        lab.refuses(all(1e-5), &[&x, &gamma, &dy], &[None, Some(&whole)], out);
        let out = (shape, "dbeta", "must have shape [4], got [3]");
        lab.refuses(all(1e-5), &[&x, &gamma, &dy], &[None, None, Some(&short)], out);
    })
    .await;
}

// cases: row 8, unslothai/unsloth#4550. dx over dy would spoil dgamma, which is computed after.
#[wasm_bindgen_test]
async fn rms_norm_results_over_operands() {
    gpu_test(async |lab| {
        let case = llm_c_763().backward();
        let operands = lab.operands(&case);
        let [x, gamma, dy] = [0, 1, 2].map(|i: usize| &operands[i]);
        let input =
            || RmsNormBackward { name: "rmsNormBackwardInput", eps: 1e-5, wants: [true, false, false] };
        let over = |name| format!("overlaps {name}; give it memory of its own");
        lab.refuses(input(), &[x, gamma, dy], &[Some(dy)], (Code::Alias, "dx", &over("dy")));
        lab.refuses(all(1e-5), &[x, gamma, dy], &[Some(dy), None, None], (Code::Alias, "dx", &over("dy")));
        lab.refuses(all(1e-5), &[x, gamma, dy], &[Some(x)], (Code::Alias, "dx", &over("x")));
        lab.refuses(
            all(1e-5),
            &[x, gamma, dy],
            &[None, Some(gamma)],
            (Code::Alias, "dgamma", &over("gamma")),
        );
        let both = lab.tensor(&[4]);
        let twice = [None, Some(&both), Some(&both)];
        lab.refuses(all(1e-5), &[x, gamma, dy], &twice, (Code::Alias, "dbeta", &over("dgamma")));
        let norm = RmsNorm { eps: 1e-5, beta: false };
        lab.refuses(norm, &[x, gamma], &[Some(x)], (Code::Alias, "out", &over("x")));
        drop((operands, both));
        // The operands came through it all, and their gradients are right.
        lab.check(&[case]).await;
    })
    .await;
}

#[wasm_bindgen_test]
async fn rms_norm_freed_operands() {
    gpu_test(async |lab| {
        let (x, gamma, dy) = (lab.tensor(&[2, 4]), lab.tensor(&[4]), lab.tensor(&[2, 4]));
        let (out, freed) =
            (lab.tensor(&[2, 4]), (Code::Disposed, "was freed, or its arena reset or destroyed"));
        out.free();
        lab.refuses(all(1e-5), &[&x, &gamma, &dy], &[Some(&out)], (freed.0, "dx", freed.1));
        dy.free();
        lab.refuses(all(1e-5), &[&x, &gamma, &dy], &[], (freed.0, "dy", freed.1));
        // A clone is the same handle.
        gamma.clone().free();
        lab.refuses(all(1e-5), &[&x, &gamma, &dy], &[], (freed.0, "gamma", freed.1));
        x.free();
        lab.refuses(all(1e-5), &[&x, &gamma, &dy], &[], (freed.0, "x", freed.1));
        // Freeing twice is harmless.
        x.free();
    })
    .await;
}
