//! Fault words: how a kernel tells that it met an index out of range, without
//! stopping the work.

use super::readback::Mapped;
use super::{Gpu, Span};
use crate::error::{Code, Error};
use std::cell::{Cell, RefCell};
use std::rc::Rc;

/// Words in the fault buffer, and so ops that can report faults.
const SLOTS: usize = 64;

/// One word an op. A kernel raises it to the greatest `!position` of the faults
/// it sees (`atomicMax`), so 0 means none and the first position wins.
pub struct Faults {
    span: Span,
    ops: RefCell<Vec<(&'static str, &'static str)>>,
    dirty: Cell<bool>,
}

impl Faults {
    /// No faults yet; WebGPU zeroes new buffers.
    pub fn new(device: &wgpu::Device) -> Self {
        let bytes = (SLOTS * 4) as u64;
        let buffer = Rc::new(device.create_buffer(&wgpu::BufferDescriptor {
            label: Some("wgrad.faults"),
            size: bytes,
            usage: wgpu::BufferUsages::STORAGE | wgpu::BufferUsages::COPY_SRC | wgpu::BufferUsages::COPY_DST,
            mapped_at_creation: false,
        }));
        Faults { span: Span { buffer, offset: 0, bytes }, ops: RefCell::default(), dirty: Cell::new(false) }
    }

    /// The fault words and the slot in which `op` reports positions in `operand`.
    pub fn slot(&self, op: &'static str, operand: &'static str) -> (Span, u32) {
        let mut ops = self.ops.borrow_mut();
        let slot = ops.iter().position(|&known| known == (op, operand)).unwrap_or_else(|| {
            ops.push((op, operand));
            ops.len() - 1
        });
        self.dirty.set(true);
        (self.span.clone(), (slot % SLOTS) as u32)
    }

    /// The words, to be read along with every read.
    pub fn span(&self) -> Span {
        self.span.clone()
    }

    /// Records that they start at zero again.
    pub fn cleared(&self, gpu: &Rc<Gpu>) {
        if self.dirty.replace(false) {
            gpu.clear(self.span.clone());
        }
    }

    /// The first fault among the words in range `i` of `mapped`.
    pub fn read(&self, mapped: &Mapped, i: usize) -> Option<Error> {
        let mut words = [0u32; SLOTS];
        mapped.copy_to(i, bytemuck::bytes_of_mut(&mut words));
        let ops = self.ops.borrow();
        let (&(op, operand), word) = ops.iter().zip(words).find(|(_, word)| *word != 0)?;
        Some(out_of_range(op, operand, !word))
    }
}

/// The error for `operand[position]` pointing outside its axis.
pub fn out_of_range(op: &'static str, operand: &'static str, position: u32) -> Error {
    let message = format!("{operand}[{position}] is out of range; it contributed nowhere");
    Error { code: Code::IndexOutOfRange, op: Some(op), operand: Some(operand.to_string()), message }
}
