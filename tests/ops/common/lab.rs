//! One GPU for all tests of the binary, and what every GPU test does at its start
//! and end.

use super::{NAN, Report, say};
use std::cell::{Cell, OnceCell};
use std::ops::AsyncFnOnce;
use std::rc::Rc;
use std::sync::{Arc, Mutex};
use wasm_bindgen::JsValue;
use wgrad::gpu::{Arena, Gpu};
use wgrad::shape::{Dtype, Shape, Spec};
use wgrad::tensor::Tensor;

thread_local! {
    static GPU: OnceCell<Rc<Gpu>> = const { OnceCell::new() };
    static TESTS: Cell<u32> = const { Cell::new(0) };
}

/// Errors that no error scope of the library caught: the user's console would show them.
static UNCAPTURED: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// What a GPU test works with.
pub struct Lab {
    pub gpu: Rc<Gpu>,
    /// The default arena, where scratch memory lies too; empty at the start.
    pub arena: Rc<Arena>,
    /// Copies of results, in buffers of their own so that poison spares them.
    pub kept: Rc<Arena>,
    /// Words of [`NAN`] to poison from.
    pub nans: Tensor,
    pub report: Report,
}

/// Runs a test on the GPU. It fails on an error that reached no call, on memory that
/// is not given back, and on what the test put in the report.
pub async fn gpu_test(test: impl AsyncFnOnce(&mut Lab)) {
    TESTS.set(TESTS.get() + 1);
    let start = js_sys::Date::now();
    let mut lab = Lab::open().await;
    test(&mut lab).await;
    lab.close().await;
    say(&format!("gpu tests: {} (the last took {} ms)", TESTS.get(), js_sys::Date::now() - start));
}

impl Lab {
    async fn open() -> Lab {
        let gpu = match GPU.with(|gpu| gpu.get().cloned()) {
            Some(gpu) => gpu,
            None => {
                let gpu = create().await;
                GPU.with(|shared| shared.get_or_init(|| gpu).clone())
            }
        };
        let arena = gpu.default_arena().expect("the GPU lives");
        // A test that failed before leaves its tensors behind.
        arena.reset().expect("the arena lives");
        UNCAPTURED.lock().expect("one thread").clear();
        let kept = Arena::new(&gpu, 4 << 20, true).expect("an arena");
        let spec = Spec { shape: Shape::new([1 << 16]).expect("a shape"), dtype: Dtype::U32 };
        let words = vec![NAN; 1 << 16];
        let nans = Tensor::upload_bytes(&kept, bytemuck::cast_slice(&words), spec).expect("an upload");
        Lab { gpu, arena, kept, nans, report: Report::default() }
    }

    /// Fails on errors that the library did not hand to a call.
    pub async fn settled(&self) {
        let outcome = self.gpu.sync().expect("the GPU lives").await;
        assert_eq!(outcome, Ok(()), "the GPU reports a fault that nobody awaited");
        let uncaptured = std::mem::take(&mut *UNCAPTURED.lock().expect("one thread"));
        assert!(uncaptured.is_empty(), "uncaptured GPU errors: {uncaptured:?}");
    }

    async fn close(mut self) {
        self.settled().await;
        assert_eq!(self.arena.memory().used, 0, "bytes that the test or an op never gave back");
        self.report.print();
        self.report.finish();
        // The large cases should not weigh on the rest of the run.
        if self.arena.memory().allocated > 32 << 20 {
            self.gpu.release();
            self.arena.destroy();
        }
        self.kept.destroy();
    }

    /// A new f32 tensor, its values unspecified.
    pub fn tensor(&self, dims: &[u32]) -> Tensor {
        self.tensor_of(Dtype::F32, dims)
    }

    pub fn tensor_of(&self, dtype: Dtype, dims: &[u32]) -> Tensor {
        Tensor::new(&self.arena, Spec { shape: Shape::new(dims).expect("a shape"), dtype }).expect("memory")
    }

    pub fn upload(&self, values: &[f32], dims: &[u32]) -> Tensor {
        Tensor::upload(&self.arena, values, dims).expect("an upload")
    }
}

async fn create() -> Rc<Gpu> {
    let gpu = Gpu::create(Default::default()).await.expect("a GPU");
    gpu.device.on_uncaptured_error(Arc::new(|error: wgpu::Error| {
        UNCAPTURED.lock().expect("one thread").push(error.to_string());
    }));
    let device = gpu.device.as_webgpu().expect("WebGPU").clone();
    let get = |object: &JsValue, key: &str| js_sys::Reflect::get(object, &key.into()).expect("an object");
    let info = get(&device.into(), "adapterInfo");
    let names = ["vendor", "architecture", "device", "description"];
    let texts: Vec<String> = names.iter().filter_map(|name| get(&info, name).as_string()).collect();
    let text = texts.join(" ");
    // Firefox tells nothing of its adapter.
    let text = if text.trim().is_empty() { "not named by this browser" } else { text.trim() };
    say(&format!("adapter: {text}, fallback {}", get(&info, "isFallbackAdapter").is_truthy()));
    gpu
}
