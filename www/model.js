// A small language model: what is trained, how, and what the rest of the page may ask of it.

import { Backward } from "./backward.js";
import { Forward, HEAD_DIM } from "./forward.js";
import { Kernels } from "./kernels.js";
import { Parameters } from "./parameters.js";

/**
 * @typedef {object} Config
 * @property {number} batch sequences in a step
 * @property {number} context tokens in a sequence
 * @property {number} width of the residual stream: a multiple of 16, which is a head
 * @property {number} layers
 * @property {number} rate the largest learning rate
 */

/** @type {Record<"large" | "small", Config>} */
export const sizes = {
  large: { batch: 16, context: 64, width: 128, layers: 3, rate: 3e-3 },
  // For adapters that compute on the processor.
  small: { batch: 4, context: 32, width: 64, layers: 2, rate: 4e-3 },
};

const WARM_UP = 20;
const DECAY = 0.02;

/** Rises for a few steps, then falls with the root of time, so that training needs no end. */
function schedule(step) {
  return Math.min(step / WARM_UP, 1 / Math.sqrt(1 + step / 1000));
}

/** cos and sin of every position's angles, [context, HEAD_DIM/2] each. */
function rotations(arena, context) {
  const shape = [context, HEAD_DIM / 2];
  const angles = Float32Array.from({ length: shape[0] * shape[1] }, (_, i) => {
    const [position, pair] = [Math.floor(i / shape[1]), i % shape[1]];
    return position * 1000 ** (-pair / shape[1]);
  });
  return {
    cos: arena.upload(angles.map(Math.cos), shape),
    sin: arena.upload(angles.map(Math.sin), shape),
  };
}

export class Model {
  /** Steps taken. */
  step = 0;
  #unread = 0;

  /**
   * @param {import("wgrad").Gpu} gpu
   * @param {Config & { classes: number }} config
   * @param {() => number} random for the initial weights
   */
  constructor(gpu, config, random) {
    this.config = config;
    this.kernels = new Kernels(gpu.device);
    this.parameters = new Parameters(gpu, config, random);
    this.arena = gpu.arena(1 << 20);
    this.tables = rotations(this.arena, config.context);
    this.forward = new Forward(this, config.batch);
    this.backward = new Backward(this.forward);
    this.reader = new Forward(this, 1);
    this.settings = this.arena.alloc([4]);
    this.clearLoss();

    const { weights: w, gradients: dw, mean: m, square: v } = this.parameters.flat;
    const operands = { w, dw, m, v, settings: this.settings };
    const decayed = { DECAYED: this.parameters.decayed };
    this.optimizer = [this.kernels.bind("adamw.update", operands, w.length, decayed)];
  }

  /**
   * Queues the loss of a batch and its gradients.
   * @param {{ tokens: Uint32Array, targets: Uint32Array }} batch
   */
  async differentiate({ tokens, targets }) {
    this.forward.tokens.write(tokens);
    this.backward.targets.write(targets);
    await this.forward.run();
    await this.backward.run();
    this.#unread += 1;
  }

  /** Queues one step of training. */
  async train(batch) {
    this.step += 1;
    await this.differentiate(batch);
    // As in the kernel.
    const corrections = [0.9, 0.98].map((beta) => 1 / (1 - beta ** this.step));
    const rate = this.config.rate * schedule(this.step);
    this.settings.write(Float32Array.of(rate, DECAY, ...corrections));
    this.kernels.run(this.optimizer);
  }

  clearLoss() {
    this.backward.loss.write(new Float32Array(this.forward.rows));
    this.#unread = 0;
  }

  /** The mean loss of the batches since the last call. Settles when the GPU has done them. */
  async takeLoss() {
    const count = this.#unread * this.forward.rows;
    const losses = this.backward.loss.read();
    this.clearLoss();
    return (await losses).reduce((sum, loss) => sum + loss, 0) / count;
  }

  /**
   * Scores of every character to come next.
   * @param {ArrayLike<number>} tokens of which the last ones count
   */
  async predict(tokens) {
    const { context, classes } = this.config;
    const recent = Array.from(tokens).slice(-context);
    const padded = new Uint32Array(context);
    padded.set(recent);
    this.reader.tokens.write(padded);
    await this.reader.run();
    const logits = await this.reader.logits.read();
    const start = (recent.length - 1) * this.reader.logits.shape[1];
    return logits.subarray(start, start + classes);
  }

  destroy() {
    this.arena.destroy();
    this.parameters.destroy();
  }
}
