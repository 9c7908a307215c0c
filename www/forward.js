// From tokens to logits: embedding, then for each layer attention and a small network, both on the
// normalized residual stream and added to it, then a norm and the head.

import { gather, rmsNorm, rope } from "wgrad";
import { padded } from "./parameters.js";

/** Lanes of an attention head, as the kernel has them. */
export const HEAD_DIM = 16;

/** How x·w is bound, for the forward and both gradients. */
export function matmul(kernels, entry, tensors, [inner, columns], rows) {
  const constants = { INNER: inner / 4, COLS: columns / 4 };
  // A thread computes four rows (of the weight's gradient: rows of the weight) by four columns.
  const [height, width] = {
    forward: [rows, columns],
    backward_input: [rows, inner],
    backward_weight: [inner, columns],
  }[entry];
  return kernels.bind(`matmul.${entry}`, tensors, (height * width) / 16, constants);
}

export class Forward {
  /**
   * Allocates all that lies between tokens and logits, once.
   * @param {import("./model.js").Model} model
   * @param {number} batch sequences at a time
   */
  constructor(model, batch) {
    const { config, arena, kernels, tables } = model;
    const { width, context, classes, layers } = config;
    const rows = batch * context;
    this.model = model;
    this.rows = rows;
    this.tokens = arena.alloc([rows], "u32");
    this.embedded = arena.alloc([rows, width]);
    this.layers = [];

    const weights = model.parameters.weights;
    const sum = arena.alloc([rows, width]);
    const product = (x, w, y) => matmul(kernels, "forward", { x, w, y }, w.shape, rows);
    const add = (a, b, y) => kernels.bind("add.sum", { a, b, y }, (rows * width) / 4);

    let x = this.embedded;
    for (let i = 0; i < layers; i++) {
      const names = ["norm1", "qk", "v", "mix", "norm2", "up", "down"];
      const w = Object.fromEntries(names.map((name) => [name, weights[`${i}.${name}`]]));
      const layer = {
        x,
        normed1: arena.alloc([rows, width]),
        qk: arena.alloc([batch, context, 2 * width]),
        rotated: arena.alloc([batch, context, 2 * width]),
        v: arena.alloc([rows, width]),
        attended: arena.alloc([rows, width]),
        lse: arena.alloc([rows, width / HEAD_DIM]),
        middle: arena.alloc([rows, width]),
        normed2: arena.alloc([rows, width]),
        up: arena.alloc([rows, 4 * width]),
        active: arena.alloc([rows, 4 * width]),
        y: arena.alloc([rows, width]),
      };
      const { normed1, qk, rotated, v, attended, lse, middle, normed2, up, active, y } = layer;
      const heads = { SEQ: context, HEADS: width / HEAD_DIM };
      const attention = { qk: rotated, v, y: attended, lse };
      layer.weights = w;
      layer.project = [product(normed1, w.qk, qk), product(normed1, w.v, v)];
      layer.attend = [
        kernels.bind("attention.forward", attention, rows * heads.HEADS, heads),
        product(attended, w.mix, sum),
        add(x, sum, middle),
      ];
      layer.think = [
        product(normed2, w.up, up),
        kernels.bind("relu_squared.forward", { x: up, y: active }, rows * width),
        product(active, w.down, sum),
        add(middle, sum, y),
      ];
      this.layers.push(layer);
      x = y;
    }
    this.x = x;
    this.normed = arena.alloc([rows, width]);
    this.logits = arena.alloc([rows, padded(classes)]);
    this.head = [product(this.normed, weights.head, this.logits)];
    this.rope = { cos: tables.cos, sin: tables.sin, options: { headDim: HEAD_DIM } };
  }

  /** Queues the way from `tokens` to `logits`. */
  async run() {
    const { kernels, parameters } = this.model;
    const { cos, sin, options } = this.rope;
    await gather(parameters.weights.embedding, this.tokens, { out: this.embedded });
    for (const layer of this.layers) {
      await rmsNorm(layer.x, layer.weights.norm1, { out: layer.normed1 });
      kernels.run(layer.project);
      await rope(layer.qk, cos, sin, { ...options, out: layer.rotated });
      kernels.run(layer.attend);
      await rmsNorm(layer.middle, layer.weights.norm2, { out: layer.normed2 });
      kernels.run(layer.think);
    }
    await rmsNorm(this.x, parameters.weights.norm, { out: this.normed });
    kernels.run(this.head);
  }
}
