//! What is to run next: commands gather here and leave in one submit.

use super::kernel::{Bind, Kernel, Overrides};
use super::{Gpu, Span, grid};
use crate::error::{Code, Error, Result};
use std::rc::Rc;

/// The stride of the uniforms of one submit: WebGPU's default
/// `minUniformBufferOffsetAlignment`.
const SLOT: usize = 256;
/// Dispatches that share a submit at most; their uniforms fill 64 KiB.
pub const MAX_DISPATCHES: usize = 256;
/// Size of the uniform buffer.
pub const PARAMS_BYTES: u64 = (SLOT * MAX_DISPATCHES) as u64;

enum Command {
    Dispatch {
        kernel: &'static Kernel,
        overrides: Vec<(&'static str, f64)>,
        params: u32,
        spans: Vec<Span>,
        grid: [u32; 3],
    },
    Copy {
        from: Span,
        to: Span,
    },
    Clear(Span),
}

/// Commands and their uniforms, in order.
#[derive(Default)]
pub struct Recorder {
    commands: Vec<Command>,
    params: Vec<u8>,
    ops: Vec<&'static str>,
}

impl Recorder {
    /// Whether nothing is recorded.
    pub fn is_empty(&self) -> bool {
        self.commands.is_empty()
    }
}

impl Gpu {
    /// Records one dispatch of `groups` workgroups on behalf of `op`.
    pub fn dispatch<B: Bind>(
        self: &Rc<Self>,
        op: &'static str,
        operands: B,
        overrides: Overrides,
        params: &impl bytemuck::Pod,
        groups: u64,
    ) -> Result<()> {
        self.dispatch_raw(op, B::KERNEL, operands.spans(), overrides, bytemuck::bytes_of(params), groups)
    }

    /// [`Gpu::dispatch`] for all kernels, so that the wasm file holds it once.
    fn dispatch_raw(
        self: &Rc<Self>,
        op: &'static str,
        kernel: &'static Kernel,
        spans: Vec<Span>,
        overrides: Overrides,
        params: &[u8],
        groups: u64,
    ) -> Result<()> {
        let grid = grid::fold(groups)?;
        if groups == 0 {
            return Ok(());
        }
        if self.recorder.borrow().params.len() >= SLOT * MAX_DISPATCHES {
            self.flush();
        }
        let recorder = &mut *self.recorder.borrow_mut();
        let offset = recorder.params.len();
        recorder.params.extend_from_slice(params);
        recorder.params.resize(offset + SLOT, 0);
        let (overrides, params) = (overrides.to_vec(), offset as u32);
        recorder.commands.push(Command::Dispatch { kernel, overrides, params, spans, grid });
        if !recorder.ops.contains(&op) {
            recorder.ops.push(op);
        }
        Ok(())
    }

    /// Records a copy of `from` to the start of `to`.
    pub fn copy(&self, from: Span, to: Span) {
        self.recorder.borrow_mut().commands.push(Command::Copy { from, to });
    }

    /// Records setting a range to zero bytes.
    pub fn clear(&self, span: Span) {
        self.recorder.borrow_mut().commands.push(Command::Clear(span));
    }

    /// Submits what is recorded. Errors that the GPU reports later reject the
    /// next call that waits.
    pub fn flush(self: &Rc<Self>) {
        let recorder = self.recorder.take();
        if recorder.is_empty() {
            return;
        }
        let memory = self.device.push_error_scope(wgpu::ErrorFilter::OutOfMemory);
        let validation = self.device.push_error_scope(wgpu::ErrorFilter::Validation);
        if !recorder.params.is_empty() {
            self.queue.write_buffer(&self.params, 0, &recorder.params);
        }
        let mut encoder = self.device.create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
        self.encode(&mut encoder, &recorder.commands);
        self.queue.submit([encoder.finish()]);
        let (validation, memory) = (validation.pop(), memory.pop());
        let (weak, ops) = (Rc::downgrade(self), recorder.ops.join(", "));
        self.check(async move {
            let errors = [validation.await, memory.await];
            if let (Some(gpu), Some(error)) = (weak.upgrade(), errors.into_iter().flatten().next()) {
                gpu.fail(from_wgpu(&error, &ops), false);
            }
        });
    }

    fn encode(self: &Rc<Self>, encoder: &mut wgpu::CommandEncoder, commands: &[Command]) {
        let mut rest = commands;
        while let Some((command, tail)) = rest.split_first() {
            match command {
                Command::Copy { from, to } => {
                    encoder.copy_buffer_to_buffer(
                        &from.buffer,
                        from.offset,
                        &to.buffer,
                        to.offset,
                        from.bytes,
                    );
                    rest = tail;
                }
                Command::Clear(span) => {
                    encoder.clear_buffer(&span.buffer, span.offset, Some(span.bytes));
                    rest = tail;
                }
                Command::Dispatch { .. } => {
                    let mut pass = encoder.begin_compute_pass(&wgpu::ComputePassDescriptor::default());
                    while let Some((Command::Dispatch { kernel, overrides, params, spans, grid }, tail)) =
                        rest.split_first()
                    {
                        self.encode_dispatch(&mut pass, kernel, overrides, *params, spans, *grid);
                        rest = tail;
                    }
                }
            }
        }
    }

    fn encode_dispatch(
        self: &Rc<Self>,
        pass: &mut wgpu::ComputePass,
        kernel: &'static Kernel,
        overrides: Overrides,
        params: u32,
        spans: &[Span],
        [x, y, z]: [u32; 3],
    ) {
        let pipeline = self.pipelines.borrow_mut().get(self, kernel, overrides);
        let uniform = Span { buffer: self.params.clone(), offset: 0, bytes: SLOT as u64 };
        let mut entries = vec![wgpu::BindGroupEntry { binding: 0, resource: uniform.binding() }];
        entries.extend(
            kernel
                .bindings
                .iter()
                .zip(spans)
                .map(|(&binding, span)| wgpu::BindGroupEntry { binding, resource: span.binding() }),
        );
        let group = self.device.create_bind_group(&wgpu::BindGroupDescriptor {
            label: Some(kernel.name),
            layout: &pipeline.layout,
            entries: &entries,
        });
        pass.set_pipeline(&pipeline.pipeline);
        pass.set_bind_group(0, &group, &[params]);
        pass.dispatch_workgroups(x, y, z);
    }
}

fn from_wgpu(error: &wgpu::Error, ops: &str) -> Error {
    match error {
        wgpu::Error::OutOfMemory { .. } => {
            Error::new(Code::OutOfMemory, format!("the GPU ran out of memory while running {ops}"))
        }
        other => Error::new(Code::Internal, format!("the GPU refused work of {ops}: {other}")),
    }
}
