// The demo as a visitor meets it: built, served as static files, and used with mouse and keyboard
// in headless Chromium. Any error or warning on the console fails.
// WGRAD_SCREENSHOT=PATH keeps a picture of the page after WGRAD_SCREENSHOT_SECONDS more of training.

import assert from "node:assert/strict";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";
import { chromium } from "playwright-core";
import { build, createServer, preview } from "vite";
import { chromiumPath, flags } from "../../scripts/browser.mjs";

const root = fileURLToPath(new URL("../../www", import.meta.url));
const pkg = fileURLToPath(new URL("../../pkg", import.meta.url));
const quiet = { root, logLevel: "warn" };
/** For a busy machine without a GPU; all of it takes well under a minute on an idle one. */
const PATIENCE = { timeout: 240_000 };
/** Nats that the loss has to fall by, from about ln 80 = 4.4. */
const FALL = 1.3;

let server, browser;
before(async () => {
  await build(quiet);
  server = await preview({ ...quiet, preview: { port: 0 } });
  browser = await chromium.launch({ executablePath: chromiumPath(), args: flags });
});
after(async () => {
  await browser?.close();
  await server?.close();
});

/** Opens `url` and gives `use` the page, and what to find on it by its id. */
async function visit(url, use, { from = browser, expected = [] } = {}) {
  const page = await from.newPage({ viewport: { width: 1200, height: 800 }, colorScheme: "light" });
  const complaints = [];
  page.on("pageerror", (error) => complaints.push(error.stack));
  page.on("console", (message) => {
    const known = expected.some((pattern) => pattern.test(message.text()));
    if (/error|warning/.test(message.type()) && !known) complaints.push(message.text());
  });
  const text = (id) => page.locator(`#${id}`).innerText();
  const number = async (id) => Number((await text(id)).replaceAll(",", ""));
  const until = (id, test, ...args) => {
    const check = ([id, test, ...args]) => {
      return (0, eval)(`(${test})`)(document.getElementById(id).innerText, ...args);
    };
    return page.waitForFunction(check, [id, test.toString(), ...args], PATIENCE);
  };
  const status = (wanted) => until("status", (text, wanted) => text === wanted, wanted);
  try {
    await page.goto(url);
    await use({ page, text, number, until, status });
    assert.deepEqual(complaints, []);
  } finally {
    await page.close();
  }
}

const address = () => server.resolvedUrls.local[0];

test("the model's gradients agree with differences of its loss", async (t) => {
  const modules = await createServer({ ...quiet, server: { port: 0 } });
  t.after(() => modules.close());
  await modules.listen();
  const url = `${modules.resolvedUrls.local[0]}blank.html`;
  await visit("about:blank", async ({ page }) => {
    const body = `<!doctype html><link rel="icon" href="data:," />`;
    await page.route(url, (route) => route.fulfill({ contentType: "text/html", body }));
    await page.goto(url);
    const results = await page.evaluate(slopes, `/@fs${pkg}/wgrad.js`);
    for (const { name, slope, difference } of results) {
      const error = Math.abs(slope - difference) / slope;
      assert.ok(error < 0.01, `${name}: slope ${slope}, difference ${difference}`);
    }
    const worst = Math.max(...results.map((r) => Math.abs(r.slope - r.difference) / r.slope));
    console.log(
      `demo: ${results.length} gradients, worst relative error ${worst.toExponential(1)}`,
    );
  });
});

/** In the page: moves random halves of each weight along the gradient, and back. */
async function slopes(wgrad) {
  const { default: init, Gpu } = await import(wgrad);
  const { Model } = await import("/model.js");
  const { seeded } = await import("/random.js");
  const { randomBatch } = await import("/text.js");
  await init();
  const gpu = await Gpu.create();
  const random = seeded(7);
  const config = { batch: 2, context: 8, width: 32, layers: 2, rate: 0, classes: 11 };
  const model = new Model(gpu, config, random);
  const text = Uint32Array.from({ length: 40 }, () => Math.floor(random() * config.classes));
  const batch = randomBatch(random, text, config.batch, config.context);
  const { weights, gradients } = model.parameters;
  // The head starts small, which would leave the gradients before it small too.
  weights.head.write((await weights.head.read()).map((value) => 10 * value));

  await model.differentiate(batch);
  // The loss alone takes a fraction of the time of all gradients.
  const { forward, backward, kernels } = model;
  const loss = async () => {
    backward.loss.write(new Float32Array(forward.rows));
    await forward.run();
    kernels.run([backward.head[0]]);
    return (await backward.loss.read()).reduce((sum, loss) => sum + loss) / forward.rows;
  };
  const results = [];
  for (const name of Object.keys(weights)) {
    const [before, gradient] = [await weights[name].read(), await gradients[name].read()];
    const direction = gradient.map((value) => (random() < 0.5 ? value : 0));
    const length = Math.hypot(...direction);
    const at = async (step) => {
      weights[name].write(before.map((value, i) => value + (step * direction[i]) / length));
      return loss();
    };
    const step = 0.01;
    const difference = ((await at(step)) - (await at(-step))) / (2 * step);
    weights[name].write(before);
    results.push({ name, slope: length, difference });
  }
  gpu.destroy();
  return results;
}

test("it trains, pauses, goes on, and starts again with another text", async () => {
  await visit(address(), async ({ page, text, number, until, status }) => {
    const press = (name) => page.getByRole("button", { name, exact: true }).click();
    await status("Ready");
    assert.match(await text("adapter"), /swiftshader/i);
    const began = performance.now();
    await press("Start");
    await until("step", (step) => step > 0);
    const first = await number("loss");
    assert.ok(first > 4 && first < 5, `the first loss is ${first}`);
    await until("loss", (loss, goal) => Number(loss) < goal, first - FALL);
    const [steps, last] = [await number("step"), await number("loss")];
    const seconds = (performance.now() - began) / 1000;
    console.log(
      `demo: adapter ${await text("adapter")}, ${steps} steps in ${seconds.toFixed(1)} s, ` +
        `loss ${first} -> ${last}, ${await text("steps-per-second")} steps/s`,
    );

    // A sample of the trained model, beside the one from before.
    const sample = page.locator("#samples li").first();
    await until("samples", (samples) => /^Step \d+/.test(samples));
    await page.waitForFunction(() => {
      return document.querySelector("#samples .text").innerText.length >= 100;
    }, PATIENCE);
    assert.match(await sample.innerText(), /^Step \d+\s+Call me Ishmael\./);
    assert.ok((await page.locator("#samples li").last().innerText()).startsWith("Untrained"));
    console.log(`demo: it writes ${JSON.stringify(await sample.locator(".text").innerText())}`);

    const memory = await text("memory");
    await press("Pause");
    await status("Paused");
    const paused = await number("step");
    await page.waitForTimeout(1000);
    assert.equal(await number("step"), paused);
    await press("Resume");
    await until("step", (step, paused) => Number(step) > paused, paused);
    assert.equal(await text("memory"), memory);
    await screenshot(page);

    await press("Reset");
    await status("Ready");
    assert.equal(await text("step"), "0");
    assert.equal(await page.locator("#samples li").count(), 0);
    await page.getByLabel("Text", { exact: true }).selectOption("Your own text");
    await page.getByLabel("Your own text:").fill("Too short.");
    await press("Start");
    assert.match(await text("notice"), /Your text has 10 characters/);
    await page.getByLabel("Your own text:").fill("Äpfel, Birnen und Quitten! ".repeat(50));
    await press("Start");
    await until("step", (step) => step > 2);
    await until("samples", (samples) => samples.includes("Äpfel, Birnen und "));
    // Of 18 different characters.
    assert.ok((await number("loss")) < 3.2);
  });
});

/** Keeps a picture of the page, and one to show if asked for. */
async function screenshot(page) {
  await page.screenshot({ path: join(tmpdir(), "wgrad-demo.png") });
  const { WGRAD_SCREENSHOT: path, WGRAD_SCREENSHOT_SECONDS: seconds = 0 } = process.env;
  if (!path) return;
  await page.waitForTimeout(1000 * seconds);
  await page.screenshot({ path });
}

test("it survives a lost device", async () => {
  await visit(address(), async ({ page, text, until, status }) => {
    await status("Ready");
    await page.getByRole("button", { name: "Start" }).click();
    await until("status", (status) => status === "Training");
    await page.workers()[0].evaluate(() => {
      const { createCommandEncoder } = GPUDevice.prototype;
      GPUDevice.prototype.createCommandEncoder = function (...args) {
        GPUDevice.prototype.createCommandEncoder = createCommandEncoder;
        this.destroy();
        return createCommandEncoder.apply(this, args);
      };
    });
    await status("Stopped");
    assert.match(await text("notice"), /lost|destroyed/);
    await page.getByRole("button", { name: "Reset" }).click();
    await status("Ready");
    await page.getByRole("button", { name: "Start" }).click();
    await until("step", (step) => step > 0);
  });
});

test("without WebGPU it says so", async () => {
  const plain = await chromium.launch({
    executablePath: chromiumPath(),
    args: flags.filter((flag) => !/webgpu|swiftshader/.test(flag)),
  });
  try {
    const expected = [/^No available adapters/]; // Chromium's own warning
    await visit(
      address(),
      async ({ page, text, status }) => {
        await status("Stopped");
        assert.match(await text("notice"), /^This demo needs WebGPU\..*\n.*adapter/s);
        assert.ok(await page.getByRole("button", { name: "Start" }).isDisabled());
        console.log(`demo: without WebGPU: ${(await text("notice")).replaceAll("\n", " ")}`);
      },
      { from: plain, expected },
    );
  } finally {
    await plain.close();
  }
});
