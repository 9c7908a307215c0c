// y_t = Σ_{s ≤ t} p_ts·v_s with p_ts = exp(q_t·k_s/√16 − lse_t), lse_t = log Σ_{s ≤ t} exp(q_t·k_s/√16)
// A head has 16 lanes, which are one mat4x4f, and one thread does one position of one head.

override SEQ: u32;
override HEADS: u32;

const SCALE = 0.25;

@group(0) @binding(0) var<storage, read_write> qk: array<mat4x4f>;   // [batch·seq, 2, heads]
@group(0) @binding(1) var<storage, read_write> v: array<mat4x4f>;    // [batch·seq, heads]
@group(0) @binding(2) var<storage, read_write> y: array<mat4x4f>;    // [batch·seq, heads]
@group(0) @binding(3) var<storage, read_write> lse: array<f32>;      // [batch·seq, heads]
@group(0) @binding(4) var<storage, read_write> dy: array<mat4x4f>;   // [batch·seq, heads]
@group(0) @binding(5) var<storage, read_write> delta: array<f32>;    // [batch·seq, heads]: dy·y
@group(0) @binding(6) var<storage, read_write> dqk: array<mat4x4f>;  // [batch·seq, 2, heads]
@group(0) @binding(7) var<storage, read_write> dv: array<mat4x4f>;   // [batch·seq, heads]

fn inner(a: mat4x4f, b: mat4x4f) -> f32 {
    return dot(a[0], b[0]) + dot(a[1], b[1]) + dot(a[2], b[2]) + dot(a[3], b[3]);
}

fn query(row: u32, head: u32) -> u32 {
    return 2 * row * HEADS + head;
}

fn key(row: u32, head: u32) -> u32 {
    return (2 * row + 1) * HEADS + head;
}

@compute @workgroup_size(64)
fn forward(@builtin(global_invocation_id) id: vec3u) {
    if (id.x >= arrayLength(&y)) {
        return;
    }
    let head = id.x % HEADS;
    let row = id.x / HEADS;
    let q = qk[query(row, head)];
    // The sums so far, relative to the largest score so far: no exp overflows.
    var largest = -1e30;
    var total = 0.0;
    var sum = mat4x4f();
    for (var s = row - row % SEQ; s <= row; s++) {
        let score = SCALE * inner(q, qk[key(s, head)]);
        let next = max(largest, score);
        let shrink = exp(largest - next);
        let p = exp(score - next);
        total = total * shrink + p;
        sum = sum * shrink + v[s * HEADS + head] * p;
        largest = next;
    }
    y[id.x] = sum * (1.0 / total);
    lse[id.x] = largest + log(total);
}

@compute @workgroup_size(64)
fn backward_query(@builtin(global_invocation_id) id: vec3u) {
    if (id.x >= arrayLength(&y)) {
        return;
    }
    let head = id.x % HEADS;
    let row = id.x / HEADS;
    let q = qk[query(row, head)];
    let d = dy[id.x];
    let through = inner(d, y[id.x]);
    var dq = mat4x4f();
    for (var s = row - row % SEQ; s <= row; s++) {
        let k = qk[key(s, head)];
        let p = exp(SCALE * inner(q, k) - lse[id.x]);
        dq += k * (SCALE * p * (inner(d, v[s * HEADS + head]) - through));
    }
    dqk[query(row, head)] = dq;
    delta[id.x] = through;
}

// After backward_query, which leaves delta. Sums over the later positions in a fixed order, where
// adding from the queries' side would need atomics.
@compute @workgroup_size(64)
fn backward_key(@builtin(global_invocation_id) id: vec3u) {
    if (id.x >= arrayLength(&dv)) {
        return;
    }
    let head = id.x % HEADS;
    let row = id.x / HEADS;
    let k = qk[key(row, head)];
    let value = v[id.x];
    var dk = mat4x4f();
    var sum = mat4x4f();
    for (var t = row; t < row - row % SEQ + SEQ; t++) {
        let at = t * HEADS + head;
        let q = qk[query(t, head)];
        let p = exp(SCALE * inner(q, k) - lse[at]);
        sum += dy[at] * p;
        dk += q * (SCALE * p * (inner(dy[at], value) - delta[at]));
    }
    dqk[key(row, head)] = dk;
    dv[id.x] = sum;
}
