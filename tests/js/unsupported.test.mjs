// Where there is no WebGPU, or no wasm to be had: a reason in words, and a module that still works.

import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { test } from "node:test";
import { flags } from "../../scripts/browser.mjs";
import { browserTests } from "./page.mjs";

const withoutWebGpu = flags.filter((flag) => !/webgpu|swiftshader/.test(flag));
const names = "--host-resolver-rules=MAP wgrad.test 127.0.0.1";
const { withPage } = browserTests([...flags, names]);
const bare = browserTests([...withoutWebGpu, "--disable-gpu"]);

/** Tries Gpu.create() in a page: twice, since a failure must not be for good. */
async function create(page) {
  return page.evaluate(async () => {
    const { default: init, Gpu, cumsum } = await import("/pkg/wgrad.js");
    await init();
    const outcomes = [];
    const late = new Promise((resolve) => setTimeout(resolve, 5000, new Error("no answer in 5 s")));
    for (const call of [() => Gpu.create(), () => Gpu.create(), () => cumsum(7)]) {
      const error = await Promise.race([call().catch((error) => error), late]);
      outcomes.push({ ...error, name: error.name, message: error.message });
    }
    return outcomes;
  });
}

function assertUnsupported([first, second, third], message) {
  for (const error of [first, second]) {
    assert.deepEqual(
      [error.name, error.code, error.op],
      ["WgradError", "unsupported", "Gpu.create"],
    );
    assert.match(error.message, message);
  }
  // What needs no GPU still works.
  assert.deepEqual([third.name, third.code], ["WgradError", "argument"]);
}

test("a browser without WebGPU", () =>
  bare.withPage(
    async (page) => {
      const answer = await create(page);
      assertUnsupported(answer, /has no adapter for it|navigator\.gpu is missing/);
    },
    { expected: [/No available adapters/] }, // Chromium's own remark
  ));

test("navigator.gpu is missing", () =>
  withPage(async (page) => {
    await page.evaluate(() => delete Navigator.prototype.gpu);
    assertUnsupported(await create(page), /no WebGPU \(navigator\.gpu is missing\)/);
  }));

test("an insecure origin", () =>
  withPage(
    async (page) => {
      assert.equal(await page.evaluate(() => globalThis.isSecureContext), false);
      assertUnsupported(await create(page), /needs a secure context: .*https/);
    },
    { host: "wgrad.test" },
  ));

const adapters = {
  "no adapter": [() => Promise.resolve(null), /no adapter for it/],
  "an adapter request that fails": [() => Promise.reject(new Error("no")), /no adapter for it/],
};

for (const [name, [request, message]] of Object.entries(adapters)) {
  test(name, () =>
    withPage(async (page) => {
      await page.evaluate((text) => {
        GPU.prototype.original = GPU.prototype.requestAdapter;
        GPU.prototype.requestAdapter = (0, eval)(text);
      }, request.toString());
      assertUnsupported(await create(page), message);
      // With an adapter the same module works.
      const sum = await page.evaluate(async () => {
        GPU.prototype.requestAdapter = GPU.prototype.original;
        const { Gpu, cumsum } = await import("/pkg/wgrad.js");
        const gpu = await Gpu.create();
        return [...(await (await cumsum(gpu.tensor(new Float32Array([1, 2]), [2]))).read())];
      });
      assert.deepEqual(sum, [1, 3]);
    }),
  );
}

test("an adapter without a device", () =>
  withPage(async (page) => {
    await page.evaluate(() => {
      GPUAdapter.prototype.requestDevice = () => Promise.reject(new TypeError("used up"));
    });
    assertUnsupported(await create(page), /the adapter grants no device: .*used up/);
  }));

test("a navigator.gpu that is no GPU", () =>
  withPage(async (page) => {
    await page.evaluate(() =>
      Object.defineProperty(Navigator.prototype, "gpu", { configurable: true, value: {} }),
    );
    assertUnsupported(await create(page), /no WebGPU|no adapter for it/);
  }));

const wasm = new URL("../../pkg/wgrad_bg.wasm", import.meta.url);
const cannot = { name: "WgradError", code: "unsupported", op: "Gpu.create", message: /no WebGPU/ };
/** The package as a module of its own, so that each test initialises it afresh. */
let copies = 0;
const fresh = () => import(`../../pkg/wgrad.js?${copies++}`);

test("node: importing does nothing", async () => {
  const before = Reflect.ownKeys(globalThis);
  const { fetch } = globalThis;
  globalThis.fetch = () => assert.fail("importing fetches");
  try {
    const module = await fresh();
    assert.equal(typeof module.Gpu.create, "function");
    assert.deepEqual(Reflect.ownKeys(globalThis), before);
  } finally {
    globalThis.fetch = fetch;
  }
});

test("node: the module runs, and says that it has no WebGPU", async () => {
  const bytes = await readFile(wasm);
  const ways = {
    bytes: (init) => init(bytes),
    "an ArrayBuffer": (init) => init(new Uint8Array(bytes).buffer),
    "a WebAssembly.Module": async (init) => init(await WebAssembly.compile(bytes)),
    "an object": (init) => init({ module_or_path: bytes }),
    "a promise": (init) => init({ module_or_path: readFile(wasm) }),
    "a Response": (init) =>
      init(new Response(bytes, { headers: { "content-type": "application/wasm" } })),
  };
  for (const [what, start] of Object.entries(ways)) {
    const { default: init, Gpu, cumsum } = await fresh();
    await start(init);
    await assert.rejects(Gpu.create(), cannot, what);
    await assert.rejects(cumsum({}), { name: "WgradError", code: "argument" }, what);
    await assert.rejects(Gpu.create(), cannot, what);
  }
  const { initSync, Gpu } = await fresh();
  initSync({ module: bytes });
  await assert.rejects(Gpu.create(), cannot);
});

test("node: an init that fails can be made good", async () => {
  const { default: init, Gpu } = await fresh();
  await assert.rejects(init(new Uint8Array([1, 2, 3, 4])), WebAssembly.CompileError);
  await assert.rejects(init("http://127.0.0.1:1/wgrad_bg.wasm"), /fetch failed/);
  await assert.rejects(init(Promise.reject(new Error("not today"))), /not today/);
  await init(await readFile(wasm));
  await init();
  await assert.rejects(Gpu.create(), cannot);
});

test("page: every way to init", () =>
  withPage(async (page) => {
    const sums = await page.evaluate(async () => {
      const url = "/pkg/wgrad_bg.wasm";
      const bytes = await (await fetch(url)).arrayBuffer();
      const ways = [
        (init) => init(),
        (init) => init(url),
        (init) => init(new URL(url, location.href)),
        (init) => init(new Request(url)),
        (init) => init(fetch(url)),
        (init) => init(bytes),
        (init) => init(new Uint8Array(bytes)),
        async (init) => init(await WebAssembly.compile(bytes)),
        (init) => init({ module_or_path: url }),
        (init) => Promise.all([init(), init(url), init(bytes)]),
        async (init, { initSync }) => initSync({ module: await WebAssembly.compile(bytes) }),
      ];
      const sums = [];
      for (const [i, start] of ways.entries()) {
        const module = await import(`/pkg/wgrad.js?${i}`);
        await start(module.default, module);
        const gpu = await module.Gpu.create();
        const y = await module.cumsum(gpu.tensor(new Float32Array([1, 2]), [2]));
        sums.push((await y.read())[1]);
        gpu.destroy();
      }
      return sums;
    });
    assert.deepEqual(sums, new Array(11).fill(3));
  }));

test("page: a wrong address, then the right one", () =>
  withPage(
    async (page) => {
      const [messages, sum] = await page.evaluate(async () => {
        const { default: init, Gpu, cumsum } = await import("/pkg/wgrad.js");
        const message = (error) => `${error.name}: ${error.message}`;
        const messages = [
          await init("/pkg/missing.wasm").catch(message),
          // A server for single-page apps answers with a page.
          await init("/page.html").catch(message),
          await Promise.all([init("/pkg/missing.wasm"), init()]).catch(message),
        ];
        await init();
        const gpu = await Gpu.create();
        const y = await cumsum(gpu.tensor(new Float32Array([1, 2]), [2]));
        return [messages, [...(await y.read())]];
      });
      assert.match(messages[0], /404 .*missing\.wasm/);
      assert.match(messages[1], /CompileError: .*expected magic word/);
      assert.match(messages[2], /404 .*missing\.wasm/);
      assert.deepEqual(sum, [1, 3]);
    },
    // The browser's own remarks on the address, and wasm-bindgen's on the page.
    { expected: [/status of 404/, /does not serve Wasm with `application\/wasm` MIME type/] },
  ));
