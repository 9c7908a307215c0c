// Wrong options of every op and of Gpu.create.

import { goodCalls, notCounts, notTensors, unreadable } from "./world.mjs";

const getter = {
  enumerable: true,
  get() {
    throw new RangeError("not yours");
  },
};

/** An object with an option whose getter throws. */
const throwing = (name, others = {}) => Object.defineProperty({ ...others }, name, getter);

// Left out: undefined is the same as not given, and an axis may be negative.
const { undefined: _, negative: __, ...integers } = notCounts;

/** Values that the options of an op must refuse: option, what, value, message, code. */
function refused(op) {
  const list = [];
  const add = (name, values, message, code = "argument") => {
    for (const [what, value] of Object.entries(values))
      list.push([name, what, value, message, code]);
  };
  if (op.startsWith("rmsNorm")) {
    add("eps", { null: null, text: "1e-5", array: [1] }, "eps must be a number, got");
    add("eps", { negative: -1e-9, NaN: NaN, Infinity: Infinity }, "eps must be a finite number");
    add("eps", { "too large for f32": 1e39 }, "eps must be a finite number");
  }
  if (op === "rmsNormBackward") {
    const message = 'wants must be an array of some of "dx", "dgamma", "dbeta"';
    const sparse = new Array(2);
    const throws = Object.defineProperty(["dx"], 1, getter);
    add("wants", { null: null, text: "dx", object: {}, empty: [], unknown: ["dw"] }, message);
    add("wants", { half: ["dx", "beta"], number: [0], sparse }, message);
    add("wants", { throws }, "wants cannot be read");
  }
  if (op.startsWith("rope")) {
    add("headDim", integers, "headDim must be an integer");
    add("headDim", { negative: -6, "2**32": 2 ** 32 }, "headDim must be an integer");
    add("headDim", { undefined: undefined }, "headDim must be given");
    add("headDim", { zero: 0 }, "headDim must be 1 or more, got 0");
    add("nRot", { ...integers, negative: -2 }, "nRot must be an integer");
    add("nRot", { odd: 3, large: 8 }, "nRot must be even and at most headDim = 6, got");
    add("style", { null: null, number: 1, unknown: "NEOX" }, "style must be one of neox, gptj");
  }
  if (op.startsWith("cumsum") || op.startsWith("gather")) {
    add("axis", integers, "axis must be an integer");
    add("axis", { "2**31": 2 ** 31 }, "axis must be an integer");
    const rank = op.startsWith("cumsum") ? 1 : 2;
    const range = `axis must be in \\[-${rank}, ${rank}\\) for shape`;
    add("axis", { over: rank, under: -rank - 1 }, range);
  }
  if (op.startsWith("cumsum")) {
    const values = { null: null, one: 1, text: "true", object: {} };
    add("exclusive", values, "exclusive must be true or false, got");
    add("reverse", values, "reverse must be true or false, got");
  }
  if (op === "gatherBackward") {
    add("axisDim", { ...notCounts, "2**32": 2 ** 32 }, "axisDim must be an integer from 0");
  }
  add(
    "path",
    { null: null, empty: "", unknown: "cpu", object: {} },
    "path must be one of gpu, host",
  );
  return list;
}

/** The `out` of an op with several results, an object of tensors. */
function severalOuts({ gpu, other, freed }, { op, operands, call }) {
  const cases = [];
  const add = (out, code, operand, message, more = {}) =>
    cases.push({
      call: `{ out: ${operand} }, /${message}/`,
      run: () => call({}, { out, ...more }),
      want: { code, op, operand, message },
    });
  const [x, gamma] = [operands.x, operands.gamma];
  const tensor = (shape, Data = Float32Array) =>
    gpu.tensor(new Data(shape.reduce((a, b) => a * b)), shape);
  for (const out of [7, "dx", [x]]) add(out, "argument", "out", "out must be an object, got");
  add(x, "argument", "out", "out must be an object, got Tensor");
  add({ dw: x }, "argument", "dw", "dw is not an option here; the options are dx, dgamma, dbeta");
  add({ dx: x }, "argument", "dx", "options are dgamma$", { wants: ["dgamma"] });
  add(throwing("dx"), "argument", "dx", "dx cannot be read");
  for (const out of [null, 7, {}, [x]]) add({ dx: out }, "argument", "dx", "must be a Tensor, got");
  add({ dgamma: freed }, "disposed", "dgamma", "dgamma was freed");
  const elsewhere = other.tensor(new Float32Array(4), [4]);
  add({ dbeta: elsewhere }, "argument", "dbeta", "dbeta belongs to another Gpu");
  add({ dx: tensor([8]) }, "shape", "dx", "dx must have shape \\[2, 4\\], got \\[8\\]");
  add({ dgamma: tensor([4], Int32Array) }, "dtype", "dgamma", "dgamma must be f32, got i32");
  add({ dx: x }, "alias", "dx", "dx overlaps x");
  add({ dx: tensor([2, 4]), dbeta: gamma }, "alias", "dbeta", "dbeta overlaps gamma");
  const shared = tensor([4]);
  add({ dgamma: shared, dbeta: shared }, "alias", "dbeta", "dbeta overlaps dgamma");
  return cases;
}

function optionCases(world, good) {
  const { op, call, callWith, options, operands } = good;
  const cases = refused(op).map(([name, what, value, message, code]) => ({
    call: `{ ${name}: ${what} }`,
    run: () => call({}, { [name]: value }),
    want: { code, op, operand: name, message },
  }));
  for (const [what, [value, message]] of Object.entries(unreadable())) {
    const want = { code: "argument", op, operand: "options", message };
    cases.push({ call: `options: ${what}`, run: () => callWith(value), want });
  }
  // A getter that throws is no option left out.
  for (const name of [...Object.keys(options), "path"]) {
    const want = { code: "argument", op, operand: name, message: `${name} cannot be read` };
    const all = throwing(name, options);
    cases.push({ call: `{ get ${name}() { throw } }`, run: () => callWith(all), want });
  }
  for (const name of ["Eps", "dim", "keepDims", "constructor", "0"]) {
    const want = { code: "argument", op, operand: name, message: "is not an option here; the" };
    cases.push({ call: `unknown ${name}`, run: () => call({}, { [name]: 1 }), want });
  }
  // A forgotten brace: an operand where the options belong.
  const operand = Object.values(operands)[0];
  const want = {
    code: "argument",
    op,
    operand: "options",
    message: "must be an object, got Tensor",
  };
  cases.push({ call: "a Tensor as options", run: () => callWith(operand), want });
  if (op === "rmsNorm") {
    for (const [what, [value, got]] of Object.entries(notTensors(world))) {
      if (value === undefined) continue;
      const want = {
        code: "argument",
        op,
        operand: "beta",
        message: `must be a Tensor, got ${got}`,
      };
      cases.push({ call: `{ beta: ${what} }`, run: () => call({}, { beta: value }), want });
    }
    const short = world.gpu.tensor(new Float32Array(3), [3]);
    const want = { code: "shape", op, operand: "beta", message: "must have shape \\[4\\], got" };
    cases.push({ call: "a short beta", run: () => call({}, { beta: short }), want });
  }
  if (op === "rmsNormBackward") cases.push(...severalOuts(world, good));
  return cases;
}

function createCases({ wgrad }) {
  const op = "Gpu.create";
  const bad = [
    [{ powerPreference: "fast" }, "powerPreference", "must be one of"],
    [{ powerPreference: 1 }, "powerPreference", "must be one of"],
    [{ limits: "all" }, "limits", "must be one of adapter, default"],
    [{ limits: null }, "limits", "must be one of adapter, default, got null"],
    [{ device: {} }, "device", "is not an option here; the options are powerPreference, limits"],
    [throwing("limits"), "limits", "limits cannot be read"],
    ...Object.values(unreadable()).map(([value, message]) => [value, "options", message]),
  ];
  return bad.map(([options, operand, message], i) => ({
    call: `Gpu.create, case ${i}`,
    run: () => wgrad.Gpu.create(options),
    want: { code: "argument", op, operand, message },
  }));
}

export function tables(world) {
  return [
    ...goodCalls(world).map((good) => ({ title: good.op, cases: optionCases(world, good) })),
    { title: "Gpu.create", cases: createCases(world) },
  ];
}
