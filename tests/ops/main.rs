//! Numeric tests of every op.
#[cfg(target_arch = "wasm32")]
wasm_bindgen_test::wasm_bindgen_test_configure!(run_in_browser);

#[cfg(target_arch = "wasm32")]
#[wasm_bindgen_test::wasm_bindgen_test]
async fn self_test() {
    let gpu = wgrad::gpu::Gpu::create(Default::default()).await.unwrap();
    for o in wgrad::self_test::run(&gpu).await.unwrap() {
        wasm_bindgen_test::console_log!("{} {:?} {:?}", o.op, o.path, o.error);
    }
}
