// Tests that run in a page. `browserTests()` starts one Chromium for a test file; each test gets a
// page of its own and fails on anything left on the console, on unhandled rejections, and on GPU
// errors that no scope caught, besides its own assertions.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { chromium } from "playwright-core";
import { chromiumPath, flags as webgpuFlags } from "../../scripts/browser.mjs";
import { installProbe } from "./probe.mjs";
import { serve } from "./server.mjs";

/** Lets errors that are on their way arrive: from the GPU process, and from dropped promises. */
async function settle() {
  for (const device of globalThis.probe?.devices ?? []) {
    await Promise.race([device.lost, device.queue.onSubmittedWorkDone()]);
  }
  await new Promise((resolve) => setTimeout(resolve, 20));
  return globalThis.probe?.uncaptured ?? [];
}

/** Runs the text of a function in the page, with what in-page.mjs has. */
async function runText(texts) {
  const revive = ({ text, value }) => (text === undefined ? value : (0, eval)(`(${text})`));
  const { enter } = await import("/tests/js/in-page.mjs");
  const [run, ...args] = texts.map(revive);
  return run(await enter(), ...args);
}

const asText = (value) => (typeof value === "function" ? { text: String(value) } : { value });

export function browserTests(flags = webgpuFlags) {
  let browser, server;
  before(async () => {
    server = await serve();
    browser = await chromium.launch({ executablePath: chromiumPath(), args: flags });
  });
  after(async () => {
    await browser?.close();
    server?.close();
  });

  /** Calls `use` with a page and fails if the page has a complaint afterwards. */
  async function withPage(use, { host = "localhost", expected = [] } = {}) {
    const context = await browser.newContext();
    try {
      await context.addInitScript(installProbe);
      const page = await context.newPage();
      const complaints = [];
      const complain = (text) => {
        if (!expected.some((known) => known.test(text))) complaints.push(text);
      };
      page.on("console", (message) => {
        if (["error", "warning"].includes(message.type())) {
          complain(`console.${message.type()}: ${message.text()}`);
        }
      });
      page.on("pageerror", (error) => complain(`uncaught: ${error.stack}`));
      page.on("crash", () => complain("the page crashed"));
      await page.goto(`http://${host}:${server.port}/`);
      const result = await use(page);
      for (const message of await page.evaluate(settle)) complain(`uncaptured: ${message}`);
      assert.deepEqual(complaints, []);
      return result;
    } finally {
      await context.close();
    }
  }

  /** Runs `run(world, ...args)` in a page. Functions, also among `args`, travel as text. */
  const runInPage = (run, ...args) =>
    withPage((page) => page.evaluate(runText, [run, ...args].map(asText)));

  /** A test whose body runs in a page; one that hangs must not hang the run. */
  const pageTest = (name, run, ...args) =>
    test(name, { timeout: 240_000 }, () => runInPage(run, ...args));

  return { withPage, runInPage, pageTest };
}
