// dst[i] = src[i]: a copy within one buffer, which copyBufferToBuffer refuses
#import grid

struct Params {
    words: u32,
}

@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read_write> src: array<u32>;  // [words]
@group(0) @binding(2) var<storage, read_write> dst: array<u32>;  // [words], apart from src

@compute @workgroup_size(256)
fn copy(
    @builtin(workgroup_id) id: vec3<u32>,
    @builtin(num_workgroups) count: vec3<u32>,
    @builtin(local_invocation_index) local: u32,
) {
    let i = linear_group(id, count) * 256 + local;
    if (i < params.words) {
        dst[i] = src[i];
    }
}
