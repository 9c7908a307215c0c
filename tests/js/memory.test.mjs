// Nothing creeps: buffers, GPU bytes, wasm memory and JavaScript's heap stay flat over many steps.

import assert from "node:assert/strict";
import { test } from "node:test";
import { browserTests } from "./page.mjs";

const { pageTest, withPage } = browserTests();

pageTest("reads of different sizes at once", async ({ gpu, equal, probe }) => {
  const sizes = [4, 1000, 4, 0, 1, 100_000, 3, 25];
  const tensors = sizes.map((n, i) => gpu.tensor(new Float32Array(n).fill(i + 1), [n]));
  for (let round = 0; round < 5; round++) {
    const values = await Promise.all(tensors.map((tensor) => tensor.read()));
    const got = values.map((v) => [v.constructor.name, v.length, v[0], v.at(-1)]);
    const ends = sizes.map((n, i) => (n ? [n, i + 1, i + 1] : [n, undefined, undefined]));
    equal(
      got,
      ends.map((end) => ["Float32Array", ...end]),
    );
  }
  // A pending read never shares a staging buffer, and a settled one gives it back.
  const created = probe.created;
  await Promise.all(tensors.map((tensor) => tensor.read()));
  equal(probe.created, created, "buffers created");
});

pageTest("a thousand reads in turn", async ({ gpu, equal, probe }) => {
  const x = gpu.tensor(new Float32Array(100).fill(3), [100]);
  await x.read();
  const [created, bytes] = [probe.created, probe.bytes];
  for (let i = 0; i < 1000; i++) {
    const values = await x.read();
    if (values[99] !== 3) throw new Error(`read ${i} gave ${values}`);
  }
  equal([probe.created, probe.bytes], [created, bytes], "buffers created, bytes");
});

pageTest("two thousand steps with 10 MB temporaries", async (world) => {
  const { wgrad, gpu, equal, probe, f32 } = world;
  const indices = gpu.tensor(new Uint32Array([2_499_999, 0]), [2]);
  const arena = gpu.arena(32 << 20);
  let flat;
  for (let step = 0; step < 2000; step++) {
    const large = [arena.alloc([2_500_000]), arena.alloc([2_500_000])];
    const picked = await wgrad.gather(large[0], indices);
    const sum = await wgrad.cumsum(picked);
    if (step % 100 === 0) await sum.read();
    [...large, picked, sum].forEach((tensor) => tensor.free());
    const { allocated, used } = gpu.memory();
    const now = [allocated, used, probe.bytes, probe.created];
    if (step === 1) flat = now;
    if (step > 1) equal(now, flat, `memory after step ${step}`);
  }
  equal(gpu.memory().peak < 64 << 20, true, "peak");
});

pageTest("a hundred arenas", async ({ gpu, equal, probe, f32 }) => {
  const x = gpu.tensor(f32(1), [1]);
  await x.read();
  const start = [gpu.memory().allocated, gpu.memory().used, probe.buffers, probe.bytes];
  for (let i = 0; i < 100; i++) {
    const arena = gpu.arena(1 << 20);
    const y = arena.upload(f32(i), [1]);
    arena.alloc([1 << 20]);
    equal([(await y.read())[0], arena.memory().allocated], [i, 5 << 20]);
    arena.destroy();
  }
  const end = [gpu.memory().allocated, gpu.memory().used, probe.buffers, probe.bytes];
  equal(end, start, "bytes and buffers");
  x.free();
});

pageTest("twenty Gpus", async ({ wgrad, equal, probe, f32 }) => {
  const start = probe.buffers;
  for (let i = 0; i < 20; i++) {
    const gpu = await wgrad.Gpu.create();
    const y = await wgrad.cumsum(gpu.tensor(f32(1, i), [2]));
    equal(await y.read(), f32(1, i + 1));
    gpu.destroy();
    await gpu.lost;
  }
  equal(probe.buffers, start, "buffers");
});

/** Steps of every kind of call, each freeing what it made. */
async function steps({ wgrad, gpu, f32 }, count) {
  const x = gpu.tensor(new Float32Array(8).fill(1), [2, 4]);
  const gamma = gpu.tensor(f32(1, 1, 1, 1), [4]);
  for (let i = 0; i < count; i++) {
    const y = await wgrad.rmsNorm(x, gamma, { eps: 1e-6 });
    const all = await wgrad.rmsNormBackward(x, gamma, y);
    const sum = await wgrad.cumsum(x, { axis: 0, path: i % 10 ? "gpu" : "host" });
    await wgrad.cumsum(x, { axis: 9 }).catch(() => {});
    await wgrad.cumsum(7).catch(() => {});
    y.write(new Float32Array(8));
    if (i % 10 === 0) await sum.read();
    [y, sum, ...Object.values(all)].forEach((tensor) => tensor.free());
  }
  await gpu.sync();
  x.free();
  gamma.free();
}

/** Opens a page with one Gpu, kept in `world`, and a debugger to collect garbage with. */
async function withWorld(use) {
  await withPage(async (page) => {
    await page.evaluate(async () => {
      const { enter } = await import("/tests/js/in-page.mjs");
      globalThis.world = await enter();
    });
    const debug = await page.context().newCDPSession(page);
    const collect = async () => {
      // Finalizers run in a task of their own, after the collection that found them.
      for (let i = 0; i < 3; i++) {
        await debug.send("HeapProfiler.collectGarbage");
        await page.evaluate(() => new Promise((resolve) => setTimeout(resolve, 50)));
      }
      return (await debug.send("Runtime.getHeapUsage")).usedSize;
    };
    await use(page, collect);
  });
}

test("wasm memory and JavaScript's heap over many steps", () =>
  withWorld(async (page, collect) => {
    const run = async () => {
      for (let i = 0; i < 3; i++) {
        const text = steps.toString();
        await page.evaluate((text) => (0, eval)(`(${text})`)(globalThis.world, 200), text);
        // The module holds a few bytes of every handle until its finalizer has run.
        await collect();
      }
      const [pages, references] = await page.evaluate(async () => {
        const exports = await (await import("/pkg/wgrad.js")).default();
        return [exports.memory.buffer.byteLength / 65536, exports.__wbindgen_externrefs.length];
      });
      return { pages, references, heap: await collect() };
    };
    const warm = await run();
    await run();
    const late = await run();
    // The table through which wasm holds JavaScript's values doubles when it is full.
    assert.equal(late.references, warm.references, "references from wasm to JavaScript");
    assert.ok(late.pages <= warm.pages + 1, `wasm memory: ${warm.pages}, ${late.pages} pages`);
    // A leak of one object a call would be over 100 bytes each: 700 kB.
    assert.ok(late.heap - warm.heap < 200_000, `the heap grew by ${late.heap - warm.heap} bytes`);
  }));

test("what was forgotten rather than freed", () =>
  withWorld(async (page, collect) => {
    const memory = () => page.evaluate(() => globalThis.world.gpu.memory());
    const blocks = () => page.evaluate(() => globalThis.probe.blocks);
    await page.evaluate(async () => {
      const { wgrad, gpu, f32 } = globalThis.world;
      await (await wgrad.cumsum(gpu.tensor(f32(1), [1]))).read();
    });
    await collect();
    const [used, live] = [(await memory()).used, await blocks()];
    await page.evaluate(async () => {
      const { wgrad, gpu, f32 } = globalThis.world;
      for (let i = 0; i < 20; i++) {
        const y = await wgrad.cumsum(gpu.tensor(f32(1, 2), [2]));
        await y.read();
        const arena = gpu.arena(4096);
        arena.upload(f32(1), [1]);
        arena.at(256, [1]).read();
        const other = await wgrad.Gpu.create();
        other.arena(4096).upload(f32(1), [1]);
        other.tensor(f32(1), [1]);
        wgrad.cumsum(other.tensor(f32(1, 2), [2]));
      }
      await gpu.sync();
    });
    await collect();
    assert.equal((await memory()).used, used, "used");
    assert.equal(await blocks(), live, "buffers of arenas");
  }));
