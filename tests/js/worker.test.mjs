// The module in workers, alone and beside the page's own.

import { browserTests } from "./page.mjs";

const { pageTest } = browserTests();

/** What in-worker.mjs answers to `data`. */
const ask = (port, data) =>
  new Promise((resolve, reject) => {
    port.onmessage = (event) => resolve(event.data);
    port.onmessageerror = () => reject(new Error("the answer cannot be read"));
    port.postMessage(data);
  });

const expected = {
  values: [
    [111, 110, 100],
    [111, 110, 100],
    [1, 10, 100],
  ],
  error: { name: "WgradError", code: "argument" },
  passed: true,
};

pageTest(
  "dedicated workers",
  async ({ wgrad, gpu, equal, f32 }, ask, expected) => {
    const start = () => {
      const worker = new Worker("/tests/js/in-worker.mjs", { type: "module" });
      const failed = new Promise((_, reject) => {
        worker.onerror = ({ message }) => reject(new Error(`the worker failed: ${message}`));
      });
      return { worker, ask: (data) => Promise.race([ask(worker, data), failed]) };
    };
    const workers = [start(), start()];
    const answers = Promise.all(workers.map((worker) => worker.ask([1, 10, 100])));
    const y = await wgrad.cumsum(gpu.tensor(f32(1, 10, 100), [3]));
    equal(await y.read(), f32(1, 11, 111));
    for (const answer of await answers) {
      const { values = [], vendor, ...rest } = answer;
      equal({ values: values.map((v) => [...v]), ...rest }, expected);
      equal([values[0].constructor.name, vendor], ["Float32Array", gpu.info.vendor]);
    }
    // Again, in a worker that has the module already; the worker's Gpu before was disposed of.
    const { values, error } = await workers[0].ask([1, 1, 1]);
    equal([...values[0], error.code], [3, 2, 1, "argument"]);
    workers.forEach(({ worker }) => worker.terminate());
    equal(await y.read(), f32(1, 11, 111));
  },
  ask,
  expected,
);

pageTest(
  "a shared worker",
  async ({ equal, within }, ask, expected) => {
    const { port } = new SharedWorker("/tests/js/in-worker.mjs", { type: "module" });
    port.start();
    const answer = await within(60_000, ask(port, [1, 10, 100]), "the worker's answer");
    const { values = [], vendor, ...rest } = answer;
    equal({ values: values.map((v) => [...v]), ...rest }, expected);
  },
  ask,
  expected,
);
