// The model's weights, and all that belongs to each of them, laid out in one arena: training then
// updates them with a single dispatch, however many they are.

import { randomNormal } from "./random.js";

/** Floats that tensors' starts are multiples of: 256 bytes. */
const ALIGN = 64;

/**
 * Names, shapes and standard deviations of the initial values; gains start at 1.
 * @param {import("./model.js").Config & { classes: number }} config
 * @returns {{ name: string, shape: number[], deviation?: number }[]}
 */
function list({ classes, width, layers }) {
  const matrix = (name, rows, columns, gain = 1) => {
    return { name, shape: [rows, columns], deviation: gain / Math.sqrt(rows) };
  };
  // What adds to the residual stream starts small, and the head too: the first guess is uniform.
  const quiet = 0.5 / Math.sqrt(layers);
  const matrices = [{ name: "embedding", shape: [classes, width], deviation: 0.5 }];
  const gains = [];
  for (let i = 0; i < layers; i++) {
    matrices.push(
      matrix(`${i}.qk`, width, 2 * width),
      matrix(`${i}.v`, width, width),
      matrix(`${i}.mix`, width, width, quiet),
      matrix(`${i}.up`, width, 4 * width),
      matrix(`${i}.down`, 4 * width, width, quiet),
    );
    gains.push({ name: `${i}.norm1`, shape: [width] }, { name: `${i}.norm2`, shape: [width] });
  }
  matrices.push(matrix("head", width, padded(classes), 0.1));
  // Gains last, since only the matrices decay.
  return [...matrices, ...gains, { name: "norm", shape: [width] }];
}

/** Columns of the head: the kernels work on four at a time. */
export const padded = (classes) => 4 * Math.ceil(classes / 4);

export class Parameters {
  /** How many weights there are, without padding. */
  count = 0;
  /** @type {Record<string, import("wgrad").Tensor>} */
  weights = {};
  /** @type {Record<string, import("wgrad").Tensor>} their gradients */
  gradients = {};

  /**
   * @param {import("wgrad").Gpu} gpu
   * @param {import("./model.js").Config & { classes: number }} config
   * @param {() => number} random
   */
  constructor(gpu, config, random) {
    const entries = list(config);
    let total = 0;
    for (const entry of entries) {
      entry.start = total;
      entry.length = entry.shape.reduce((product, dim) => product * dim);
      total += ALIGN * Math.ceil(entry.length / ALIGN);
      this.count += entry.length;
    }
    /** Of the floats below, the first so many are matrices. */
    this.decayed = entries.find((entry) => !entry.deviation).start;

    const bytes = 4 * total;
    this.arena = gpu.arena(4 * bytes, { grow: false });
    const [weights, gradients, mean, square] = [0, 1, 2, 3].map((i) => {
      return this.arena.at(i * bytes, [total]);
    });
    /** Everything at once, as the optimizer sees it; mean and square are its own. */
    this.flat = { weights, gradients, mean, square };

    const initial = new Float32Array(total);
    for (const { name, shape, deviation, start, length } of entries) {
      for (let i = 0; i < length; i++) {
        initial[start + i] = deviation ? deviation * randomNormal(random) : 1;
      }
      this.weights[name] = this.arena.at(4 * start, shape);
      this.gradients[name] = this.arena.at(bytes + 4 * start, shape);
    }
    weights.write(initial);
    for (const tensor of [gradients, mean, square]) tensor.write(new Float32Array(total));
  }

  destroy() {
    this.arena.destroy();
  }
}
