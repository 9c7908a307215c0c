// How long things live: freeing, resetting and destroying while promises are pending, lost devices,
// several Gpus, and calls made while others run.

import { browserTests } from "./page.mjs";

const { pageTest } = browserTests();

pageTest("a tensor freed while its promises are pending", async (world) => {
  const { wgrad, gpu, close, equal, f32, rejects } = world;
  const x = gpu.tensor(f32(1, 10, 100), [3]);
  const before = gpu.memory().used;
  const pending = [x.read(), wgrad.cumsum(x), wgrad.cumsumBackward(x, { path: "host" }), x.read()];
  x.free();
  // Memory of a new tensor may be that of x, which the calls above still read.
  const others = Array.from({ length: 8 }, () => gpu.tensor(f32(NaN, NaN, NaN), [3]));
  const [first, sum, back, second] = await Promise.all(pending);
  close(first, [1, 10, 100]);
  close(second, [1, 10, 100]);
  close(await sum.read(), [1, 11, 111]);
  close(await back.read(), [111, 110, 100]);
  await rejects(x.read(), { code: "disposed", op: "read", operand: "tensor" });
  [sum, back, ...others].forEach((tensor) => tensor.free());
  equal(gpu.memory().used, before - 256, "used");
});

pageTest("results freed before they are computed", async ({ wgrad, gpu, equal, f32 }) => {
  const x = gpu.tensor(f32(1, 2, 3, 4), [2, 2]);
  const gamma = gpu.tensor(f32(1, 1), [2]);
  const used = gpu.memory().used;
  for (let i = 0; i < 20; i++) {
    const y = wgrad.cumsum(x);
    const z = y.then((y) => {
      const z = wgrad.rmsNorm(y, gamma);
      y.free();
      return z;
    });
    const read = z.then((z) => {
      const values = z.read();
      z.free();
      return values;
    });
    equal((await read).length, 4);
  }
  equal(gpu.memory().used, used, "used");
  [x, gamma].forEach((tensor) => tensor.free());
});

pageTest("freeing twice", async ({ wgrad, gpu, equal, throws, rejects, f32 }) => {
  const x = gpu.tensor(f32(1, 2), [2]);
  const y = gpu.tensor(f32(3, 4), [2]);
  const used = gpu.memory().used;
  x.free();
  x.free();
  x[Symbol.dispose]();
  // Had the second free given the memory back again, two tensors would now share it.
  const [a, b] = [gpu.tensor(f32(5), [1]), gpu.tensor(f32(6), [1])];
  equal([...(await a.read()), ...(await b.read()), ...(await y.read())], [5, 6, 3, 4]);
  equal(gpu.memory().used, used + 256, "used");
  equal([x.disposed, y.disposed], [true, false]);
  // What a freed handle still tells, and what it does not.
  equal([x.shape, x.dtype, x.length], [[2], "f32", 2]);
  const want = { code: "disposed", operand: "tensor", message: "was freed" };
  throws(() => x.byteOffset, { ...want, op: "byteOffset" });
  throws(() => x.buffer, { ...want, op: "buffer" });
  throws(() => x.write(f32(1, 2)), { ...want, op: "write" });
  await rejects(x.read(), { ...want, op: "read" });
  await rejects(wgrad.cumsum(x), { code: "disposed", op: "cumsum", operand: "x" });
  // Not before: what is forgotten returns its memory at any time.
  [a, b, y].forEach((tensor) => tensor.free());
});

pageTest("using", async ({ wgrad, gpu, equal, f32 }) => {
  // As text, since not every version of node that runs these tests knows the syntax.
  const body = `{
    using arena = gpu.arena(4096);
    using x = arena.upload(new Float32Array([1, 10, 100]), [3]);
    using y = await wgrad.cumsum(x);
    kept.push(arena, x, y, y.read());
  }`;
  const AsyncFunction = async function () {}.constructor;
  const kept = [];
  await new AsyncFunction("gpu", "wgrad", "kept", body)(gpu, wgrad, kept);
  const [arena, x, y, values] = kept;
  equal(await values, f32(1, 11, 111));
  equal([x.disposed, y.disposed, arena.memory().allocated], [true, true, 0]);
  equal(gpu.memory().used, 0);
  {
    const other = await wgrad.Gpu.create();
    other[Symbol.dispose]();
    equal((await other.lost).reason, "destroyed");
  }
});

pageTest("arena.reset", async ({ wgrad, gpu, equal, close, rejects, throws, f32 }) => {
  const arena = gpu.arena(4096);
  const x = arena.upload(f32(1, 10, 100), [3]);
  const view = arena.at(0, [3]);
  const y = await wgrad.cumsum(x);
  const pending = [x.read(), y.read(), view.read()];
  const host = wgrad.cumsum(x, { path: "host" });
  arena.reset();
  const [a, b, c] = await Promise.all(pending);
  close([...a, ...b, ...c], [1, 10, 100, 1, 11, 111, 1, 10, 100]);
  // Where its result was to go is gone.
  await rejects(host, { code: "disposed", op: "cumsum", operand: "out", message: "reset" });
  for (const tensor of [x, y, view]) {
    equal(tensor.disposed, true);
    await rejects(tensor.read(), { code: "disposed", op: "read" });
    throws(() => tensor.write(f32(1, 2, 3)), { code: "disposed", op: "write" });
    await rejects(wgrad.cumsum(tensor), { code: "disposed", operand: "x" });
  }
  equal(arena.memory(), { allocated: 4096, used: 0, peak: 768 });
  const again = arena.upload(f32(7), [1]);
  equal(again.byteOffset, 0);
  // Handles from before the reset no longer own memory, so freeing them frees nothing.
  [x, y, view].forEach((tensor) => tensor.free());
  equal(arena.memory().used, 256);
  close(await again.read(), [7]);
  arena.reset();
  arena.reset();
});

pageTest("arena.destroy", async ({ wgrad, gpu, equal, close, rejects, throws, probe, f32 }) => {
  const source = gpu.tensor(f32(1, 10, 100), [3]);
  const [buffers, allocated] = [probe.buffers, gpu.memory().allocated];
  const arena = gpu.arena(4096);
  const x = arena.upload(f32(1, 10, 100), [3]);
  const elsewhere = gpu.tensor(f32(0, 0, 0), [3]);
  const pending = [x.read(), wgrad.cumsum(x, { out: elsewhere }), wgrad.cumsum(x)];
  arena.destroy();
  arena.destroy();
  arena.free();
  close(await pending[0], [1, 10, 100], "a read from before");
  close(await (await pending[1]).read(), [1, 11, 111], "an op from before");
  equal((await pending[2]).disposed, true, "a result that lay there");
  equal(arena.memory(), { allocated: 0, used: 0, peak: arena.memory().peak });
  equal(gpu.memory().allocated, allocated);
  // One more: the staging buffer of the reads, which is kept.
  equal(probe.buffers, buffers + 1, "buffers");
  const want = { code: "disposed", message: "arena was destroyed" };
  throws(() => arena.alloc([1]), { ...want, op: "alloc" });
  throws(() => arena.upload(f32(1), [1]), { ...want, op: "upload" });
  throws(() => arena.at(0, [1]), { ...want, op: "at" });
  throws(() => arena.reset(), { ...want, op: "reset" });
  const rms = { x: 0, gamma: 256, dy: 512, dx: 768, rows: 1, h: 1 };
  await rejects(arena.runRmsNormBackwardInput(rms), { ...want, op: "runRmsNormBackwardInput" });
  await rejects(x.read(), { code: "disposed", op: "read" });
  await rejects(wgrad.cumsum(x), { code: "disposed", op: "cumsum", operand: "x" });
  const out = { code: "disposed", op: "cumsum", operand: "out" };
  await rejects(wgrad.cumsum(source, { out: x }), out);
  close(await source.read(), [1, 10, 100]);
});

/** Every call on a Gpu that is gone must fail with one of these codes, and the rest do nothing. */
async function gone({ wgrad, f32, mismatch, equal }, { gpu, arena, x }, codes) {
  const operands = { x: 0, gamma: 256, dy: 512, dx: 768, rows: 1, h: 1 };
  const calls = {
    arena: () => gpu.arena(4096),
    tensor: () => gpu.tensor(f32(1), [1]),
    sync: () => gpu.sync(),
    selfTest: () => gpu.selfTest(),
    alloc: () => arena.alloc([1]),
    upload: () => arena.upload(f32(1), [1]),
    at: () => arena.at(0, [1]),
    reset: () => arena.reset(),
    runRmsNormBackwardInput: () => arena.runRmsNormBackwardInput(operands),
    read: () => x.read(),
    write: () => x.write(f32(1, 2, 3)),
    cumsum: () => wgrad.cumsum(x),
    gather: () => wgrad.gather(x, x),
    rope: () => wgrad.rope(x, x, x, { headDim: 2 }),
  };
  const faults = [];
  for (const [op, call] of Object.entries(calls)) {
    let error;
    try {
      await call();
    } catch (e) {
      error = e;
    }
    const wrong = codes.map((code) => mismatch(error, { code, op }));
    if (wrong.every(Boolean)) faults.push(`${op}: ${wrong[0]}`);
  }
  equal(faults, []);
  equal(typeof gpu.memory().used, "number");
  [() => gpu.destroy(), () => arena.destroy(), () => x.free()].forEach((call) => call());
}

/** Loses the device while everything that waits is pending; all must reject within a second. */
async function lose(world, kill, codes, gone) {
  const { wgrad, gpu, equal, close, within, mismatch, ok, f32 } = world;
  const arena = gpu.arena(1 << 20);
  const x = arena.upload(f32(1, 1, 1), [3]);
  const y = await wgrad.cumsum(x);
  await y.read();
  const start = performance.now();
  const outcome = (promise, name) =>
    within(1000, promise, name).then(
      (value) => ({ value }),
      (error) => ({ error }),
    );
  const pending = {
    read: outcome(y.read(), "read"),
    other: outcome(x.read(), "read"),
    sync: outcome(gpu.sync(), "sync"),
    host: outcome(wgrad.cumsum(x, { path: "host" }), "host path"),
    selfTest: outcome(gpu.selfTest(), "selfTest"),
    op: outcome(wgrad.cumsum(x), "cumsum"),
  };
  const told = within(1000, gpu.lost, "gpu.lost");
  if (kill === "gpu.destroy") gpu.destroy();
  else gpu.device.destroy();
  for (const [name, promise] of Object.entries(pending)) {
    const { value, error } = await promise;
    // An op is settled once queued, and selfTest tells of each op it ran.
    if (value && name === "op") continue;
    if (value && name === "selfTest") equal(value.passed, false, name);
    else {
      const wrong = ["device-lost", "disposed"].map((code) => mismatch(error, { code }));
      ok(!wrong.every(Boolean), `${name}: ${wrong[0]}`);
    }
  }
  const { reason, message } = await told;
  equal([reason, typeof message], ["destroyed", "string"]);
  equal((await within(1000, gpu.lost, "gpu.lost, asked late")).reason, "destroyed");
  const took = performance.now() - start;
  ok(took < 1000, `all that was pending took ${took} ms to settle`);
  await gone(world, { gpu, arena, x }, codes);

  const fresh = await wgrad.Gpu.create();
  const z = await wgrad.cumsum(fresh.tensor(f32(1, 10, 100), [3]));
  close(await z.read(), [1, 11, 111]);
}

pageTest("gpu.destroy", lose, "gpu.destroy", ["disposed"], gone);
pageTest("device.destroy from outside", lose, "device", ["device-lost", "disposed"], gone);

pageTest("a device lost between calls", async ({ wgrad, gpu, rejects, within, f32 }) => {
  const x = gpu.tensor(f32(1, 10, 100), [3]);
  gpu.device.destroy();
  // Nobody has been told yet: the calls are made as if all was well.
  const y = wgrad.cumsum(x);
  x.write(f32(2, 20, 200));
  const read = x.read();
  await rejects(within(1000, read), { code: "device-lost", op: "read" });
  await within(
    1000,
    y.catch(() => {}),
  );
  await within(1000, gpu.lost);
  await rejects(wgrad.cumsum(x), { code: "device-lost", op: "cumsum" });
});

pageTest("two Gpus side by side", async ({ wgrad, gpu, close, rejects, equal, f32 }) => {
  const other = await wgrad.Gpu.create();
  const [x, y] = [gpu, other].map((gpu) => gpu.tensor(f32(1, 10, 100), [3]));
  const results = await Promise.all([wgrad.cumsum(x), wgrad.cumsumBackward(y)]);
  const values = await Promise.all([...results, x, y].map((tensor) => tensor.read()));
  close(values.map((v) => [...v]).flat(), [1, 11, 111, 111, 110, 100, 1, 10, 100, 1, 10, 100]);
  const gamma = other.tensor(f32(1, 1, 1), [3]);
  const want = { code: "argument", operand: "gamma", message: "belongs to another Gpu" };
  await rejects(wgrad.rmsNorm(x, gamma), want);
  gpu.destroy();
  equal((await gpu.lost).reason, "destroyed");
  close(await (await wgrad.cumsum(y)).read(), [1, 11, 111]);
  equal((await other.selfTest()).passed, true);
});

pageTest("calls while others run", async ({ wgrad, gpu, close, equal, f32 }) => {
  const [a, b] = [gpu.selfTest(), gpu.selfTest()];
  gpu.memory();
  const x = gpu.tensor(f32(1, 10, 100), [3]);
  const chain = wgrad.cumsum(x).then((y) => y.read());
  const host = [wgrad.cumsum(x, { path: "host" }), wgrad.cumsumBackward(x, { path: "host" })];
  const more = [gpu.sync(), gpu.sync(), x.read(), x.read()];
  gpu.arena(4096).destroy();
  equal([(await a).passed, (await b).passed], [true, true]);
  close(await chain, [1, 11, 111]);
  close(await (await host[0]).read(), [1, 11, 111]);
  close(await (await host[1]).read(), [111, 110, 100]);
  close((await Promise.all(more))[2], [1, 10, 100]);
  equal((await gpu.selfTest()).passed, true);
});

pageTest("a result outlives the module's memory", async ({ gpu, memory, equal, f32, ok }) => {
  const held = await gpu.tensor(f32(1, 10, 100), [3]).read();
  const [size, buffer] = [memory.buffer.byteLength, memory.buffer];
  const data = new Float32Array(16 << 20);
  data[0] = 7;
  const large = gpu.tensor(data, [data.length]);
  // The host path holds the operand in wasm memory, which must grow for it.
  memory.grow(1024);
  ok(buffer.byteLength === 0 && memory.buffer.byteLength > size, "wasm memory did not grow");
  equal(held, f32(1, 10, 100));
  equal((await large.read())[0], 7);
  equal(held.buffer.byteLength, 12, "bytes kept");
});
