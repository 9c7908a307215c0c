// Every op through its JavaScript name, once, on numbers worked out in double precision (the public
// faults of cases.md: rows 1, 16, 17, 26, 33), on both paths, with every option it has. Whether ops
// are right in all sizes is the business of tests/ops.

import { browserTests } from "./page.mjs";

const { pageTest } = browserTests();

/** Row 1: a gradient that leaves gamma out of the row product passes the forward, and not this. */
const row1 = {
  x: [1, 2, -3, 4, 0.5, -1, 2, 0.25],
  gamma: [1, 0.5, -2, 3],
  dy: [1, -1, 2, 0.5, 0.25, 1, -0.5, 2],
  dx: [0.1460595, -0.6207512, -0.8033268, -0.3286321, -0.0382798, 0.9442781, -0.1531191, 5.0787067],
  dgamma: [0.4736129, -1.5980148, -3.0586073, 1.1641555],
  dbeta: [1.25, 0, 1.5, 2.5],
};

pageTest(
  "rmsNorm and its backwards",
  async ({ wgrad, gpu, close, equal, f32 }, row1) => {
    const [x, dy] = [gpu.tensor(f32(row1.x), [2, 4]), gpu.tensor(f32(row1.dy), [2, 4])];
    const [gamma, beta] = [gpu.tensor(f32(row1.gamma), [4]), gpu.tensor(f32(1, 2, 3, 4), [4])];
    const mean = [30 / 4, 5.3125 / 4];
    const y = (eps, beta) =>
      row1.x.map((v, i) => {
        const r = 1 / Math.sqrt(mean[i >> 2] + eps);
        return v * r * row1.gamma[i % 4] + (beta ? (i % 4) + 1 : 0);
      });
    for (const path of ["gpu", "host"]) {
      const read = async (promise) => [...(await (await promise).read())];
      close(await read(wgrad.rmsNorm(x, gamma, { path })), y(1e-5, false), `y, ${path}`);
      const eps = { eps: 0.5, beta, path };
      close(await read(wgrad.rmsNorm(x, gamma, eps)), y(0.5, true), `y with beta, ${path}`);

      const all = await wgrad.rmsNormBackward(x, gamma, dy, { eps: 1e-5, path });
      equal(Object.keys(all), ["dx", "dgamma", "dbeta"]);
      for (const name of ["dx", "dgamma", "dbeta"]) {
        close(await all[name].read(), row1[name], `${name}, ${path}`);
      }
      for (const wants of [["dx"], ["dbeta"], ["dbeta", "dgamma"], ["dx", "dbeta", "dx"]]) {
        const some = await wgrad.rmsNormBackward(x, gamma, dy, { wants, path });
        equal(Object.keys(some).sort(), [...new Set(wants)].sort());
        for (const name of wants) close(await some[name].read(), row1[name], `${name}, ${wants}`);
      }
      const [input, gain, bias] = ["Input", "Gamma", "Beta"].map(
        (n) => wgrad[`rmsNormBackward${n}`],
      );
      close(await read(input(x, gamma, dy, { path })), row1.dx, `dx alone, ${path}`);
      close(await read(gain(x, gamma, dy, { path })), row1.dgamma, `dgamma alone, ${path}`);
      close(await read(bias(x, gamma, dy, { path })), row1.dbeta, `dbeta alone, ${path}`);
    }
    // The default is 1e-5 and no beta.
    close(await (await wgrad.rmsNorm(x, gamma)).read(), y(1e-5, false));
  },
  row1,
);

pageTest("rope and its backward", async ({ wgrad, gpu, close, equal, f32 }) => {
  const v = gpu.tensor(f32(1, 2, 3, 4, 5, 6), [1, 1, 6]);
  const cos = gpu.tensor(f32(0.5403023, 0.99995), [1, 2]);
  const sin = gpu.tensor(f32(0.841471, 0.0099998), [1, 2]);
  const forward = [-1.9841106, 1.9599007, 2.4623779, 4.0197997, 5, 6];
  const neox = [3.0647153, 2.0398993, 0.7794359, 3.9798003, 5, 6];
  const gptj = [2.2232443, 0.2391336, 3.0398493, 3.9698005, 5, 6];
  for (const path of ["gpu", "host"]) {
    const options = { headDim: 6, nRot: 4, path };
    const y = await wgrad.rope(v, cos, sin, options);
    close(await y.read(), forward, `y, ${path}`);
    const back = await wgrad.ropeBackward(y, cos, sin, { ...options, style: "neox" });
    close(await back.read(), [1, 2, 3, 4, 5, 6], `there and back, ${path}`);
    const dx = (style) => wgrad.ropeBackward(v, cos, sin, { ...options, style });
    close(await (await dx("neox")).read(), neox, `neox, ${path}`);
    close(await (await dx("gptj")).read(), gptj, `gptj, ${path}`);
  }
  // Without nRot the whole head turns; an odd one all but its last lane.
  const [c, s] = [0, 1].map((value) => gpu.tensor(f32(value, value, value), [1, 3]));
  const whole = await wgrad.rope(v, c, s, { headDim: 6 });
  close(await whole.read(), [-4, -5, -6, 1, 2, 3], "quarter turn");
  const odd = await wgrad.rope(v, c, s, { headDim: 3 });
  close(await odd.read(), [-2, 1, 3, -5, 4, 6], "quarter turn, two heads of three");
  equal(odd.shape, [1, 1, 6]);
});

pageTest("cumsum and its backward", async ({ wgrad, gpu, close, f32 }) => {
  const dy = gpu.tensor(f32(1, 10, 100), [3]);
  const matrix = gpu.tensor(f32(1, 2, 3, 4, 5, 6), [2, 3]);
  for (const path of ["gpu", "host"]) {
    const read = async (promise) => [...(await (await promise).read())];
    const back = (options) => read(wgrad.cumsumBackward(dy, { ...options, path }));
    close(await back({}), [111, 110, 100], `inclusive, ${path}`);
    close(await back({ exclusive: true }), [110, 100, 0], `exclusive, ${path}`);
    close(await back({ reverse: true }), [1, 11, 111], `reverse, ${path}`);
    close(await back({ exclusive: true, reverse: true }), [0, 1, 11], `both, ${path}`);
    const sum = (options) => read(wgrad.cumsum(matrix, { ...options, path }));
    close(await sum({}), [1, 3, 6, 4, 9, 15], `last axis, ${path}`);
    close(await sum({ axis: 0 }), [1, 2, 3, 5, 7, 9], `axis 0, ${path}`);
    close(await sum({ axis: -2, reverse: true }), [5, 7, 9, 4, 5, 6], `axis -2, ${path}`);
    close(await sum({ axis: 1, exclusive: true }), [0, 1, 3, 0, 4, 9], `exclusive, ${path}`);
  }
});

pageTest("gather and its backward", async ({ wgrad, gpu, close, equal, f32, rejects }) => {
  const dy = gpu.tensor(f32(1, 2, 3, 4, 10, 20), [3, 2]);
  const table = gpu.tensor(f32(0, 1, 2, 3, 4, 5, 6, 7), [4, 2]);
  for (const Indices of [Uint32Array, Int32Array]) {
    const indices = gpu.tensor(new Indices([1, 3, 1]), [3]);
    for (const path of ["gpu", "host"]) {
      const y = await wgrad.gather(table, indices, { path });
      close(await y.read(), [2, 3, 6, 7, 2, 3], `y, ${path}`);
      const dtable = await wgrad.gatherBackward(dy, indices, { axisDim: 4, path });
      close(await dtable.read(), [0, 0, 11, 22, 0, 0, 3, 4], `dtable, ${path}`);
      equal(
        [y.shape, dtable.shape],
        [
          [3, 2],
          [4, 2],
        ],
      );
    }
  }
  const columns = gpu.tensor(new Uint32Array([1, 1]), [2]);
  const y = await wgrad.gather(table, columns, { axis: -1 });
  close(await y.read(), [1, 1, 3, 3, 5, 5, 7, 7]);
  const back = await wgrad.gatherBackward(y, columns, { axis: 1, axisDim: 2 });
  close(await back.read(), [0, 2, 0, 6, 0, 10, 0, 14]);
  const scalar = gpu.tensor(new Uint32Array([2]), []);
  close(await (await wgrad.gather(table, scalar)).read(), [4, 5]);

  // An index out of range: told once, the values as if it were not there.
  const wild = gpu.tensor(new Int32Array([0, 4, -1]), [3]);
  const want = { code: "index-out-of-range", operand: "indices", message: "indices\\[1\\] is out" };
  for (const [op, call, values] of [
    ["gather", (o) => wgrad.gather(table, wild, o), [0, 1, 0, 0, 0, 0]],
    ["gatherBackward", (o) => wgrad.gatherBackward(dy, wild, { axisDim: 4, ...o }), [1, 2, 0, 0]],
  ]) {
    const result = await call({});
    await rejects(result.read(), { ...want, op });
    close((await result.read()).subarray(0, values.length), values, op);
    await call({});
    await rejects(gpu.sync(), { ...want, op });
    await gpu.sync();
    const out = gpu.tensor(new Float32Array(result.length).fill(9), result.shape);
    await rejects(call({ out, path: "host" }), { ...want, op });
    close((await out.read()).subarray(0, values.length), values, `${op} on the host`);
  }
});

pageTest("out", async ({ wgrad, gpu, close, equal, f32 }) => {
  const tensor = (values, shape) => gpu.tensor(f32(values), shape);
  const [x, gamma] = [tensor([1, 2, 3, 4], [2, 2]), tensor([1, 1], [2])];
  const indices = gpu.tensor(new Uint32Array([1, 1]), [2]);
  const [cos, sin] = [tensor([0], [1, 1]), tensor([1], [1, 1])];
  const cube = tensor([1, 2, 3, 4], [1, 1, 4]);
  const calls = {
    rmsNorm: [(o) => wgrad.rmsNorm(x, gamma, o), [2, 2]],
    rmsNormBackwardInput: [(o) => wgrad.rmsNormBackwardInput(x, gamma, x, o), [2, 2]],
    rmsNormBackwardGamma: [(o) => wgrad.rmsNormBackwardGamma(x, gamma, x, o), [2]],
    rmsNormBackwardBeta: [(o) => wgrad.rmsNormBackwardBeta(x, gamma, x, o), [2]],
    rope: [(o) => wgrad.rope(cube, cos, sin, { headDim: 2, ...o }), [1, 1, 4]],
    ropeBackward: [(o) => wgrad.ropeBackward(cube, cos, sin, { headDim: 2, ...o }), [1, 1, 4]],
    cumsum: [(o) => wgrad.cumsum(x, o), [2, 2]],
    cumsumBackward: [(o) => wgrad.cumsumBackward(x, o), [2, 2]],
    gather: [(o) => wgrad.gather(x, indices, o), [2, 2]],
    gatherBackward: [(o) => wgrad.gatherBackward(x, indices, { axisDim: 2, ...o }), [2, 2]],
  };
  for (const [op, [call, shape]] of Object.entries(calls)) {
    const own = await call({});
    const want = await own.read();
    for (const path of ["gpu", "host"]) {
      const size = shape.reduce((a, b) => a * b);
      // Between guards, and full of NaN: all of it is written, and nothing beside it.
      const arena = gpu.arena(768);
      const poison = arena.upload(new Float32Array(192).fill(NaN), [192]);
      const out = arena.at(256, shape);
      const used = gpu.memory().used;
      const result = await call({ out, path });
      equal(
        [result.shape, result.byteOffset, result.buffer === out.buffer],
        [shape, 256, true],
        op,
      );
      close(await out.read(), want, `${op}, ${path}`);
      const all = await arena.at(0, [192]).read();
      equal(all.filter((v) => !Number.isNaN(v)).length, size, `values written by ${op}, ${path}`);
      equal(gpu.memory().used, used, `${op} allocates nothing that stays`);
      // Not before: what is forgotten returns its memory at any time.
      poison.free();
      arena.destroy();
    }
    own.free();
  }
});

pageTest("out of several results", async ({ wgrad, gpu, close, equal, f32 }) => {
  const [x, gamma] = [gpu.tensor(f32(1, 2, 3, 4), [2, 2]), gpu.tensor(f32(1, 1), [2])];
  const own = await wgrad.rmsNormBackward(x, gamma, x);
  for (const path of ["gpu", "host"]) {
    const out = { dbeta: gpu.tensor(f32(9, 9), [2]), dx: gpu.tensor(f32(9, 9, 9, 9), [2, 2]) };
    const all = await wgrad.rmsNormBackward(x, gamma, x, { out, path });
    equal(Object.keys(all), ["dx", "dgamma", "dbeta"]);
    for (const name of ["dx", "dgamma", "dbeta"]) {
      close(await all[name].read(), await own[name].read(), `${name}, ${path}`);
    }
    for (const name of ["dx", "dbeta"]) {
      equal(await out[name].read(), await all[name].read(), `out.${name}, ${path}`);
    }
    const none = { wants: ["dgamma"], out: { dgamma: undefined }, path };
    const one = await wgrad.rmsNormBackward(x, gamma, x, none);
    close(await one.dgamma.read(), await own.dgamma.read(), `dgamma alone, ${path}`);
  }
});

pageTest("one tensor as several operands", async ({ wgrad, gpu, close, f32 }) => {
  // In the arena that also holds what lives for one call, and in one of the caller's.
  for (const arena of [gpu, gpu.arena(4096)]) {
    const make = (values, shape) => (arena.upload ?? arena.tensor).call(arena, values, shape);
    const x = make(f32(1, 2, -3, 4), [4]);
    for (const path of ["gpu", "host"]) {
      const { dx, dgamma, dbeta } = await wgrad.rmsNormBackward(x, x, x, { path });
      const [r, values] = [1 / Math.sqrt(30 / 4 + 1e-5), [1, 2, -3, 4]];
      const mean = values.reduce((sum, v) => sum + v ** 3, 0) / 4;
      close(
        await dx.read(),
        values.map((v) => r * (v * v - v * r * r * mean)),
        `dx, ${path}`,
      );
      close(
        await dgamma.read(),
        values.map((v) => v * v * r),
        `dgamma, ${path}`,
      );
      close(await dbeta.read(), values, `dbeta, ${path}`);
      const turn = make(f32(1, 0), [1, 1, 2]);
      const y = await wgrad.rope(turn, turn, turn, { headDim: 2, path });
      close(await y.read(), [1 * 1 - 0 * 1, 0 * 1 + 1 * 1], `rope, ${path}`);
    }
  }
});

pageTest("empty tensors", async ({ wgrad, gpu, equal }) => {
  const none = (...shape) => gpu.tensor(new Float32Array(0), shape);
  const indices = gpu.tensor(new Uint32Array(0), [0]);
  const gamma = gpu.tensor(new Float32Array([1, 1]), [2]);
  const table = gpu.tensor(new Float32Array([1, 2]), [1, 2]);
  const angles = gpu.tensor(new Float32Array(3), [3, 1]);
  for (const path of ["gpu", "host"]) {
    const read = async (promise) => [...(await (await promise).read())];
    equal(await read(wgrad.cumsum(none(0), { path })), []);
    equal(await read(wgrad.cumsumBackward(none(3, 0, 2), { axis: 0, path })), []);
    equal(await read(wgrad.rmsNorm(none(0, 2), gamma, { path })), []);
    const all = await wgrad.rmsNormBackward(none(0, 2), gamma, none(0, 2), { path });
    equal([...(await all.dx.read())], []);
    equal([...(await all.dgamma.read()), ...(await all.dbeta.read())], [0, 0, 0, 0]);
    equal(await read(wgrad.gather(table, indices, { path })), []);
    equal(
      await read(wgrad.gatherBackward(none(0, 2), indices, { axisDim: 2, path })),
      [0, 0, 0, 0],
    );
    equal(await read(wgrad.rope(none(0, 3, 2), angles, angles, { headDim: 2, path })), []);
  }
});
