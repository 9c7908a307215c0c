// y = x·w, dx = dy·wᵀ, dw = xᵀ·dy
// A thread computes a block of four rows by four columns, so that each vec4 it loads is used four
// times. All sizes are multiples of four.

override INNER: u32;  // columns of x and rows of w, in vec4s
override COLS: u32;   // columns of w and y, in vec4s

@group(0) @binding(0) var<storage, read_write> x: array<vec4f>;   // [rows, inner]
@group(0) @binding(1) var<storage, read_write> w: array<vec4f>;   // [inner, cols]
@group(0) @binding(2) var<storage, read_write> y: array<vec4f>;   // [rows, cols]
@group(0) @binding(3) var<storage, read_write> dy: array<vec4f>;  // [rows, cols]
@group(0) @binding(4) var<storage, read_write> dx: array<vec4f>;  // [rows, inner]
@group(0) @binding(5) var<storage, read_write> dw: array<vec4f>;  // [inner, cols]

// Rows 4k to 4k + 3 of w in one column of vec4s. A matrix in WGSL is made of columns, hence
// `block * v` multiplies a row vector by the block, and `v * block` by the transposed one.
fn weights(k: u32, col: u32) -> mat4x4f {
    let first = 4 * k * COLS + col;
    return mat4x4f(w[first], w[first + COLS], w[first + 2 * COLS], w[first + 3 * COLS]);
}

@compute @workgroup_size(64)
fn forward(@builtin(global_invocation_id) id: vec3u) {
    let col = id.x % COLS;
    let row = 4 * (id.x / COLS);
    if (row * COLS >= arrayLength(&y)) {
        return;
    }
    var sum0 = vec4f();
    var sum1 = vec4f();
    var sum2 = vec4f();
    var sum3 = vec4f();
    let start = row * INNER;
    for (var k = 0u; k < INNER; k++) {
        let block = weights(k, col);
        sum0 += block * x[start + k];
        sum1 += block * x[start + k + INNER];
        sum2 += block * x[start + k + 2 * INNER];
        sum3 += block * x[start + k + 3 * INNER];
    }
    let to = row * COLS + col;
    y[to] = sum0;
    y[to + COLS] = sum1;
    y[to + 2 * COLS] = sum2;
    y[to + 3 * COLS] = sum3;
}

@compute @workgroup_size(64)
fn backward_input(@builtin(global_invocation_id) id: vec3u) {
    let k = id.x % INNER;
    let row = 4 * (id.x / INNER);
    if (row * INNER >= arrayLength(&dx)) {
        return;
    }
    var sum0 = vec4f();
    var sum1 = vec4f();
    var sum2 = vec4f();
    var sum3 = vec4f();
    let start = row * COLS;
    for (var col = 0u; col < COLS; col++) {
        let block = weights(k, col);
        sum0 += dy[start + col] * block;
        sum1 += dy[start + col + COLS] * block;
        sum2 += dy[start + col + 2 * COLS] * block;
        sum3 += dy[start + col + 3 * COLS] * block;
    }
    let to = row * INNER + k;
    dx[to] = sum0;
    dx[to + INNER] = sum1;
    dx[to + 2 * INNER] = sum2;
    dx[to + 3 * INNER] = sum3;
}

@compute @workgroup_size(64)
fn backward_weight(@builtin(global_invocation_id) id: vec3u) {
    let col = id.x % COLS;
    let k = id.x / COLS;
    if (k >= INNER) {
        return;
    }
    var sum0 = vec4f();
    var sum1 = vec4f();
    var sum2 = vec4f();
    var sum3 = vec4f();
    let rows = arrayLength(&dy) / COLS;
    for (var row = 0u; row < rows; row++) {
        let a = x[row * INNER + k];
        let b = dy[row * COLS + col];
        sum0 += a.x * b;
        sum1 += a.y * b;
        sum2 += a.z * b;
        sum3 += a.w * b;
    }
    let to = 4 * k * COLS + col;
    dw[to] = sum0;
    dw[to + COLS] = sum1;
    dw[to + 2 * COLS] = sum2;
    dw[to + 3 * COLS] = sum3;
}
