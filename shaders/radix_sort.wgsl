// Stable sort of (key, value) pairs by the 8 bits of the key from `shift` on: one pass of a least-digit-first radix sort
#import grid

struct Params {
    count: u32,
    shift: u32,
    // Workgroups of 256 pairs.
    tiles: u32,
}

@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read_write> keys: array<u32>;          // [count]
@group(0) @binding(2) var<storage, read_write> values: array<u32>;        // [count]
@group(0) @binding(3) var<storage, read_write> tile_counts: array<u32>;   // [256 digits, tiles]; then their scan
@group(0) @binding(4) var<storage, read_write> digit_counts: array<u32>;  // [256]
@group(0) @binding(5) var<storage, read_write> sorted_keys: array<u32>;   // [count]
@group(0) @binding(6) var<storage, read_write> sorted_values: array<u32>; // [count]

// No digit: marks lanes past the end.
const NONE: u32 = 256;

var<workgroup> digits: array<u32, 256>;
var<workgroup> starts: array<u32, 256>;

fn digit_of(i: u32) -> u32 {
    if (i >= params.count) {
        return NONE;
    }
    return (keys[i] >> params.shift) & 255;
}

// Inclusive prefix sum over the workgroup, left in `starts`.
fn scan_starts(local: u32, value: u32) {
    starts[local] = value;
    for (var stride = 1u; stride < 256; stride *= 2) {
        workgroupBarrier();
        var before = 0u;
        if (local >= stride) {
            before = starts[local - stride];
        }
        // Every lane must have read its neighbour before that neighbour changes.
        workgroupBarrier();
        starts[local] += before;
    }
    workgroupBarrier();
}

// tile_counts[d, tile]: how often each digit occurs in each tile. Lane d counts
// digit d, so no atomics are needed.
@compute @workgroup_size(256)
fn count_digits(
    @builtin(workgroup_id) id: vec3<u32>,
    @builtin(num_workgroups) count: vec3<u32>,
    @builtin(local_invocation_index) local: u32,
) {
    let tile = linear_group(id, count);
    if (tile >= params.tiles) {
        return;
    }
    digits[local] = digit_of(tile * 256 + local);
    workgroupBarrier();
    var found = 0u;
    for (var i = 0u; i < 256; i++) {
        found += select(0u, 1u, digits[i] == local);
    }
    tile_counts[local * params.tiles + tile] = found;
}

// One workgroup a digit: tile_counts becomes its exclusive scan over the tiles.
@compute @workgroup_size(256)
fn scan_tiles(@builtin(workgroup_id) id: vec3<u32>, @builtin(local_invocation_index) local: u32) {
    let digit = id.x;
    var carry = 0u;
    for (var base = 0u; base < params.tiles; base += 256) {
        let tile = base + local;
        let at = digit * params.tiles + tile;
        var value = 0u;
        if (tile < params.tiles) {
            value = tile_counts[at];
        }
        scan_starts(local, value);
        if (tile < params.tiles) {
            tile_counts[at] = carry + starts[local] - value;
        }
        carry += starts[255];
        // The next round overwrites `starts`.
        workgroupBarrier();
    }
    if (local == 0) {
        digit_counts[digit] = carry;
    }
}

@compute @workgroup_size(256)
fn scatter(
    @builtin(workgroup_id) id: vec3<u32>,
    @builtin(num_workgroups) count: vec3<u32>,
    @builtin(local_invocation_index) local: u32,
) {
    let tile = linear_group(id, count);
    if (tile >= params.tiles) {
        return;
    }
    let size = digit_counts[local];
    scan_starts(local, size);
    let start = starts[local] - size;
    workgroupBarrier();
    starts[local] = start;
    let i = tile * 256 + local;
    let digit = digit_of(i);
    digits[local] = digit;
    workgroupBarrier();
    if (digit == NONE) {
        return;
    }
    // Equal digits keep their order.
    var rank = 0u;
    for (var k = 0u; k < local; k++) {
        rank += select(0u, 1u, digits[k] == digit);
    }
    let to = starts[digit] + tile_counts[digit * params.tiles + tile] + rank;
    sorted_keys[to] = keys[i];
    sorted_values[to] = values[i];
}
