// loss += log Σ exp(z) − z[target], dz = (softmax(z) − onehot(target)) / rows

override CLASSES: u32;  // columns of z that count
override STRIDE: u32;   // columns of z

@group(0) @binding(0) var<storage, read_write> z: array<f32>;        // [rows, stride]
@group(0) @binding(1) var<storage, read_write> targets: array<u32>;  // [rows]
@group(0) @binding(2) var<storage, read_write> loss: array<f32>;     // [rows]
@group(0) @binding(3) var<storage, read_write> dz: array<f32>;       // [rows, stride]

// Adds to the loss, so that it is read only once in many steps.
@compute @workgroup_size(64)
fn forward_backward(@builtin(global_invocation_id) id: vec3u) {
    let row = id.x;
    let rows = arrayLength(&targets);
    if (row >= rows) {
        return;
    }
    let first = row * STRIDE;
    var largest = z[first];
    for (var i = 1u; i < CLASSES; i++) {
        largest = max(largest, z[first + i]);
    }
    var total = 0.0;
    for (var i = 0u; i < CLASSES; i++) {
        total += exp(z[first + i] - largest);
    }
    let lse = largest + log(total);
    for (var i = 0u; i < CLASSES; i++) {
        dz[first + i] = exp(z[first + i] - lse) / f32(rows);
    }
    for (var i = CLASSES; i < STRIDE; i++) {
        dz[first + i] = 0;
    }
    let target_class = first + targets[row];
    dz[target_class] -= 1.0 / f32(rows);
    loss[row] += lse - z[target_class];
}
