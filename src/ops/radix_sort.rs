//! A stable least-digit-first radix sort of (key, value) pairs on the GPU, 8 bits
//! a pass. No atomics, so equal keys keep their order and runs repeat to the bit.

use crate::error::Result;
use crate::kernels::radix_sort::{CountDigits, Params, ScanTiles, Scatter};
use crate::op::Call;
use crate::shape::Dtype;
use crate::tensor::Operand;

/// Pairs to be sorted.
pub struct Pairs {
    /// What is sorted by.
    pub keys: Operand,
    /// What goes along.
    pub values: Operand,
}

impl Pairs {
    /// Room for `count` pairs.
    pub fn scratch(call: &Call, count: u32) -> Result<Pairs> {
        let count = u64::from(count);
        Ok(Pairs { keys: call.scratch(Dtype::U32, count)?, values: call.scratch(Dtype::U32, count)? })
    }
}

/// Records the sort of `count` pairs whose keys are at most `max_key`, and gives
/// the sorted ones.
pub fn sort(call: &Call, op: &'static str, mut from: Pairs, count: u32, max_key: u32) -> Result<Pairs> {
    let tiles = count.div_ceil(256);
    let passes = (u32::BITS - max_key.leading_zeros()).div_ceil(8);
    if passes == 0 || count < 2 {
        return Ok(from);
    }
    let mut to = Pairs::scratch(call, count)?;
    let tile_counts = call.scratch(Dtype::U32, 256 * u64::from(tiles))?;
    let digit_counts = call.scratch(Dtype::U32, 256)?;
    for pass in 0..passes {
        let params = Params { count, shift: 8 * pass, tiles, ..Params::default() };
        let (tile_counts, digit_counts) = (|| tile_counts.span.clone(), || digit_counts.span.clone());
        let operands = CountDigits { keys: from.keys.span.clone(), tile_counts: tile_counts() };
        call.gpu.dispatch(op, operands, &[], &params, tiles.into())?;
        let operands = ScanTiles { tile_counts: tile_counts(), digit_counts: digit_counts() };
        // Digits past the greatest key's do not occur; what is left in their counts only
        // reaches the starts of digits after them.
        let digits = (max_key >> (8 * pass)).min(255) + 1;
        call.gpu.dispatch(op, operands, &[], &params, digits.into())?;
        let operands = Scatter {
            keys: from.keys.span.clone(),
            values: from.values.span.clone(),
            tile_counts: tile_counts(),
            digit_counts: digit_counts(),
            sorted_keys: to.keys.span.clone(),
            sorted_values: to.values.span.clone(),
        };
        call.gpu.dispatch(op, operands, &[], &params, tiles.into())?;
        std::mem::swap(&mut from, &mut to);
    }
    Ok(from)
}
