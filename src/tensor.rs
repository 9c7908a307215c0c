//! A handle on a range of GPU memory with a shape.

use crate::error::{Code, Error, Result};
use crate::gpu::{Arena, Gpu, Region, Span};
use crate::op::try_vec;
use crate::shape::{Shape, Spec};
use std::cell::RefCell;
use std::future::Future;
use std::rc::Rc;

/// A contiguous row-major tensor. Clones are the same handle: freeing one frees all.
#[derive(Clone)]
pub struct Tensor(Rc<Handle>);

struct Handle {
    spec: Spec,
    region: RefCell<Option<Rc<Region>>>,
}

/// A tensor's place, held for the length of a call: it is not reused before the
/// call is done with it, even if the tensor is freed.
#[derive(Clone)]
pub struct Operand {
    /// Its name in messages.
    pub name: &'static str,
    /// Shape and element type.
    pub spec: Spec,
    /// The bytes.
    pub span: Span,
    region: Rc<Region>,
}

impl Operand {
    /// Its device.
    pub fn gpu(&self) -> &Rc<Gpu> {
        self.region.arena().gpu()
    }

    /// This memory under another operand's name and shape.
    pub fn standing_in_for(self, other: &Operand) -> Operand {
        Operand { name: other.name, spec: other.spec.clone(), ..self }
    }

    /// Fails if the arena was reset or destroyed since the call began.
    pub fn still_there(&self) -> Result<()> {
        self.region.span().map(drop).ok_or_else(|| disposed(self.name))
    }
}

fn disposed(name: &str) -> Error {
    Error::operand(Code::Disposed, name, "was freed, or its arena reset or destroyed")
}

impl Tensor {
    /// A new tensor in `arena`, its values unspecified.
    pub fn new(arena: &Rc<Arena>, spec: Spec) -> Result<Tensor> {
        let region = arena.alloc(spec.bytes())?;
        Ok(Tensor::of(spec, region))
    }

    /// A view of the arena's first block from byte `offset`, which must be a
    /// multiple of 256. It owns nothing: keep what overlaps apart yourself.
    pub fn at(arena: &Rc<Arena>, offset: u64, spec: Spec) -> Result<Tensor> {
        let region = arena.view(offset, spec.bytes())?;
        Ok(Tensor::of(spec, region))
    }

    /// A new f32 tensor with these values.
    pub fn upload(arena: &Rc<Arena>, values: &[f32], dims: &[u32]) -> Result<Tensor> {
        Tensor::upload_bytes(arena, bytemuck::cast_slice(values), Spec::f32(Shape::new(dims)?))
    }

    /// A new tensor with these bytes.
    pub fn upload_bytes(arena: &Rc<Arena>, bytes: &[u8], spec: Spec) -> Result<Tensor> {
        check_length(&spec, bytes.len() as u64)?;
        let tensor = Tensor::new(arena, spec)?;
        tensor.write(bytes)?;
        Ok(tensor)
    }

    fn of(spec: Spec, region: Rc<Region>) -> Tensor {
        Tensor(Rc::new(Handle { spec, region: RefCell::new(Some(region)) }))
    }

    /// Shape and element type.
    pub fn spec(&self) -> &Spec {
        &self.0.spec
    }

    /// Dimensions.
    pub fn shape(&self) -> &Shape {
        &self.0.spec.shape
    }

    /// The tensor as operand `name` of a call.
    pub fn operand(&self, name: &'static str) -> Result<Operand> {
        let region = self.0.region.borrow().clone().ok_or_else(|| disposed(name))?;
        let span = region.span().ok_or_else(|| disposed(name))?.clone();
        Ok(Operand { name, spec: self.0.spec.clone(), span, region })
    }

    /// Its arena.
    pub fn arena(&self) -> Result<Rc<Arena>> {
        Ok(self.operand("tensor")?.region.arena().clone())
    }

    /// Its device.
    pub fn gpu(&self) -> Result<Rc<Gpu>> {
        Ok(self.arena()?.gpu().clone())
    }

    /// Replaces the values, after everything queued so far.
    pub fn write(&self, bytes: &[u8]) -> Result<()> {
        check_length(self.spec(), bytes.len() as u64)?;
        let operand = self.operand("tensor")?;
        let gpu = self.gpu()?;
        gpu.alive()?;
        gpu.write(&operand.span, bytes);
        Ok(())
    }

    /// The bytes as they will be after everything queued so far. The tensor may
    /// be freed or written to while the future is pending.
    pub fn read(&self) -> Result<impl Future<Output = Result<Vec<u8>>> + use<>> {
        let operand = self.operand("tensor")?;
        let read = self.gpu()?.read(vec![operand.span.clone()], move |mapped| {
            let mut bytes = try_vec(0u8, operand.span.bytes as usize)?;
            mapped.copy_to(0, &mut bytes);
            Ok(bytes)
        })?;
        Ok(async move { read.await? })
    }

    /// The values of an f32 tensor, read as [`Tensor::read`] does.
    pub async fn read_f32(&self) -> Result<Vec<f32>> {
        let bytes = self.read()?.await?;
        Ok(bytemuck::pod_collect_to_vec(&bytes))
    }

    /// Gives the memory back; every handle on it is disposed from now on. Calls in
    /// flight finish. Freeing twice is harmless.
    pub fn free(&self) {
        drop(self.0.region.take());
    }
}

/// Fails unless `bytes` is what `spec` needs.
pub fn check_length(spec: &Spec, bytes: u64) -> Result<()> {
    if bytes == spec.bytes() {
        return Ok(());
    }
    let (count, got) = (spec.shape.count(), bytes / spec.dtype.bytes());
    Err(Error::operand(
        Code::Shape,
        "data",
        format!("must hold {count} values for shape {}, got {got}", spec.shape),
    ))
}
