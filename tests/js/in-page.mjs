// What tests use inside the page. Assertions throw with both values in the message, since that
// is all that crosses over to node.

import init, * as wgrad from "/pkg/wgrad.js";

/** The module, ready, with a Gpu and the helpers below. */
export async function enter() {
  const { memory } = await init();
  const gpu = await wgrad.Gpu.create();
  return { wgrad, gpu, memory, probe: globalThis.probe, ...helpers };
}

// JSON has no NaN, no infinities, no -0 and no typed arrays.
function plain(_, value) {
  if (ArrayBuffer.isView(value)) return [value.constructor.name, ...value];
  const isOdd = typeof value === "number" && (!Number.isFinite(value) || Object.is(value, -0));
  if (isOdd) return Object.is(value, -0) ? "-0" : String(value);
  return value;
}

const show = (value) => JSON.stringify(value, plain);

function ok(condition, note) {
  if (!condition) throw new Error(note);
}

function equal(actual, expected, note = "value") {
  const [a, e] = [show(actual), show(expected)];
  ok(a === e, `${note}: got ${a}, want ${e}`);
}

/** Every value within 1e-6 + 1e-5·|want|, the bound of cases.md, or within `absolute`. */
function close(got, want, note = "values", absolute = 0) {
  equal(got.length, want.length, `length of ${note}`);
  const off = want.findIndex(
    (w, i) => !(Math.abs(got[i] - w) <= Math.max(absolute, 1e-6 + 1e-5 * Math.abs(w))),
  );
  ok(off < 0, `${note}[${off}]: got ${got[off]}, want ${want[off]} (all: ${show(got)})`);
}

/** What is wrong with `error` as a WgradError with these `code`, `op`, `operand` and `message`. */
function mismatch(error, want) {
  if (!(error instanceof Error)) return `${show(error)} is no Error`;
  const text = `${error.name} ${show({ ...error })} "${error.message}"`;
  if (error.name !== "WgradError") return `not a WgradError: ${text}`;
  for (const key of ["code", "op", "operand"]) {
    if (key in want && error[key] !== want[key]) return `${key} is not ${want[key]}: ${text}`;
  }
  const wanted = new RegExp(want.message ?? "");
  if (!wanted.test(error.message)) return `message does not match ${wanted}: ${text}`;
  return undefined;
}

function expectError(error, want, note) {
  const fault = mismatch(error, want);
  ok(!fault, `${note}: ${fault}`);
  return error;
}

/** The error that a sync call throws, which must be a WgradError as `want` says. */
function throws(call, want, note = String(call)) {
  let result;
  try {
    result = call();
  } catch (error) {
    return expectError(error, want, note);
  }
  throw new Error(`${note}: returned ${show(result)} rather than throw`);
}

/** The error that a promise rejects with, which must be a WgradError as `want` says. */
async function rejects(promise, want, note = "promise") {
  let result;
  try {
    result = await promise;
  } catch (error) {
    return expectError(error, want, note);
  }
  throw new Error(`${note}: settled with ${show(result)} rather than reject`);
}

/** The value of a promise, or an error after `ms`: a promise that hangs must not hang the run. */
function within(ms, promise, note = "promise") {
  let timer;
  const late = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error(`${note}: nothing after ${ms} ms`)), ms);
  });
  return Promise.race([promise, late]).finally(() => clearTimeout(timer));
}

const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
const f32 = (...values) => new Float32Array(values.flat());

const helpers = { ok, equal, close, mismatch, throws, rejects, within, sleep, f32 };
