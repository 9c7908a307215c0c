//! Calls of gather and its gradient that must be refused, and how.

use crate::common::{NAN, gpu_test};
use wasm_bindgen_test::wasm_bindgen_test;
use wgrad::error::{Code, Error};
use wgrad::ops::gather::{Gather, GatherBackward};
use wgrad::shape::Dtype;

fn gather(axis: i64) -> Gather {
    Gather { axis }
}

fn backward(axis: i64, axis_dim: u32) -> GatherBackward {
    GatherBackward { axis, axis_dim }
}

#[wasm_bindgen_test]
async fn gather_wrong_shapes_types_and_options() {
    gpu_test(async |lab| {
        let (table, scalar) = (lab.tensor(&[3, 2]), lab.tensor(&[]));
        let whole = lab.tensor_of(Dtype::U32, &[3, 2]);
        let (indices, square) = (lab.tensor_of(Dtype::U32, &[4]), lab.tensor_of(Dtype::I32, &[2, 2]));
        let dy = lab.tensor(&[4, 2]);
        let dtype = |operand, fault| (Code::Dtype, operand, fault);
        lab.refuses(gather(0), &[&whole, &indices], &[], dtype("table", "must be f32, got u32"));
        lab.refuses(gather(0), &[&table, &dy], &[], dtype("indices", "must be u32 or i32, got f32"));
        lab.refuses(backward(0, 3), &[&whole, &indices], &[], dtype("dy", "must be f32, got u32"));
        lab.refuses(backward(0, 3), &[&dy, &dy], &[], dtype("indices", "must be u32 or i32, got f32"));
        let fault = "must be [num_idx] or a scalar, got [2, 2]";
        lab.refuses(gather(0), &[&table, &square], &[], (Code::Shape, "indices", fault));
        lab.refuses(backward(0, 3), &[&dy, &square], &[], (Code::Shape, "indices", fault));
        for axis in [2, -3] {
            let fault = format!("must be in [-2, 2) for shape [3, 2], got {axis}");
            lab.refuses(gather(axis), &[&table, &indices], &[], (Code::Argument, "axis", &fault));
            let fault = format!("must be in [-2, 2) for shape [4, 2], got {axis}");
            lab.refuses(backward(axis, 3), &[&dy, &indices], &[], (Code::Argument, "axis", &fault));
        }
        let fault = "must be in [-0, 0) for shape [], got 0";
        lab.refuses(gather(0), &[&scalar, &indices], &[], (Code::Argument, "axis", fault));
        let fault = "must have 4 rows along the axis, one an index; got shape [3, 2]";
        lab.refuses(backward(0, 3), &[&table, &indices], &[], (Code::Shape, "dy", fault));
        let fault = "must have shape [4, 2], got [3, 2]";
        lab.refuses(gather(0), &[&table, &indices], &[Some(&table)], (Code::Shape, "out", fault));
        let fault = "must have shape [3, 2], got [4, 2]";
        lab.refuses(backward(0, 3), &[&dy, &indices], &[Some(&dy)], (Code::Shape, "dtable", fault));
        let fault = "must be f32, got u32";
        lab.refuses(backward(0, 3), &[&dy, &indices], &[Some(&whole)], (Code::Dtype, "dtable", fault));
        let fault = "overlaps dy; give it memory of its own";
        lab.refuses(backward(0, 4), &[&dy, &indices], &[Some(&dy)], (Code::Alias, "dtable", fault));
        indices.free();
        let fault = "was freed, or its arena reset or destroyed";
        lab.refuses(gather(0), &[&table, &indices], &[], (Code::Disposed, "indices", fault));
    })
    .await;
}

// cases: row 42, tensorflow/tfjs#8174. Fewer rows than indices: both numbers are told, and
// not even a part of the result is written.
#[wasm_bindgen_test]
async fn gather_fewer_rows_than_indices() {
    gpu_test(async |lab| {
        lab.poison(1 << 20);
        let (indices, dy) = (lab.tensor_of(Dtype::U32, &[1000]), lab.tensor(&[888]));
        indices.write(&[0; 4000]).unwrap();
        dy.write(&[0; 3552]).unwrap();
        let out = lab.tensor(&[5]);
        let fault = "must have 1000 rows along the axis, one an index; got shape [888]";
        lab.refuses(backward(0, 5), &[&dy, &indices], &[Some(&out)], (Code::Shape, "dy", fault));
        assert_eq!(lab.fetch(&[out]).await.unwrap(), [[NAN; 5]]);
    })
    .await;
}

/// Results that no kernel can count or no binding can hold, from small operands.
#[wasm_bindgen_test]
async fn gather_results_too_large() {
    gpu_test(async |lab| {
        let (row, rows) = (lab.tensor(&[1, 70_000]), lab.tensor_of(Dtype::U32, &[70_000]));
        let counts = |n: u64| format!("has {n} elements or rows; a kernel counts to 4294967295");
        lab.refuses(gather(0), &[&row, &rows], &[], (Code::Limit, "out", &counts(4_900_000_000)));
        let (pair, one) = (lab.tensor(&[1, 2]), lab.tensor_of(Dtype::U32, &[1]));
        let fault = counts(2 * u64::from(u32::MAX));
        lab.refuses(backward(0, u32::MAX), &[&pair, &one], &[], (Code::Limit, "dtable", &fault));
        let limits = &lab.gpu.limits;
        let allowed = limits.max_storage_buffer_binding_size.min(limits.max_buffer_size);
        let message = format!(
            "a tensor of {} bytes is needed; this device allows {allowed} (maxStorageBufferBindingSize, maxBufferSize)",
            8 * (1u64 << 30)
        );
        let error = Error::new(Code::Limit, message);
        lab.refuses_with(backward(0, 1 << 30), &[&pair, &one], &[], error);
    })
    .await;
}
