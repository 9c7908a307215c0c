// The typings themselves: nothing in them is `any`, every export of the module is in them and in
// usage.ts, which `tsc -p tests/js` checks, and every export has a description.

import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { test } from "node:test";

const read = (path) => readFile(new URL(path, import.meta.url), "utf8");

/** The typings without the interface of the raw wasm exports, which no user calls. */
const typings = async () =>
  (await read("../../pkg/wgrad.d.ts")).replace(/export interface InitOutput \{[^}]*\}/, "");

const withoutComments = (text) => text.replace(/\/\*[\s\S]*?\*\//g, "").replace(/\/\/.*/g, "");

test("nothing is any", async () => {
  const lines = withoutComments(await typings()).split("\n");
  assert.deepEqual(
    lines.filter((line) => /\b(any|Function|object)\b/.test(line)),
    [],
  );
});

test("every export is typed and used in usage.ts", async () => {
  const [types, usage] = [withoutComments(await typings()), await read("usage.ts")];
  const module = await import("../../pkg/wgrad.js");
  const exported = Object.keys(module).filter((name) => name !== "default");
  const declared = [...types.matchAll(/^export (?:\w+ )*?(?:function|class) (\w+)/gm)];
  const names = declared.map(([, name]) => name).filter((name) => name !== "__wbg_init");
  assert.deepEqual(exported.sort(), names.sort());
  const others = [...types.matchAll(/^export (?:interface|type) (\w+)/gm)].map(([, name]) => name);
  assert.ok(names.length > 10 && others.length > 20);
  for (const name of [...names, ...others]) {
    const uses = usage.match(new RegExp(`\\b${name}\\b`, "g")) ?? [];
    assert.ok(uses.length > 1, `usage.ts imports and uses ${name}`);
  }
  // Every method and getter of a class.
  for (const name of ["Gpu", "Arena", "Tensor"]) {
    const members = [module[name], module[name].prototype].flatMap((owner) =>
      Object.getOwnPropertyNames(owner).filter(
        (key) => !/^(__|constructor|prototype|length$|name$)/.test(key),
      ),
    );
    const [, body] = types.match(new RegExp(`^export class ${name} \\{([\\s\\S]*?)^\\}`, "m"));
    for (const member of members) {
      assert.match(body, new RegExp(`\\b${member}\\b`), `${name}.${member} is typed`);
      assert.match(usage, new RegExp(`\\.${member}\\b`), `usage.ts uses ${name}.${member}`);
    }
  }
});

test("every function, class and member is described", async () => {
  const text = await typings();
  const described = (index) => /\*\/\s*$/.test(text.slice(0, index));
  const bare = [];
  for (const found of text.matchAll(/^export (?:default )?(?:function|class) (\w+)/gm)) {
    if (!described(found.index)) bare.push(found[1]);
  }
  for (const found of text.matchAll(/^export class (\w+) \{([\s\S]*?)^\}/gm)) {
    const [start, name, body] = [found.index + found[0].indexOf("{") + 1, found[1], found[2]];
    for (const member of body.matchAll(/^ {4}(?:static |readonly )?(\w+)[(:]/gm)) {
      // `free` is wasm-bindgen's, for `using`.
      if (member[1] !== "free" && !described(start + member.index))
        bare.push(`${name}.${member[1]}`);
    }
  }
  assert.deepEqual(bare, []);
});
