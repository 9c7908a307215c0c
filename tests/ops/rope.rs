//! rope and its gradient against a plain f64 reference.

mod faults;
#[cfg(target_arch = "wasm32")]
mod refusals;

use crate::common::{Case, Rng, Want, dims, f32s, wide};
use crate::golden;
use wgrad::ops::rope::{Rope, Style};

/// Operands of one call in either direction.
struct Rotation {
    name: String,
    /// Of x: [batch, seq, heads·head_dim] or [batch, seq, heads, head_dim].
    dims: Vec<u32>,
    head_dim: u32,
    n_rot: u32,
    style: Style,
    /// Dimensions of both tables.
    table: Vec<u32>,
    cos: Vec<f32>,
    sin: Vec<f32>,
    x: Vec<f32>,
}

impl Rotation {
    /// Every lane of x by itself: where its partner and its angle are, and what the
    /// rotation by `sign` times the angle makes of it.
    fn rotated(&self, x: &[f64], sign: f64) -> Vec<f64> {
        let (head_dim, half) = (self.head_dim as usize, self.n_rot as usize / 2);
        let (hidden, stride) = (x.len() / self.tokens(), self.table[self.table.len() - 1] as usize);
        let positions: usize = self.table[..self.table.len() - 1].iter().map(|&n| n as usize).product();
        let mut y = x.to_vec();
        for (i, y) in y.iter_mut().enumerate() {
            let (token, lane) = (i / hidden, i % hidden % head_dim);
            if lane >= 2 * half {
                continue;
            }
            let (pair, partner) = match self.style {
                Style::Neox => (lane % half, (lane + half) % (2 * half)),
                Style::Gptj => (lane / 2, lane ^ 1),
            };
            let at = token % positions * stride + pair;
            let (cos, sin) = (f64::from(self.cos[at]), sign * f64::from(self.sin[at]));
            // The second of a pair turns towards the first, the first away from it.
            let turn = if partner < lane { 1.0 } else { -1.0 };
            *y = x[i] * cos + turn * x[i - lane + partner] * sin;
        }
        y
    }

    fn tokens(&self) -> usize {
        // Empty x has no token to look up, and must not divide by zero.
        (self.dims[0] as usize * self.dims[1] as usize).max(1)
    }

    /// Tables of a position for each row.
    fn at_positions(mut self, positions: &[u32], stride: u32) -> Rotation {
        let half = self.n_rot / 2;
        for &position in positions {
            for i in 0..stride {
                let angle = f64::from(position) * 10_000f64.powf(-2.0 * f64::from(i) / f64::from(self.n_rot));
                // Nothing may read a table past n_rot/2.
                let value = |table: f64| if i < half { table as f32 } else { f32::NAN };
                self.cos.push(value(angle.cos()));
                self.sin.push(value(angle.sin()));
            }
        }
        self.table = vec![positions.len() as u32, stride];
        self
    }

    fn of(name: &str, dims: &[u32], (head_dim, n_rot, style): (u32, u32, Style), x: Vec<f32>) -> Rotation {
        let (name, dims) = (name.into(), dims.to_vec());
        Rotation { name, dims, head_dim, n_rot, style, table: vec![], cos: vec![], sin: vec![], x }
    }

    /// Random values; tables for each token or shared by the batch, `extra` entries wider
    /// than needed.
    fn random(dims: &[u32], head: (u32, u32, Style), per_token: bool, extra: u32) -> Rotation {
        let name = format!("{dims:?} {head:?} per token {per_token}, {extra} wider");
        let mut rng = Rng::new(&name);
        let (batch, seq) = (dims[0], dims[1]);
        // Positions of tokens differ between batch rows and repeat.
        let positions = if per_token { rng.indices((batch * seq) as usize, 100) } else { (0..seq).collect() };
        let x = rng.full(dims.iter().product::<u32>() as usize);
        Rotation::of(&name, dims, head, x).at_positions(&positions, head.1 / 2 + extra)
    }

    fn case(&self, backward: bool) -> Case {
        let sign = if backward { -1.0 } else { 1.0 };
        let want = self.rotated(&wide(&self.x), sign);
        let tables = [&self.cos, &self.sin].map(|table| f32s(table, &self.table));
        let Rotation { head_dim, n_rot, style, .. } = *self;
        let op = Rope { head_dim, n_rot, style, backward };
        let inputs = [f32s(&self.x, &self.dims)].into_iter().chain(tables).collect();
        Case::new(&self.name, op, inputs, vec![Want::new(want)])
    }

    fn both(&self) -> [Case; 2] {
        [self.case(false), self.case(true)]
    }
}

/// Heads of every kind, tables of every kind, and numbers of pairs and of lanes that
/// pass through around a workgroup's 256.
fn table() -> Vec<Case> {
    let mut cases = Vec::new();
    for style in [Style::Neox, Style::Gptj] {
        for (head_dim, n_rot) in [
            (1, 0),
            (2, 0),
            (2, 2),
            (3, 2),
            (5, 4),
            (6, 4),
            (7, 6),
            (63, 62),
            (64, 64),
            (65, 32),
            (80, 20),
            (127, 2),
            (128, 128),
            (129, 128),
            (255, 254),
            (256, 256),
            (257, 100),
        ] {
            let head = (head_dim, n_rot, style);
            for (per_token, extra) in [(false, 0), (true, 0), (false, 3), (true, 1)] {
                cases.extend(Rotation::random(&[2, 3, 2 * head_dim], head, per_token, extra).both());
            }
        }
        // One element, no element, heads as a dimension of their own, one head in all.
        for dims in [[1, 1, 2], [0, 3, 4], [2, 0, 4], [2, 3, 0], [1, 1, 4]] {
            cases.extend(Rotation::random(&dims, (2, 2, style), false, 0).both());
        }
        cases.extend(Rotation::random(&[2, 3, 5, 6], (6, 4, style), true, 0).both());
        // Items around multiples of 256.
        for seq in [63, 64, 65, 127, 128, 129, 255, 256, 257] {
            cases.extend(Rotation::random(&[1, seq, 2], (2, 2, style), false, 0).both());
        }
        cases.extend(Rotation::random(&[1, 65_537, 4], (4, 2, style), false, 0).both());
    }
    cases
}

fn magnitudes() -> Vec<Case> {
    let mut cases = Vec::new();
    for style in [Style::Neox, Style::Gptj] {
        for scale in [1e15, 1e-15] {
            let mut rotation = Rotation::random(&[2, 3, 12], (6, 4, style), true, 0);
            rotation.name += &format!(" times {scale:e}");
            rotation.x.iter_mut().for_each(|x| *x *= scale);
            cases.extend(rotation.both().map(Case::scaled));
        }
    }
    cases
}

fn goldens() -> Vec<Case> {
    let mut cases = Vec::new();
    for case in golden::parse(include_bytes!("../golden/rope.bin")) {
        let style = if case.flag("style") { Style::Gptj } else { Style::Neox };
        let head = (case.size("head_dim") as u32, case.size("n_rot") as u32, style);
        let of = |x: &str| {
            let name = format!("golden {}", case.name);
            let rotation = Rotation::of(&name, &dims(case.shape(x)), head, case.f32(x).to_vec());
            let (cos, sin) = (case.f32("cos").to_vec(), case.f32("sin").to_vec());
            Rotation { table: dims(case.shape("cos")), cos, sin, ..rotation }
        };
        cases.push(of("x").case(false).golden(0, case.f32("y")));
        cases.push(of("dy").case(true).golden(0, case.f32("dx")));
    }
    cases
}

#[cfg(not(target_arch = "wasm32"))]
mod native {
    use super::*;
    use crate::common::{check_compute, check_gradient};

    #[test]
    fn the_reference_is_the_derivative_of_its_forward() {
        for style in [Style::Neox, Style::Gptj] {
            for (head_dim, n_rot) in [(2, 2), (5, 2), (6, 4), (8, 8)] {
                let call = Rotation::random(&[2, 3, 2 * head_dim], (head_dim, n_rot, style), true, 0);
                let x = wide(&call.x);
                let dy = wide(&Rng::new("dy").full(x.len()));
                let loss =
                    |x: &[f64]| -> f64 { call.rotated(x, 1.0).iter().zip(&dy).map(|(y, dy)| y * dy).sum() };
                check_gradient(&call.name, &x, &call.rotated(&dy, -1.0), loss);
            }
        }
    }

    #[test]
    fn host_maths_and_reference_agree_with_each_other_and_with_pytorch() {
        check_compute(&table());
        check_compute(&magnitudes());
        check_compute(&goldens());
        check_compute(&faults::public());
        check_compute(&faults::non_finite());
        check_compute(&faults::same_table());
    }
}

#[cfg(target_arch = "wasm32")]
mod browser {
    use super::*;
    use crate::common::gpu_test;
    use wasm_bindgen_test::wasm_bindgen_test;

    #[wasm_bindgen_test]
    async fn rope_every_head_and_table() {
        gpu_test(async |lab| lab.check(&table()).await).await;
    }

    #[wasm_bindgen_test]
    async fn rope_magnitudes() {
        gpu_test(async |lab| lab.check(&magnitudes()).await).await;
    }

    #[wasm_bindgen_test]
    async fn rope_golden_files() {
        gpu_test(async |lab| lab.check(&goldens()).await).await;
    }
}
