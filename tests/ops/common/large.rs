//! Operands too large to upload and results too large to read whole.

use super::memory::part;
use super::{Bound, Lab, NAN, Rng};
use std::rc::Rc;
use wgrad::gpu::Arena;
use wgrad::op::{self, Op, Path};
use wgrad::shape::{Dtype, Shape, Spec};
use wgrad::tensor::Tensor;

/// Words read at each place, and words of poison on either side of the result.
const PIECE: u64 = 64;

/// An operand that repeats a pattern.
pub struct Repeated<'a> {
    pub words: &'a [u32],
    pub dtype: Dtype,
    pub dims: Vec<u32>,
}

/// One result of a large call.
pub struct LargeResult<'a> {
    pub dims: Vec<u32>,
    /// The right value of an element.
    pub want: &'a dyn Fn(u64) -> f32,
    pub bound: Bound,
}

pub fn repeated_f32<'a>(values: &'a [f32], dims: &[u32]) -> Repeated<'a> {
    Repeated { words: bytemuck::cast_slice(values), dtype: Dtype::F32, dims: dims.to_vec() }
}

impl Lab {
    /// Runs the op once on the GPU and compares its results at both ends, wherever groups
    /// of 256 elements begin a new row of a folded grid, and at 200 places between.
    pub async fn check_large(&mut self, op: impl Op, operands: &[Repeated<'_>], results: &[LargeResult<'_>]) {
        let name = op.name();
        let spec = |dims: &[u32], dtype| Spec { shape: Shape::new(dims).expect("a shape"), dtype };
        let words = |dims: &[u32]| dims.iter().map(|&n| u64::from(n)).product::<u64>();
        let region = |dims: &[u32]| (words(dims) + 2 * PIECE).next_multiple_of(PIECE);
        let total: u64 = operands.iter().map(|o| 4 * words(&o.dims).next_multiple_of(PIECE)).sum::<u64>()
            + results.iter().map(|result| 4 * region(&result.dims)).sum::<u64>();
        let arena = Arena::new(&self.gpu, total, false).expect("an arena");
        let inputs: Vec<Tensor> = operands.iter().map(|operand| self.repeat(&arena, operand)).collect();
        let regions: Vec<Tensor> = results
            .iter()
            .map(|result| {
                let region = spec(&[region(&result.dims) as u32], Dtype::U32);
                let region = Tensor::new(&arena, region).expect("memory");
                self.fill(&region.operand("region").expect("a live tensor").span, &self.nans);
                region
            })
            .collect();
        let start = |tensor: &Tensor| tensor.operand("region").expect("a live tensor").span;
        let outs: Vec<Tensor> = regions
            .iter()
            .zip(results)
            .map(|(region, result)| {
                let offset = start(region).offset + 4 * PIECE;
                Tensor::at(&arena, offset, spec(&result.dims, Dtype::F32)).expect("a view")
            })
            .collect();
        let given: Vec<Option<&Tensor>> = outs.iter().map(Some).collect();
        let run = op::run(Rc::new(op), &inputs.iter().collect::<Vec<_>>(), &given, Path::Gpu);
        run.unwrap_or_else(|e| panic!("{name}: {e}")).await.expect("a large call");

        // Places count from the guard before the result.
        let mut places: Vec<(usize, u64)> = Vec::new();
        for (i, result) in results.iter().enumerate() {
            places.extend(self::places(words(&result.dims)).into_iter().map(|place| (i, place)));
        }
        let spans = places.iter().map(|&(i, place)| part(&start(&regions[i]), place, PIECE)).collect();
        let values = self.fetch_spans(spans).await.unwrap_or_else(|e| panic!("{name}: {e}"));
        for ((i, place), piece) in places.into_iter().zip(values) {
            let (count, LargeResult { want, bound, .. }) = (words(&results[i].dims), &results[i]);
            for (at, bits) in (place..).zip(piece) {
                let (got, index) = (f64::from(f32::from_bits(bits)), at as i64 - PIECE as i64);
                if !(PIECE..PIECE + count).contains(&at) {
                    if bits != NAN {
                        self.report.fail(format!("{name}: [{index}] of {count} was overwritten with {got}"));
                    }
                    continue;
                }
                let want = f64::from(want(at - PIECE));
                if (got - want).abs() > bound.of(want) || got.is_nan() {
                    self.report.fail(format!("{name}: [{index}] of {count} is {got}, want {want}"));
                }
            }
        }
        drop((inputs, regions, outs));
        arena.destroy();
        self.report.finish();
    }

    fn repeat(&self, arena: &Rc<Arena>, operand: &Repeated) -> Tensor {
        let shape = |dims: &[u32]| Shape::new(dims).expect("a shape");
        let tensor =
            Tensor::new(arena, Spec { shape: shape(&operand.dims), dtype: operand.dtype }).expect("memory");
        let pattern = Spec { shape: shape(&[operand.words.len() as u32]), dtype: operand.dtype };
        let bytes = bytemuck::cast_slice(operand.words);
        let pattern = Tensor::upload_bytes(&self.kept, bytes, pattern).expect("an upload");
        self.fill(&tensor.operand("operand").expect("a live tensor").span, &pattern);
        tensor
    }
}

/// Where to look at `count` values with a guard of one piece before and after.
fn places(count: u64) -> Vec<u64> {
    let row = count.div_ceil(256).isqrt() * 256;
    let last = count + PIECE;
    let mut rng = Rng::new("places");
    let mut places: Vec<u64> = (0..200).map(|_| u64::from(rng.below(count as u32))).collect();
    places.extend([0, PIECE, row + PIECE / 2, 2 * row + PIECE / 2, last - PIECE]);
    places.extend([count / row * row + PIECE / 2, last - PIECE / 2]);
    places.retain(|place| place + PIECE <= (count + 2 * PIECE).next_multiple_of(PIECE));
    places
}
