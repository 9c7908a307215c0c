// y = a + b, or a = a + b

@group(0) @binding(0) var<storage, read_write> a: array<vec4f>;  // any shape, in vec4s
@group(0) @binding(1) var<storage, read_write> b: array<vec4f>;  // like a
@group(0) @binding(2) var<storage, read_write> y: array<vec4f>;  // like a

@compute @workgroup_size(64)
fn sum(@builtin(global_invocation_id) id: vec3u) {
    if (id.x < arrayLength(&a)) {
        y[id.x] = a[id.x] + b[id.x];
    }
}

// Apart, since WebGPU does not let one tensor be bound as both a and y.
@compute @workgroup_size(64)
fn accumulate(@builtin(global_invocation_id) id: vec3u) {
    if (id.x < arrayLength(&a)) {
        a[id.x] += b[id.x];
    }
}
