//! Faults that were reported in public against rotary embeddings of other libraries, and kin.

use super::Rotation;
use crate::common::{Bound, Case, Input};
use wgrad::ops::rope::Style;

fn count(from: u16, to: u16) -> Vec<f32> {
    (from..=to).map(f32::from).collect()
}

/// The call of pie-project/pie#603: a head of six, of which four rotate.
fn partial(style: Style) -> Rotation {
    let name = format!("pie-project/pie#603, {style:?}");
    Rotation::of(&name, &[1, 1, 6], (6, 4, style), count(1, 6)).at_positions(&[1], 2)
}

pub fn public() -> Vec<Case> {
    // cases: rows 16 and 19. The pair of lane i is i + n_rot/2, not i + head_dim/2, and
    // the backward turns the other way.
    let neox = partial(Style::Neox);
    let pass = |case: Case| case.says_within(Bound::EXACT, 0, 4, &[5.0, 6.0]);
    let mut cases = vec![
        pass(neox.case(true).says(0, 0, &[3.0647153, 2.0398993, 0.7794359, 3.9798003])),
        pass(neox.case(false).says(0, 0, &[-1.9841106, 1.9599007, 2.4623779, 4.0197997])),
    ];
    // cases: row 17, vllm-project/vllm-ascend#12780. The other pairing.
    let gptj = partial(Style::Gptj);
    cases.push(pass(gptj.case(true).says(0, 0, &[2.2232443, 0.2391336, 3.0398493, 3.9698005])));
    // cases: row 20, linkedin/Liger-Kernel#477. Tables for each token.
    let name = "linkedin/Liger-Kernel#477";
    let mut tokens = Rotation::of(name, &[2, 2, 4], (4, 4, Style::Neox), count(1, 16));
    tokens = tokens.at_positions(&[0, 1, 5, 9], 2);
    let says = |case: Case| {
        case.says(0, 0, &[1.0, 2.0, 3.0, 4.0])
            .says(0, 4, &[8.5918084, 6.0796987, -0.4252388, 7.939601])
            .says(0, 8, &[-7.9952074, 10.5872526, 11.7506025, 11.4852114])
            .says(0, 12, &[-5.6629161, 15.381395, -19.0244942, 14.676944])
    };
    cases.push(says(tokens.case(true)));
    // The same tables as [batch, seq, n_rot/2], as that report has them.
    tokens.table = vec![2, 2, 2];
    cases.push(says(tokens.case(true)));
    // cases: row 22, elixir-nx/emlx#121. The head must not leak into the position.
    let twice = [count(1, 4), count(1, 4)].concat();
    let heads =
        Rotation::of("elixir-nx/emlx#121", &[1, 1, 8], (4, 4, Style::Neox), twice).at_positions(&[3], 2);
    let turned = [-0.5666325, 2.1190821, -3.1110975, 3.9382091];
    cases.push(heads.case(true).says(0, 0, &turned).says(0, 4, &turned));
    // cases: row 23, ggml-org/llama.cpp#17543. 20 lanes of 80.
    let dy: Vec<f32> = (0..80).map(|i| (i % 7) as f32 - 3.0).collect();
    let phi = |style| {
        let name = format!("ggml-org/llama.cpp#17543, {style:?}");
        let case =
            Rotation::of(&name, &[1, 1, 80], (80, 20, style), dy.clone()).at_positions(&[7], 10).case(true);
        let squares: f64 = case.wants[0].values.iter().map(|dx| dx * dx).sum();
        assert!((squares - 322.0).abs() < 1e-4, "a rotation keeps lengths, got {squares}");
        let rest: Vec<f64> = dy[20..].iter().map(|&dy| f64::from(dy)).collect();
        case.says_within(Bound::EXACT, 0, 20, &rest)
    };
    let first = [-2.2617068, 2.2228451, 1.3457097, 1.2823498];
    cases.push(phi(Style::Neox).says(0, 0, &first).says(0, 10, &[1.9709598]).says(0, 19, &[2.0017552]));
    cases.push(phi(Style::Gptj).says(0, 0, &[-3.57568, 0.4631553, 0.9377012, 0.3474426]));
    // cases: row 25, apple/coreai-models#66. One frequency of four, as a table of full width.
    let name = "apple/coreai-models#66";
    let mut one = Rotation::of(name, &[1, 1, 8], (8, 8, Style::Neox), count(1, 8));
    one.table = vec![1, 4];
    one.cos = vec![1f64.cos() as f32, 1.0, 1.0, 1.0];
    one.sin = vec![1f64.sin() as f32, 0.0, 0.0, 0.0];
    cases.push(one.case(true).says(0, 0, &[4.7476572, 2.0, 3.0, 4.0, 1.8600405, 6.0, 7.0, 8.0]));
    cases
}

// cases: row 56, tinygrad/tinygrad#10201. What is not finite must come out, in its pair
// and nowhere else.
pub fn non_finite() -> Vec<Case> {
    let mut cases = Vec::new();
    for style in [Style::Neox, Style::Gptj] {
        for bad in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
            for lane in [1, 5] {
                let mut call = Rotation::random(&[1, 4, 12], (6, 4, style), false, 0);
                call.name += &format!(" x[2, {lane}] {bad}");
                call.x[2 * 12 + lane] = bad;
                cases.extend(call.both());
            }
        }
    }
    cases
}

/// One tensor as both tables: WebGPU would refuse to bind it twice.
pub fn same_table() -> Vec<Case> {
    let mut call = Rotation::random(&[2, 3, 8], (4, 4, Style::Neox), false, 0);
    call.sin = call.cos.clone();
    call.both()
        .map(|mut case| {
            case.inputs[2] = Input::Same(1);
            case
        })
        .into()
}

#[cfg(target_arch = "wasm32")]
mod browser {
    use super::{Rotation, partial};
    use crate::common::{NAN, gpu_test, wide};
    use wasm_bindgen_test::wasm_bindgen_test;
    use wgrad::op::{self, Path};
    use wgrad::ops::rope::{Rope, Style};

    #[wasm_bindgen_test]
    async fn rope_public_faults() {
        gpu_test(async |lab| lab.check(&super::public()).await).await;
    }

    #[wasm_bindgen_test]
    async fn rope_non_finite_values() {
        gpu_test(async |lab| lab.check(&super::non_finite()).await).await;
    }

    #[wasm_bindgen_test]
    async fn rope_one_tensor_as_both_tables() {
        gpu_test(async |lab| lab.check(&super::same_table()).await).await;
    }

    // cases: row 19, huggingface/candle#3612. Forth and back on the GPU, nothing awaited between.
    #[wasm_bindgen_test]
    async fn rope_backward_undoes_forward() {
        gpu_test(async |lab| {
            for path in [Path::Gpu, Path::Host] {
                let calls = [partial(Style::Neox), partial(Style::Gptj)];
                let random = Rotation::random(&[2, 33, 40], (20, 14, Style::Neox), false, 0);
                for call in calls.into_iter().chain([random]) {
                    let case = call.case(false);
                    let inputs = lab.operands(&case);
                    let [x, cos, sin] = [0, 1, 2].map(|i: usize| &inputs[i]);
                    let rope = |backward| {
                        let Rotation { head_dim, n_rot, style, .. } = call;
                        std::rc::Rc::new(Rope { head_dim, n_rot, style, backward })
                    };
                    let forth = op::run(rope(false), &[x, cos, sin], &[], path).unwrap().await.unwrap();
                    let back = op::run(rope(true), &[&forth[0], cos, sin], &[], path).unwrap().await.unwrap();
                    let got = back[0].read_f32().await.unwrap();
                    for (i, (got, want)) in got.iter().zip(wide(&call.x)).enumerate() {
                        // Two roundings of values up to 6.
                        assert!(
                            (f64::from(*got) - want).abs() <= 1e-6,
                            "{}[{i}]: {got}, want {want}",
                            call.name
                        );
                    }
                }
            }
        })
        .await;
    }

    /// Lanes that pass through keep every bit, also of a NaN with a payload.
    #[wasm_bindgen_test]
    async fn rope_other_lanes_keep_their_bits() {
        gpu_test(async |lab| {
            for style in [Style::Neox, Style::Gptj] {
                let mut call = Rotation::random(&[2, 3, 14], (7, 4, style), false, 0);
                for head in call.x.chunks_mut(7) {
                    head[4..].copy_from_slice(&[f32::from_bits(NAN), -0.0, f32::NEG_INFINITY]);
                }
                let inputs = lab.operands(&call.case(true));
                let operands: Vec<_> = inputs.iter().collect();
                for path in [Path::Gpu, Path::Host] {
                    let run = op::run(call.case(true).op, &operands, &[], path).unwrap();
                    let got = lab.fetch(&run.await.unwrap()).await.unwrap();
                    for head in got[0].chunks(7) {
                        let want = [NAN, 0x8000_0000, 0xff80_0000];
                        assert_eq!(head[4..], want, "{style:?} {path:?}");
                    }
                }
            }
        })
        .await;
    }
}
