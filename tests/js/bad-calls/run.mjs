// Wrong arguments of the arena's `run…` methods, whose operands are byte offsets.

import { notCounts, unreadable } from "./world.mjs";

const rms = { x: 0, gamma: 256, dy: 512, rows: 2, h: 4 };

/** A good call of each method: operands (byte offsets of 256-byte pieces), counts, the output. */
const methods = {
  runRmsNormBackwardInput: { args: { ...rms, dx: 768 }, out: "dx" },
  runRmsNormBackwardGamma: { args: { ...rms, dgamma: 768 }, out: "dgamma" },
  runRmsNormBackwardBeta: { args: { ...rms, dbeta: 768 }, out: "dbeta" },
  runRopeBackward: {
    args: {
      ...{ dy: 0, cos: 256, sin: 512, dx: 768 },
      ...{ batch: 1, seq: 2, hidden: 12, headDim: 6, nRot: 4, cosLen: 4 },
    },
    out: "dx",
  },
  runCumsumBackward: { args: { dy: 0, dx: 768, rows: 2, cols: 3 }, out: "dx" },
  runGatherBackward: {
    args: {
      ...{ dy: 0, indices: 256, dst: 768 },
      ...{ outer: 1, axisDim: 4, numIdx: 3, trailing: 2 },
    },
    out: "dst",
  },
};

const offsets = ["x", "gamma", "dy", "cos", "sin", "indices", "dx", "dgamma", "dbeta", "dst"];

function cases(arena, op, { args, out }) {
  const list = [];
  const add = (changed, operand, message, code = "argument", call = JSON.stringify(changed)) =>
    list.push({
      call,
      run: () => arena[op]({ ...args, ...changed }),
      want: { code, op, operand, message },
    });

  for (const name of Object.keys(args)) {
    for (const [what, value] of Object.entries(notCounts)) {
      const message = `${name} must be an integer from 0 to`;
      add({ [name]: value }, name, message, "argument", `${name}: ${what}`);
    }
    if (offsets.includes(name)) {
      add({ [name]: 4 }, name, `${name}: .*must be a multiple of 256, got 4`);
      add({ [name]: 255 }, name, `${name}: .*must be a multiple of 256, got 255`);
      // The arena has 64 KiB.
      add({ [name]: 65536 }, name, `${name}: .*do not fit the arena's 65536 bytes`);
      add({ [name]: 2 ** 53 }, name, `${name}: .*do not fit the arena's 65536 bytes`);
    } else {
      add({ [name]: 2 ** 32 }, name, `${name} must be an integer from 0 to 4294967295`);
    }
  }
  const inputs = offsets.filter((name) => name in args && name !== out);
  for (const name of inputs) {
    add({ [out]: args[name] }, out, `${out} overlaps ${name}`, "alias");
  }
  add({ path: "cpu" }, "path", "path must be one of gpu, host");
  add({ dtable: 0 }, "dtable", "dtable is not an option here");
  for (const [value, message] of Object.values(unreadable())) {
    const want = { code: "argument", op, operand: "options", message };
    list.push({ call: message, run: () => arena[op](value), want });
  }
  for (const value of [undefined, null, {}]) {
    const want = {
      code: "argument",
      op,
      message: "must be an integer from 0 to .*, got undefined",
    };
    list.push({ call: `${op}(${value})`, run: () => arena[op](value), want });
  }

  if (op.startsWith("runRms")) {
    add({ h: 0 }, "x", "with h > 0", "shape");
    add({ eps: -1 }, "eps", "must be a finite number of 0 or more");
    add({ eps: "1e-5" }, "eps", "must be a number");
    add({ rows: 2 ** 20 }, "x", "x: .*do not fit");
    add(
      { rows: 2 ** 32 - 1, h: 2 ** 32 - 1 },
      "shape",
      "more elements than can be counted",
      "limit",
    );
  }
  if (op === "runRopeBackward") {
    add({ nRot: 3, cosLen: 6 }, "nRot", "must be even and at most headDim = 6");
    add({ nRot: 8, cosLen: 6 }, "nRot", "must be even and at most headDim = 6");
    add({ headDim: 0, nRot: 0, cosLen: 0 }, "headDim", "must be 1 or more");
    add({ hidden: 13 }, "dy", "multiple of headDim = 6", "shape");
    add({ cosLen: 5 }, "cosLen", "must be seq or batch\\*seq rows");
  }
  if (op === "runCumsumBackward") {
    add({ exclusive: 1 }, "exclusive", "must be true or false");
  }
  return list;
}

export function tables({ gpu }) {
  const arena = gpu.arena(65536);
  // The first use makes the buffer, which a case would otherwise be blamed for.
  arena.at(0, [1]);
  return Object.entries(methods).map(([op, method]) => ({
    title: op,
    cases: cases(arena, op, method),
  }));
}
