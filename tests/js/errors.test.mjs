// Every export and method on every kind of bad argument: a WgradError with the right code, op,
// operand and message, thrown or rejected as documented; never a trap; nothing queued or allocated;
// and the Gpu works afterwards. The calls are in bad-calls/.

import assert from "node:assert/strict";
import { test } from "node:test";
import { browserTests } from "./page.mjs";

const { withPage, pageTest } = browserTests();

const files = {
  operands: "operands",
  options: "options",
  run: "arena.run…",
  memory: "Gpu, Arena and Tensor methods",
};

for (const [file, title] of Object.entries(files)) {
  test(`bad calls: ${title}`, async (t) => {
    const reports = await withPage((page) =>
      page.evaluate(async (file) => {
        const { check } = await import("/tests/js/bad-calls/check.mjs");
        return check(file);
      }, file),
    );
    for (const { title, count, faults } of reports) {
      await t.test(`${title}: ${count} calls`, () => {
        assert.ok(count > 0);
        if (faults.length) assert.fail(`${faults.length} wrong:\n${faults.join("\n")}`);
      });
    }
  });
}

pageTest("options of unusual make work", async ({ wgrad, gpu, close, f32 }) => {
  const x = gpu.tensor(f32(1, 2, 3, 4), [2, 2]);
  class Options {
    get axis() {
      return 0;
    }
  }
  for (const options of [
    { axis: 0, exclusive: undefined, out: undefined, path: undefined },
    { axis: 0, [Symbol("axis")]: 1 },
    Object.assign(Object.create(null), { axis: 0 }),
    Object.freeze({ axis: -2 }),
    new Proxy({ axis: 0 }, {}),
    new Options(),
  ]) {
    const y = await wgrad.cumsum(x, options);
    close(await y.read(), [1, 2, 4, 6]);
  }
  for (const options of [undefined, null, {}]) {
    const y = await wgrad.cumsum(x, options);
    close(await y.read(), [1, 3, 3, 7]);
  }
  const nothing = new Proxy(Object.freeze([]), {});
  close(await gpu.tensor(f32(7), nothing).read(), [7]);
});

// What JavaScript throws through the module's frames leaves its stack shorter by some bytes.
pageTest("ten thousand bad calls leave no trace", async (world) => {
  const { wgrad, gpu, rejects, throws, close, f32, memory } = world;
  const x = gpu.tensor(f32(1, 10, 100), [3]);
  const refuse = () => {
    throw new Error("not yours");
  };
  const calls = [
    () => wgrad.cumsum(undefined),
    () => wgrad.cumsum(Object.create(null)),
    () => wgrad.cumsum(x, new Proxy({}, { ownKeys: refuse })),
    () =>
      wgrad.cumsum(x, {
        get axis() {
          throw new Error("not yours");
        },
      }),
    () => wgrad.cumsum({ __handOver: refuse }),
  ];
  const size = memory.buffer.byteLength;
  for (let i = 0; i < 2000; i++) {
    for (const call of calls) await rejects(call(), { code: "argument", op: "cumsum" });
    throws(() => gpu.tensor(f32(1), [undefined]), { code: "shape", op: "tensor" });
  }
  close(await (await wgrad.cumsumBackward(x)).read(), [111, 110, 100]);
  // wasm-bindgen itself keeps a word where a Proxy throws.
  world.ok(memory.buffer.byteLength - size <= 1 << 17, "wasm memory grew");
});

pageTest("classes have no constructor", async ({ wgrad, throws }) => {
  for (const name of ["Gpu", "Arena", "Tensor"]) {
    throws(() => new wgrad[name](), { code: "argument", op: name, message: "Gpu.create" }, name);
  }
});

// A bad call in a getter of another call's options: neither may hold anything of the module.
pageTest("calls from within a getter", async ({ wgrad, gpu, rejects, close, f32 }) => {
  const x = gpu.tensor(f32(1, 10, 100), [3]);
  const bad = { code: "argument", op: "cumsum", operand: "x" };
  const inner = [];
  const options = {
    get axis() {
      inner.push(wgrad.cumsum(x), rejects(wgrad.cumsum(7), bad), gpu.memory(), x.read());
      x.write(f32(2, 20, 200));
      return 0;
    },
  };
  const outer = await wgrad.cumsum(x, options);
  close(await (await inner[0]).read(), [1, 11, 111]);
  await inner[1];
  close(await inner[3], [1, 10, 100]);
  close(await outer.read(), [2, 22, 222]);
});
