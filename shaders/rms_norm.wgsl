// y = x·r·gamma + beta, r = 1/sqrt(mean(x²) + eps) per row of x [rows, h]
// dx = r·(gamma·dy − x·r²·mean(gamma·dy·x)), dgamma = Σ_rows dy·x·r, dbeta = Σ_rows dy
#import grid

// Lanes that share a row: a power of two up to 256. Narrow rows take few.
override LANES: u32 = 256;
override HAS_BETA: bool = false;
override WANT_DGAMMA: bool = true;
override WANT_DBETA: bool = true;

struct Params {
    rows: u32,
    h: u32,
    eps: f32,
    groups: u32,
    // The column sums run over chunks of rows first, then over the chunks.
    chunks: u32,
    chunk_rows: u32,
}

@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read_write> x: array<f32>;               // [rows, h]
@group(0) @binding(2) var<storage, read_write> gamma: array<f32>;           // [h]
@group(0) @binding(3) var<storage, read_write> beta: array<f32>;            // [h]
@group(0) @binding(4) var<storage, read_write> y: array<f32>;               // [rows, h]
@group(0) @binding(5) var<storage, read_write> dy: array<f32>;              // [rows, h]
@group(0) @binding(6) var<storage, read_write> dx: array<f32>;              // [rows, h]
@group(0) @binding(7) var<storage, read_write> scale: array<f32>;           // [rows], r
@group(0) @binding(8) var<storage, read_write> partials: array<vec2<f32>>;  // [chunks, h], (dgamma, dbeta)
@group(0) @binding(9) var<storage, read_write> dgamma: array<f32>;          // [h]
@group(0) @binding(10) var<storage, read_write> dbeta: array<f32>;          // [h]

const SIZE: u32 = 256;
// Terms added one after another before their sum joins the total: keeps the
// rounding of long sums near that of a tree.
const RUN: u32 = 64;
// The column kernels give a workgroup 32 columns and 8 lanes that share them.
const COLUMNS: u32 = 32;
const ROW_LANES: u32 = 8;

var<workgroup> sums: array<vec2<f32>, SIZE>;

// Adds `value` over the `LANES` lanes of a row, in one fixed order.
fn sum_over_row(local: u32, value: vec2<f32>) -> vec2<f32> {
    sums[local] = value;
    for (var stride = LANES / 2; stride > 0; stride /= 2) {
        workgroupBarrier();
        if (local % LANES < stride) {
            sums[local] += sums[local + stride];
        }
    }
    workgroupBarrier();
    return sums[local - local % LANES];
}

// Adds `value` over the lanes that share a column.
fn sum_over_column(local: u32, value: vec2<f32>) -> vec2<f32> {
    sums[local] = value;
    for (var stride = ROW_LANES / 2; stride > 0; stride /= 2) {
        workgroupBarrier();
        if (local / COLUMNS < stride) {
            sums[local] += sums[local + stride * COLUMNS];
        }
    }
    workgroupBarrier();
    return sums[local % COLUMNS];
}

// r from the sum of squares of a row.
fn row_scale_of(squares: f32) -> f32 {
    return 1.0 / sqrt(squares / f32(params.h) + params.eps);
}

// The row of this lane, or `rows` and more for lanes past the end.
fn row_of(group: u32, local: u32) -> u32 {
    return group * (SIZE / LANES) + local / LANES;
}

fn squares_of(row: u32, lane: u32) -> f32 {
    var total = 0.0;
    var column = select(params.h, lane, row < params.rows);
    while (column < params.h) {
        var run = 0.0;
        for (var k = 0u; k < RUN && column < params.h; k++) {
            let value = x[row * params.h + column];
            run += value * value;
            column += LANES;
        }
        total += run;
    }
    return total;
}

@compute @workgroup_size(256)
fn forward(
    @builtin(workgroup_id) id: vec3<u32>,
    @builtin(num_workgroups) count: vec3<u32>,
    @builtin(local_invocation_index) local: u32,
) {
    let group = linear_group(id, count);
    if (group >= params.groups) {
        return;
    }
    let row = row_of(group, local);
    let lane = local % LANES;
    let r = row_scale_of(sum_over_row(local, vec2(squares_of(row, lane), 0.0)).x);
    if (row >= params.rows) {
        return;
    }
    for (var column = lane; column < params.h; column += LANES) {
        let at = row * params.h + column;
        var value = x[at] * r * gamma[column];
        if (HAS_BETA) {
            value += beta[column];
        }
        y[at] = value;
    }
}

// scale = r alone, for the column sums when dx is not wanted.
@compute @workgroup_size(256)
fn row_scale(
    @builtin(workgroup_id) id: vec3<u32>,
    @builtin(num_workgroups) count: vec3<u32>,
    @builtin(local_invocation_index) local: u32,
) {
    let group = linear_group(id, count);
    if (group >= params.groups) {
        return;
    }
    let row = row_of(group, local);
    let r = row_scale_of(sum_over_row(local, vec2(squares_of(row, local % LANES), 0.0)).x);
    if (row < params.rows && local % LANES == 0) {
        scale[row] = r;
    }
}

// dx, and scale for the column sums.
@compute @workgroup_size(256)
fn backward_input(
    @builtin(workgroup_id) id: vec3<u32>,
    @builtin(num_workgroups) count: vec3<u32>,
    @builtin(local_invocation_index) local: u32,
) {
    let group = linear_group(id, count);
    if (group >= params.groups) {
        return;
    }
    let row = row_of(group, local);
    let lane = local % LANES;
    var total = vec2(0.0);
    var column = select(params.h, lane, row < params.rows);
    while (column < params.h) {
        var run = vec2(0.0);
        for (var k = 0u; k < RUN && column < params.h; k++) {
            let at = row * params.h + column;
            let value = x[at];
            run += value * vec2(value, gamma[column] * dy[at]);
            column += LANES;
        }
        total += run;
    }
    total = sum_over_row(local, total);
    if (row >= params.rows) {
        return;
    }
    let r = row_scale_of(total.x);
    let slope = r * r * (total.y / f32(params.h));
    for (column = lane; column < params.h; column += LANES) {
        let at = row * params.h + column;
        dx[at] = r * (gamma[column] * dy[at] - x[at] * slope);
    }
    if (lane == 0) {
        scale[row] = r;
    }
}

// partials[chunk, column] = (Σ dy·x·r, Σ dy) over the rows of the chunk.
@compute @workgroup_size(256)
fn column_partials(
    @builtin(workgroup_id) id: vec3<u32>,
    @builtin(num_workgroups) count: vec3<u32>,
    @builtin(local_invocation_index) local: u32,
) {
    let group = linear_group(id, count);
    if (group >= params.groups) {
        return;
    }
    let tiles = (params.h + COLUMNS - 1) / COLUMNS;
    let chunk = group / tiles;
    let column = (group % tiles) * COLUMNS + local % COLUMNS;
    let end = min((chunk + 1) * params.chunk_rows, params.rows);
    var row = select(end, chunk * params.chunk_rows + local / COLUMNS, column < params.h);
    var total = vec2(0.0);
    while (row < end) {
        var run = vec2(0.0);
        for (var k = 0u; k < RUN && row < end; k++) {
            let at = row * params.h + column;
            let grad = dy[at];
            run.y += grad;
            if (WANT_DGAMMA) {
                run.x += grad * x[at] * scale[row];
            }
            row += ROW_LANES;
        }
        total += run;
    }
    total = sum_over_column(local, total);
    if (local < COLUMNS && column < params.h) {
        partials[chunk * params.h + column] = total;
    }
}

// dgamma and dbeta from the partials, one workgroup for each 32 columns.
@compute @workgroup_size(256)
fn column_sums(
    @builtin(workgroup_id) id: vec3<u32>,
    @builtin(num_workgroups) count: vec3<u32>,
    @builtin(local_invocation_index) local: u32,
) {
    let group = linear_group(id, count);
    if (group >= params.groups) {
        return;
    }
    let column = group * COLUMNS + local % COLUMNS;
    var chunk = select(params.chunks, local / COLUMNS, column < params.h);
    var total = vec2(0.0);
    while (chunk < params.chunks) {
        var run = vec2(0.0);
        for (var k = 0u; k < RUN && chunk < params.chunks; k++) {
            run += partials[chunk * params.h + column];
            chunk += ROW_LANES;
        }
        total += run;
    }
    total = sum_over_column(local, total);
    if (local < COLUMNS && column < params.h) {
        if (WANT_DGAMMA) {
            dgamma[column] = total.x;
        }
        if (WANT_DBETA) {
            dbeta[column] = total.y;
        }
    }
}
