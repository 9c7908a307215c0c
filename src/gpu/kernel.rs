//! Kernels as the build script describes them, and the cache of what the
//! browser compiled from them.

use super::{Gpu, Span};
use crate::error::{Code, Error};
use std::collections::HashMap;
use std::rc::Rc;

/// One entry point of one WGSL file.
pub struct Kernel {
    /// `file.entry`, used as the GPU label.
    pub name: &'static str,
    /// The WGSL function.
    pub entry: &'static str,
    /// The file's text.
    pub source: &'static str,
    /// Binding numbers of the operands; `Params` is always binding 0.
    pub bindings: &'static [u32],
}

/// The operands of one kernel; implemented by generated structs.
pub trait Bind {
    /// The kernel that takes them.
    const KERNEL: &'static Kernel;
    /// The byte ranges in binding order.
    fn spans(self) -> Vec<Span>;
}

/// Values of a kernel's `override` constants: a pipeline is compiled for each set.
pub type Overrides<'a> = &'a [(&'static str, f64)];

/// A compiled kernel.
pub struct Pipeline {
    /// For `set_pipeline`.
    pub pipeline: wgpu::ComputePipeline,
    /// For bind groups.
    pub layout: wgpu::BindGroupLayout,
}

// A kernel is a static: its address identifies it. Overrides by name and bits.
type Key = (*const Kernel, Vec<(&'static str, u64)>);

/// Everything compiled so far on one device.
#[derive(Default)]
pub struct Pipelines {
    modules: HashMap<*const u8, wgpu::ShaderModule>,
    compiled: HashMap<Key, Rc<Pipeline>>,
}

impl Pipelines {
    /// The pipeline for `kernel` with `overrides`, compiled on first use.
    pub fn get(&mut self, gpu: &Rc<Gpu>, kernel: &'static Kernel, overrides: Overrides) -> Rc<Pipeline> {
        let key =
            (kernel as *const _, overrides.iter().map(|(name, value)| (*name, value.to_bits())).collect());
        if let Some(pipeline) = self.compiled.get(&key) {
            return pipeline.clone();
        }
        let module = self.modules.entry(kernel.source.as_ptr()).or_insert_with(|| compile(gpu, kernel));
        let pipeline = Rc::new(build(&gpu.device, module, kernel, overrides));
        self.compiled.insert(key, pipeline.clone());
        pipeline
    }
}

/// Compiles a file; a failure becomes the error that the next awaited call gets.
fn compile(gpu: &Rc<Gpu>, kernel: &'static Kernel) -> wgpu::ShaderModule {
    let module = gpu.device.create_shader_module(wgpu::ShaderModuleDescriptor {
        label: Some(kernel.name),
        source: wgpu::ShaderSource::Wgsl(kernel.source.into()),
    });
    let (info, weak) = (module.get_compilation_info(), Rc::downgrade(gpu));
    gpu.check(async move {
        let messages = info.await.messages;
        let fault = messages.iter().find(|m| m.message_type == wgpu::CompilationMessageType::Error);
        if let (Some(gpu), Some(fault)) = (weak.upgrade(), fault) {
            // This explains the validation errors that the broken module causes, so it goes first.
            gpu.fail(describe(kernel, fault), true);
        }
    });
    module
}

fn describe(kernel: &Kernel, fault: &wgpu::CompilationMessage) -> Error {
    let mut text = format!("{} does not compile: {}", kernel.name, fault.message);
    if let Some(at) = fault.location {
        let line = kernel.source.lines().nth((at.line_number as usize).saturating_sub(1)).unwrap_or("");
        text += &format!(" at line {}, column {}: `{line}`", at.line_number, at.line_position);
    }
    Error::new(Code::Shader, text)
}

fn build(
    device: &wgpu::Device,
    module: &wgpu::ShaderModule,
    kernel: &Kernel,
    overrides: Overrides,
) -> Pipeline {
    let entry = |binding, ty, has_dynamic_offset| wgpu::BindGroupLayoutEntry {
        binding,
        visibility: wgpu::ShaderStages::COMPUTE,
        ty: wgpu::BindingType::Buffer { ty, has_dynamic_offset, min_binding_size: None },
        count: None,
    };
    let storage = wgpu::BufferBindingType::Storage { read_only: false };
    let mut entries = vec![entry(0, wgpu::BufferBindingType::Uniform, true)];
    entries.extend(kernel.bindings.iter().map(|&binding| entry(binding, storage, false)));
    let layout = device.create_bind_group_layout(&wgpu::BindGroupLayoutDescriptor {
        label: Some(kernel.name),
        entries: &entries,
    });
    let pipeline_layout = device.create_pipeline_layout(&wgpu::PipelineLayoutDescriptor {
        label: Some(kernel.name),
        bind_group_layouts: &[Some(&layout)],
        immediate_size: 0,
    });
    let pipeline = device.create_compute_pipeline(&wgpu::ComputePipelineDescriptor {
        label: Some(kernel.name),
        layout: Some(&pipeline_layout),
        module,
        entry_point: Some(kernel.entry),
        compilation_options: wgpu::PipelineCompilationOptions {
            constants: overrides,
            // Kernels write their workgroup memory before they read it.
            zero_initialize_workgroup_memory: false,
        },
        cache: None,
    });
    Pipeline { pipeline, layout }
}
