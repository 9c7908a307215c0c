//! A first-fit free list over one block of bytes. Pure bookkeeping: no GPU here.

/// Every allocation starts and ends on a multiple of this: WebGPU's default
/// `minStorageBufferOffsetAlignment`, so that any allocation can be bound.
pub const ALIGN: u64 = 256;

/// Free ranges of a block, by offset.
#[derive(Debug)]
pub struct FreeList {
    size: u64,
    /// (offset, bytes), by offset; no two touch.
    free: Vec<(u64, u64)>,
}

impl FreeList {
    /// A block of `size` bytes, all free.
    pub fn new(size: u64) -> Self {
        let mut list = FreeList { size, free: Vec::new() };
        list.reset();
        list
    }

    /// Bytes an allocation of `bytes` really takes; `None` past what can be counted.
    pub fn rounded(bytes: u64) -> Option<u64> {
        bytes.max(1).checked_next_multiple_of(ALIGN)
    }

    /// The lowest range that holds `bytes` (already rounded), or `None`.
    pub fn take(&mut self, bytes: u64) -> Option<u64> {
        let i = self.free.iter().position(|&(_, length)| length >= bytes)?;
        let (offset, length) = self.free[i];
        if length == bytes {
            self.free.remove(i);
        } else {
            self.free[i] = (offset + bytes, length - bytes);
        }
        Some(offset)
    }

    /// Gives a range back, joining it with free neighbours.
    pub fn give(&mut self, offset: u64, bytes: u64) {
        let i = self.free.partition_point(|&(start, _)| start < offset);
        self.free.insert(i, (offset, bytes));
        self.join(i);
        if i > 0 {
            self.join(i - 1);
        }
    }

    /// Makes one range of the `i`th and the next if they touch.
    fn join(&mut self, i: usize) {
        let (offset, length) = self.free[i];
        if self.free.get(i + 1).is_some_and(|&(next, _)| next == offset + length) {
            self.free[i].1 += self.free.remove(i + 1).1;
        }
    }

    /// Makes everything free.
    pub fn reset(&mut self) {
        self.free.clear();
        if self.size > 0 {
            self.free.push((0, self.size));
        }
    }

    /// Bytes free in all, and in the largest piece.
    pub fn available(&self) -> (u64, u64) {
        let lengths = || self.free.iter().map(|&(_, length)| length);
        (lengths().sum(), lengths().max().unwrap_or(0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_join_again_in_any_order() {
        for order in [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]] {
            let mut list = FreeList::new(1024);
            let offsets = [256, 512, 256].map(|n| list.take(n));
            assert_eq!(offsets, [Some(0), Some(256), Some(768)]);
            assert_eq!(list.take(256), None);
            for i in order {
                list.give([0, 256, 768][i], [256, 512, 256][i]);
            }
            assert_eq!(list.available(), (1024, 1024), "order {order:?}");
            assert_eq!(list.take(1024), Some(0));
        }
    }

    #[test]
    fn a_hole_is_reused_before_the_tail() {
        let mut list = FreeList::new(2048);
        for i in 0..4 {
            assert_eq!(list.take(256), Some(i * 256));
        }
        list.give(256, 256);
        assert_eq!(list.take(512), Some(1024));
        assert_eq!(list.take(256), Some(256));
    }

    #[test]
    fn sizes_round_up_and_never_wrap() {
        assert_eq!(FreeList::rounded(0), Some(256));
        assert_eq!(FreeList::rounded(1), Some(256));
        assert_eq!(FreeList::rounded(256), Some(256));
        assert_eq!(FreeList::rounded((1 << 32) - 4), Some(1 << 32));
        assert_eq!(FreeList::rounded(u64::MAX), None);
    }
}
