//! Values that look random and are the same on every run and machine.

/// Splitmix64, seeded by a name so that adding a case leaves the others as they are.
pub struct Rng(u64);

impl Rng {
    pub fn new(seed: &str) -> Rng {
        Rng(seed.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
        }))
    }

    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub fn below(&mut self, n: u32) -> u32 {
        (self.bits() % u64::from(n)) as u32
    }

    pub fn indices(&mut self, count: usize, below: u32) -> Vec<u32> {
        (0..count).map(|_| self.below(below)).collect()
    }

    /// Uniform in [-2, 2), with all 24 bits of an f32.
    pub fn full(&mut self, count: usize) -> Vec<f32> {
        (0..count).map(|_| ((self.bits() >> 40) as f32 - 8_388_608.0) / 4_194_304.0).collect()
    }

    /// Uniform in [-2, 2) in steps of 1/1024: f32 sums of 8192 of them are exact in any
    /// order, so results can be compared for equality.
    pub fn coarse(&mut self, count: usize) -> Vec<f32> {
        (0..count).map(|_| (self.below(4096) as f32 - 2048.0) / 1024.0).collect()
    }

    /// Uniform in (0, 2], with all bits: sums of these do not cancel.
    pub fn positive(&mut self, count: usize) -> Vec<f32> {
        (0..count).map(|_| ((self.bits() >> 40) + 1) as f32 / 8_388_608.0).collect()
    }
}
