//! The ops, one file each. To add one, add its line to each list below.

pub mod cumsum;
pub mod gather;
mod radix_sort;
pub mod rms_norm;
pub mod rope;

use crate::self_test::Case;

/// Known answers of every op, for `gpu.selfTest()`.
pub static SELF_TESTS: &[fn() -> Vec<Case>] =
    &[rms_norm::self_test, rope::self_test, cumsum::self_test, gather::self_test];

/// Threads of an elementwise workgroup, as in the shaders.
const WORKGROUP: u64 = 256;
