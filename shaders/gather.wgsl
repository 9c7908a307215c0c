// y[o, i, t] = table[o, indices[i], t]; dtable[o, a, t] = Σ_{i: indices[i] = a} dy[o, i, t]
#import grid

// Whether `chunk_sums` ran before `backward`.
override HAS_CHUNKS: bool = false;

struct Params {
    // Elements of the result of the kernel at hand.
    items: u32,
    num_idx: u32,
    axis_dim: u32,
    trailing: u32,
    // The word of `faults` that tells of indices out of range.
    fault_slot: u32,
}

@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read_write> table: array<f32>;           // [outer, axis_dim, trailing]
@group(0) @binding(2) var<storage, read_write> indices: array<u32>;         // [num_idx]; i32 is read by its bits
@group(0) @binding(3) var<storage, read_write> y: array<f32>;               // [outer, num_idx, trailing]
@group(0) @binding(4) var<storage, read_write> faults: array<atomic<u32>>;  // one word an op
@group(0) @binding(5) var<storage, read_write> keys: array<u32>;            // [num_idx], indices or axis_dim; sorted
@group(0) @binding(6) var<storage, read_write> order: array<u32>;           // [num_idx], positions; by key, then by position
@group(0) @binding(7) var<storage, read_write> dy: array<f32>;              // [outer, num_idx, trailing]
@group(0) @binding(8) var<storage, read_write> chunks: array<f32>;          // [outer, num_idx/CHUNK rounded up, trailing]
@group(0) @binding(9) var<storage, read_write> dtable: array<f32>;          // [outer, axis_dim, trailing]

// Sorted positions whose sum is taken beforehand if all have one key, so that a
// row hit a million times is not one long serial sum.
const CHUNK: u32 = 64;

// Notes the first position at fault. Integer atomics commute: same input, same word.
fn report(position: u32) {
    atomicMax(&faults[params.fault_slot], ~position);
}

@compute @workgroup_size(256)
fn forward(
    @builtin(workgroup_id) id: vec3<u32>,
    @builtin(num_workgroups) count: vec3<u32>,
    @builtin(local_invocation_index) local: u32,
) {
    let item = linear_group(id, count) * 256 + local;
    // As many threads as there are indices look after one each: the result may be empty.
    if (item < params.num_idx && indices[item] >= params.axis_dim) {
        report(item);
    }
    if (item >= params.items) {
        return;
    }
    let t = item % params.trailing;
    let i = (item / params.trailing) % params.num_idx;
    let outer = item / params.trailing / params.num_idx;
    let row = indices[i];
    var value = 0.0;
    if (row < params.axis_dim) {
        value = table[(outer * params.axis_dim + row) * params.trailing + t];
    }
    y[item] = value;
}

// What the sort takes: an index out of range becomes axis_dim, which no row asks for.
@compute @workgroup_size(256)
fn make_keys(
    @builtin(workgroup_id) id: vec3<u32>,
    @builtin(num_workgroups) count: vec3<u32>,
    @builtin(local_invocation_index) local: u32,
) {
    let i = linear_group(id, count) * 256 + local;
    if (i >= params.num_idx) {
        return;
    }
    let row = indices[i];
    if (row >= params.axis_dim) {
        report(i);
    }
    keys[i] = min(row, params.axis_dim);
    order[i] = i;
}

// The first place in the sorted keys whose key is not below `key`.
fn lower_bound(key: u32) -> u32 {
    var low = 0u;
    var high = params.num_idx;
    while (low < high) {
        let middle = low + (high - low) / 2;
        if (keys[middle] < key) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

// Σ dy over the sorted places [first, end), in that order.
fn sum_places(first: u32, end: u32, outer: u32, t: u32) -> f32 {
    var sum = 0.0;
    for (var k = first; k < end; k++) {
        sum += dy[(outer * params.num_idx + order[k]) * params.trailing + t];
    }
    return sum;
}

// chunks[o, c, t] = Σ dy over chunk c, where all its keys are one row.
@compute @workgroup_size(256)
fn chunk_sums(
    @builtin(workgroup_id) id: vec3<u32>,
    @builtin(num_workgroups) count: vec3<u32>,
    @builtin(local_invocation_index) local: u32,
) {
    let item = linear_group(id, count) * 256 + local;
    if (item >= params.items) {
        return;
    }
    let per_outer = (params.num_idx + CHUNK - 1) / CHUNK;
    let t = item % params.trailing;
    let first = ((item / params.trailing) % per_outer) * CHUNK;
    let end = first + CHUNK;
    // The last, short chunk is never read.
    if (end <= params.num_idx && keys[first] == keys[end - 1] && keys[first] < params.axis_dim) {
        chunks[item] = sum_places(first, end, item / params.trailing / per_outer, t);
    }
}

@compute @workgroup_size(256)
fn backward(
    @builtin(workgroup_id) id: vec3<u32>,
    @builtin(num_workgroups) count: vec3<u32>,
    @builtin(local_invocation_index) local: u32,
) {
    let item = linear_group(id, count) * 256 + local;
    if (item >= params.items) {
        return;
    }
    let t = item % params.trailing;
    let row = (item / params.trailing) % params.axis_dim;
    let outer = item / params.trailing / params.axis_dim;
    let first = lower_bound(row);
    let end = lower_bound(row + 1);
    let first_chunk = (first + CHUNK - 1) / CHUNK;
    let end_chunk = end / CHUNK;
    if (!HAS_CHUNKS || first_chunk >= end_chunk) {
        dtable[item] = sum_places(first, end, outer, t);
        return;
    }
    let per_outer = (params.num_idx + CHUNK - 1) / CHUNK;
    var total = sum_places(first, first_chunk * CHUNK, outer, t);
    var chunk = first_chunk;
    while (chunk < end_chunk) {
        // Runs of 64 keep the rounding of long sums near that of a tree.
        var run = 0.0;
        for (var k = 0u; k < 64 && chunk < end_chunk; k++) {
            run += chunks[(outer * per_outer + chunk) * params.trailing + t];
            chunk++;
        }
        total += run;
    }
    dtable[item] = total + sum_places(end_chunk * CHUNK, end, outer, t);
}
