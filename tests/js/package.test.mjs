// The package as others get it: the packed tarball in a project with Vite, and the README's example.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";
import { build, createServer, preview } from "vite";
import { browserTests } from "./page.mjs";

const root = fileURLToPath(new URL("../../", import.meta.url));
const { withPage } = browserTests();
let app;

// npm's own layout, without asking npm to install: a test must not need the network.
function installTarball(folder) {
  const packed = execFileSync("npm", ["pack", "./pkg", "--json", "--pack-destination", folder], {
    cwd: root,
    encoding: "utf8",
    stdio: ["ignore", "pipe", "ignore"],
  });
  const [{ filename }] = JSON.parse(packed);
  const target = join(folder, "node_modules", "wgrad");
  mkdirSync(target, { recursive: true });
  execFileSync("tar", ["-xzf", join(folder, filename), "-C", target, "--strip-components", "1"]);
}

before(() => {
  app = mkdtempSync(join(tmpdir(), "wgrad-app-"));
  installTarball(app);
  const manifest = { name: "app", private: true, type: "module", dependencies: { wgrad: "*" } };
  writeFileSync(join(app, "package.json"), JSON.stringify(manifest));
  const head = `<!doctype html><link rel="icon" href="data:," />`;
  writeFileSync(join(app, "index.html"), `${head}<script type="module" src="/main.js"></script>`);
});
after(() => rmSync(app, { recursive: true, force: true }));

/** The first js block of the README, with what it logs kept. */
function readmeExample() {
  const [, code] = readFileSync(join(root, "README.md"), "utf8").match(/```js\n([\s\S]*?)```/);
  assert.match(code, /from "wgrad"/);
  assert.ok(code.trim().split("\n").length <= 10, "the example has ten lines");
  return `const log = console.log;
console.log = (...values) => { globalThis.logged = values.map((v) => Array.from(v)); };
${code}
console.log = log;`;
}

// karpathy/llm.c#763, worked out in float64.
const WANT = [
  [0.1460595, -0.6207512, -0.8033268, -0.3286321, -0.0382798, 0.9442781, -0.1531191, 5.0787067],
  [0.4736129, -1.5980148, -3.0586073, 1.1641555],
  [1.25, 0, 1.5, 2.5],
];

async function runsAt(url) {
  const logged = await withPage(async (page) => {
    await page.goto(url);
    await page.waitForFunction(() => globalThis.logged, null, { timeout: 60_000 });
    return page.evaluate(() => globalThis.logged);
  });
  logged.flat().forEach((got, i) => {
    const want = WANT.flat()[i];
    assert.ok(
      Math.abs(got - want) <= 1e-6 + 1e-5 * Math.abs(want),
      `value ${i}: ${got}, not ${want}`,
    );
  });
  assert.deepEqual(
    logged.map((values) => values.length),
    WANT.map((values) => values.length),
  );
}

// vitejs/vite#8427: a development server that moves the script but not the .wasm file.
test("the README's example runs from the tarball under Vite's development server", async () => {
  writeFileSync(join(app, "main.js"), readmeExample());
  const server = await createServer({ root: app, logLevel: "error", server: { port: 0 } });
  try {
    await server.listen();
    await runsAt(server.resolvedUrls.local[0]);
    // The second visit gets what the optimizer made of the first.
    await runsAt(server.resolvedUrls.local[0]);
  } finally {
    await server.close();
  }
});

test("the README's example runs when Vite has bundled it", async () => {
  writeFileSync(join(app, "main.js"), readmeExample());
  await build({ root: app, logLevel: "error" });
  const server = await preview({ root: app, logLevel: "error", preview: { port: 0 } });
  try {
    await runsAt(server.resolvedUrls.local[0]);
  } finally {
    await server.close();
  }
});
