//! Poison: memory that holds NaN wherever an op has no business to find a zero.

use super::Lab;
use wgrad::gpu::Span;
use wgrad::shape::{Dtype, Spec};
use wgrad::tensor::Tensor;

/// A NaN that no arithmetic makes, so that poison can be told from results.
pub const NAN: u32 = 0x7fc0_dead;

/// Poisoned bytes on either side of a guarded tensor: the alignment of a binding.
const GUARD: u64 = 256;
/// What a growing arena takes at a time, and so what lies in one piece.
const BLOCK: u64 = 16 << 20;

/// Words `[from, from + count)` of a span.
pub fn part(span: &Span, from: u64, count: u64) -> Span {
    Span { buffer: span.buffer.clone(), offset: span.offset + 4 * from, bytes: 4 * count }
}

/// A result in the middle of poison.
pub struct Guarded {
    pub tensor: Tensor,
    /// The tensor and the guards around it, as words.
    pub region: Tensor,
}

impl Lab {
    /// Repeats `pattern` over `span`, which must be of another buffer.
    pub fn fill(&self, span: &Span, pattern: &Tensor) {
        let pattern = pattern.operand("pattern").expect("a live tensor").span;
        let (words, step) = (span.bytes / 4, pattern.bytes / 4);
        for from in (0..words).step_by(step as usize) {
            let count = step.min(words - from);
            self.gpu.copy(part(&pattern, 0, count), part(span, from, count));
        }
    }

    /// Fills the default arena's first `bytes` and more with NaN. It must be empty, so
    /// that what is allocated next lies there.
    pub fn poison(&self, bytes: u64) {
        assert_eq!(self.arena.memory().used, 0, "poison needs an empty arena");
        let mut regions = vec![self.words(bytes.min(BLOCK) / 4)];
        if bytes > BLOCK {
            regions.push(self.words(bytes / 4));
        }
        for region in &regions {
            self.fill(&region.operand("poison").expect("a live tensor").span, &self.nans);
        }
    }

    /// A tensor whose every byte, and 256 on either side, are poison.
    pub fn guarded(&self, spec: &Spec) -> Guarded {
        let bytes = spec.bytes().next_multiple_of(GUARD) + 2 * GUARD;
        let region = self.words(bytes / 4);
        let span = region.operand("region").expect("a live tensor").span;
        self.fill(&span, &self.nans);
        let tensor = Tensor::at(&self.arena, span.offset + GUARD, spec.clone()).expect("a view");
        let view = tensor.operand("view").expect("a live tensor").span;
        assert!(view.overlaps(&span), "a guarded tensor must fit the arena's first block");
        Guarded { tensor, region }
    }

    fn words(&self, count: u64) -> Tensor {
        self.tensor_of(Dtype::U32, &[count as u32])
    }
}

impl Guarded {
    /// The tensor's words out of the region's, or which guard word was overwritten.
    pub fn values<'a>(words: &'a [u32], spec: &Spec) -> Result<&'a [u32], String> {
        let (first, count) = ((GUARD / 4) as usize, spec.shape.count() as usize);
        let end = first + count;
        let broken = (0..words.len()).filter(|i| !(first..end).contains(i)).find(|&i| words[i] != NAN);
        match broken {
            Some(i) => Err(format!(
                "word {} of [0, {count}) was overwritten with {:#x}",
                i as i64 - first as i64,
                words[i]
            )),
            None => Ok(&words[first..end]),
        }
    }
}
