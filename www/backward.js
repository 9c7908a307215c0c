// From logits back to the gradient of every weight, in the forward's order reversed. The gradient
// of z is called dz.

import { gatherBackward, rmsNormBackwardGamma, rmsNormBackwardInput, ropeBackward } from "wgrad";
import { HEAD_DIM, matmul } from "./forward.js";

export class Backward {
  /**
   * @param {import("./forward.js").Forward} forward
   */
  constructor(forward) {
    const { model, rows } = forward;
    const { arena, kernels, parameters, config } = model;
    const { width, classes, context } = config;
    const { weights, gradients } = parameters;
    const heads = { SEQ: context, HEADS: width / HEAD_DIM };
    this.forward = forward;

    this.targets = arena.alloc([rows], "u32");
    this.loss = arena.alloc([rows]);
    const dlogits = arena.alloc(forward.logits.shape);
    // One gradient each for all layers: a layer's is used up before the next needs it.
    this.dx = arena.alloc([rows, width]);
    this.dnormed = arena.alloc([rows, width]);
    this.dnorm = arena.alloc([rows, width]);
    this.dqk = arena.alloc(forward.layers[0].qk.shape);
    this.drotated = arena.alloc(forward.layers[0].qk.shape);
    const { dx, dnormed, dnorm, dqk, drotated } = this;
    const dv = arena.alloc([rows, width]);
    const dattended = arena.alloc([rows, width]);
    const dactive = arena.alloc([rows, 4 * width]);
    const dup = arena.alloc([rows, 4 * width]);
    const delta = arena.alloc([rows, heads.HEADS]);

    /** Both gradients of y = x·w, for the weight called `name`. */
    const product = (x, name, dy, dx) => {
      const [w, dw] = [weights[name], gradients[name]];
      return [
        matmul(kernels, "backward_weight", { x, dy, dw }, w.shape, rows),
        matmul(kernels, "backward_input", { dy, w, dx }, w.shape, rows),
      ];
    };
    const addTo = (a, b) => kernels.bind("add.accumulate", { a, b }, (rows * width) / 4);

    const loss = { z: forward.logits, targets: this.targets, loss: this.loss, dz: dlogits };
    const sizes = { CLASSES: classes, STRIDE: dlogits.shape[1] };
    this.head = [
      kernels.bind("cross_entropy.forward_backward", loss, rows, sizes),
      ...product(forward.normed, "head", dlogits, dnormed),
    ];
    /** After a norm: its gradient joins the one that went past it. */
    this.join = addTo(dx, dnorm);
    this.layers = forward.layers.map((layer, i) => {
      const { normed1, rotated: qk, v, attended: y, lse, normed2, up, active } = layer;
      const attend = (entry, tensors) => {
        return kernels.bind(`attention.${entry}`, tensors, rows * heads.HEADS, heads);
      };
      return {
        think: [
          ...product(active, `${i}.down`, dx, dactive),
          kernels.bind("relu_squared.backward", { x: up, dy: dactive, dx: dup }, rows * width),
          ...product(normed2, `${i}.up`, dup, dnormed),
        ],
        attend: [
          this.join,
          ...product(y, `${i}.mix`, dx, dattended),
          attend("backward_query", { qk, v, y, lse, dy: dattended, delta, dqk: drotated }),
          attend("backward_key", { qk, v, lse, dy: dattended, delta, dqk: drotated, dv }),
        ],
        project: [
          ...product(normed1, `${i}.v`, dv, dnormed),
          // dnorm is free here: the norm that writes it comes next.
          ...product(normed1, `${i}.qk`, dqk, dnorm),
          addTo(dnormed, dnorm),
        ],
      };
    });
  }

  /** Queues the gradients of a norm: `out` of its input x, and of its gain. */
  async #norm(x, name, out) {
    const { weights, gradients } = this.forward.model.parameters;
    await Promise.all([
      rmsNormBackwardInput(x, weights[name], this.dnormed, { out }),
      rmsNormBackwardGamma(x, weights[name], this.dnormed, { out: gradients[name] }),
    ]);
  }

  /** Queues the way from `targets` and the forward's logits to all gradients. */
  async run() {
    const { forward, dx, dnorm } = this;
    const { kernels, config, parameters } = forward.model;
    const { cos, sin, options } = forward.rope;
    kernels.run(this.head);
    await this.#norm(forward.x, "norm", dx);
    for (const [i, { x, middle }] of [...forward.layers.entries()].reverse()) {
      const layer = this.layers[i];
      kernels.run(layer.think);
      await this.#norm(middle, `${i}.norm2`, dnorm);
      kernels.run(layer.attend);
      await ropeBackward(this.drotated, cos, sin, { ...options, out: this.dqk });
      kernels.run(layer.project);
      await this.#norm(x, `${i}.norm1`, dnorm);
      kernels.run([this.join]);
    }
    await gatherBackward(dx, forward.tokens, {
      axisDim: config.classes,
      out: parameters.gradients.embedding,
    });
  }
}
