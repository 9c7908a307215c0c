// y[j] = Σ_{k ≤ j} x[k] along the axis n of x [outer, n, inner]; exclusive: k < j; reverse: from the end
#import grid

// A workgroup scans WIDTH neighbouring lines; the other lanes split the axis,
// each taking RUN elements that follow one another. WIDTH divides 256.
override WIDTH: u32 = 1;
override RUN: u32 = 4;
override HAS_CARRY: bool = false;

struct Params {
    n: u32,
    inner: u32,
    // Pieces of 256/WIDTH·RUN elements that the axis is cut into.
    blocks: u32,
    // Workgroups beside each other along inner.
    tiles: u32,
    groups: u32,
    exclusive: u32,
    reverse: u32,
}

@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read_write> x: array<f32>;      // [outer, n, inner]
@group(0) @binding(2) var<storage, read_write> y: array<f32>;      // [outer, n, inner]
@group(0) @binding(3) var<storage, read_write> sums: array<f32>;   // [outer, blocks, inner], in scan order
@group(0) @binding(4) var<storage, read_write> carry: array<f32>;  // [outer, blocks, inner], sum of all blocks before

var<workgroup> lanes: array<f32, 256>;

struct Place {
    outer: u32,
    block: u32,
    inner: u32,
    // First element of this lane, in scan order.
    first: u32,
    // One past its last; equal to `first` for lanes without work.
    end: u32,
}

fn place(group: u32, local: u32) -> Place {
    var p: Place;
    let line = group / params.tiles;
    p.outer = line / params.blocks;
    p.block = line % params.blocks;
    p.inner = (group % params.tiles) * WIDTH + local % WIDTH;
    p.first = (p.block * (256 / WIDTH) + local / WIDTH) * RUN;
    p.end = select(p.first, max(min(p.first + RUN, params.n), p.first), p.inner < params.inner);
    return p;
}

// Where the j-th element in scan order lies.
fn index(p: Place, j: u32) -> u32 {
    let along = select(j, params.n - 1 - j, params.reverse != 0);
    return (p.outer * params.n + along) * params.inner + p.inner;
}

fn lane_sum(p: Place) -> f32 {
    var sum = 0.0;
    for (var j = p.first; j < p.end; j++) {
        sum += x[index(p, j)];
    }
    return sum;
}

// The sum over each block, for the scan of a longer axis.
@compute @workgroup_size(256)
fn block_sums(
    @builtin(workgroup_id) id: vec3<u32>,
    @builtin(num_workgroups) count: vec3<u32>,
    @builtin(local_invocation_index) local: u32,
) {
    let group = linear_group(id, count);
    if (group >= params.groups) {
        return;
    }
    let p = place(group, local);
    lanes[local] = lane_sum(p);
    for (var stride = 128u; stride >= WIDTH; stride /= 2) {
        workgroupBarrier();
        if (local < stride) {
            lanes[local] += lanes[local + stride];
        }
    }
    if (local < WIDTH && p.inner < params.inner) {
        sums[(p.outer * params.blocks + p.block) * params.inner + p.inner] = lanes[local];
    }
}

@compute @workgroup_size(256)
fn scan(
    @builtin(workgroup_id) id: vec3<u32>,
    @builtin(num_workgroups) count: vec3<u32>,
    @builtin(local_invocation_index) local: u32,
) {
    let group = linear_group(id, count);
    if (group >= params.groups) {
        return;
    }
    let p = place(group, local);
    lanes[local] = lane_sum(p);
    for (var stride = WIDTH; stride < 256; stride *= 2) {
        workgroupBarrier();
        var before = 0.0;
        if (local >= stride) {
            before = lanes[local - stride];
        }
        // Every lane must have read its neighbour before that neighbour changes.
        workgroupBarrier();
        lanes[local] += before;
    }
    workgroupBarrier();
    // Sums grow by addition only: a total minus a prefix would lose small terms.
    var running = 0.0;
    if (HAS_CARRY && p.inner < params.inner) {
        running = carry[(p.outer * params.blocks + p.block) * params.inner + p.inner];
    }
    if (local >= WIDTH) {
        running += lanes[local - WIDTH];
    }
    for (var j = p.first; j < p.end; j++) {
        let at = index(p, j);
        let next = running + x[at];
        y[at] = select(next, running, params.exclusive != 0);
        running = next;
    }
}
