// y1 = a·cos − b·sin, y2 = b·cos + a·sin for each rotated pair (a, b) of a head; backward is the same with −sin
#import grid

// Pairs are lanes (2i, 2i + 1) rather than (i, i + n_rot/2).
override GPTJ: bool = false;

struct Params {
    // Work items: a rotated pair or a lane that passes through.
    items: u32,
    heads: u32,
    head_dim: u32,
    n_rot: u32,
    // Rows of the tables: the token's position modulo this.
    table_rows: u32,
    table_stride: u32,
    // 1 forward, −1 backward.
    sign: f32,
}

@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read_write> x: array<f32>;          // [tokens, heads, head_dim]
@group(0) @binding(2) var<storage, read_write> cos_table: array<f32>;  // [table_rows, table_stride]
@group(0) @binding(3) var<storage, read_write> sin_table: array<f32>;  // [table_rows, table_stride]
@group(0) @binding(4) var<storage, read_write> y: array<f32>;          // [tokens, heads, head_dim]

@compute @workgroup_size(256)
fn rotate(
    @builtin(workgroup_id) id: vec3<u32>,
    @builtin(num_workgroups) count: vec3<u32>,
    @builtin(local_invocation_index) local: u32,
) {
    let item = linear_group(id, count) * 256 + local;
    if (item >= params.items) {
        return;
    }
    let pairs = params.n_rot / 2;
    let per_head = params.head_dim - pairs;
    let slot = item % per_head;
    let head = item / per_head;
    let base = head * params.head_dim;
    if (slot >= pairs) {
        let lane = base + pairs + slot;
        y[lane] = x[lane];
        return;
    }
    let row = (head / params.heads) % params.table_rows;
    let c = cos_table[row * params.table_stride + slot];
    let s = params.sign * sin_table[row * params.table_stride + slot];
    let first = base + select(slot, 2 * slot, GPTJ);
    let second = first + select(pairs, 1u, GPTJ);
    let a = x[first];
    let b = x[second];
    y[first] = a * c - b * s;
    y[second] = b * c + a * s;
}
