//! Reading byte ranges back without blocking: copy to a staging buffer, map it,
//! hand the bytes out, keep the buffer for the next read.

use super::{Gpu, Span};
use crate::error::{Code, Error, Result};
use futures_channel::oneshot;
use std::cell::RefCell;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;

type Take = Box<dyn FnOnce(&Mapped)>;
type Pending = Pin<Box<dyn Future<Output = Result<()>>>>;

/// Bytes of idle staging buffers kept for reuse.
const KEPT_BYTES: u64 = 16 << 20;

/// Staging buffers that no read is using.
#[derive(Default)]
pub struct Staging {
    idle: Vec<Rc<wgpu::Buffer>>,
}

impl Staging {
    /// An idle buffer of at least `bytes`: the smallest that fits.
    fn take(&mut self, bytes: u64) -> Option<Rc<wgpu::Buffer>> {
        let fits =
            |buffer: &Rc<wgpu::Buffer>| buffer.size() >= bytes && buffer.size() <= bytes.max(1 << 16) * 4;
        let best = (0..self.idle.len()).filter(|&i| fits(&self.idle[i])).min_by_key(|&i| self.idle[i].size());
        best.map(|i| self.idle.swap_remove(i))
    }

    fn give(&mut self, buffer: Rc<wgpu::Buffer>) {
        let kept: u64 = self.idle.iter().map(|buffer| buffer.size()).sum();
        if kept + buffer.size() <= KEPT_BYTES {
            self.idle.push(buffer);
        } else {
            buffer.destroy();
        }
    }

    /// Destroys what is idle.
    pub fn clear(&mut self) {
        for buffer in self.idle.drain(..) {
            buffer.destroy();
        }
    }
}

/// The mapped bytes of the ranges that were read.
pub struct Mapped<'a> {
    view: &'a wgpu::BufferView,
    sizes: &'a [u64],
}

impl Mapped<'_> {
    /// The whole mapping; range `i` lies at `self.range(i)`.
    pub fn view(&self) -> &wgpu::BufferView {
        self.view
    }

    /// Where the `i`th range lies in the mapping.
    pub fn range(&self, i: usize) -> std::ops::Range<u64> {
        let start = self.sizes[..i].iter().sum();
        start..start + self.sizes[i]
    }

    /// Copies the `i`th range to `out`, which must be as long.
    pub fn copy_to(&self, i: usize, out: &mut [u8]) {
        let range = self.range(i);
        // Dereferencing the view would copy the whole mapping into wasm memory first.
        #[cfg(target_arch = "wasm32")]
        self.view.as_uint8array().subarray(range.start as u32, range.end as u32).copy_to(out);
        #[cfg(not(target_arch = "wasm32"))]
        out.copy_from_slice(&self.view[range.start as usize..range.end as usize]);
    }
}

impl Gpu {
    /// Copies `spans` as they will be after everything recorded so far, all in
    /// one staging buffer and one map, and gives the bytes to `take`.
    ///
    /// The copy is recorded and submitted before this returns: the tensors may be
    /// freed or overwritten while the future is pending.
    pub fn read<T: 'static, F: FnOnce(&Mapped) -> T + 'static>(
        self: &Rc<Self>,
        spans: Vec<Span>,
        take: F,
    ) -> Result<impl Future<Output = Result<T>> + use<T, F>> {
        let slot = Rc::new(RefCell::new(None));
        let fill = slot.clone();
        let read = self.read_into(spans, Box::new(move |mapped| drop(fill.replace(Some(take(mapped))))))?;
        Ok(async move {
            read.await?;
            slot.take().ok_or_else(|| Error::new(Code::Internal, "a read gave no values"))
        })
    }

    /// [`Gpu::read`] for all types, so that the wasm file holds it once.
    fn read_into(self: &Rc<Self>, mut spans: Vec<Span>, take: Take) -> Result<Pending> {
        self.alive()?;
        let wanted = spans.len();
        let limit = self.limits.max_buffer_size;
        let bytes = |spans: &[Span]| spans.iter().map(|s| s.bytes).sum::<u64>();
        // Even a read of nothing needs a copy: mapping waits only for work that uses the buffer.
        spans.push(self.faults.span());
        if bytes(&spans) > limit {
            // The next read tells of faults; this one is as large as they get.
            spans.pop();
        }
        let with_faults = spans.len() > wanted;
        let sizes: Vec<u64> = spans.iter().map(|s| s.bytes).collect();
        let total = bytes(&spans);
        if total > limit {
            let message = format!("reading {total} bytes at once; maxBufferSize is {limit}");
            return Err(Error::new(Code::Limit, message));
        }
        let idle = self.staging.borrow_mut().take(total);
        let staging = idle.unwrap_or_else(|| {
            // A power of two, so that reads of like sizes share one.
            let size = total.next_power_of_two().max(256).min(limit);
            self.create_buffer(
                "wgrad.staging",
                size,
                wgpu::BufferUsages::MAP_READ | wgpu::BufferUsages::COPY_DST,
            )
        });
        let mut offset = 0;
        for span in spans.into_iter().filter(|s| s.bytes > 0) {
            let bytes = span.bytes;
            self.copy(span, Span { buffer: staging.clone(), offset, bytes });
            offset += bytes;
        }
        if with_faults {
            self.faults.cleared(self);
        }
        self.flush();
        let (sender, receiver) = oneshot::channel();
        // The receiver is only gone when nobody waits for this read any more.
        staging.map_async(wgpu::MapMode::Read, 0..total, move |result| drop(sender.send(result)));
        let (gpu, checks) = (self.clone(), self.take_checks());
        Ok(Box::pin(async move {
            let mapped = receiver.await;
            for check in checks {
                // A check that was dropped had nothing to say.
                let _ = check.await;
            }
            if !matches!(mapped, Ok(Ok(()))) {
                staging.destroy();
                return Err(gpu.why_unmapped());
            }
            let view =
                staging.get_mapped_range(0..total).map_err(|e| Error::new(Code::Internal, e.to_string()))?;
            let mapped = Mapped { view: &view, sizes: &sizes };
            let fault = with_faults.then(|| gpu.faults.read(&mapped, wanted)).flatten();
            let failure = match (gpu.take_failure(), fault) {
                (Some(failure), Some(fault)) => {
                    // The words are cleared: the next call that waits tells of them.
                    gpu.fail(fault, false);
                    Some(failure)
                }
                (failure, fault) => failure.or(fault),
            };
            let result = match failure {
                Some(error) => Err(error),
                None => {
                    take(&mapped);
                    Ok(())
                }
            };
            drop(view);
            staging.unmap();
            gpu.staging.borrow_mut().give(staging);
            result
        }))
    }
}
