//! Where allocations lie, when they are given back, and what the counts say.

use crate::lab::{arena, spec, upload, with_gpu};
use wasm_bindgen_test::wasm_bindgen_test;
use wgrad::error::Code;
use wgrad::gpu::{Arena, Memory};
use wgrad::tensor::Tensor;

fn memory(allocated: u64, used: u64, peak: u64) -> Memory {
    Memory { allocated, used, peak }
}

#[wasm_bindgen_test]
async fn allocations_are_aligned_disjoint_and_reused() {
    with_gpu(async |gpu| {
        let arena = arena(gpu, 4096);
        assert_eq!(arena.memory(), memory(0, 0, 0), "nothing before it is needed");
        let regions: Vec<_> = [1, 4, 256, 260, 1024].map(|bytes| arena.alloc(bytes).unwrap()).into();
        let place = |i: usize| regions[i].span().unwrap().clone();
        let offsets: Vec<u64> = (0..5).map(|i| place(i).offset).collect();
        assert_eq!(offsets, [0, 256, 512, 768, 1280]);
        assert_eq!([place(0).bytes, place(3).bytes], [1, 260]);
        for i in 0..5 {
            for j in 0..5 {
                assert_eq!(place(i).overlaps(&place(j)), i == j, "{i} and {j}");
            }
        }
        assert_eq!(arena.memory(), memory(4096, 2304, 2304));

        let mut regions = regions;
        drop(regions.remove(1));
        assert_eq!(arena.memory(), memory(4096, 2048, 2304));
        let again = arena.alloc(200).unwrap();
        assert_eq!(again.span().unwrap().offset, 256, "the lowest hole");
        drop(regions);
        assert_eq!(arena.memory(), memory(4096, 256, 2304));
        // With its neighbours free, the rest is in one piece again.
        let rest = arena.alloc(4096 - 512).unwrap();
        assert_eq!(rest.span().unwrap().offset, 512);
        assert_eq!(gpu.memory(), arena.memory());
    })
    .await;
}

#[wasm_bindgen_test]
async fn a_full_arena_grows_by_blocks_and_moves_nothing() {
    with_gpu(async |gpu| {
        let arena = arena(gpu, 1024);
        let first = upload(&arena, &[1.0; 128]);
        let second = upload(&arena, &[2.0; 256]);
        assert_eq!(arena.memory(), memory(2048, 1536, 1536));
        // Larger than a block: one of its own. Smaller: the hole in the first.
        let large = upload(&arena, &[3.0; 1000]);
        let small = upload(&arena, &[4.0; 128]);
        assert_eq!(arena.memory().allocated, 2048 + 4096);
        let spans = [&first, &second, &large, &small].map(|tensor| tensor.operand("x").unwrap().span);
        assert_eq!(spans.each_ref().map(|span| span.offset), [0, 0, 0, 512]);
        assert!(std::rc::Rc::ptr_eq(&spans[0].buffer, &spans[3].buffer));
        for (tensor, value, count) in
            [(first, 1.0, 128), (second, 2.0, 256), (large, 3.0, 1000), (small, 4.0, 128)]
        {
            assert_eq!(tensor.read_f32().await.unwrap(), vec![value; count]);
        }
    })
    .await;
}

#[wasm_bindgen_test]
async fn one_that_may_not_grow_says_what_it_has() {
    with_gpu(async |gpu| {
        let arena = Arena::new(gpu, 4096, false).unwrap();
        let refused = |bytes: u64| {
            let error = arena.alloc(bytes).err().expect("no room");
            assert_eq!(error.code, Code::OutOfMemory);
            error.message
        };
        let needs = |bytes: u64, free: u64, largest: u64| {
            format!(
                "{bytes} bytes are needed; the arena has {free} free, {largest} in one piece, and may not grow"
            )
        };
        assert_eq!(refused(5000), needs(5120, 4096, 4096), "before its block exists");
        assert_eq!(arena.memory(), memory(0, 0, 0));
        let regions: Vec<_> = (0..4).map(|_| arena.alloc(1024).unwrap()).collect();
        assert_eq!(refused(1), needs(256, 0, 0));
        // Two holes of 1024, apart.
        let mut regions = regions;
        drop(regions.remove(2));
        drop(regions.remove(0));
        assert_eq!(refused(1025), needs(1280, 2048, 1024));
        assert_eq!(arena.memory(), memory(4096, 2048, 4096));
        assert_eq!(arena.alloc(1024).unwrap().span().unwrap().offset, 0);
    })
    .await;
}

#[wasm_bindgen_test]
async fn sizes_past_the_limits_are_refused_before_anything_happens() {
    with_gpu(async |gpu| {
        let arena = arena(gpu, 4096);
        let allowed = gpu.limits.max_storage_buffer_binding_size.min(gpu.limits.max_buffer_size);
        for bytes in [allowed + 4, 1 << 32, (1 << 32) - 4 + allowed, u64::MAX - 255, u64::MAX] {
            let error = arena.alloc(bytes).err().expect("too much");
            assert_eq!(error.code, Code::Limit, "{bytes}");
            assert!(error.message.contains(&format!("{bytes} bytes is needed")), "{}", error.message);
            assert!(error.message.contains(&format!("allows {allowed}")), "{}", error.message);
        }
        for bytes in [gpu.limits.max_buffer_size + 1, u64::MAX] {
            let error = Arena::new(gpu, bytes, true).err().expect("too much");
            assert_eq!(error.code, Code::Limit, "{bytes}");
        }
        assert_eq!(gpu.memory(), Memory::default());
    })
    .await;
}

#[wasm_bindgen_test]
async fn views_own_nothing() {
    with_gpu(async |gpu| {
        let arena = arena(gpu, 1024);
        let view = Tensor::at(&arena, 256, spec(&[2, 3])).unwrap();
        assert_eq!(arena.memory(), memory(1024, 0, 0));
        view.write(bytemuck::cast_slice(&[1f32, 2.0, 3.0, 4.0, 5.0, 6.0])).unwrap();
        let part = Tensor::at(&arena, 256, spec(&[2])).unwrap();
        assert_eq!(part.read_f32().await.unwrap(), [1.0, 2.0]);
        assert!(Tensor::at(&arena, 768, spec(&[64])).is_ok(), "up to the last byte");
        assert!(Tensor::at(&arena, 768, spec(&[0])).is_ok());
        for (offset, count, words) in [
            (4, 1, "byteOffset must be a multiple of 256, got 4"),
            (768, 65, "byteOffset 768 and 260 bytes do not fit the arena's 1024 bytes"),
            (1024, 0, "byteOffset 1024 and 0 bytes do not fit"),
            (u64::MAX - 255, 64, "do not fit the arena's 1024 bytes"),
        ] {
            let error = Tensor::at(&arena, offset, spec(&[count])).err().expect("no such place");
            assert_eq!((error.code, error.operand.as_deref()), (Code::Argument, Some("byteOffset")));
            assert!(error.message.contains(words), "{}", error.message);
        }
        view.free();
        assert_eq!(part.read_f32().await.unwrap(), [1.0, 2.0]);
        assert_eq!(arena.memory(), memory(1024, 0, 0));
    })
    .await;
}

#[wasm_bindgen_test]
async fn a_call_in_flight_keeps_its_memory() {
    with_gpu(async |gpu| {
        let arena = arena(gpu, 1024);
        let x = upload(&arena, &[1.0, 2.0]);
        let operand = x.operand("x").unwrap();
        x.free();
        assert_eq!(x.operand("x").err().map(|e| e.code), Some(Code::Disposed));
        assert_eq!(arena.memory().used, 256, "the call still holds it");
        assert!(operand.still_there().is_ok());
        let y = upload(&arena, &[3.0]);
        assert!(!y.operand("y").unwrap().span.overlaps(&operand.span));
        drop(operand);
        assert_eq!(arena.memory().used, 256, "only y");
        assert_eq!(upload(&arena, &[4.0]).operand("z").unwrap().span.offset, 0);
    })
    .await;
}

#[wasm_bindgen_test]
async fn reset_and_destroy_dispose_of_every_handle() {
    with_gpu(async |gpu| {
        let arena = arena(gpu, 1024);
        let (x, view) = (upload(&arena, &[1.0, 2.0]), Tensor::at(&arena, 512, spec(&[4])).unwrap());
        let held = x.operand("x").unwrap();
        let pending = x.read().unwrap();
        arena.reset().unwrap();
        assert_eq!(arena.memory(), memory(1024, 0, 256));
        let words = "x was freed, or its arena reset or destroyed";
        for tensor in [&x, &view] {
            let error = tensor.operand("x").err().expect("a handle of nothing");
            assert_eq!((error.code, error.message.as_str()), (Code::Disposed, words));
        }
        assert_eq!(held.still_there().unwrap_err().code, Code::Disposed);
        assert_eq!(pending.await.unwrap(), bytemuck::cast_slice::<f32, u8>(&[1.0, 2.0]));
        let y = upload(&arena, &[5.0]);
        // Old handles let go of what is no longer theirs.
        drop((x, held));
        assert_eq!((arena.memory().used, y.operand("y").unwrap().span.offset), (256, 0));

        let pending = y.read().unwrap();
        arena.destroy();
        assert_eq!(arena.memory(), memory(0, 0, 256));
        assert_eq!(gpu.memory().allocated, 0);
        assert_eq!(pending.await.unwrap(), bytemuck::cast_slice::<f32, u8>(&[5.0]));
        for error in [
            y.operand("y").err(),
            arena.alloc(4).err(),
            arena.view(0, 4).err(),
            arena.reset().err(),
            Tensor::new(&arena, spec(&[1])).err(),
        ] {
            assert_eq!(error.expect("an error").code, Code::Disposed);
        }
        arena.destroy();
    })
    .await;
}

#[wasm_bindgen_test]
async fn counts_over_all_arenas_add_up() {
    with_gpu(async |gpu| {
        let (one, two) = (arena(gpu, 1024), arena(gpu, 2048));
        let (a, b) = (upload(&one, &[1.0]), upload(&two, &[1.0; 100]));
        assert_eq!(gpu.memory(), memory(3072, 768, 768));
        drop(a);
        assert_eq!(gpu.memory(), memory(3072, 512, 768));
        // Arenas that are let go of give back everything.
        drop((b, one, two));
        assert_eq!(gpu.memory(), memory(0, 0, 768));
    })
    .await;
}
