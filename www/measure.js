// Times each op on this device: a queue of N calls ended by gpu.sync(), the
// median of five queues. A result that differs from the host path is not timed.
// With ?post, the report is also sent to /result (for machines without a screen).

import init, {
  Gpu,
  cumsumBackward,
  gatherBackward,
  rmsNorm,
  rmsNormBackward,
  ropeBackward,
} from "wgrad";

const REPEATS = 5;
const TARGET_MS = 300;
// Past this the host path would need more memory than wasm has.
const MAX_CHECKED = 1 << 24;

await init();
const gpu = await Gpu.create({ powerPreference: "high-performance" });
const large = !gpu.info.fallback;

// A cheap fixed sequence in (-1, 1), so that every run has the same inputs.
function values(length, seed) {
  const out = new Float32Array(length);
  let state = seed;
  for (let i = 0; i < length; i++) {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    out[i] = state / 2 ** 31 - 1;
  }
  return out;
}

const f32 = (shape, seed) => {
  const length = shape.reduce((a, b) => a * b, 1);
  return gpu.tensor(values(length, seed), shape);
};

function norm(rows, h, run) {
  const operands = [f32([rows, h], 1), f32([h], 2), f32([rows, h], 3)];
  return { operands, count: rows * h, run: (options) => run(...operands, options) };
}

const backward = async (x, gamma, dy, options) =>
  Object.values(await rmsNormBackward(x, gamma, dy, options));
const both = async (x, gamma, dy, options) => [
  await rmsNorm(x, gamma, options),
  ...(await backward(x, gamma, dy, options)),
];

function rope(batch, seq, heads, headDim) {
  const dy = f32([batch, seq, heads * headDim], 1);
  const tables = [f32([seq, headDim / 2], 2), f32([seq, headDim / 2], 3)];
  const run = async (options) => [await ropeBackward(dy, ...tables, { headDim, ...options })];
  return { operands: [dy, ...tables], count: dy.length, run };
}

function cumsum(rows, cols) {
  const dy = f32([rows, cols], 1);
  return {
    operands: [dy],
    count: dy.length,
    run: async (options) => [await cumsumBackward(dy, options)],
  };
}

function gather(axisDim, trailing, numIdx) {
  const dy = f32([numIdx, trailing], 1);
  const picks = values(numIdx, 7).map((v) => Math.floor(((v + 1) / 2) * axisDim));
  const indices = gpu.tensor(Uint32Array.from(picks), [numIdx]);
  const run = async (options) => [await gatherBackward(dy, indices, { axisDim, ...options })];
  return { operands: [dy, indices], count: axisDim * trailing, run };
}

const CASES = {
  "rmsNorm + rmsNormBackward 4096×1024": () => norm(4096, 1024, both),
  "ropeBackward 4×256×8×64": () => rope(4, 256, 8, 64),
  "cumsumBackward 1024×1024": () => cumsum(1024, 1024),
  "cumsumBackward 16×65536": () => cumsum(16, 65536),
  "gatherBackward 8192×256, 4096 indices": () => gather(8192, 256, 4096),
  ...(large && {
    "rmsNormBackward 16384×4096": () => norm(16384, 4096, backward),
    "cumsumBackward 8192×8192": () => cumsum(8192, 8192),
    "gatherBackward 49152×576, 8192 indices": () => gather(49152, 576, 8192),
  }),
};

/** The largest difference from the host path, relative to the root mean square. */
async function check(job) {
  const results = [await job.run({}), await job.run({ path: "host" })];
  const [got, want] = await Promise.all(
    results.map((list) => Promise.all(list.map((t) => t.read()))),
  );
  results.flat().forEach((tensor) => tensor.free());
  return Math.max(
    ...got.map((values, k) => {
      let squares = 0;
      let worst = 0;
      values.forEach((value, i) => {
        squares += want[k][i] ** 2;
        worst = Math.max(worst, Math.abs(value - want[k][i]));
      });
      return worst / (Math.sqrt(squares / values.length) || 1);
    }),
  );
}

// Calls made together share a submit, as those of a training step would.
const BATCH = 8;

async function queue(job, n) {
  const start = performance.now();
  for (let i = 0; i < n; i += BATCH) {
    const calls = Array.from({ length: BATCH }, () => job.run({}));
    (await Promise.all(calls)).flat().forEach((tensor) => tensor.free());
  }
  await gpu.sync();
  return (performance.now() - start) / n;
}

async function time(job) {
  await queue(job, BATCH);
  const batches = Math.round(TARGET_MS / ((await queue(job, BATCH)) * BATCH));
  const n = BATCH * Math.max(1, Math.min(125, batches));
  const times = [];
  for (let i = 0; i < REPEATS; i++) times.push(await queue(job, n));
  return times.sort((a, b) => a - b)[REPEATS >> 1];
}

const out = document.getElementById("out");
const { vendor, architecture, description, fallback } = gpu.info;
const report = {
  adapter: { vendor, architecture, description, fallback },
  agent: navigator.userAgent,
};
report.selfTest = (await gpu.selfTest()).passed;
out.textContent = `${JSON.stringify(report, null, 2)}\n\n`;
report.cases = {};
for (const [name, make] of Object.entries(CASES)) {
  const job = make();
  const error = job.count <= MAX_CHECKED ? await check(job) : null;
  const ms = error === null || error < 1e-4 ? await time(job) : null;
  report.cases[name] = { ms, error };
  const checked = error === null ? "too large to check" : `off by ${error.toExponential(1)} of rms`;
  out.textContent += `${name}: ${ms === null ? "WRONG" : `${ms.toFixed(3)} ms`} (${checked})\n`;
  job.operands.forEach((tensor) => tensor.free());
}
if (new URLSearchParams(location.search).has("post")) {
  await fetch("/result", { method: "POST", body: JSON.stringify(report) });
}
