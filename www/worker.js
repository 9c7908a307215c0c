// Training happens here, so that the page never waits for it.
// From the page: start { text? }, pause, reset. To the page: ready, state, model, progress,
// sample, failure.

import init, { Gpu } from "wgrad";
import { Training } from "./training.js";

/** @type {Promise<import("wgrad").Gpu> | undefined} */
let opening;
/** @type {Training | undefined} */
let training;

const state = (name) => postMessage({ type: "state", state: name });

function fail(error) {
  postMessage({ type: "failure", code: error.code, message: error.message });
}

async function open() {
  await init();
  const gpu = await Gpu.create({ powerPreference: "high-performance" });
  const { description, vendor, architecture, fallback } = gpu.info;
  const name = description || [vendor, architecture].filter(Boolean).join(" ") || "unnamed";
  postMessage({ type: "ready", adapter: name, fallback });
  gpu.lost.then(({ message }) => {
    opening = undefined;
    fail({ code: "device-lost", message });
  });
  return gpu;
}

/** The GPU, and a new one after the last was lost. */
function openOnce() {
  opening ??= open().catch((error) => {
    opening = undefined;
    throw error;
  });
  return opening;
}

/** How samples begin: with the first words of the text. */
function firstWords(text) {
  const start = text.slice(0, 24);
  return start.slice(0, start.lastIndexOf(" ") + 1) || start;
}

async function source(text) {
  if (text) return { text, prompt: firstWords(text) };
  const { default: mobyDick } = await import("./moby-dick.js");
  return { text: mobyDick, prompt: "Call me Ishmael." };
}

const commands = {
  async start({ text }) {
    if (!training) {
      state("starting");
      training = new Training(await openOnce(), await source(text), (message) =>
        postMessage(message),
      );
    }
    state("running");
    training.start().catch(fail);
  },
  async pause() {
    await training?.pause();
    state("paused");
  },
  async reset() {
    await training?.destroy();
    training = undefined;
    state("idle");
  },
};

// One after another: a reset must not free what a pause still waits for.
let last = openOnce().catch(fail);
onmessage = ({ data }) => {
  last = last.then(() => commands[data.type](data)).catch(fail);
};
