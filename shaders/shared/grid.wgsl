// The linear index of a workgroup in a grid that was folded to two dimensions.
fn linear_group(id: vec3<u32>, count: vec3<u32>) -> u32 {
    return id.y * count.x + id.x;
}
