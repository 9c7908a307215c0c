//! Faults that were reported in public against norms of other libraries, and kin.

use super::Norm;
use crate::common::{Bound, Case, Input};

/// The operands of karpathy/llm.c#763.
pub fn llm_c_763() -> Norm {
    Norm::of(
        "karpathy/llm.c#763",
        &[2, 4],
        &[1.0, 2.0, -3.0, 4.0, 0.5, -1.0, 2.0, 0.25],
        &[1.0, 0.5, -2.0, 3.0],
        &[1.0, -1.0, 2.0, 0.5, 0.25, 1.0, -0.5, 2.0],
        1e-5,
    )
}

pub fn public() -> Vec<Case> {
    // cases: row 1. gamma left out of the row's dot product.
    let row1 = llm_c_763()
        .backward()
        .says(0, 0, &[0.1460595, -0.6207512, -0.8033268, -0.3286321])
        .says(0, 4, &[-0.0382798, 0.9442781, -0.1531191, 5.0787067])
        .says(1, 0, &[0.4736129, -1.5980148, -3.0586073, 1.1641555])
        .says_within(Bound::EXACT, 2, 0, &[1.25, 0.0, 1.5, 2.5]);
    // cases: row 2. 1 - r²/4 cancels to 2e-4, so dx of 8e-4 is good to 1e-6 absolute.
    let unit = [1.0, 0.0, 0.0, 0.0];
    let row2 = Norm::of("ggml-org/ggml#1491", &[1, 4], &unit, &[1.0; 4], &unit, 1e-4)
        .backward()
        .says_within(Bound::abs(1e-6), 0, 0, &[7.9952e-4, 0.0, 0.0, 0.0])
        .says(1, 0, &[1.9996, 0.0, 0.0, 0.0]);
    // cases: row 3. A row of one value is no x/|x|.
    let x = [0.0, 1e-3, 1.0, -5.0];
    let narrow = Norm::of("tenstorrent/tt-metal#55347", &[4, 1], &x, &[2.0], &[1.0; 4], 1e-5);
    let mut row3 = vec![
        narrow.forward().says(0, 0, &[0.0, 0.6030227, 1.99999, -1.9999996]),
        narrow
            .backward()
            .says(0, 0, &[632.45553, 548.20244])
            // 1 - x²r² cancels.
            .says_within(Bound::abs(1e-6), 0, 2, &[2.0e-5, 2e-7])
            .says(1, 0, &[0.30150654]),
    ];
    for (x, dgamma) in x.into_iter().zip([0.0, 0.3015113, 0.999995, -0.9999998]) {
        let one = Norm::of("tenstorrent/tt-metal#55347, a row", &[1, 1], &[x], &[2.0], &[1.0], 1e-5);
        row3.push(one.backward().says(1, 0, &[dgamma]));
    }
    // cases: row 4. A row of zeros has the gradient gamma·dy/√eps.
    let x = [0.0, 0.0, 0.0, 0.0, 3.0, 4.0, 0.0, 0.0];
    let row4 = Norm::of("RL-Align/RL-Kernel#383", &[2, 4], &x, &[1.0, 2.0, 3.0, 4.0], &[1.0; 8], 1e-6)
        .backward()
        .says(0, 0, &[1000.0, 2000.0, 3000.0, 4000.0, -0.128, 0.096, 1.2, 1.6])
        .says(1, 0, &[1.2, 1.6, 0.0, 0.0]);
    // cases: row 7. eps is added to the mean square itself, not after a division by max|x|.
    let mut x = [0.001; 64];
    x[0] = 1000.0;
    let spiky = Norm::of("apple/coremltools#2822", &[1, 64], &x, &[1.0; 64], &[1.0; 64], 1e-5);
    let row7 = [
        // y1 is 8e-6: the usual 1e-6 would let the reported fault of 3e-4 of it pass.
        spiky.forward().says(0, 0, &[8.0]).says_within(Bound { abs: 0.0, rel: 1e-5 }, 0, 1, &[8.0e-6]),
        spiky
            .backward()
            // dx0 is -5e-7, of terms of 8e-3 that cancel.
            .says_within(Bound::abs(1e-5), 0, 0, &[0.0])
            .says(0, 1, &[0.008]),
    ];
    // cases: row 14. Lanes past h must not count.
    let (r3, r17) = (1.0 / (41.0f64 / 3.0 + 1e-5).sqrt(), 1.0 / (1785.0f64 / 17.0 + 1e-5).sqrt());
    let count: Vec<f32> = (1..=17u16).map(f32::from).collect();
    let row14 = [
        Norm::of("triton-lang/triton#9838", &[1, 3], &[1.0, 2.0, 6.0], &[1.0; 3], &[1.0; 3], 1e-5)
            .forward()
            .says_within(Bound::abs(5e-5), 0, 0, &[0.2705])
            .says(0, 0, &[r3, 2.0 * r3, 6.0 * r3]),
        Norm::of("triton-lang/triton#9838, 17", &[1, 17], &count, &[1.0; 17], &[1.0; 17], 1e-5)
            .forward()
            .says(0, 16, &[17.0 * r17]),
    ];
    // cases: row 15. The rows of a rank-3 input are all but its last dimension.
    let mut flag_gems = Norm::random(&[2, 3, 4]).named("flagos-ai/FlagGems#4916");
    flag_gems.dy.fill(1.0);
    let row15 = flag_gems.backward().says_within(Bound::EXACT, 2, 0, &[6.0; 4]);
    [vec![row1, row2, row4, row15], row3, row7.into(), row14.into()].into_iter().flatten().collect()
}

// cases: row 11, pytorch/pytorch#183861. Column sums that count on 64 lanes in step.
pub fn lane_widths() -> Vec<Case> {
    let mut cases = Vec::new();
    for rows in [1, 31, 32, 33, 63, 64, 65, 257] {
        for h in [1, 3, 17, 63, 65, 255] {
            let sign = |i: usize| if (i % h).is_multiple_of(2) { 1.0 } else { -1.0 };
            let (x, ones) = ((0..rows * h).map(sign).collect::<Vec<f32>>(), vec![1.0; rows * h]);
            let name = format!("pytorch/pytorch#183861, {rows}x{h}");
            let norm = Norm::of(&name, &[rows as u32, h as u32], &x, &ones[..h], &ones, 1e-5);
            let dgamma: Vec<f64> = (0..h).map(|j| rows as f64 * f64::from(sign(j)) * 0.999995).collect();
            let dbeta = vec![rows as f64; h];
            cases.push(norm.backward().says(1, 0, &dgamma).says_within(Bound::EXACT, 2, 0, &dbeta));
        }
    }
    cases
}

// cases: row 10, ggml-org/llama.cpp#28175. More rows than one grid axis has groups.
pub fn many_rows() -> Vec<Case> {
    let rows = 65_537;
    let ones = vec![1.0; rows * 4];
    let norm = Norm::of("ggml-org/llama.cpp#28175", &[rows as u32, 4], &ones, &ones[..4], &ones, 1e-5);
    let mut random = Norm::random(&[rows as u32, 3]);
    random.beta = None;
    vec![
        norm.backward()
            // 1 - r² cancels.
            .says_within(Bound::abs(3e-7), 0, 0, &vec![9.99985e-6; rows * 4])
            .says(1, 0, &[65_536.672_3; 4])
            .says_within(Bound::EXACT, 2, 0, &[rows as f64; 4]),
        random.forward(),
        random.backward_exact_dbeta(),
    ]
}

// cases: row 56, tinygrad/tinygrad#10201. What is not finite must come out, in its row
// and column and nowhere else.
pub fn non_finite() -> Vec<Case> {
    let mut cases = Vec::new();
    for dims in [[3, 5], [3, 65], [70, 33]] {
        for bad in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
            let h = dims[1] as usize;
            let mut in_dy = Norm::random(&dims).named(&format!("dy[1, 2] {bad}"));
            in_dy.dy[h + 2] = bad;
            let mut in_gamma = Norm::random(&dims).named(&format!("gamma[2] {bad}"));
            in_gamma.gamma[2] = bad;
            cases.extend([in_dy.backward(), in_gamma.forward(), in_gamma.backward()]);
        }
        let mut in_x = Norm::random(&dims).named("x[1, 2] NaN");
        in_x.x[dims[1] as usize + 2] = f32::NAN;
        cases.extend([in_x.forward(), in_x.backward()]);
    }
    cases
}

/// One tensor as several operands: WebGPU would refuse to bind it twice.
pub fn same_tensor() -> Vec<Case> {
    let with = |mut case: Case, same: &[(usize, usize)]| {
        for &(i, earlier) in same {
            case.inputs[i] = Input::Same(earlier);
        }
        case
    };
    let mut x_is_dy = Norm::random(&[5, 65]).named("x is dy");
    x_is_dy.dy = x_is_dy.x.clone();
    let mut x_is_gamma = Norm::random(&[7]).named("x is gamma and beta");
    x_is_gamma.gamma = x_is_gamma.x.clone();
    x_is_gamma.beta = Some(x_is_gamma.x.clone());
    let mut all = Norm::random(&[129]).named("x is gamma and dy");
    (all.gamma, all.dy) = (all.x.clone(), all.x.clone());
    vec![
        with(x_is_dy.backward(), &[(2, 0)]),
        with(x_is_gamma.forward(), &[(1, 0), (2, 0)]),
        with(all.backward(), &[(1, 0), (2, 0)]),
    ]
}

#[cfg(target_arch = "wasm32")]
mod browser {
    use crate::common::gpu_test;
    use wasm_bindgen_test::wasm_bindgen_test;

    #[wasm_bindgen_test]
    async fn rms_norm_public_faults() {
        gpu_test(async |lab| lab.check(&super::public()).await).await;
    }

    #[wasm_bindgen_test]
    async fn rms_norm_lane_widths() {
        gpu_test(async |lab| lab.check(&super::lane_widths()).await).await;
    }

    #[wasm_bindgen_test]
    async fn rms_norm_many_rows() {
        gpu_test(async |lab| lab.check(&super::many_rows()).await).await;
    }

    #[wasm_bindgen_test]
    async fn rms_norm_non_finite_values() {
        gpu_test(async |lab| lab.check(&super::non_finite()).await).await;
    }

    #[wasm_bindgen_test]
    async fn rms_norm_one_tensor_as_several_operands() {
        gpu_test(async |lab| lab.check(&super::same_tensor()).await).await;
    }
}
