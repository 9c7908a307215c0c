// Wrong operands of every op: no Tensor at all, a freed one, one of another Gpu, of another
// element type, of another shape; and the same for `out`.

import { goodCalls, notTensors } from "./world.mjs";

/** What a result needs that is wrong in one way each, with the code and message it must give. */
function badOuts(world, { operands, result }) {
  const { gpu, other, freed } = world;
  const outs = {
    freed: [freed, "disposed", "out was freed"],
    "of another Gpu": [other.tensor(new Float32Array(1), [1]), "argument", "another Gpu"],
    "of another type": [
      gpu.tensor(new Uint32Array(result.reduce((a, b) => a * b)), result),
      "dtype",
      "out must be f32, got u32",
    ],
    "of another shape": [
      gpu.tensor(new Float32Array(5), [5]),
      "shape",
      `out must have shape \\[${result.join(", ")}\\], got \\[5\\]`,
    ],
  };
  for (const [name, tensor] of Object.entries(operands)) {
    if (String(tensor.shape) === String(result) && tensor.dtype === "f32") {
      outs[`the operand ${name}`] = [tensor, "alias", `out overlaps ${name}`];
    }
  }
  return outs;
}

function operandCases(world, good) {
  const { gpu, other, freed } = world;
  const cases = [];
  const names = Object.keys(good.operands);
  for (const [i, name] of names.entries()) {
    const add = (what, value, code, message) =>
      cases.push({
        call: `${name} ${what}`,
        run: () => good.call({ [name]: value }),
        want: { code, op: good.op, operand: name, message },
      });
    for (const [what, [value, got]] of Object.entries(notTensors(world))) {
      add(what, value, "argument", `^${good.op}: ${name} must be a Tensor, got ${got}$`);
    }
    add("freed", freed, "disposed", `${name} was freed`);
    const { shape, dtype } = good.operands[name];
    const size = shape.reduce((a, b) => a * b, 1);
    if (dtype === "f32") {
      const ints = gpu.tensor(new Int32Array(size), shape);
      add("of another type", ints, "dtype", `${name} must be f32, got i32`);
    } else {
      const floats = gpu.tensor(new Float32Array(size), shape);
      add("of another type", floats, "dtype", `${name} must be u32 or i32, got f32`);
    }
    // The first operand says which Gpu it is; with it from elsewhere, the second is at fault.
    if (i > 0) {
      const elsewhere =
        dtype === "f32"
          ? other.tensor(new Float32Array(size), shape)
          : other.tensor(new Uint32Array(size), shape);
      add("of another Gpu", elsewhere, "argument", `${name} belongs to another Gpu`);
    }
  }
  return cases;
}

function outCases(world, good) {
  const cases = [];
  const add = (what, value, code, message) =>
    cases.push({
      call: `out ${what}`,
      run: () => good.call({}, { out: value }),
      want: { code, op: good.op, operand: "out", message },
    });
  for (const [what, [value, got]] of Object.entries(notTensors(world))) {
    if (value !== undefined) add(what, value, "argument", `out must be a Tensor, got ${got}$`);
  }
  for (const [what, [value, code, message]] of Object.entries(badOuts(world, good))) {
    add(what, value, code, message);
  }
  return cases;
}

/** Shapes that do not fit: op, operands (an f32 shape each), options, operand at fault, message. */
const badShapes = [
  ["rmsNorm", { x: [] }, {}, "x", "must be \\[rows, h\\] with h > 0, got \\[\\]"],
  ["rmsNorm", { x: [3, 0] }, {}, "x", "with h > 0, got \\[3, 0\\]"],
  ["rmsNorm", { gamma: [3] }, {}, "gamma", "must have shape \\[4\\], got \\[3\\]"],
  ["rmsNorm", { gamma: [1, 4] }, {}, "gamma", "must have shape \\[4\\], got \\[1, 4\\]"],
  ["rmsNormBackward", { dy: [4, 2] }, {}, "dy", "must have shape \\[2, 4\\], got \\[4, 2\\]"],
  ["rmsNormBackward", { dy: [8] }, {}, "dy", "must have shape \\[2, 4\\], got \\[8\\]"],
  ["rmsNormBackwardGamma", { x: [3, 4] }, {}, "dy", "must have shape \\[3, 4\\], got \\[2, 4\\]"],
  ["rope", { x: [12] }, {}, "x", "must be \\[batch, seq, heads\\*headDim\\]"],
  ["rope", { x: [1, 2, 7] }, {}, "x", "multiple of headDim = 6"],
  ["rope", { x: [1, 2, 1, 5] }, {}, "x", "headDim\\], got \\[1, 2, 1, 5\\]"],
  ["rope", { cos: [3, 2] }, {}, "cos", "must be \\[2, 2 or more\\]"],
  ["rope", { cos: [2, 1] }, {}, "cos", "must be \\[2, 2 or more\\]"],
  ["rope", { cos: [4] }, {}, "cos", "must be \\[2, 2 or more\\]"],
  ["ropeBackward", { sin: [2, 3] }, {}, "sin", "must have shape \\[2, 2\\], got \\[2, 3\\]"],
  [
    "gather",
    { table: [] },
    {},
    "axis",
    "must be in \\[-0, 0\\) for shape \\[\\], got 0",
    "argument",
  ],
  ["gatherBackward", { dy: [888, 2] }, {}, "dy", "must have 3 rows .* got shape \\[888, 2\\]"],
  ["gatherBackward", { dy: [2, 2] }, { axis: 1 }, "dy", "must have 3 rows"],
  ["cumsum", { x: [] }, {}, "axis", "must be in \\[-0, 0\\) for shape \\[\\], got -1", "argument"],
];

function shapeCases({ gpu }, good) {
  const tensor = (shape) => gpu.tensor(new Float32Array(shape.reduce((a, b) => a * b, 1)), shape);
  return badShapes
    .filter(([op]) => op === good.op)
    .map(([op, shapes, options, operand, message, code = "shape"]) => {
      const entries = Object.entries(shapes).map(([name, shape]) => [name, tensor(shape)]);
      return {
        call: `shapes ${JSON.stringify({ ...shapes, ...options })}`,
        run: () => good.call(Object.fromEntries(entries), options),
        want: { code, op, operand, message },
      };
    });
}

export function tables(world) {
  const { gpu } = world;
  const goods = goodCalls(world);
  const matrix = gpu.tensor(new Uint32Array(4), [2, 2]);
  const extra = {
    gather: [
      {
        call: "indices of rank 2",
        run: () => goods.find(({ op }) => op === "gather").call({ indices: matrix }),
        want: { code: "shape", op: "gather", operand: "indices", message: "or a scalar" },
      },
    ],
  };
  return goods.map((good) => ({
    title: good.op,
    cases: [
      ...operandCases(world, good),
      ...(good.result ? outCases(world, good) : []),
      ...shapeCases(world, good),
      ...(extra[good.op] ?? []),
    ],
  }));
}
