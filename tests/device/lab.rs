//! What each test starts from: a device of its own, whose uncaught errors fail it.

use js_sys::{Function, Promise, Reflect};
use std::cell::Cell;
use std::future::Future;
use std::ops::AsyncFnOnce;
use std::pin::pin;
use std::rc::Rc;
use std::sync::{Arc as Shared, Mutex};
use std::task::Poll;
use wasm_bindgen::JsValue;
use wasm_bindgen::prelude::wasm_bindgen;
use wasm_bindgen_futures::JsFuture;
use wasm_bindgen_test::console_log;
use wgrad::gpu::{Arena, Gpu};
use wgrad::shape::{Dtype, Shape, Spec};
use wgrad::tensor::Tensor;

thread_local! {
    static SAID: Cell<bool> = const { Cell::new(false) };
}

#[wasm_bindgen]
extern "C" {
    #[wasm_bindgen(js_name = setTimeout)]
    fn set_timeout(callback: &Function, milliseconds: u32);
}

/// Runs a test on a new device and fails it on errors that no call was told of.
pub async fn with_gpu(test: impl AsyncFnOnce(&Rc<Gpu>)) {
    let gpu = create().await;
    let uncaught = Shared::new(Mutex::new(Vec::new()));
    let sink = uncaught.clone();
    gpu.device.on_uncaptured_error(Shared::new(move |error: wgpu::Error| {
        sink.lock().expect("one thread").push(error.to_string());
    }));
    test(&gpu).await;
    if gpu.alive().is_ok() {
        let settled = gpu.sync().expect("the device lives").await;
        assert_eq!(settled, Ok(()), "an error that no call of the test was told of");
    }
    let uncaught = uncaught.lock().expect("one thread");
    assert!(uncaught.is_empty(), "uncaptured GPU errors: {uncaught:?}");
    gpu.destroy();
}

/// A new device; the first one says on which adapter.
pub async fn create() -> Rc<Gpu> {
    let gpu = Gpu::create(Default::default()).await.expect("a GPU");
    if !SAID.replace(true) {
        let device: JsValue = gpu.device.as_webgpu().expect("WebGPU").clone().into();
        let info = Reflect::get(&device, &"adapterInfo".into()).expect("an object");
        let text = |key: &str| Reflect::get(&info, &key.into()).ok().and_then(|text| text.as_string());
        let words = ["vendor", "architecture", "description"].map(|key| text(key).unwrap_or_default());
        // Firefox does not tell; the limits at least differ between adapters.
        let binding = gpu.limits.max_storage_buffer_binding_size;
        console_log!("adapter: {} (bindings of {binding} bytes)", words.join(" "));
    }
    gpu
}

/// What `future` gives, unless that takes longer: a promise that hangs must not hang the run.
pub async fn within<T>(milliseconds: u32, future: impl Future<Output = T>) -> T {
    let timer = Promise::new(&mut |resolve, _| set_timeout(&resolve, milliseconds));
    let (mut future, mut timer) = (pin!(future), pin!(JsFuture::from(timer)));
    std::future::poll_fn(|context| match future.as_mut().poll(context) {
        Poll::Ready(value) => Poll::Ready(value),
        Poll::Pending => {
            assert!(timer.as_mut().poll(context).is_pending(), "nothing after {milliseconds} ms");
            Poll::Pending
        }
    })
    .await
}

/// An arena in blocks of `bytes`.
pub fn arena(gpu: &Rc<Gpu>, bytes: u64) -> Rc<Arena> {
    Arena::new(gpu, bytes, true).expect("an arena")
}

/// f32, of these dimensions.
pub fn spec(dims: &[u32]) -> Spec {
    Spec { shape: Shape::new(dims).expect("a shape"), dtype: Dtype::F32 }
}

/// A vector with these values.
pub fn upload(arena: &Rc<Arena>, values: &[f32]) -> Tensor {
    Tensor::upload(arena, values, &[values.len() as u32]).expect("an upload")
}
