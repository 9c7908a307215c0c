// y = max(x, 0)², dx = 2·max(x, 0)·dy

@group(0) @binding(0) var<storage, read_write> x: array<vec4f>;   // any shape, in vec4s
@group(0) @binding(1) var<storage, read_write> y: array<vec4f>;   // like x
@group(0) @binding(2) var<storage, read_write> dy: array<vec4f>;  // like x
@group(0) @binding(3) var<storage, read_write> dx: array<vec4f>;  // like x

@compute @workgroup_size(64)
fn forward(@builtin(global_invocation_id) id: vec3u) {
    if (id.x < arrayLength(&x)) {
        let positive = max(x[id.x], vec4f());
        y[id.x] = positive * positive;
    }
}

@compute @workgroup_size(64)
fn backward(@builtin(global_invocation_id) id: vec3u) {
    if (id.x < arrayLength(&x)) {
        dx[id.x] = 2 * max(x[id.x], vec4f()) * dy[id.x];
    }
}
