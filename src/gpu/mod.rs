//! The device and everything that is one per device. Names no op.

mod alloc;
mod arena;
mod device;
mod fault;
mod grid;
pub mod kernel;
mod readback;
mod recorder;

pub use arena::{Arena, Region};
pub use device::{Limits, Options, PowerPreference};
pub use fault::out_of_range;
pub use readback::Mapped;

use crate::error::{Code, Error, Result};
use futures_channel::oneshot;
use kernel::Pipelines;
use readback::Staging;
use recorder::Recorder;
use std::cell::{Cell, RefCell};
use std::future::Future;
use std::rc::Rc;

/// A byte range of a buffer, as kernels bind it.
#[derive(Clone, Debug)]
pub struct Span {
    /// The buffer.
    pub buffer: Rc<wgpu::Buffer>,
    /// First byte, a multiple of 256.
    pub offset: u64,
    /// Length in bytes, a multiple of 4.
    pub bytes: u64,
}

impl Span {
    fn binding(&self) -> wgpu::BindingResource<'_> {
        wgpu::BindingResource::Buffer(wgpu::BufferBinding {
            buffer: &self.buffer,
            offset: self.offset,
            // An empty tensor still owns its 256 bytes; a binding may not be empty.
            size: Some(wgpu::BufferSize::new(self.bytes).unwrap_or(wgpu::BufferSize::MIN.saturating_add(3))),
        })
    }

    /// Whether the two share a byte.
    pub fn overlaps(&self, other: &Span) -> bool {
        Rc::ptr_eq(&self.buffer, &other.buffer)
            && self.offset < other.offset + other.bytes.max(4)
            && other.offset < self.offset + self.bytes.max(4)
    }
}

/// Why a device went away.
#[derive(Clone, Debug)]
pub struct Lost {
    /// `destroyed` or `unknown`, as WebGPU says.
    pub reason: &'static str,
    /// The browser's words.
    pub message: String,
}

/// Bytes of GPU memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Memory {
    /// In blocks that exist.
    pub allocated: u64,
    /// In live tensors, rounded up to 256 each.
    pub used: u64,
    /// The most that was ever used at once.
    pub peak: u64,
}

impl Memory {
    fn take(&mut self, bytes: u64) {
        self.used += bytes;
        self.peak = self.peak.max(self.used);
    }
}

/// A WebGPU device with its caches. Everything here is single-threaded.
pub struct Gpu {
    /// The device.
    pub device: wgpu::Device,
    /// Its queue.
    pub queue: wgpu::Queue,
    /// What was granted.
    pub limits: wgpu::Limits,
    /// What the adapter says of itself.
    pub info: wgpu::AdapterInfo,
    params: Rc<wgpu::Buffer>,
    pipelines: RefCell<Pipelines>,
    recorder: RefCell<Recorder>,
    staging: RefCell<Staging>,
    faults: fault::Faults,
    memory: Cell<Memory>,
    scratch: RefCell<Option<Rc<Arena>>>,
    arenas: RefCell<Vec<std::rc::Weak<Arena>>>,
    failure: RefCell<Option<Error>>,
    checks: RefCell<Vec<oneshot::Receiver<()>>>,
    flush_due: Cell<bool>,
    destroyed: Cell<bool>,
    lost: RefCell<Option<Lost>>,
    lost_waiters: RefCell<Vec<oneshot::Sender<Lost>>>,
}

impl Gpu {
    /// Fails if the device is gone.
    pub fn alive(&self) -> Result<()> {
        if self.destroyed.get() {
            return Err(Error::new(Code::Disposed, "this Gpu was destroyed"));
        }
        match &*self.lost.borrow() {
            Some(lost) => Err(lost_error(lost)),
            None => Ok(()),
        }
    }

    /// Settles when the device is lost or destroyed.
    pub fn lost(&self) -> impl Future<Output = Lost> + use<> {
        let (sender, receiver) = oneshot::channel();
        let known = self.lost.borrow().clone();
        if known.is_none() {
            self.lost_waiters.borrow_mut().push(sender);
        }
        async move {
            match known {
                Some(lost) => lost,
                // Without a sender the Gpu itself is gone, device and all.
                None => {
                    receiver.await.unwrap_or_else(|_| Lost { reason: "destroyed", message: String::new() })
                }
            }
        }
    }

    /// Submits what is recorded at the end of the current JavaScript task step,
    /// so that calls made together share one submit.
    pub fn flush_soon(self: &Rc<Self>) {
        if self.flush_due.replace(true) {
            return;
        }
        let gpu = Rc::downgrade(self);
        wasm_bindgen_futures::spawn_local(async move {
            if let Some(gpu) = gpu.upgrade() {
                gpu.flush_due.set(false);
                gpu.flush();
            }
        });
    }

    /// Writes bytes after everything recorded so far.
    pub fn write(self: &Rc<Self>, span: &Span, bytes: &[u8]) {
        self.flush();
        self.queue.write_buffer(&span.buffer, span.offset, bytes);
    }

    /// Settles when all work submitted so far is done.
    pub fn sync(self: &Rc<Self>) -> Result<impl Future<Output = Result<()>> + use<>> {
        // Mapping, unlike onSubmittedWorkDone, rejects when the device is lost.
        self.read(Vec::new(), |_| ())
    }

    /// The fault words and the slot where a kernel of `op` reports `operand`.
    pub fn fault_slot(&self, op: &'static str, operand: &'static str) -> (Span, u32) {
        self.faults.slot(op, operand)
    }

    /// Bytes over all arenas.
    pub fn memory(&self) -> Memory {
        self.memory.get()
    }

    /// Where ops keep what lives for one call, and tensors made without an arena.
    pub fn default_arena(self: &Rc<Self>) -> Result<Rc<Arena>> {
        if let Some(arena) = &*self.scratch.borrow() {
            return Ok(arena.clone());
        }
        let arena = Arena::new(self, arena::DEFAULT_BLOCK.min(self.limits.max_buffer_size), true)?;
        self.scratch.replace(Some(arena.clone()));
        Ok(arena)
    }

    /// Lets go of the default arena, which otherwise keeps this `Gpu` for good.
    pub fn release(&self) {
        drop(self.scratch.take());
    }

    /// Destroys the device and with it all its memory.
    pub fn destroy(self: &Rc<Self>) {
        if self.destroyed.replace(true) {
            return;
        }
        self.recorder.take();
        self.staging.borrow_mut().clear();
        for arena in self.arenas.take().iter().filter_map(std::rc::Weak::upgrade) {
            arena.destroy();
        }
        self.scratch.take();
        self.params.destroy();
        self.device.destroy();
    }

    /// Keeps an error for the next awaited call. The first one stays, unless a
    /// later one explains it.
    fn fail(&self, error: Error, explains: bool) {
        let mut failure = self.failure.borrow_mut();
        if failure.is_none() || explains {
            *failure = Some(error);
        }
    }

    fn take_failure(&self) -> Option<Error> {
        self.failure.take()
    }

    /// Runs `work` to its end; reads wait for it before they report.
    fn check(&self, work: impl Future<Output = ()> + 'static) {
        let (sender, receiver) = oneshot::channel();
        let mut checks = self.checks.borrow_mut();
        // A finished check is `Ok(Some)` or a dropped sender.
        checks.retain_mut(|check| matches!(check.try_recv(), Ok(None)));
        checks.push(receiver);
        wasm_bindgen_futures::spawn_local(async move {
            work.await;
            // Nobody may be waiting any more.
            let _ = sender.send(());
        });
    }

    fn take_checks(&self) -> Vec<oneshot::Receiver<()>> {
        self.checks.take()
    }

    /// Mapping only fails when the device is gone, which may not be known yet (Firefox then
    /// already refuses shaders), or when there was no room for the buffer.
    fn why_unmapped(&self) -> Error {
        match (&*self.lost.borrow(), self.take_failure()) {
            (Some(lost), _) => lost_error(lost),
            (None, Some(error)) if error.code == Code::OutOfMemory => error,
            _ => Error::new(Code::DeviceLost, "the GPU device was lost before the result arrived"),
        }
    }

    /// A new buffer; that the GPU has no room for it is only known later, and rejects the
    /// next call that waits.
    fn create_buffer(
        self: &Rc<Self>,
        label: &'static str,
        size: u64,
        usage: wgpu::BufferUsages,
    ) -> Rc<wgpu::Buffer> {
        let scope = self.device.push_error_scope(wgpu::ErrorFilter::OutOfMemory);
        let descriptor =
            wgpu::BufferDescriptor { label: Some(label), size, usage, mapped_at_creation: false };
        let buffer = self.device.create_buffer(&descriptor);
        let (error, gpu) = (scope.pop(), Rc::downgrade(self));
        let held = self.memory().allocated;
        self.check(async move {
            if let (Some(_), Some(gpu)) = (error.await, gpu.upgrade()) {
                let message =
                    format!("the GPU has no room for a block of {size} bytes beside the {held} it holds");
                gpu.fail(Error::new(Code::OutOfMemory, message), true);
            }
        });
        Rc::new(buffer)
    }
}

fn lost_error(lost: &Lost) -> Error {
    Error::new(Code::DeviceLost, format!("the GPU device was lost ({}): {}", lost.reason, lost.message))
}
