//! How any op runs: checks, memory, the GPU path and the host path. An op is a
//! value of a type that implements [`Op`]; nothing here names one.

use crate::error::{Code, Error, Result};
use crate::gpu::{Gpu, Span};
use crate::kernels::copy::{Copy, Params};
use crate::shape::{Dtype, Shape, Spec, to_u32};
use crate::tensor::{Operand, Tensor};
use std::future::Future;
use std::rc::Rc;

/// Where an op runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Path {
    /// WGSL kernels; nothing waits.
    #[default]
    Gpu,
    /// Operands are read back, computed in wasm, and outputs written.
    Host,
}

/// One direction of one op, with its options.
pub trait Op: 'static {
    /// Its JavaScript name, in errors and labels.
    fn name(&self) -> &'static str;
    /// Names of the operands, in order.
    fn inputs(&self) -> &'static [&'static str];
    /// Names of the results, in order.
    fn outputs(&self) -> Vec<&'static str>;
    /// Checks the operands against each other and gives the results' shapes.
    fn infer(&self, inputs: &[Spec]) -> Result<Vec<Spec>>;
    /// Records the kernels that compute the outputs.
    fn record(&self, call: &Call) -> Result<()>;
    /// Computes the outputs on the host: plain loops, sums in f64. Returns an
    /// error for a fault that the GPU path would report later, with outputs whole.
    fn compute(&self, inputs: &[Host], outputs: &mut [Host]) -> Result<()>;
}

/// A checked call of an op.
pub struct Call {
    /// The device.
    pub gpu: Rc<Gpu>,
    /// Operands, no two of which overlap.
    pub inputs: Vec<Operand>,
    /// Results, which overlap nothing.
    pub outputs: Vec<Operand>,
}

impl Call {
    /// Memory for this call only: it goes back when the returned operand is
    /// dropped, and may then be reused by what is recorded after.
    pub fn scratch(&self, dtype: Dtype, count: u64) -> Result<Operand> {
        let count = crate::shape::to_u32("scratch", count)?;
        Tensor::new(&self.gpu.default_arena()?, Spec { shape: Shape::new([count])?, dtype })?
            .operand("scratch")
    }
}

/// `count` times `value`, or `out-of-memory` where an ordinary allocation would trap.
pub fn try_vec<T: Clone>(value: T, count: usize) -> Result<Vec<T>> {
    let mut out = Vec::new();
    out.try_reserve_exact(count).map_err(|_| {
        let bytes = count as u64 * size_of::<T>() as u64;
        Error::new(Code::OutOfMemory, format!("wasm memory has no room for {bytes} bytes"))
    })?;
    out.resize(count, value);
    Ok(out)
}

/// An operand's values in host memory.
pub struct Host {
    /// Shape and element type.
    pub spec: Spec,
    words: Vec<u32>,
}

impl Host {
    /// Zeros.
    pub fn zeros(spec: Spec) -> Result<Host> {
        let words = try_vec(0, spec.shape.count() as usize)?;
        Ok(Host { spec, words })
    }

    /// The values as f32.
    pub fn f32(&self) -> &[f32] {
        bytemuck::cast_slice(&self.words)
    }

    /// The values as f32, to be written.
    pub fn f32_mut(&mut self) -> &mut [f32] {
        bytemuck::cast_slice_mut(&mut self.words)
    }

    /// The values as they lie in memory.
    pub fn words(&self) -> &[u32] {
        &self.words
    }

    /// The bytes, to be written.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        bytemuck::cast_slice_mut(&mut self.words)
    }
}

/// Runs `op`. Everything is checked, and memory found, before anything is
/// queued; on an error nothing has changed.
///
/// The call is made when this returns its future: with [`Path::Gpu`] the future
/// is ready at once, with [`Path::Host`] it waits for the operands.
pub fn run(
    op: Rc<dyn Op>,
    inputs: &[&Tensor],
    out: &[Option<&Tensor>],
    path: Path,
) -> Result<impl Future<Output = Result<Vec<Tensor>>> + use<>> {
    let name = op.name();
    let prepared = prepare(&*op, inputs, out).map_err(|e| e.in_op(name))?;
    let host = match path {
        Path::Gpu => {
            separate(name, &prepared.call).and_then(|call| op.record(&call)).map_err(|e| e.in_op(name))?;
            prepared.call.gpu.flush_soon();
            None
        }
        Path::Host => Some(host(op, prepared.call).map_err(|e| e.in_op(name))?),
    };
    Ok(async move {
        if let Some(host) = host {
            host.await.map_err(|e| e.in_op(name))?;
        }
        Ok(prepared.results)
    })
}

struct Prepared {
    call: Call,
    results: Vec<Tensor>,
}

fn prepare(op: &dyn Op, inputs: &[&Tensor], out: &[Option<&Tensor>]) -> Result<Prepared> {
    if inputs.is_empty() || inputs.len() != op.inputs().len() {
        let message = format!("takes {} operands, got {}", op.inputs().len(), inputs.len());
        return Err(Error::new(Code::Argument, message));
    }
    let operands: Vec<Operand> =
        op.inputs().iter().zip(inputs).map(|(name, tensor)| tensor.operand(name)).collect::<Result<_>>()?;
    let arena = inputs[0].arena()?;
    let gpu = arena.gpu().clone();
    gpu.alive()?;
    for (operand, tensor) in operands.iter().zip(inputs) {
        same_gpu(&gpu, operand.name, tensor)?;
    }
    let specs: Vec<Spec> = operands.iter().map(|o| o.spec.clone()).collect();
    let wanted = op.infer(&specs)?;
    let mut results = Vec::new();
    for (i, (name, spec)) in op.outputs().into_iter().zip(wanted).enumerate() {
        let given = out.get(i).copied().flatten();
        if let Some(tensor) = given {
            same_gpu(&gpu, name, tensor)?;
            tensor.spec().expect_dtype(name, &[spec.dtype])?;
            tensor.spec().expect_shape(name, spec.shape.dims())?;
        }
        results.push((name, given.cloned(), spec));
    }
    let mut outputs: Vec<Operand> = Vec::new();
    for (name, given, _) in &results {
        if let Some(tensor) = given {
            let output = tensor.operand(name)?;
            apart(&output, operands.iter().chain(&outputs))?;
            outputs.push(output);
        }
    }
    outputs.clear();
    let mut tensors = Vec::new();
    for (name, given, spec) in results {
        let tensor = given.map_or_else(|| Tensor::new(&arena, spec), Ok)?;
        let output = tensor.operand(name)?;
        // New memory can only overlap an operand that is a view.
        apart(&output, operands.iter().chain(&outputs))?;
        outputs.push(output);
        tensors.push(tensor);
    }
    Ok(Prepared { call: Call { gpu, inputs: operands, outputs }, results: tensors })
}

fn same_gpu(gpu: &Rc<Gpu>, name: &'static str, tensor: &Tensor) -> Result<()> {
    if Rc::ptr_eq(gpu, tensor.operand(name)?.gpu()) {
        return Ok(());
    }
    Err(Error::operand(Code::Argument, name, "belongs to another Gpu than the first operand"))
}

fn apart<'a>(output: &Operand, others: impl Iterator<Item = &'a Operand>) -> Result<()> {
    for other in others {
        if output.span.overlaps(&other.span) {
            let fault = format!("overlaps {}; give it memory of its own", other.name);
            return Err(Error::operand(Code::Alias, output.name, fault));
        }
    }
    Ok(())
}

/// WebGPU refuses to bind one range twice, so an operand that overlaps an
/// earlier one (`op(x, x)`) is read from a copy.
fn separate(op: &'static str, call: &Call) -> Result<Call> {
    let mut inputs: Vec<Operand> = Vec::new();
    for input in &call.inputs {
        if inputs.iter().any(|earlier| earlier.span.overlaps(&input.span)) {
            let copy = call.scratch(input.spec.dtype, input.spec.shape.count())?;
            let words = to_u32(input.name, input.spec.shape.count())?;
            let operands = Copy { src: input.span.clone(), dst: copy.span.clone() };
            let params = Params { words, ..Params::default() };
            call.gpu.dispatch(op, operands, &[], &params, u64::from(words).div_ceil(256))?;
            inputs.push(copy.standing_in_for(input));
        } else {
            inputs.push(input.clone());
        }
    }
    Ok(Call { gpu: call.gpu.clone(), inputs, outputs: call.outputs.clone() })
}

/// Maps the operands' ranges in one go, computes, and writes just the outputs.
fn host(op: Rc<dyn Op>, call: Call) -> Result<impl Future<Output = Result<()>> + use<>> {
    let spans: Vec<Span> = call.inputs.iter().map(|input| input.span.clone()).collect();
    let specs: Vec<Spec> = call.inputs.iter().map(|input| input.spec.clone()).collect();
    let read = call.gpu.read(spans, move |mapped| {
        specs
            .into_iter()
            .enumerate()
            .map(|(i, spec)| {
                let mut host = Host::zeros(spec)?;
                mapped.copy_to(i, host.bytes_mut());
                Ok(host)
            })
            .collect::<Result<Vec<Host>>>()
    })?;
    Ok(async move {
        let inputs = read.await??;
        let mut outputs = call
            .outputs
            .iter()
            .map(|output| Host::zeros(output.spec.clone()))
            .collect::<Result<Vec<Host>>>()?;
        let outcome = op.compute(&inputs, &mut outputs);
        call.gpu.alive()?;
        for (output, host) in call.outputs.iter().zip(&mut outputs) {
            output.still_there()?;
            call.gpu.write(&output.span, host.bytes_mut());
        }
        outcome
    })
}
