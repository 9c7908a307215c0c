// m = β1·m + (1 − β1)·dw, v = β2·v + (1 − β2)·dw², w −= rate·(m·c1 / (√(v·c2) + ε) + decay·w)

override DECAYED: u32;  // of the weights, the first so many decay

const BETA1 = 0.9;
const BETA2 = 0.98;
const EPSILON = 1e-8;

@group(0) @binding(0) var<storage, read_write> w: array<f32>;   // [weights]
@group(0) @binding(1) var<storage, read_write> dw: array<f32>;  // [weights]
@group(0) @binding(2) var<storage, read_write> m: array<f32>;   // [weights]
@group(0) @binding(3) var<storage, read_write> v: array<f32>;   // [weights]
// rate, decay, and the corrections c1 = 1/(1 − β1^step), c2 = 1/(1 − β2^step) of young averages
@group(0) @binding(4) var<storage, read_write> settings: vec4f;

@compute @workgroup_size(64)
fn update(@builtin(global_invocation_id) id: vec3u) {
    let i = id.x;
    if (i >= arrayLength(&w)) {
        return;
    }
    m[i] = mix(dw[i], m[i], BETA1);
    v[i] = mix(dw[i] * dw[i], v[i], BETA2);
    let direction = m[i] * settings.z / (sqrt(v[i] * settings.w) + EPSILON);
    let decay = select(0.0, settings.y, i < DECAYED);
    w[i] -= settings.x * (direction + decay * w[i]);
}
