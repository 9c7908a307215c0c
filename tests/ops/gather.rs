//! gather and its gradient against a plain f64 reference.

mod faults;
#[cfg(target_arch = "wasm32")]
mod refusals;

use crate::common::{Bound, Case, Input, Rng, Values, Want, dims, f32s, i32s, u32s, wide};
use crate::golden;
use wgrad::gpu::out_of_range;
use wgrad::ops::gather::{Gather, GatherBackward};

/// Table, indices and dy of one call in either direction.
struct Lookup {
    name: String,
    /// Of the table.
    dims: Vec<u32>,
    axis: i64,
    /// By their bits: -1 is u32::MAX.
    indices: Vec<u32>,
    /// What the indices are uploaded as.
    operand: Input,
    table: Vec<f32>,
    dy: Vec<f32>,
}

impl Lookup {
    fn at(&self) -> usize {
        self.axis.rem_euclid(self.dims.len() as i64) as usize
    }

    /// Elements before the axis, on it, and after it.
    fn split(&self) -> [usize; 3] {
        let size = |dims: &[u32]| dims.iter().map(|&n| n as usize).product();
        [size(&self.dims[..self.at()]), self.dims[self.at()] as usize, size(&self.dims[self.at() + 1..])]
    }

    /// For each element of dy, in order, the element of the table it comes from.
    fn sources(&self) -> Vec<Option<usize>> {
        let [outer, axis_dim, trailing] = self.split();
        let mut sources = Vec::new();
        for o in 0..outer {
            for &row in &self.indices {
                let row = row as usize;
                // A wild row times trailing would not fit 32 bits.
                let source = |t| (row < axis_dim).then(|| (o * axis_dim + row) * trailing + t);
                sources.extend((0..trailing).map(source));
            }
        }
        sources
    }

    /// Shape of dy.
    fn gathered(&self) -> Vec<u32> {
        let mut dims = self.dims.clone();
        dims[self.at()] = self.indices.len() as u32;
        dims
    }

    /// Full values in the table, which are only copied, and coarse ones in dy, whose
    /// sums are exact.
    fn new(name: &str, dims: &[u32], axis: i64, indices: &[u32]) -> Lookup {
        let mut lookup = Lookup {
            name: format!("{name} {dims:?} axis {axis}, {} indices", indices.len()),
            dims: dims.to_vec(),
            axis,
            indices: indices.to_vec(),
            operand: u32s(indices, &[indices.len() as u32]),
            table: Vec::new(),
            dy: Vec::new(),
        };
        let mut rng = Rng::new(&lookup.name);
        lookup.table = rng.full(lookup.dims.iter().product::<u32>() as usize);
        lookup.dy = rng.coarse(lookup.gathered().iter().product::<u32>() as usize);
        lookup
    }

    fn random(dims: &[u32], axis: i64, count: usize) -> Lookup {
        let axis_dim = dims[axis.rem_euclid(dims.len() as i64) as usize];
        Lookup::new("random", dims, axis, &Rng::new("indices").indices(count, axis_dim))
    }

    fn signed(self) -> Lookup {
        let indices: Vec<i32> = self.indices.iter().map(|&row| row as i32).collect();
        let operand = i32s(&indices, &[indices.len() as u32]);
        Lookup { name: format!("{} i32", self.name), operand, ..self }
    }

    fn with_dy(self, dy: &[f32]) -> Lookup {
        Lookup { dy: dy.to_vec(), ..self }
    }

    fn forward(&self) -> Case {
        let value = |source: Option<usize>| source.map_or(0.0, |at| f64::from(self.table[at]));
        let y = self.sources().into_iter().map(value).collect();
        let inputs = vec![f32s(&self.table, &self.dims), self.operand.clone()];
        let case = Case::new(&self.name, Gather { axis: self.axis }, inputs, vec![Want::new(y).exact()]);
        self.expecting_fault(case)
    }

    fn backward(&self) -> Case {
        let [outer, axis_dim, trailing] = self.split();
        let mut dtable = vec![0.0; outer * axis_dim * trailing];
        for (dy, source) in wide(&self.dy).into_iter().zip(self.sources()) {
            if let Some(at) = source {
                dtable[at] += dy;
            }
        }
        let inputs = vec![f32s(&self.dy, &self.gathered()), self.operand.clone()];
        let op = GatherBackward { axis: self.axis, axis_dim: axis_dim as u32 };
        self.expecting_fault(Case::new(&self.name, op, inputs, vec![Want::new(dtable).exact()]))
    }

    /// The first index out of range must be told of.
    fn expecting_fault(&self, case: Case) -> Case {
        let axis_dim = self.dims[self.at()];
        match self.indices.iter().position(|&row| row >= axis_dim) {
            Some(position) => {
                let fault = out_of_range(case.op.name(), "indices", position as u32);
                case.faulting(fault)
            }
            None => case,
        }
    }

    fn both(&self) -> [Case; 2] {
        [self.forward(), self.backward()]
    }
}

/// Every axis of every rank, and nothing at all along each dimension.
fn shapes() -> Vec<Case> {
    let mut cases = Vec::new();
    for (dims, axis) in [
        (&[1][..], 0),
        (&[65], 0),
        (&[65], -1),
        (&[10, 5], 0),
        (&[3, 17], 1),
        (&[5, 2, 3], 0),
        (&[2, 3, 2], 1),
        (&[2, 3, 7], -1),
        (&[2, 5, 3, 2], 1),
        (&[2, 2, 6, 3], -2),
        (&[4, 257], 0),
        (&[257, 4], 1),
        (&[3, 65_537], 0),
        (&[65_537, 3], 1),
    ] {
        cases.extend(Lookup::random(dims, axis, 0).both());
        cases.extend(Lookup::random(dims, axis, 1).both());
        cases.extend(Lookup::random(dims, axis, 7).signed().both());
    }
    for (dims, axis, indices) in [
        (&[0][..], 0, &[][..]),
        (&[0, 3], 0, &[]),
        (&[3, 0], 0, &[2, 0]),
        (&[0, 3], 1, &[2, 0]),
        (&[3, 0], 1, &[]),
    ] {
        cases.extend(Lookup::new("empty", dims, axis, indices).both());
    }
    cases
}

/// Numbers of indices around the 256 of a tile of the sort, the 64 of a chunk of the
/// sums, the 1024 from which chunks are used and the 256 tiles that a scan takes at a time.
fn counts() -> Vec<Case> {
    let mut cases = Vec::new();
    for count in [63, 64, 65, 127, 128, 129, 255, 256, 257, 1023, 1024, 1025, 2049] {
        cases.extend(Lookup::random(&[5, 3], 0, count).both());
    }
    for count in [257, 1025] {
        cases.extend(Lookup::random(&[2, 70], 1, count).both());
    }
    cases.extend(Lookup::random(&[300], 0, 65_793).both());
    cases
}

/// Tables whose indices take one, two or three passes of the sort.
fn table_sizes() -> Vec<Case> {
    let mut cases = Vec::new();
    for axis_dim in [1, 255, 256, 65_535, 65_536] {
        let mut indices = Rng::new("indices").indices(300, axis_dim);
        indices[..5].copy_from_slice(&[axis_dim - 1, 0, axis_dim - 1, axis_dim / 2, 0]);
        cases.extend(Lookup::new("table size", &[axis_dim], 0, &indices).both());
    }
    cases
}

/// Many indices on few rows: sums over chunks, over runs of 64 chunks, and rows that
/// begin or end within a chunk.
fn hot_spots() -> Vec<Case> {
    let mut cases = Vec::new();
    for count in [257, 1100, 5000] {
        let all: Vec<u32> = vec![2; count];
        cases.push(Lookup::new("one row", &[2, 4, 3], 1, &all).backward());
        let mut but_one = all;
        (but_one[0], but_one[count / 2]) = (3, 0);
        cases.push(Lookup::new("one row but for two", &[4, 3], 0, &but_one).backward());
        let descending: Vec<u32> = (0..count as u32).rev().map(|i| i / 100).collect();
        cases.push(Lookup::new("descending", &[60, 2], 0, &descending).backward());
        let every: Vec<u32> = (0..count as u32).map(|i| i * 7919 % count as u32).collect();
        cases.push(Lookup::new("permutation", &[count as u32, 2], 0, &every).backward());
    }
    cases
}

/// All 24 bits, and no cancellation: how far the order of the sums carries.
fn rounding() -> Vec<Case> {
    let mut cases = Vec::new();
    for scale in [1.0, 1e15, 1e-15] {
        for (axis_dim, count) in [(1, 10_000), (5, 3000), (50, 1000)] {
            let lookup = Lookup::random(&[axis_dim], 0, count);
            let dy: Vec<f32> = Rng::new("rounding").positive(count).iter().map(|dy| dy * scale).collect();
            let mut case = lookup.with_dy(&dy).backward();
            case.name += &format!(" times {scale:e}");
            case.wants[0].bound = Bound::USUAL;
            cases.push(case.scaled());
        }
    }
    cases
}

fn goldens() -> Vec<Case> {
    let mut cases = Vec::new();
    for case in golden::parse(include_bytes!("../golden/gather.bin")) {
        let shape = dims(case.shape("indices"));
        let operand = match case.dtype("indices") {
            "i32" => Input::New(Values::I32(case.i32("indices").to_vec()), shape),
            _ => Input::New(Values::U32(case.u32("indices").to_vec()), shape),
        };
        let Input::New(values, _) = &operand else { unreachable!("made above") };
        let indices = bytemuck::pod_collect_to_vec(values.bytes());
        let lookup = Lookup {
            name: format!("golden {}", case.name),
            dims: dims(case.shape("table")),
            axis: case.attr("axis") as i64,
            indices,
            operand,
            table: case.f32("table").to_vec(),
            dy: case.f32("dy").to_vec(),
        };
        cases.push(lookup.forward().golden(0, case.f32("y")));
        cases.push(lookup.backward().golden(0, case.f32("dtable")));
    }
    cases
}

#[cfg(not(target_arch = "wasm32"))]
mod native {
    use super::*;
    use crate::common::{check_compute, check_gradient};

    #[test]
    fn the_reference_is_the_derivative_of_its_forward() {
        for (dims, axis) in [(&[5][..], 0), (&[4, 3], 0), (&[3, 4], -1), (&[2, 3, 2], 1)] {
            // The last index is out of range: its gradient must vanish as its value does.
            let lookup = Lookup::new("gradient", dims, axis, &[0, 2, 2, 1, 9]);
            let (table, dy) = (wide(&lookup.table), wide(&lookup.dy));
            let loss = |table: &[f64]| -> f64 {
                let value = |(source, dy): (Option<usize>, &f64)| source.map_or(0.0, |at| table[at] * dy);
                lookup.sources().into_iter().zip(&dy).map(value).sum()
            };
            check_gradient(&lookup.name, &table, &lookup.backward().wants[0].values, loss);
        }
    }

    #[test]
    fn host_maths_and_reference_agree_with_each_other_and_with_pytorch() {
        check_compute(&shapes());
        check_compute(&counts());
        check_compute(&table_sizes());
        check_compute(&hot_spots());
        check_compute(&rounding());
        check_compute(&goldens());
        check_compute(&faults::public());
        check_compute(&faults::non_finite());
        check_compute(&faults::out_of_range());
    }
}

#[cfg(target_arch = "wasm32")]
mod browser {
    use super::*;
    use crate::common::gpu_test;
    use wasm_bindgen_test::wasm_bindgen_test;

    #[wasm_bindgen_test]
    async fn gather_every_axis() {
        gpu_test(async |lab| lab.check(&shapes()).await).await;
    }

    #[wasm_bindgen_test]
    async fn gather_numbers_of_indices() {
        gpu_test(async |lab| lab.check(&counts()).await).await;
    }

    #[wasm_bindgen_test]
    async fn gather_sizes_of_tables() {
        gpu_test(async |lab| lab.check(&table_sizes()).await).await;
    }

    #[wasm_bindgen_test]
    async fn gather_hot_spots() {
        gpu_test(async |lab| lab.check(&hot_spots()).await).await;
    }

    #[wasm_bindgen_test]
    async fn gather_rounding_and_magnitudes() {
        gpu_test(async |lab| lab.check(&rounding()).await).await;
    }

    #[wasm_bindgen_test]
    async fn gather_golden_files() {
        gpu_test(async |lab| lab.check(&goldens()).await).await;
    }
}
