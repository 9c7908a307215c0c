//! Calls that share a submit, an arena or a device: what one does must not reach another.

use crate::common::{Rng, gpu_test};
use std::rc::Rc;
use wasm_bindgen_test::wasm_bindgen_test;
use wgrad::error::{Code, Error};
use wgrad::gpu::{Arena, Gpu};
use wgrad::op::{self, Op, Path};
use wgrad::ops::cumsum::Cumsum;
use wgrad::ops::rms_norm::RmsNormBackward;
use wgrad::shape::{Shape, Spec};
use wgrad::tensor::Tensor;

async fn run(op: impl Op, inputs: &[&Tensor]) -> Vec<Tensor> {
    op::run(Rc::new(op), inputs, &[], Path::Gpu).expect("a call").await.expect("a call")
}

// cases: row 69, gfx-rs/wgpu#1650. Uniforms written twice before one submit would leave
// both calls with the last eps.
#[wasm_bindgen_test]
async fn session_two_eps_in_one_submit() {
    gpu_test(async |lab| {
        let mut rng = Rng::new("two eps");
        let (x, gamma) = (lab.upload(&rng.full(8), &[2, 4]), lab.upload(&rng.full(4), &[4]));
        let dy = lab.upload(&rng.full(8), &[2, 4]);
        let norm = |eps| RmsNormBackward { name: "rmsNormBackward", eps, wants: [true; 3] };
        let operands = [&x, &gamma, &dy];
        let mut alone = Vec::new();
        for eps in [1e-5, 1e-1] {
            let results = run(norm(eps), &operands).await;
            alone.push(lab.fetch(&results).await.unwrap());
        }
        let together = [run(norm(1e-5), &operands).await, run(norm(1e-1), &operands).await];
        for (results, alone) in together.iter().zip(&alone) {
            assert_eq!(&lab.fetch(results).await.unwrap(), alone);
        }
        assert_ne!(alone[0], alone[1]);
    })
    .await;
}

/// More dispatches than the uniforms of one submit hold, each result fed to the next.
#[wasm_bindgen_test]
async fn session_hundreds_of_calls_in_one_go() {
    gpu_test(async |lab| {
        let values = [1.0, -1.0, 2.0, 0.5, -0.25];
        let x = lab.upload(&values, &[5]);
        let (mut tensor, mut want) = (x.clone(), values);
        for i in 0..609 {
            // Ten sums of sums stay exact in f32; then it starts over.
            if i % 10 == 0 {
                (tensor, want) = (x.clone(), values);
            }
            let (exclusive, reverse) = (i % 7 == 0, i % 2 == 0);
            tensor = run(Cumsum { axis: 0, exclusive, reverse, backward: false }, &[&tensor]).await.remove(0);
            want = summed(want, exclusive, reverse);
        }
        assert_eq!(tensor.read_f32().await.unwrap(), want);
    })
    .await;
}

fn summed(mut x: [f32; 5], exclusive: bool, reverse: bool) -> [f32; 5] {
    if reverse {
        x.reverse();
    }
    let mut sum = 0.0;
    for value in &mut x {
        let before = sum;
        sum += *value;
        *value = if exclusive { before } else { sum };
    }
    if reverse {
        x.reverse();
    }
    x
}

/// Operands that are freed, and their memory written to, while a call is pending.
#[wasm_bindgen_test]
async fn session_operands_freed_in_flight() {
    gpu_test(async |lab| {
        for path in [Path::Gpu, Path::Host] {
            let x = lab.upload(&[1.0, 2.0, 3.0], &[3]);
            let op = Rc::new(Cumsum { axis: 0, exclusive: false, reverse: false, backward: false });
            let pending = op::run(op, &[&x], &[], path).unwrap();
            x.free();
            let other = lab.upload(&[9.0, 9.0, 9.0], &[3]);
            let results = pending.await.unwrap();
            assert_eq!(results[0].read_f32().await.unwrap(), [1.0, 3.0, 6.0], "{path:?}");
            assert_eq!(other.read_f32().await.unwrap(), [9.0; 3], "{path:?}");
        }
    })
    .await;
}

/// An arena that is reset while the host path waits: the result's memory is no longer its own.
#[wasm_bindgen_test]
async fn session_arena_reset_in_flight() {
    gpu_test(async |lab| {
        let arena = Arena::new(&lab.gpu, 1 << 16, false).unwrap();
        let x = Tensor::upload(&arena, &[1.0, 2.0, 3.0], &[3]).unwrap();
        let op = Rc::new(Cumsum { axis: 0, exclusive: false, reverse: false, backward: true });
        let pending = op::run(op, &[&x], &[], Path::Host).unwrap();
        arena.reset().unwrap();
        let next = Tensor::upload(&arena, &[7.0; 200], &[200]).unwrap();
        let error = Error::operand(Code::Disposed, "dx", "was freed, or its arena reset or destroyed");
        assert_eq!(pending.await.err(), Some(error.in_op("cumsumBackward")));
        assert_eq!(next.read_f32().await.unwrap(), [7.0; 200]);
    })
    .await;
}

/// New memory for a result can lie under a view of the same arena.
#[wasm_bindgen_test]
async fn session_result_under_a_view() {
    gpu_test(async |lab| {
        let arena = Arena::new(&lab.gpu, 1 << 16, false).unwrap();
        let view = Tensor::at(&arena, 0, Spec::f32(Shape::new([3]).unwrap())).unwrap();
        let op = |backward| Cumsum { axis: 0, exclusive: false, reverse: false, backward };
        let error = Error::operand(Code::Alias, "dx", "overlaps dy; give it memory of its own");
        for path in [Path::Gpu, Path::Host] {
            let got = op::run(Rc::new(op(true)), &[&view], &[], path).err();
            assert_eq!(got, Some(error.clone().in_op("cumsumBackward")));
        }
        assert_eq!(arena.memory().used, 0);
    })
    .await;
}

#[wasm_bindgen_test]
async fn session_operands_of_another_gpu() {
    gpu_test(async |lab| {
        let other = Gpu::create(Default::default()).await.unwrap();
        let foreign = Tensor::upload(&other.default_arena().unwrap(), &[1.0; 4], &[4]).unwrap();
        let (x, gamma, dy) = (lab.tensor(&[2, 4]), lab.tensor(&[4]), lab.tensor(&[2, 4]));
        let op = || RmsNormBackward { name: "rmsNormBackward", eps: 1e-5, wants: [true; 3] };
        let fault = |name| (Code::Argument, name, "belongs to another Gpu than the first operand");
        lab.refuses(op(), &[&x, &foreign, &dy], &[], fault("gamma"));
        lab.refuses(op(), &[&x, &gamma, &dy], &[None, Some(&foreign)], fault("dgamma"));
        other.destroy();
        let gone = "was freed, or its arena reset or destroyed";
        lab.refuses(op(), &[&x, &foreign, &dy], &[], (Code::Disposed, "gamma", gone));
    })
    .await;
}

/// The library's own known answers hold on this device.
#[wasm_bindgen_test]
async fn session_self_test() {
    gpu_test(async |lab| {
        let outcomes = wgrad::self_test::run(&lab.gpu).await.unwrap();
        assert!(outcomes.len() >= 34, "{} outcomes", outcomes.len());
        for outcome in outcomes {
            assert!(outcome.passed(), "{} {:?}: {:?}", outcome.op, outcome.path, outcome.error);
        }
    })
    .await;
}
