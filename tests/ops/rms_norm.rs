//! rmsNorm and its gradients against a plain f64 reference.

mod faults;
#[cfg(target_arch = "wasm32")]
mod refusals;

use crate::common::{Bound, Case, Rng, Want, dims, f32s, wide};
use crate::golden;
use wgrad::ops::rms_norm::{RmsNorm, RmsNormBackward};

/// y of x [rows, h].
fn forward(x: &[f64], gamma: &[f64], beta: Option<&[f64]>, eps: f64) -> Vec<f64> {
    let mut y = Vec::new();
    for row in x.chunks(gamma.len()) {
        let mean = row.iter().map(|v| v * v).sum::<f64>() / row.len() as f64;
        for (j, v) in row.iter().enumerate() {
            y.push(v / (mean + eps).sqrt() * gamma[j] + beta.map_or(0.0, |beta| beta[j]));
        }
    }
    y
}

/// dx, dgamma and dbeta, by the chain rule: with s = mean(x²) + eps,
/// dy_j/dx_k = gamma_j·(δ_jk/√s − x_j·x_k/(h·s^1.5)).
fn backward(x: &[f64], gamma: &[f64], dy: &[f64], eps: f64) -> [Vec<f64>; 3] {
    let h = gamma.len();
    let (mut dx, mut dgamma, mut dbeta) = (Vec::new(), vec![0.0; h], vec![0.0; h]);
    for (row, grad) in x.chunks(h).zip(dy.chunks(h)) {
        let s = row.iter().map(|v| v * v).sum::<f64>() / h as f64 + eps;
        let through_s: f64 =
            (0..h).map(|j| gamma[j] * grad[j] * row[j]).sum::<f64>() / (h as f64 * s * s.sqrt());
        for k in 0..h {
            dx.push(gamma[k] * grad[k] / s.sqrt() - row[k] * through_s);
            dgamma[k] += grad[k] * row[k] / s.sqrt();
            dbeta[k] += grad[k];
        }
    }
    [dx, dgamma, dbeta]
}

/// Operands of one call in either direction.
struct Norm {
    name: String,
    /// Of x.
    dims: Vec<u32>,
    eps: f32,
    x: Vec<f32>,
    gamma: Vec<f32>,
    beta: Option<Vec<f32>>,
    dy: Vec<f32>,
}

impl Norm {
    /// Random values; beta where h is odd. No row is so near zero that its r would
    /// magnify rounding, and the terms of a column of dgamma have one sign: an f32 sum
    /// that cancels to nothing is not good to 1e-5 of it, in any order. dy is coarse,
    /// so that dbeta must be exact.
    fn random(dims: &[u32]) -> Norm {
        let name = format!("{dims:?}");
        let mut rng = Rng::new(&name);
        let (count, h) = (dims.iter().product::<u32>() as usize, dims[dims.len() - 1] as usize);
        let x: Vec<f32> = rng.full(count).iter().map(|v| 0.75 * v + 0.5f32.copysign(*v)).collect();
        let column = rng.full(h);
        let dy =
            rng.coarse(count).into_iter().enumerate().map(|(i, v)| v.abs().copysign(x[i] * column[i % h]));
        Norm {
            dims: dims.to_vec(),
            eps: 1e-5,
            dy: dy.collect(),
            x,
            gamma: rng.full(h),
            beta: (h % 2 == 1).then(|| rng.full(h)),
            name,
        }
    }

    fn of(name: &str, dims: &[u32], x: &[f32], gamma: &[f32], dy: &[f32], eps: f32) -> Norm {
        let (x, gamma, dy) = (x.to_vec(), gamma.to_vec(), dy.to_vec());
        Norm { name: name.into(), dims: dims.to_vec(), eps, x, gamma, beta: None, dy }
    }

    fn named(self, name: &str) -> Norm {
        Norm { name: format!("{} {name}", self.name), ..self }
    }

    fn forward(&self) -> Case {
        let h = [self.gamma.len() as u32];
        let mut inputs = vec![f32s(&self.x, &self.dims), f32s(&self.gamma, &h)];
        inputs.extend(self.beta.as_ref().map(|beta| f32s(beta, &h)));
        let beta = self.beta.as_ref().map(|beta| wide(beta));
        let y = forward(&wide(&self.x), &wide(&self.gamma), beta.as_deref(), self.eps.into());
        Case::new(&self.name, RmsNorm { eps: self.eps, beta: beta.is_some() }, inputs, vec![Want::new(y)])
    }

    fn backward(&self) -> Case {
        self.gradients("rmsNormBackward", [true; 3])
    }

    /// [`Norm::backward`] of coarse dy.
    fn backward_exact_dbeta(&self) -> Case {
        let mut case = self.backward();
        case.wants[2].bound = Bound::EXACT;
        case
    }

    fn gradients(&self, op: &'static str, wants: [bool; 3]) -> Case {
        let inputs = vec![
            f32s(&self.x, &self.dims),
            f32s(&self.gamma, &[self.gamma.len() as u32]),
            f32s(&self.dy, &self.dims),
        ];
        let all = backward(&wide(&self.x), &wide(&self.gamma), &wide(&self.dy), self.eps.into());
        let results =
            all.into_iter().zip(wants).filter(|(_, want)| *want).map(|(values, _)| Want::new(values));
        Case::new(
            format!("{} wants {wants:?}", self.name),
            RmsNormBackward { name: op, eps: self.eps, wants },
            inputs,
            results.collect(),
        )
    }
}

/// Shapes around what the kernels do differently: 8 to 256 lanes a row by its length,
/// 32 columns and 64 rows a group of the column sums, lanes with more than 64 terms, and
/// no row at all.
fn shapes() -> Vec<Vec<u32>> {
    let mut shapes = Vec::new();
    for h in
        [1, 2, 7, 8, 9, 15, 16, 17, 31, 32, 33, 63, 64, 65, 127, 128, 129, 255, 256, 257, 511, 512, 513, 1000]
    {
        shapes.extend([vec![1, h], vec![5, h]]);
    }
    for rows in [31, 32, 33, 63, 64, 65, 127, 128, 129, 255, 256, 257, 1025] {
        shapes.extend([vec![rows, 3], vec![rows, 33]]);
    }
    shapes.extend([vec![2, 16_500], vec![0, 5], vec![4], vec![2, 3, 4], vec![2, 0, 4], vec![3, 1, 2, 5]]);
    shapes
}

fn table() -> Vec<Case> {
    let both = |norm: Norm| [norm.forward(), norm.backward_exact_dbeta()];
    shapes().iter().flat_map(|dims| both(Norm::random(dims))).collect()
}

/// Every set of results, and the three calls with one each.
fn subsets() -> Vec<Case> {
    let mut cases = Vec::new();
    for dims in [[3, 17], [65, 33], [0, 5]] {
        let norm = Norm::random(&dims);
        for bits in 1..8 {
            cases.push(norm.gradients("rmsNormBackward", [1, 2, 4].map(|bit| bits & bit != 0)));
        }
        cases.push(norm.gradients("rmsNormBackwardInput", [true, false, false]));
        cases.push(norm.gradients("rmsNormBackwardGamma", [false, true, false]));
        cases.push(norm.gradients("rmsNormBackwardBeta", [false, false, true]));
    }
    cases
}

/// Values far from 1. Their squares still are f32 numbers, with sums of 257 of them.
fn magnitudes() -> Vec<Case> {
    let mut cases = Vec::new();
    let scale = |values: &mut Vec<f32>, by: f32| values.iter_mut().for_each(|value| *value *= by);
    for dims in [[3, 5], [3, 65], [2, 257]] {
        for (x, dy, gamma, eps) in [
            (1e15, 1.0, 1.0, 1e-5),
            (1e-15, 1.0, 1.0, 1e-5),
            (1e-15, 1.0, 1.0, 0.0),
            (1.0, 1e15, 1.0, 1e-5),
            (1.0, 1e-15, 1.0, 1e-5),
            (1e15, 1e15, 1.0, 1e-5),
            (1.0, 1.0, 1e15, 1e-5),
            (1.0, 1.0, 1e-15, 1e-5),
        ] {
            let mut norm =
                Norm::random(&dims).named(&format!("x·{x:e} dy·{dy:e} gamma·{gamma:e} eps {eps:e}"));
            scale(&mut norm.x, x);
            scale(&mut norm.dy, dy);
            scale(&mut norm.gamma, gamma);
            // Beside values of 1e15 a beta of 1 is lost, beside 1e-15 all else is.
            (norm.beta, norm.eps) = (None, eps);
            cases.extend([norm.forward().scaled(), norm.backward().scaled()]);
        }
    }
    cases
}

fn goldens() -> Vec<Case> {
    let mut cases = Vec::new();
    for case in golden::parse(include_bytes!("../golden/rms_norm.bin")) {
        let norm = Norm {
            name: format!("golden {}", case.name),
            dims: dims(case.shape("x")),
            eps: case.attr("eps") as f32,
            x: case.f32("x").to_vec(),
            gamma: case.f32("gamma").to_vec(),
            beta: case.has("beta").then(|| case.f32("beta").to_vec()),
            dy: case.f32("dy").to_vec(),
        };
        cases.push(norm.forward().golden(0, case.f32("y")));
        let gradients = ["dx", "dgamma", "dbeta"].into_iter().enumerate();
        cases.push(gradients.fold(norm.backward(), |all, (i, name)| all.golden(i, case.f32(name))));
    }
    cases
}

#[cfg(not(target_arch = "wasm32"))]
mod native {
    use super::*;
    use crate::common::{check_compute, check_gradient};

    #[test]
    fn the_reference_is_the_derivative_of_its_forward() {
        for (rows, h, eps) in [(1, 1, 1e-5), (3, 5, 1e-5), (2, 17, 1e-6), (4, 3, 0.5)] {
            let norm = Norm::random(&[rows, h]);
            let (mut x, gamma, dy) = (wide(&norm.x), wide(&norm.gamma), wide(&norm.dy));
            let beta = vec![0.25; h as usize];
            if eps == 0.5 {
                // A row of zeros; with a small eps no step would be small enough there.
                x[..h as usize].fill(0.0);
            }
            let loss = |x: &[f64], gamma: &[f64], beta: &[f64]| -> f64 {
                forward(x, gamma, Some(beta), eps).iter().zip(&dy).map(|(y, dy)| y * dy).sum()
            };
            let [dx, dgamma, dbeta] = backward(&x, &gamma, &dy, eps);
            check_gradient("dx", &x, &dx, |x| loss(x, &gamma, &beta));
            check_gradient("dgamma", &gamma, &dgamma, |gamma| loss(&x, gamma, &beta));
            check_gradient("dbeta", &beta, &dbeta, |beta| loss(&x, &gamma, beta));
        }
    }

    #[test]
    fn host_maths_and_reference_agree_with_each_other_and_with_pytorch() {
        check_compute(&table());
        check_compute(&subsets());
        check_compute(&magnitudes());
        check_compute(&goldens());
        check_compute(&faults::public());
        check_compute(&faults::lane_widths());
        check_compute(&faults::many_rows());
        check_compute(&faults::non_finite());
        check_compute(&faults::same_tensor());
    }
}

#[cfg(target_arch = "wasm32")]
mod browser {
    use super::*;
    use crate::common::gpu_test;
    use wasm_bindgen_test::wasm_bindgen_test;

    #[wasm_bindgen_test]
    async fn rms_norm_every_shape() {
        gpu_test(async |lab| lab.check(&table()).await).await;
    }

    #[wasm_bindgen_test]
    async fn rms_norm_every_set_of_results() {
        gpu_test(async |lab| lab.check(&subsets()).await).await;
    }

    #[wasm_bindgen_test]
    async fn rms_norm_magnitudes() {
        gpu_test(async |lab| lab.check(&magnitudes()).await).await;
    }

    #[wasm_bindgen_test]
    async fn rms_norm_golden_files() {
        gpu_test(async |lab| lab.check(&goldens()).await).await;
    }
}
