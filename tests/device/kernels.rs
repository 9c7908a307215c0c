//! Dispatches and pipelines, with kernels written here: the parameters of many dispatches, the
//! fold of large grids, and what becomes of a kernel that the browser refuses.

use crate::lab::{arena, spec, upload, with_gpu};
use std::rc::Rc;
use wasm_bindgen_test::wasm_bindgen_test;
use wgrad::error::{Code, Error};
use wgrad::gpu::kernel::{Bind, Kernel};
use wgrad::gpu::{Gpu, Span};
use wgrad::tensor::Tensor;

#[repr(C)]
#[derive(Clone, Copy, bytemuck::Pod, bytemuck::Zeroable)]
struct Params {
    at: u32,
    count: u32,
    value: f32,
    _pad: u32,
}

/// A kernel of `$source` and the struct that binds its one operand.
macro_rules! kernel {
    ($bind:ident, $entry:literal, $source:expr) => {
        struct $bind(Span);
        impl Bind for $bind {
            const KERNEL: &'static Kernel =
                &Kernel { name: concat!("test.", $entry), entry: $entry, source: $source, bindings: &[1] };
            fn spans(self) -> Vec<Span> {
                vec![self.0]
            }
        }
    };
}

static FILL: &str = "
struct Params { at: u32, count: u32, value: f32 }
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read_write> y: array<f32>;
override SCALE = 1.0;

@compute @workgroup_size(1)
fn put(@builtin(workgroup_id) group: vec3u, @builtin(num_workgroups) groups: vec3u) {
    let i = group.x + group.y * groups.x;
    if i < params.count { y[params.at + i] += params.value * SCALE; }
}
";
kernel!(Put, "put", FILL);
kernel!(Missing, "absent", FILL);

static BROKEN: &str = "
@group(0) @binding(1) var<storage, read_write> y: array<f32>;
@compute @workgroup_size(1)
fn broken() {
    y[0] = undeclared + 1.0;
}
";
kernel!(Broken, "broken", BROKEN);

fn put(gpu: &Rc<Gpu>, y: &Tensor, at: u32, count: u32, value: f32) -> Result<(), Error> {
    let operands = Put(y.operand("y")?.span.clone());
    gpu.dispatch("put", operands, &[], &Params { at, count, value, _pad: 0 }, count.into())
}

// cases: row 69, gfx-rs/wgpu#1650: the parameters of 256 dispatches share a buffer that one submit
// reads, so the next 256 need another submit.
#[wasm_bindgen_test]
async fn every_dispatch_has_its_own_parameters() {
    with_gpu(async |gpu| {
        let y = upload(&arena(gpu, 1 << 16), &[0.0; 1000]);
        for i in 0..1000 {
            put(gpu, &y, i, 1, i as f32).unwrap();
        }
        let want: Vec<f32> = (0..1000).map(|i| i as f32).collect();
        assert_eq!(y.read_f32().await.unwrap(), want);
    })
    .await;
}

#[wasm_bindgen_test]
async fn overrides_make_pipelines_of_their_own() {
    with_gpu(async |gpu| {
        let y = upload(&arena(gpu, 1 << 16), &[0.0; 3]);
        for (at, scale) in [(0, 2.0), (1, 3.0), (2, 2.0), (0, 3.0)] {
            let operands = Put(y.operand("y").unwrap().span.clone());
            let params = Params { at, count: 1, value: 10.0, _pad: 0 };
            gpu.dispatch("put", operands, &[("SCALE", scale)], &params, 1).unwrap();
        }
        assert_eq!(y.read_f32().await.unwrap(), [50.0, 30.0, 20.0]);
    })
    .await;
}

#[wasm_bindgen_test]
async fn more_groups_than_one_dimension_has() {
    with_gpu(async |gpu| {
        let y = upload(&arena(gpu, 1 << 20), &vec![0.0; 131_101]);
        put(gpu, &y, 0, 131_101, 1.0).unwrap();
        put(gpu, &y, 65_535, 1, 1.0).unwrap();
        put(gpu, &y, 0, 0, 9.0).unwrap();
        let mut want = vec![1.0; 131_101];
        want[65_535] = 2.0;
        assert!(y.read_f32().await.unwrap() == want, "each group once");
        let refused = gpu.dispatch(
            "put",
            Put(y.operand("y").unwrap().span.clone()),
            &[],
            &Params { at: 0, count: 0, value: 0.0, _pad: 0 },
            1 << 33,
        );
        let error = refused.unwrap_err();
        assert_eq!(error.code, Code::Limit);
        assert_eq!(error.message, "8589934592 workgroups are needed, 4294836225 are allowed");
    })
    .await;
}

#[wasm_bindgen_test]
async fn a_shader_that_does_not_compile_shows_where() {
    with_gpu(async |gpu| {
        let y = upload(&arena(gpu, 1 << 16), &[1.0, 2.0]);
        let operands = Broken(y.operand("y").unwrap().span.clone());
        gpu.dispatch("brokenOp", operands, &[], &[0u32; 4], 1).unwrap();
        let error = y.read_f32().await.unwrap_err();
        assert_eq!(error.code, Code::Shader, "{}", error.message);
        // The browser's own words are between these.
        let at = " at line 5, column ";
        assert!(error.message.starts_with("test.broken does not compile: "), "{}", error.message);
        assert!(error.message.contains("undeclared") && error.message.contains(at), "{}", error.message);
        let (_, position) = error.message.split_once(at).unwrap();
        let (column, line) = position.split_once(": ").unwrap();
        assert!((5..=20).contains(&column.parse().unwrap_or(0)), "{}", error.message);
        assert_eq!(line, "`    y[0] = undeclared + 1.0;`");
        // Told once; what it would have changed is as before.
        assert_eq!(y.read_f32().await.unwrap(), [1.0, 2.0]);
        // Compiling was cached, its failure not forgotten: a second try fails as well.
        let operands = Broken(y.operand("y").unwrap().span.clone());
        gpu.dispatch("brokenOp", operands, &[], &[0u32; 4], 1).unwrap();
        let error = y.read_f32().await.unwrap_err();
        assert!(matches!(error.code, Code::Shader | Code::Internal), "{}", error.message);
    })
    .await;
}

#[wasm_bindgen_test]
async fn what_the_gpu_refuses_rejects_the_next_call_that_waits() {
    with_gpu(async |gpu| {
        let arena = arena(gpu, 1 << 16);
        let y = upload(&arena, &[1.0, 2.0]);
        let operands = Missing(y.operand("y").unwrap().span.clone());
        gpu.dispatch("missingOp", operands, &[], &[0u32; 4], 1).unwrap();
        let error = gpu.sync().unwrap().await.unwrap_err();
        assert_eq!(error.code, Code::Internal);
        assert!(error.message.starts_with("the GPU refused work of missingOp: "), "{}", error.message);
        gpu.sync().unwrap().await.unwrap();

        // A copy within one buffer.
        let span = |tensor: &Tensor| tensor.operand("x").unwrap().span.clone();
        let z = Tensor::new(&arena, spec(&[2])).unwrap();
        gpu.copy(span(&y), span(&z));
        // Made before the error is known, so it may be the one that is told.
        let reads = [y.read().unwrap(), z.read().unwrap()];
        let mut errors = Vec::new();
        for read in reads {
            errors.extend(read.await.err());
        }
        errors.extend(gpu.sync().unwrap().await.err());
        assert_eq!(errors.iter().map(|e| e.code).collect::<Vec<_>>(), [Code::Internal]);
        assert_eq!(y.read_f32().await.unwrap(), [1.0, 2.0]);
        put(gpu, &y, 0, 2, 1.0).unwrap();
        assert_eq!(y.read_f32().await.unwrap(), [2.0, 3.0]);
    })
    .await;
}
