//! GPU memory in a few large blocks, handed out in 256-byte steps.

use super::alloc::FreeList;
use super::{Gpu, Memory, Span};
use crate::error::{Code, Error, Result};
use std::cell::{Cell, RefCell};
use std::rc::Rc;

/// The least a growing arena takes at a time.
pub const DEFAULT_BLOCK: u64 = 16 << 20;

struct Block {
    buffer: Rc<wgpu::Buffer>,
    free: FreeList,
}

/// A growing set of buffers. Data never moves.
pub struct Arena {
    gpu: Rc<Gpu>,
    blocks: RefCell<Vec<Block>>,
    block_bytes: u64,
    grows: bool,
    memory: Cell<Memory>,
    /// Counts resets: regions of an earlier epoch are gone.
    epoch: Cell<u32>,
    destroyed: Cell<bool>,
}

/// A range that a tensor, or work in flight, holds. It returns to its arena when
/// the last holder lets go.
pub struct Region {
    arena: Rc<Arena>,
    span: Span,
    /// The block and the bytes taken; `None` for a view that owns nothing.
    owned: Option<(usize, u64)>,
    epoch: u32,
}

impl Arena {
    /// An arena whose blocks are of `bytes` or more; one that does not grow has
    /// exactly one. Nothing is allocated before it is needed.
    ///
    /// Fails with `limit` if the device has no buffers of that size.
    pub fn new(gpu: &Rc<Gpu>, bytes: u64, grows: bool) -> Result<Rc<Arena>> {
        gpu.alive()?;
        let allowed = gpu.limits.max_buffer_size;
        let Some(block_bytes) = FreeList::rounded(bytes).filter(|&rounded| rounded <= allowed) else {
            let message = format!("an arena of {bytes} bytes is needed; maxBufferSize is {allowed}");
            return Err(Error::new(Code::Limit, message));
        };
        let arena = Rc::new(Arena {
            gpu: gpu.clone(),
            blocks: RefCell::default(),
            block_bytes,
            grows,
            memory: Cell::default(),
            epoch: Cell::new(0),
            destroyed: Cell::new(false),
        });
        let mut arenas = gpu.arenas.borrow_mut();
        arenas.retain(|arena| arena.strong_count() > 0);
        arenas.push(Rc::downgrade(&arena));
        Ok(arena)
    }

    /// Its device.
    pub fn gpu(&self) -> &Rc<Gpu> {
        &self.gpu
    }

    /// Bytes of this arena.
    pub fn memory(&self) -> Memory {
        self.memory.get()
    }

    fn alive(&self) -> Result<()> {
        if self.destroyed.get() {
            return Err(Error::new(Code::Disposed, "this arena was destroyed"));
        }
        self.gpu.alive()
    }

    /// A range of `bytes`, its contents unspecified.
    ///
    /// Fails with `limit` if that is more than the device binds at once and with
    /// `out-of-memory` if the arena may not grow; the arena is then unchanged.
    pub fn alloc(self: &Rc<Self>, bytes: u64) -> Result<Rc<Region>> {
        self.alive()?;
        let rounded = self.rounded(bytes)?;
        let found = self.take(rounded);
        let (block, offset) = match found {
            Some(place) => place,
            None => {
                self.grow(rounded)?;
                self.take(rounded).ok_or_else(|| {
                    Error::new(Code::Internal, "a new block does not hold what it was made for")
                })?
            }
        };
        self.account(|memory| memory.take(rounded));
        let buffer = self.blocks.borrow()[block].buffer.clone();
        Ok(self.region(Span { buffer, offset, bytes }, Some((block, rounded))))
    }

    /// The range of `bytes` at `offset` of the first block, as a view that owns nothing.
    pub fn view(self: &Rc<Self>, offset: u64, bytes: u64) -> Result<Rc<Region>> {
        self.alive()?;
        if !offset.is_multiple_of(super::alloc::ALIGN) {
            return Err(Error::operand(
                Code::Argument,
                "byteOffset",
                format!("must be a multiple of 256, got {offset}"),
            ));
        }
        if offset.checked_add(bytes.max(4)).is_none_or(|end| end > self.block_bytes) {
            let fault =
                format!("{offset} and {bytes} bytes do not fit the arena's {} bytes", self.block_bytes);
            return Err(Error::operand(Code::Argument, "byteOffset", fault));
        }
        self.rounded(bytes)?;
        if self.blocks.borrow().is_empty() {
            self.grow(self.block_bytes)?;
        }
        let buffer = self.blocks.borrow()[0].buffer.clone();
        Ok(self.region(Span { buffer, offset, bytes }, None))
    }

    fn region(self: &Rc<Self>, span: Span, owned: Option<(usize, u64)>) -> Rc<Region> {
        Rc::new(Region { arena: self.clone(), span, owned, epoch: self.epoch.get() })
    }

    fn rounded(&self, bytes: u64) -> Result<u64> {
        let limits = &self.gpu.limits;
        let allowed = limits.max_storage_buffer_binding_size.min(limits.max_buffer_size);
        match FreeList::rounded(bytes) {
            Some(rounded) if bytes <= allowed && rounded <= limits.max_buffer_size => Ok(rounded),
            _ => Err(Error::new(
                Code::Limit,
                format!(
                    "a tensor of {bytes} bytes is needed; this device allows {allowed} (maxStorageBufferBindingSize, maxBufferSize)"
                ),
            )),
        }
    }

    fn take(&self, rounded: u64) -> Option<(usize, u64)> {
        let mut blocks = self.blocks.borrow_mut();
        blocks.iter_mut().enumerate().find_map(|(i, block)| Some((i, block.free.take(rounded)?)))
    }

    fn grow(&self, rounded: u64) -> Result<()> {
        let first = self.blocks.borrow().is_empty();
        if !self.grows && (!first || rounded > self.block_bytes) {
            let (free, largest) = match self.blocks.borrow().first() {
                Some(block) => block.free.available(),
                None => (self.block_bytes, self.block_bytes),
            };
            return Err(Error::new(
                Code::OutOfMemory,
                format!(
                    "{rounded} bytes are needed; the arena has {free} free, {largest} in one piece, and may not grow"
                ),
            ));
        }
        let size = self.block_bytes.max(rounded).min(self.gpu.limits.max_buffer_size);
        let usage = wgpu::BufferUsages::STORAGE | wgpu::BufferUsages::COPY_SRC | wgpu::BufferUsages::COPY_DST;
        let buffer = self.gpu.create_buffer("wgrad.arena", size, usage);
        self.blocks.borrow_mut().push(Block { buffer, free: FreeList::new(size) });
        self.account(|memory| memory.allocated += size);
        Ok(())
    }

    /// Applies a change to the arena's and the device's counts.
    fn account(&self, change: impl Fn(&mut Memory)) {
        for cell in [&self.memory, &self.gpu.memory] {
            let mut memory = cell.get();
            change(&mut memory);
            cell.set(memory);
        }
    }

    /// Forgets every tensor; their handles are disposed. Memory stays for reuse.
    pub fn reset(&self) -> Result<()> {
        self.alive()?;
        self.forget();
        Ok(())
    }

    fn forget(&self) {
        self.epoch.set(self.epoch.get().wrapping_add(1));
        for block in self.blocks.borrow_mut().iter_mut() {
            block.free.reset();
        }
        let used = self.memory.get().used;
        self.account(|memory| memory.used -= used);
    }

    /// Frees the GPU memory. Work submitted before still runs to its end.
    pub fn destroy(&self) {
        if self.destroyed.replace(true) {
            return;
        }
        if self.gpu.alive().is_ok() {
            self.gpu.flush();
        }
        self.forget();
        for block in self.blocks.take() {
            block.buffer.destroy();
        }
        let allocated = self.memory.get().allocated;
        self.account(|memory| memory.allocated -= allocated);
    }
}

impl Drop for Arena {
    /// Reached when JavaScript has let go of the arena and all its tensors.
    fn drop(&mut self) {
        self.destroy();
    }
}

impl Region {
    /// Where it lies, unless its arena was reset or destroyed since.
    pub fn span(&self) -> Option<&Span> {
        (self.epoch == self.arena.epoch.get() && !self.arena.destroyed.get()).then_some(&self.span)
    }

    /// Its arena.
    pub fn arena(&self) -> &Rc<Arena> {
        &self.arena
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        if self.span().is_none() {
            return;
        }
        if let Some((block, rounded)) = self.owned {
            self.arena.blocks.borrow_mut()[block].free.give(self.span.offset, rounded);
            self.arena.account(|memory| memory.used -= rounded);
        }
    }
}
