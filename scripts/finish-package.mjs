// Completes the package that wasm-pack wrote: `finish-package.mjs FOLDER [--any-size]`. Fills in
// package.json, checks that the tarball would hold all that it needs, and that the module is still
// small (a development build is not).

import { execFileSync } from "node:child_process";
import { readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join, posix } from "node:path";
import { gzipSync } from "node:zlib";

const MAX_GZIPPED_BYTES = 120_000;

const [folder, anySize] = process.argv.slice(2);
const read = (file) => readFileSync(join(folder, file));

const manifest = JSON.parse(read("package.json"));
const { name } = manifest;
const [module, types, wasm] = [`${name}.js`, `${name}.d.ts`, `${name}_bg.wasm`];

/** Replaces what wasm-bindgen wrote; a new version that writes something else must be looked at. */
function rewrite(file, ...changes) {
  let text = read(file).toString();
  for (const [pattern, replacement] of changes) {
    const next = text.replace(pattern, replacement);
    if (next === text) throw new Error(`${file} has nothing like ${pattern}`);
    text = next;
  }
  writeFileSync(join(folder, file), text);
}

// The raw exports are nobody's to call, and their types are full of `any`.
rmSync(join(folder, `${wasm}.d.ts`));
rewrite(
  types,
  [
    /export interface InitOutput \{[\s\S]*?\n\}/,
    "/** What `init` gives: the memory of the module. */\nexport interface InitOutput {\n    readonly memory: WebAssembly.Memory;\n}",
  ],
  // Their constructors only throw.
  [/export class (\w+) \{\n/g, "export class $1 {\n    private constructor();\n"],
  [/ - Passing `\w+` directly is deprecated\./g, ""],
);
// init(url), init(bytes) and init(module) are how this package is documented to be called.
rewrite(
  module,
  [/ else \{\s*console\.warn\('using deprecated parameters for `initSync\(\)`[^\n]*\n\s*\}/, ""],
  [/ else \{\s*console\.warn\('using deprecated parameters for the init[^\n]*\n\s*\}/, ""],
);

// wasm-pack's own list leaves out some licences.
const files = readdirSync(folder, { recursive: true, withFileTypes: true })
  .filter((entry) => entry.isFile() && entry.name !== ".gitignore" && entry.name !== "package.json")
  .map((entry) => posix.relative(folder, posix.join(entry.parentPath ?? entry.path, entry.name)))
  .filter((file) => !file.endsWith(".tgz"))
  .sort();

Object.assign(manifest, {
  type: "module",
  main: module,
  types,
  exports: {
    ".": { types: `./${types}`, default: `./${module}` },
    // For bundlers that want the file's address, and for servers that instantiate it themselves.
    [`./${wasm}`]: `./${wasm}`,
    "./package.json": "./package.json",
  },
  // Importing it does nothing until init() is called, so a bundler may drop what is not used.
  sideEffects: false,
  files,
});
delete manifest.engines;
writeFileSync(join(folder, "package.json"), JSON.stringify(manifest, null, 2) + "\n");

// What npm would really publish, rather than what the list above says.
const [tarball] = JSON.parse(
  execFileSync("npm", ["pack", "--dry-run", "--json", `./${folder}`], {
    encoding: "utf8",
    stdio: ["ignore", "pipe", "ignore"],
  }),
);
const packed = new Set(tarball.files.map((file) => file.path));

const needed = new Set([module, types, wasm, "README.md", ...files]);
for (const licence of readdirSync(".").filter((file) => file.startsWith("LICENSE"))) {
  needed.add(licence);
}
for (const file of files.filter((file) => /\.(js|d\.ts)$/.test(file))) {
  const text = read(file).toString();
  for (const [, target] of text.matchAll(/(?:from|import|new URL)\s*\(?\s*['"](\.[^'"]+)['"]/g)) {
    needed.add(posix.join(dirname(file), target));
  }
}
const missing = [...needed].filter((file) => !packed.has(file) && !packed.has(`${file}.d.ts`));
const problems = missing.map((file) => `${file} is not in the package`);

const bytes = read(wasm);
const gzipped = gzipSync(bytes, { level: 9 }).length;
console.log(`${wasm}: ${bytes.length} bytes, ${gzipped} gzipped (at most ${MAX_GZIPPED_BYTES})`);
if (!anySize && gzipped > MAX_GZIPPED_BYTES) problems.push(`${wasm} is too large`);

for (const problem of problems) console.error(`finish-package: ${problem}`);
process.exit(problems.length ? 1 : 0);
