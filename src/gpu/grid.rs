//! Folding a number of workgroups into what one dispatch accepts.

use crate::error::{Code, Error, Result};

/// WebGPU's default `maxComputeWorkgroupsPerDimension`.
pub const MAX_PER_DIMENSION: u32 = 65_535;

/// `[x, y, 1]` with `x·y >= groups`: one row while it fits, else near-square, so
/// that few groups are launched in vain. `shaders/shared/grid.wgsl` rebuilds the
/// linear index; kernels return when it is not below the count they were given.
pub fn fold(groups: u64) -> Result<[u32; 3]> {
    if groups <= u64::from(MAX_PER_DIMENSION) {
        return Ok([groups as u32, 1, 1]);
    }
    let x = groups.isqrt();
    let y = groups.div_ceil(x);
    if y > u64::from(MAX_PER_DIMENSION) {
        let message =
            format!("{groups} workgroups are needed, {} are allowed", u64::from(MAX_PER_DIMENSION).pow(2));
        return Err(Error::new(Code::Limit, message));
    }
    Ok([x as u32, y as u32, 1])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_count_is_covered_with_little_waste() {
        for groups in [0, 1, 65_535, 65_536, 65_537, 196_608, 1 << 24, (1 << 24) + 1, 4_000_000_007] {
            let [x, y, z] = fold(groups).unwrap();
            let launched = u64::from(x) * u64::from(y);
            assert!(launched >= groups && z == 1, "{groups}");
            assert!(launched - groups <= groups.isqrt() + 1, "{groups} launched {launched}");
            assert!(x <= MAX_PER_DIMENSION && y <= MAX_PER_DIMENSION);
        }
        assert_eq!(fold(65_536 * 65_536).unwrap_err().code, Code::Limit);
    }
}
