// What the tables of bad calls are made from: one good call of every op, and values of every
// wrong kind.

/** Values that are no Tensor, with how a message describes them. */
export function notTensors({ wgrad, gpu }) {
  class Lookalike {
    shape = [2, 4];
    dtype = "f32";
    read() {}
    free() {}
    __handOver() {}
  }
  class Thrower {
    __handOver() {
      throw new RangeError("not yours");
    }
  }
  const revoked = Proxy.revocable({}, {});
  revoked.revoke();
  return {
    undefined: [undefined, "undefined"],
    null: [null, "null"],
    "a number": [7, "7"],
    NaN: [NaN, "NaN"],
    "a bigint": [7n, "bigint"],
    "a string": ["x", '"x"'],
    "a boolean": [true, "boolean"],
    "a symbol": [Symbol("x"), "symbol"],
    "a function": [() => {}, "function"],
    "an object": [{}, "Object"],
    "an object without prototype": [Object.create(null), "object"],
    "an array": [[1, 2], "Array"],
    "a typed array": [new Float32Array(8), "Float32Array"],
    "a promise": [Promise.resolve(1), "Promise"],
    "a Gpu": [gpu, "Gpu"],
    "a Tensor made by hand": [Object.create(wgrad.Tensor.prototype), "Tensor"],
    "the class": [wgrad.Tensor, "function"],
    "a class with the same names": [new Lookalike(), "Lookalike"],
    "a class that throws": [new Thrower(), "Thrower"],
    "a revoked Proxy": [revoked.proxy, "object"],
  };
}

/** Values that are no whole number of 0 or more. */
export const notCounts = {
  undefined: undefined,
  null: null,
  NaN: NaN,
  negative: -1,
  fraction: 0.5,
  Infinity: Infinity,
  "over 2**53": 2 ** 53 + 2,
  "1e300": 1e300,
  "a string": "1",
  "a bigint": 1n,
  "a boolean": true,
  "an array": [1],
  "a Number object": Object(1),
};

/** Options that cannot be read at all. */
export function unreadable() {
  const refuse = () => {
    throw new RangeError("not yours");
  };
  const revoked = Proxy.revocable({}, {});
  revoked.revoke();
  return {
    "a number": [7, "options must be an object, got 7"],
    "a string": ["gpu", 'options must be an object, got "gpu"'],
    "a function": [() => {}, "options must be an object, got function"],
    "an array": [[], "options must be an object, got Array"],
    "a symbol": [Symbol("x"), "options must be an object, got symbol"],
    "a Proxy that refuses": [
      new Proxy({}, { ownKeys: refuse, get: refuse }),
      "options cannot be read",
    ],
    "a revoked Proxy": [revoked.proxy, "options cannot be read"],
  };
}

/** A good call of every op: operands by name, options that must be given, and the result's shape. */
export function goodCalls({ wgrad, gpu, f32 }) {
  const ones = (...shape) => gpu.tensor(new Float32Array(shape.reduce((a, b) => a * b)), shape);
  const indices = () => gpu.tensor(new Uint32Array([1, 3, 1]), [3]);
  const norm = () => ({ x: ones(2, 4), gamma: ones(4), dy: ones(2, 4) });
  const table = (first) => ({ [first]: ones(1, 2, 6), cos: ones(2, 2), sin: ones(2, 2) });
  const calls = {
    rmsNorm: { operands: { x: ones(2, 4), gamma: ones(4) }, result: [2, 4] },
    rmsNormBackward: { operands: norm() },
    rmsNormBackwardInput: { operands: norm(), result: [2, 4] },
    rmsNormBackwardGamma: { operands: norm(), result: [4] },
    rmsNormBackwardBeta: { operands: norm(), result: [4] },
    rope: { operands: table("x"), options: { headDim: 6, nRot: 4 }, result: [1, 2, 6] },
    ropeBackward: { operands: table("dy"), options: { headDim: 6, nRot: 4 }, result: [1, 2, 6] },
    cumsum: { operands: { x: gpu.tensor(f32(1, 2, 3), [3]) }, result: [3] },
    cumsumBackward: { operands: { dy: ones(3) }, result: [3] },
    gather: { operands: { table: ones(4, 2), indices: indices() }, result: [3, 2] },
    gatherBackward: {
      operands: { dy: ones(3, 2), indices: indices() },
      options: { axisDim: 4 },
      result: [4, 2],
    },
  };
  return Object.entries(calls).map(([op, { operands, options = {}, result }]) => {
    /** The call with some operands and options replaced. */
    const call = (changed = {}, more = {}) => {
      const args = Object.values({ ...operands, ...changed });
      const all = typeof more === "object" && more ? { ...options, ...more } : more;
      return wgrad[op](...args, all);
    };
    /** The call with just this as its options. */
    const callWith = (value) => wgrad[op](...Object.values(operands), value);
    return { op, operands, options, result, call, callWith };
  });
}
