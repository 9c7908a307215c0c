//! Every op on known answers, in a dedicated worker: no window, no document.
#![cfg(target_arch = "wasm32")]

use wasm_bindgen::JsValue;
use wasm_bindgen_test::{console_log, wasm_bindgen_test, wasm_bindgen_test_configure};
use wgrad::gpu::Gpu;
use wgrad::self_test;

wasm_bindgen_test_configure!(run_in_dedicated_worker);

#[wasm_bindgen_test]
async fn the_self_test_passes_in_a_worker() {
    let global = js_sys::global();
    let has = |name: &str| js_sys::Reflect::has(&global, &name.into()).expect("an object");
    assert!(has("DedicatedWorkerGlobalScope") && !has("document"), "not in a worker");
    let gpu = Gpu::create(Default::default()).await.expect("a GPU");
    let device = gpu.device.as_webgpu().expect("WebGPU").clone();
    let get = |object: &JsValue, key: &str| js_sys::Reflect::get(object, &key.into()).expect("an object");
    let info = get(&device.into(), "adapterInfo");
    let words = ["vendor", "architecture"].map(|key| get(&info, key).as_string().unwrap_or_default());
    console_log!("adapter: {}", words.join(" "));
    let outcomes = self_test::run(&gpu).await.expect("the device lives");
    let failed: Vec<String> = outcomes
        .iter()
        .filter(|outcome| !outcome.passed())
        .map(|outcome| format!("{} {:?}: {:?}", outcome.op, outcome.path, outcome.error))
        .collect();
    assert!(failed.is_empty(), "{failed:#?}");
    assert!(outcomes.len() > 20, "{} outcomes", outcomes.len());
    console_log!("{} outcomes of the self-test, all right", outcomes.len());
    gpu.destroy();
}
