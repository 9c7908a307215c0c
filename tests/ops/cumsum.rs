//! cumsum and its gradient against a plain f64 reference.

mod faults;
#[cfg(target_arch = "wasm32")]
mod refusals;

use crate::common::{Case, Rng, Want, dims, f32s, wide};
use crate::golden;
use wgrad::ops::cumsum::Cumsum;

/// Exclusive and reverse in all four combinations.
const FLAGS: [(bool, bool); 4] = [(false, false), (false, true), (true, false), (true, true)];

/// Operands of one call in either direction.
struct Scan {
    name: String,
    dims: Vec<u32>,
    axis: i64,
    exclusive: bool,
    reverse: bool,
    x: Vec<f32>,
}

/// The running sum of a line: what each element leaves behind.
fn running(line: &[f64], exclusive: bool) -> Vec<f64> {
    let mut sum = 0.0;
    let step = |value: &f64| {
        let before = sum;
        sum += value;
        if exclusive { before } else { sum }
    };
    line.iter().map(step).collect()
}

impl Scan {
    /// Every line along the axis by itself, turned around where the sum is from its end.
    fn scanned(&self, x: &[f64], from_end: bool) -> Vec<f64> {
        let axis = self.axis.rem_euclid(self.dims.len() as i64) as usize;
        let size = |dims: &[u32]| dims.iter().map(|&n| n as usize).product::<usize>();
        let (outer, n, inner) =
            (size(&self.dims[..axis]), self.dims[axis] as usize, size(&self.dims[axis + 1..]));
        let mut y = vec![f64::NAN; x.len()];
        for o in 0..outer {
            for i in 0..inner {
                let mut places: Vec<usize> = (0..n).map(|j| (o * n + j) * inner + i).collect();
                if from_end {
                    places.reverse();
                }
                let line: Vec<f64> = places.iter().map(|&at| x[at]).collect();
                for (at, sum) in places.into_iter().zip(running(&line, self.exclusive)) {
                    y[at] = sum;
                }
            }
        }
        y
    }

    fn of(dims: &[u32], axis: i64, (exclusive, reverse): (bool, bool), x: Vec<f32>) -> Scan {
        let name = format!("{dims:?} axis {axis} exclusive {exclusive} reverse {reverse}");
        Scan { name, dims: dims.to_vec(), axis, exclusive, reverse, x }
    }

    /// Coarse values, whose sums are exact.
    fn random(dims: &[u32], axis: i64, flags: (bool, bool)) -> Scan {
        let x = Rng::new(&format!("{dims:?}")).coarse(dims.iter().product::<u32>() as usize);
        Scan::of(dims, axis, flags, x)
    }

    fn named(self, name: &str) -> Scan {
        Scan { name: format!("{name}, {}", self.name), ..self }
    }

    fn case(&self, backward: bool) -> Case {
        let Scan { axis, exclusive, reverse, .. } = *self;
        let want = self.scanned(&wide(&self.x), reverse != backward);
        let op = Cumsum { axis, exclusive, reverse, backward };
        Case::new(&self.name, op, vec![f32s(&self.x, &self.dims)], vec![Want::new(want)])
    }

    fn both(&self) -> [Case; 2] {
        [self.case(false), self.case(true)]
    }
}

/// Axes around the blocks of 1024, 256 or 128 elements that a workgroup takes (with no,
/// up to 16 or more elements after the axis), around 8 or 32 lines beside each other,
/// and long enough that the sums of the blocks fill more than a block.
fn shapes() -> Vec<(Vec<u32>, i64)> {
    let mut shapes = Vec::new();
    for n in [1, 2, 3, 4, 5, 63, 64, 65, 127, 128, 129, 255, 256, 257, 1023, 1024, 1025, 2049, 4097] {
        shapes.push((vec![n], 0));
    }
    for n in [1, 7, 8, 9, 255, 256, 257, 513] {
        shapes.extend([2, 7, 8, 9, 16].map(|inner| (vec![n, inner], 0)));
    }
    for n in [1, 15, 16, 17, 127, 128, 129, 257] {
        shapes.extend([17, 31, 32, 33, 65].map(|inner| (vec![n, inner], -2)));
    }
    for axis in 0..4 {
        shapes.extend([(vec![2, 3, 5, 4], axis), (vec![2, 3, 5, 4], axis - 4)]);
    }
    shapes.extend([(vec![3, 7], 0), (vec![3, 7], 1), (vec![2, 300, 3], 1), (vec![2, 200, 20], 1)]);
    shapes.extend([(vec![0], 0), (vec![0, 3], 0), (vec![0, 3], 1), (vec![3, 0], 0), (vec![2, 0, 3], -2)]);
    shapes
}

fn table() -> Vec<Case> {
    let scans =
        shapes().into_iter().flat_map(|(dims, axis)| FLAGS.map(|flags| Scan::random(&dims, axis, flags)));
    scans.flat_map(|scan| scan.both().map(Case::exact)).collect()
}

/// Sums of the blocks that are cut into blocks themselves, and many lines.
fn long() -> Vec<Case> {
    let shapes = [([65_793, 2], 0), ([16_513, 17], 0), ([3, 65_537], 0)];
    let scans = shapes.iter().zip(FLAGS).map(|((dims, axis), flags)| Scan::random(dims, *axis, flags));
    scans.flat_map(|scan| scan.both().map(Case::exact)).collect()
}

/// All 24 bits, and no cancellation: how far the order of the sums carries.
fn rounding() -> Vec<Case> {
    let mut cases = Vec::new();
    for (dims, scale) in
        [([5000, 1], 1.0), ([700, 3], 1.0), ([300, 20], 1.0), ([700, 3], 1e15), ([700, 3], 1e-15)]
    {
        for flags in FLAGS {
            let x = Rng::new("rounding").positive((dims[0] * dims[1]) as usize);
            let scan = Scan::of(&dims, 0, flags, x.iter().map(|x| x * scale).collect());
            cases.extend(scan.named(&format!("times {scale:e}")).both().map(Case::scaled));
        }
    }
    cases
}

fn goldens() -> Vec<Case> {
    let mut cases = Vec::new();
    for case in golden::parse(include_bytes!("../golden/cumsum.bin")) {
        let flags = (case.flag("exclusive"), case.flag("reverse"));
        let of = |x: &str, backward, y: &str| {
            let scan = Scan::of(&dims(case.shape(x)), case.attr("axis") as i64, flags, case.f32(x).to_vec());
            let made = scan.named(&format!("golden {}", case.name)).case(backward);
            let made = if case.flag("exact") { made.exact() } else { made };
            made.golden(0, case.f32(y))
        };
        cases.extend([of("x", false, "y"), of("dy", true, "dx")]);
    }
    cases
}

#[cfg(not(target_arch = "wasm32"))]
mod native {
    use super::*;
    use crate::common::{check_compute, check_gradient};

    #[test]
    fn the_reference_is_the_derivative_of_its_forward() {
        for (dims, axis) in [(&[5][..], 0), (&[3, 4], 0), (&[3, 4], -1), (&[2, 3, 2], 1)] {
            for flags in FLAGS {
                let scan = Scan::random(dims, axis, flags);
                let (x, dy) = (wide(&scan.x), wide(&Rng::new("dy").full(scan.x.len())));
                let loss = |x: &[f64]| -> f64 {
                    scan.scanned(x, scan.reverse).iter().zip(&dy).map(|(y, dy)| y * dy).sum()
                };
                check_gradient(&scan.name, &x, &scan.scanned(&dy, !scan.reverse), loss);
            }
        }
    }

    #[test]
    fn host_maths_and_reference_agree_with_each_other_and_with_pytorch() {
        check_compute(&table());
        check_compute(&long());
        check_compute(&rounding());
        check_compute(&goldens());
        check_compute(&faults::public());
        check_compute(&faults::longer_than_a_block());
        check_compute(&faults::non_finite());
    }
}

#[cfg(target_arch = "wasm32")]
mod browser {
    use super::*;
    use crate::common::gpu_test;
    use wasm_bindgen_test::wasm_bindgen_test;

    #[wasm_bindgen_test]
    async fn cumsum_every_axis_and_direction() {
        gpu_test(async |lab| lab.check(&table()).await).await;
    }

    #[wasm_bindgen_test]
    async fn cumsum_long_axes_and_many_lines() {
        gpu_test(async |lab| lab.check(&long()).await).await;
    }

    #[wasm_bindgen_test]
    async fn cumsum_rounding_and_magnitudes() {
        gpu_test(async |lab| lab.check(&rounding()).await).await;
    }

    #[wasm_bindgen_test]
    async fn cumsum_golden_files() {
        gpu_test(async |lab| lab.check(&goldens()).await).await;
    }
}
