// The page: passes the buttons on to the worker and shows what it reports.

import { LossChart } from "./chart.js";

const MIN_CHARACTERS = 1000;
const MAX_SAMPLES = 50;

const element = (id) => document.getElementById(id);
const [toggle, reset, source, own] = ["toggle", "reset", "source", "own"].map(element);
const chart = new LossChart(element("chart"));
const worker = new Worker(new URL("./worker.js", import.meta.url), { type: "module" });

const whole = new Intl.NumberFormat("en");
const short = new Intl.NumberFormat("en", { notation: "compact", maximumSignificantDigits: 3 });

/** @type {keyof typeof statuses} */
let state = "opening";
const statuses = {
  opening: "Looking for a GPU…",
  idle: "Ready",
  starting: "Starting…",
  running: "Training",
  pausing: "Pausing…",
  paused: "Paused",
  resetting: "Resetting…",
  failed: "Stopped",
};

function show(id, text) {
  element(id).textContent = text;
}

function notify(message = "", detail = "") {
  show("message", message);
  show("detail", detail);
  element("notice").hidden = !message;
}

function enter(next) {
  state = next;
  show("status", statuses[state]);
  toggle.textContent = { running: "Pause", pausing: "Pause", paused: "Resume" }[state] ?? "Start";
  toggle.disabled = !["idle", "running", "paused"].includes(state);
  reset.disabled = !["running", "paused", "failed"].includes(state);
  source.disabled = !["opening", "idle"].includes(state);
  showOwnText();
}

/** The box for a text is there as long as a text can be given. */
function showOwnText() {
  element("own-text").hidden = source.disabled || source.value !== "own";
}

function clear() {
  for (const id of ["loss", "steps-per-second", "tokens-per-second", "parameters", "memory"]) {
    show(id, "–");
  }
  show("step", "0");
  show("model", "");
  element("samples").replaceChildren();
  chart.clear();
}

/** Shows a sample, which is sent again with each character that it grows by. */
function showSample({ step, prompt, text }) {
  const list = element("samples");
  let item = list.firstElementChild;
  if (item?.dataset.step !== String(step)) {
    item = document.createElement("li");
    item.dataset.step = step;
    item.innerHTML = `<span class="at"></span><p><span class="prompt"></span><span class="text"></span></p>`;
    item.querySelector(".at").textContent = step ? `Step ${whole.format(step)}` : "Untrained";
    item.querySelector(".prompt").textContent = prompt;
    list.prepend(item);
    while (list.children.length > MAX_SAMPLES) list.lastElementChild.remove();
  }
  item.querySelector(".text").textContent = text;
}

const reports = {
  ready({ adapter, fallback }) {
    show("adapter", fallback ? `${adapter} (software)` : adapter);
    element("adapter").title = adapter;
    if (state === "opening") enter("idle");
  },
  state({ state }) {
    // Only now: reports of the last steps were still on their way when Reset was pressed.
    if (state === "idle") clear();
    enter(state);
  },
  model({ parameters, uniform, layers, width, context, batch }) {
    show("parameters", whole.format(parameters));
    const shape = `${layers} transformer layers, ${width} wide`;
    show("model", `Model: ${shape}; a step reads ${batch} windows of ${context} characters.`);
    chart.clear(uniform);
  },
  progress({ step, loss, stepsPerSecond, tokensPerSecond, memory }) {
    show("step", whole.format(step));
    show("loss", loss.toFixed(3));
    show("steps-per-second", short.format(stepsPerSecond));
    show("tokens-per-second", short.format(tokensPerSecond));
    show("memory", `${(memory / 2 ** 20).toFixed(0)} MiB`);
    chart.add(step, loss);
  },
  sample: showSample,
  failure({ code, message }) {
    const advice = {
      unsupported: "This demo needs WebGPU. Try a current Chrome, Edge, Safari or Firefox.",
      "device-lost": "The GPU was lost. Press Reset, then Start, to begin again with a new device.",
    };
    notify(advice[code] ?? "Something went wrong.", message);
    enter("failed");
    // Without WebGPU there is nothing to reset to.
    if (code === "unsupported") reset.disabled = true;
  },
};

worker.onmessage = ({ data }) => reports[data.type](data);
worker.onerror = (event) => {
  reports.failure({ message: event.message ?? "The page's worker could not be loaded." });
};

toggle.onclick = () => {
  if (state === "running") {
    enter("pausing");
    worker.postMessage({ type: "pause" });
    return;
  }
  const text = source.value === "own" ? own.value.trim() : undefined;
  if (state === "idle" && text !== undefined && text.length < MIN_CHARACTERS) {
    notify(`Your text has ${whole.format(text.length)} characters; the model needs 1,000 or more.`);
    own.focus();
    return;
  }
  notify();
  enter("starting");
  worker.postMessage({ type: "start", text });
};

reset.onclick = () => {
  enter("resetting");
  notify();
  worker.postMessage({ type: "reset" });
};

source.onchange = () => {
  showOwnText();
  notify();
};
