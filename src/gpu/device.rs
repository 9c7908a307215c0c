//! Getting a device with the limits its adapter has.

use super::recorder::PARAMS_BYTES;
use super::{Gpu, Lost, fault};
use crate::error::{Code, Error, Result};
use futures_channel::oneshot;
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Mutex;

/// Which GPU, where there are two.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PowerPreference {
    /// The browser decides.
    #[default]
    None,
    /// The one that saves power.
    LowPower,
    /// The fast one.
    HighPerformance,
}

/// Which limits to ask for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Limits {
    /// All that the adapter has.
    #[default]
    Adapter,
    /// What every WebGPU device has, to try how a program fares there.
    Default,
}

/// How to make a [`Gpu`].
#[derive(Clone, Copy, Debug, Default)]
pub struct Options {
    /// Which GPU.
    pub power_preference: PowerPreference,
    /// Which limits.
    pub limits: Limits,
}

/// Features that are taken where the adapter has them: none is needed.
const WELCOME: wgpu::Features =
    wgpu::Features::TIMESTAMP_QUERY.union(wgpu::Features::SHADER_F16).union(wgpu::Features::SUBGROUP);

impl Gpu {
    /// Asks the browser for a device.
    ///
    /// Fails with `unsupported` if there is no adapter or it grants no device.
    /// The caller makes sure that `navigator.gpu` can be reached (wgpu panics
    /// outside a window or dedicated worker).
    pub async fn create(options: Options) -> Result<Rc<Gpu>> {
        let instance = wgpu::Instance::new(wgpu::InstanceDescriptor {
            backends: wgpu::Backends::BROWSER_WEBGPU,
            ..wgpu::InstanceDescriptor::new_without_display_handle()
        });
        let request = wgpu::RequestAdapterOptions {
            power_preference: match options.power_preference {
                PowerPreference::None => wgpu::PowerPreference::None,
                PowerPreference::LowPower => wgpu::PowerPreference::LowPower,
                PowerPreference::HighPerformance => wgpu::PowerPreference::HighPerformance,
            },
            ..Default::default()
        };
        let adapter = instance.request_adapter(&request).await.map_err(|_| {
            Error::new(
                Code::Unsupported,
                "WebGPU is there, but the browser has no adapter for it (no usable GPU or driver)",
            )
        })?;
        let descriptor = wgpu::DeviceDescriptor {
            label: Some("wgrad"),
            required_features: adapter.features() & WELCOME,
            required_limits: limits(options.limits, &adapter.limits()),
            ..Default::default()
        };
        let (device, queue) = adapter
            .request_device(&descriptor)
            .await
            .map_err(|e| Error::new(Code::Unsupported, format!("the adapter grants no device: {e}")))?;
        Ok(Gpu::new(device, queue, adapter.get_info()))
    }

    fn new(device: wgpu::Device, queue: wgpu::Queue, info: wgpu::AdapterInfo) -> Rc<Gpu> {
        let params = Rc::new(device.create_buffer(&wgpu::BufferDescriptor {
            label: Some("wgrad.params"),
            size: PARAMS_BYTES,
            usage: wgpu::BufferUsages::UNIFORM | wgpu::BufferUsages::COPY_DST,
            mapped_at_creation: false,
        }));
        let gpu = Rc::new(Gpu {
            limits: device.limits(),
            info,
            params,
            faults: fault::Faults::new(&device),
            device,
            queue,
            pipelines: RefCell::default(),
            recorder: RefCell::default(),
            staging: RefCell::default(),
            memory: Cell::default(),
            scratch: RefCell::default(),
            arenas: RefCell::default(),
            failure: RefCell::default(),
            checks: RefCell::default(),
            flush_due: Cell::new(false),
            destroyed: Cell::new(false),
            lost: RefCell::default(),
            lost_waiters: RefCell::default(),
        });
        gpu.watch_for_loss();
        gpu
    }

    fn watch_for_loss(self: &Rc<Self>) {
        let (sender, receiver) = oneshot::channel();
        // wgpu asks for a callback that may move between threads and be called again.
        let sender = Mutex::new(Some(sender));
        self.device.set_device_lost_callback(move |reason, message| {
            if let Some(sender) = sender.lock().ok().and_then(|mut s| s.take()) {
                let reason = match reason {
                    wgpu::DeviceLostReason::Destroyed => "destroyed",
                    wgpu::DeviceLostReason::Unknown => "unknown",
                };
                // The receiver is gone once the Gpu is.
                let _ = sender.send(Lost { reason, message });
            }
        });
        let weak = Rc::downgrade(self);
        wasm_bindgen_futures::spawn_local(async move {
            if let (Ok(lost), Some(gpu)) = (receiver.await, weak.upgrade()) {
                gpu.lost.replace(Some(lost.clone()));
                for waiter in gpu.lost_waiters.take() {
                    // Who stopped waiting need not be told.
                    let _ = waiter.send(lost.clone());
                }
            }
        });
    }
}

/// WebGPU's defaults, with the compute limits raised to what `adapter` has.
/// Nothing beyond the adapter is asked for, which `requestDevice` would refuse.
fn limits(wanted: Limits, adapter: &wgpu::Limits) -> wgpu::Limits {
    let base = wgpu::Limits::default().or_worse_values_from(adapter);
    match wanted {
        Limits::Default => base,
        Limits::Adapter => wgpu::Limits {
            max_buffer_size: adapter.max_buffer_size,
            max_storage_buffer_binding_size: adapter.max_storage_buffer_binding_size,
            max_storage_buffers_per_shader_stage: adapter.max_storage_buffers_per_shader_stage,
            max_compute_workgroup_storage_size: adapter.max_compute_workgroup_storage_size,
            max_compute_invocations_per_workgroup: adapter.max_compute_invocations_per_workgroup,
            max_compute_workgroup_size_x: adapter.max_compute_workgroup_size_x,
            max_compute_workgroup_size_y: adapter.max_compute_workgroup_size_y,
            max_compute_workgroup_size_z: adapter.max_compute_workgroup_size_z,
            ..base
        },
    }
}
