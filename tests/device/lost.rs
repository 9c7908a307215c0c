//! A device that goes away: nothing that waits may wait for ever. cases: row 74,
//! playcanvas/engine#9115.

use crate::lab::{arena, create, spec, upload, within};
use js_sys::{Date, Function, Reflect};
use std::rc::Rc;
use wasm_bindgen::{JsCast, JsValue};
use wasm_bindgen_test::wasm_bindgen_test;
use wgrad::error::{Code, Error};
use wgrad::gpu::{Arena, Gpu};
use wgrad::op::{self, Path};
use wgrad::ops::cumsum::Cumsum;
use wgrad::tensor::Tensor;

/// Destroys the `GPUDevice` behind the library's back, as other code on the page may.
fn destroy_from_outside(gpu: &Rc<Gpu>) {
    let device: JsValue = gpu.device.as_webgpu().expect("WebGPU").clone().into();
    let destroy: Function = Reflect::get(&device, &"destroy".into()).expect("a method").unchecked_into();
    destroy.call0(&device).expect("it may be destroyed");
}

fn cumsum() -> Rc<Cumsum> {
    Rc::new(Cumsum { axis: 0, exclusive: false, reverse: false, backward: false })
}

async fn lose(gpu: Rc<Gpu>, lose: impl FnOnce(&Rc<Gpu>), afterwards: Code) {
    let arena = arena(&gpu, 1 << 16);
    let x = upload(&arena, &[1.0; 1000]);
    gpu.sync().unwrap().await.unwrap();
    let start = Date::now();
    let reads = [x.read().unwrap(), x.read().unwrap()];
    let sync = gpu.sync().unwrap();
    let host = op::run(cumsum(), &[&x], &[], Path::Host).unwrap();
    let told = gpu.lost();
    lose(&gpu);
    let is_loss = |error: Error| assert_eq!(error.code, Code::DeviceLost, "{}", error.message);
    for read in reads {
        within(1000, read).await.err().map(is_loss).expect("the read fails");
    }
    within(1000, sync).await.err().map(is_loss).expect("the sync fails");
    within(1000, host).await.err().map(is_loss).expect("the host path fails");
    let lost = within(1000, told).await;
    assert_eq!(lost.reason, "destroyed");
    assert!(Date::now() - start < 1000.0, "all of it within a second");
    assert_eq!(within(1000, gpu.lost()).await.reason, "destroyed", "asked late");

    for (what, error) in [
        ("alive", gpu.alive().err()),
        ("sync", gpu.sync().err()),
        ("arena", Arena::new(&gpu, 256, true).err()),
        ("alloc", arena.alloc(4).err()),
        ("tensor", Tensor::new(&arena, spec(&[1])).err()),
        ("read", x.read().err()),
        ("write", x.write(&[0; 4000]).err()),
        ("op", op::run(cumsum(), &[&x], &[], Path::Gpu).err()),
        ("host op", op::run(cumsum(), &[&x], &[], Path::Host).err()),
    ] {
        let error = error.unwrap_or_else(|| panic!("{what} must fail"));
        assert!([afterwards, Code::Disposed].contains(&error.code), "{what}: {error:?}");
    }
    // The wreck is cleared away without a fuss, and a new device works.
    gpu.destroy();
    arena.destroy();
    drop((x, arena, gpu));
    let gpu = create().await;
    let x = upload(&gpu.default_arena().unwrap(), &[1.0, 10.0, 100.0]);
    let y = op::run(cumsum(), &[&x], &[], Path::Gpu).unwrap().await.unwrap().remove(0);
    assert_eq!(y.read_f32().await.unwrap(), [1.0, 11.0, 111.0]);
    gpu.destroy();
}

#[wasm_bindgen_test]
async fn destroying_the_gpu() {
    lose(create().await, Gpu::destroy, Code::Disposed).await;
}

#[wasm_bindgen_test]
async fn destroying_the_device_from_outside() {
    lose(create().await, destroy_from_outside, Code::DeviceLost).await;
}

#[wasm_bindgen_test]
async fn calls_before_anyone_was_told() {
    let gpu = create().await;
    let x = upload(&arena(&gpu, 1 << 16), &[1.0, 10.0, 100.0]);
    gpu.sync().unwrap().await.unwrap();
    destroy_from_outside(&gpu);
    let op = op::run(cumsum(), &[&x], &[], Path::Gpu).unwrap();
    let y = within(1000, op).await.unwrap().remove(0);
    x.write(bytemuck::cast_slice(&[2f32, 20.0, 200.0])).unwrap();
    if let Ok(read) = y.read() {
        assert_eq!(within(1000, read).await.unwrap_err().code, Code::DeviceLost);
    }
    within(1000, gpu.lost()).await;
    assert_eq!(gpu.alive().unwrap_err().code, Code::DeviceLost);
    gpu.destroy();
}
