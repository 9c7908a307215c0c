// What wgrad does not have yet, as plain WebGPU pipelines that share its device and its tensors.

import add from "./kernels/add.wgsl?raw";
import adamw from "./kernels/adamw.wgsl?raw";
import attention from "./kernels/attention.wgsl?raw";
import crossEntropy from "./kernels/cross_entropy.wgsl?raw";
import matmul from "./kernels/matmul.wgsl?raw";
import reluSquared from "./kernels/relu_squared.wgsl?raw";

const WORKGROUP = 64;

const sources = {
  add,
  adamw,
  attention,
  cross_entropy: crossEntropy,
  matmul,
  relu_squared: reluSquared,
};

/**
 * A kernel with its operands, made once and run in every step.
 * @typedef {{ pipeline: GPUComputePipeline, group: GPUBindGroup, workgroups: number }} Dispatch
 */

export class Kernels {
  #device;
  #files = new Map();
  #pipelines = new Map();

  /** @param {GPUDevice} device wgrad's: `gpu.device` */
  constructor(device) {
    this.#device = device;
  }

  #file(name) {
    if (!this.#files.has(name)) {
      const code = sources[name];
      // WebGPU binds by number; the call sites are easier to read, and to get right, with names.
      const bindings = [...code.matchAll(/@binding\((\d+)\) var<[^>]+> (\w+)/g)];
      this.#files.set(name, {
        module: this.#device.createShaderModule({ label: name, code }),
        bindings: Object.fromEntries(bindings.map(([, number, name]) => [name, Number(number)])),
      });
    }
    return this.#files.get(name);
  }

  #pipeline(file, entryPoint, constants) {
    const key = JSON.stringify([file, entryPoint, constants]);
    if (!this.#pipelines.has(key)) {
      const pipeline = this.#device.createComputePipeline({
        label: `${file}.${entryPoint}`,
        layout: "auto",
        compute: { module: this.#file(file).module, entryPoint, constants },
      });
      this.#pipelines.set(key, pipeline);
    }
    return this.#pipelines.get(key);
  }

  /**
   * @param {string} name of the WGSL file and entry point: "matmul.forward"
   * @param {Record<string, import("wgrad").Tensor>} tensors by their names in the WGSL
   * @param {number} threads at least so many
   * @param {Record<string, number>} [constants] the WGSL's `override`s
   * @returns {Dispatch}
   */
  bind(name, tensors, threads, constants = {}) {
    const [file, entryPoint] = name.split(".");
    const pipeline = this.#pipeline(file, entryPoint, constants);
    const { bindings } = this.#file(file);
    const entries = Object.entries(tensors).map(([name, { buffer, byteOffset, length }]) => ({
      binding: bindings[name],
      // Just the tensor's own range: its buffer is shared, and a kernel knows its sizes from this.
      resource: { buffer, offset: byteOffset, size: 4 * length },
    }));
    const layout = pipeline.getBindGroupLayout(0);
    const group = this.#device.createBindGroup({ label: name, layout, entries });
    return { pipeline, group, workgroups: Math.ceil(threads / WORKGROUP) };
  }

  /**
   * Queues dispatches, in order. They see what wgrad's promises that have settled queued before.
   * @param {Dispatch[]} dispatches
   */
  run(dispatches) {
    const encoder = this.#device.createCommandEncoder();
    const pass = encoder.beginComputePass();
    for (const { pipeline, group, workgroups } of dispatches) {
      pass.setPipeline(pipeline);
      pass.setBindGroup(0, group);
      pass.dispatchWorkgroups(workgroups);
    }
    pass.end();
    this.#device.queue.submit([encoder.finish()]);
  }
}
