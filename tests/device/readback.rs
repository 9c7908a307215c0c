//! Reads: their order against writes and ops, their sizes, and many at once. Few of them,
//! since one takes Firefox a tenth of a second.

use crate::lab::{arena, spec, upload, with_gpu};
use std::rc::Rc;
use wasm_bindgen_test::wasm_bindgen_test;
use wgrad::error::Code;
use wgrad::gpu::{Gpu, Limits, Options, Span};
use wgrad::op::{self, Path};
use wgrad::ops::cumsum::Cumsum;
use wgrad::tensor::Tensor;

async fn cumsum(x: &Tensor, path: Path) -> Tensor {
    let op = Cumsum { axis: 0, exclusive: false, reverse: false, backward: false };
    op::run(Rc::new(op), &[x], &[], path).expect("a call").await.expect("a result").remove(0)
}

fn floats(bytes: &[u8]) -> Vec<f32> {
    bytemuck::pod_collect_to_vec(bytes)
}

#[wasm_bindgen_test]
async fn reads_and_writes_keep_their_order() {
    with_gpu(async |gpu| {
        let arena = arena(gpu, 1 << 16);
        let x = upload(&arena, &[1.0, 10.0, 100.0]);
        let before = x.read().unwrap();
        let sum = cumsum(&x, Path::Gpu).await;
        x.write(bytemuck::cast_slice(&[2f32, 20.0, 200.0])).unwrap();
        let between = x.read().unwrap();
        let second = cumsum(&x, Path::Gpu).await;
        x.write(bytemuck::cast_slice(&[3f32, 30.0, 300.0])).unwrap();
        let host = cumsum(&x, Path::Host).await;
        // Awaited in another order than made.
        assert_eq!(second.read_f32().await.unwrap(), [2.0, 22.0, 222.0]);
        assert_eq!(floats(&between.await.unwrap()), [2.0, 20.0, 200.0]);
        assert_eq!(floats(&before.await.unwrap()), [1.0, 10.0, 100.0]);
        assert_eq!(sum.read_f32().await.unwrap(), [1.0, 11.0, 111.0]);
        assert_eq!(host.read_f32().await.unwrap(), [3.0, 33.0, 333.0]);
    })
    .await;
}

// Neighbours of a tensor of odd length stay whole when it is written, and are not read with it.
#[wasm_bindgen_test]
async fn odd_sizes_and_nothing() {
    with_gpu(async |gpu| {
        let arena = arena(gpu, 1 << 16);
        let mut reads = Vec::new();
        for count in [0, 1, 3, 25, 63, 64, 65] {
            let values: Vec<f32> = (0..count).map(|i| i as f32 + 0.5).collect();
            let [left, x, right] =
                [&[-1.0][..], &vec![0.0; values.len()], &[-2.0]].map(|v| upload(&arena, v));
            x.write(bytemuck::cast_slice(&values)).unwrap();
            for (tensor, want) in [(left, vec![-1.0]), (x, values), (right, vec![-2.0])] {
                reads.push((tensor.read().unwrap(), want));
            }
        }
        for (read, want) in reads {
            assert_eq!(floats(&read.await.unwrap()), want);
        }
        let x = Tensor::new(&arena, spec(&[3, 0, 2])).unwrap();
        assert!(x.read().unwrap().await.unwrap().is_empty());
        assert_eq!(x.write(&[0; 4]).unwrap_err().code, Code::Shape);
    })
    .await;
}

#[wasm_bindgen_test]
async fn several_ranges_in_one_map() {
    with_gpu(async |gpu| {
        let arena = arena(gpu, 1 << 16);
        let tensors = [&[1.0, 2.0, 3.0][..], &[], &[4.0], &[5.0; 300]].map(|values| upload(&arena, values));
        let spans = tensors.each_ref().map(|tensor| tensor.operand("x").unwrap().span);
        let read = gpu.read(spans.to_vec(), |mapped| {
            let mut lengths = Vec::new();
            let mut last = [0; 4];
            for i in 0..4 {
                let range = mapped.range(i);
                lengths.push(range.end - range.start);
            }
            mapped.copy_to(2, &mut last);
            (lengths, f32::from_le_bytes(last))
        });
        assert_eq!(read.unwrap().await.unwrap(), (vec![12, 0, 4, 1200], 4.0));
    })
    .await;
}

// The words that tell of bad indices ride along with a read, and must not make it too large.
#[wasm_bindgen_test]
async fn as_much_as_one_buffer_holds() {
    let options = Options { limits: Limits::Default, ..Options::default() };
    let gpu = Gpu::create(options).await.unwrap();
    let half = gpu.limits.max_buffer_size / 2;
    assert_eq!(half, gpu.limits.max_storage_buffer_binding_size);
    let arena = arena(&gpu, half);
    let tensors = [0, 1].map(|_| Tensor::new(&arena, spec(&[(half / 4) as u32])).unwrap());
    let spans = tensors.each_ref().map(|tensor| tensor.operand("x").unwrap().span);
    gpu.write(&Span { offset: half - 4, bytes: 4, ..spans[1].clone() }, &7f32.to_le_bytes());
    let mut more = spans.to_vec();
    more.push(Span { bytes: 4, ..spans[0].clone() });
    let error = gpu.read(more, |_| ()).err().expect("more than a buffer holds");
    assert_eq!(error.code, Code::Limit);
    let read = gpu.read(spans.to_vec(), move |mapped| {
        let range = mapped.range(1);
        assert_eq!(range, half..2 * half);
        let last = mapped.view().as_uint8array().slice(range.end as u32 - 4, range.end as u32).to_vec();
        f32::from_le_bytes(last.try_into().unwrap())
    });
    assert_eq!(read.unwrap().await.unwrap(), 7.0);
    gpu.sync().unwrap().await.unwrap();
    gpu.destroy();
}

// cases: row 73, software-mansion/TypeGPU#205: two pending reads must not share a staging buffer.
#[wasm_bindgen_test]
async fn pending_reads_of_all_sizes_at_once() {
    with_gpu(async |gpu| {
        let arena = arena(gpu, 1 << 20);
        let sizes = [4, 1000, 4, 70_000, 1, 1000];
        let tensors = sizes.map(|n| upload(&arena, &vec![n as f32; n]));
        for _ in 0..2 {
            let reads = tensors.each_ref().map(|tensor| tensor.read().unwrap());
            for (read, n) in reads.into_iter().zip(sizes).rev() {
                assert_eq!(floats(&read.await.unwrap()), vec![n as f32; n]);
            }
        }
        // One that nobody waits for is in nobody's way.
        drop(tensors[1].read().unwrap());
        assert_eq!(tensors[1].read_f32().await.unwrap(), [1000.0; 1000]);
    })
    .await;
}

#[wasm_bindgen_test]
async fn sync_waits_for_everything_queued() {
    with_gpu(async |gpu| {
        gpu.sync().unwrap().await.unwrap();
        let x = upload(&arena(gpu, 1 << 20), &[1.0; 50_000]);
        let y = cumsum(&x, Path::Gpu).await;
        gpu.sync().unwrap().await.unwrap();
        let (one, two) = (gpu.sync().unwrap(), gpu.sync().unwrap());
        two.await.unwrap();
        one.await.unwrap();
        assert_eq!(y.read_f32().await.unwrap().last(), Some(&50_000.0));
    })
    .await;
}
