import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { test } from "node:test";
import { gzipSync } from "node:zlib";

import { bundled } from "../build.js";
import * as modules from "../privstats.js";

const HERE = new URL("../", import.meta.url);
const MOST = 30_000;
const textOf = () => readFileSync(new URL("privstats.bundle.js", HERE), "utf8");
const ESBUILD = "0.28.2";
const esbuild = await import("esbuild").catch(() => null);
const WITHOUT = `npm install --no-save esbuild@${ESBUILD} in clients/javascript`;

test("the bundle is what the sources give, twice to the same bytes", () => {
  assert.equal(bundled(), textOf(), "run `npm run build`");
  assert.equal(bundled(), bundled());
});

test("the bundle has the same names, needs no other file, and travels in at most 30 kB", async () => {
  const [text, bundle] = [textOf(), await import("../privstats.bundle.js")];
  assert.deepEqual(Object.keys(bundle).sort(), Object.keys(modules).sort());
  const code = text.replace(/^\/\* @noble[^]*?\*\//m, "");
  assert.doesNotMatch(code, /^import|import\(|require\(|https?:\/\//m);
  assert.doesNotMatch(code, /<\/script|<!--|innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(|new Function/);
  const size = gzipSync(text, { level: 9 }).length;
  assert.ok(size <= MOST, `${size} bytes compressed`);
});

test("the vendored module says whose it is, and where its packages are installed it is what they give", async (context) => {
  const text = readFileSync(new URL("vendor/noble.js", HERE), "utf8");
  assert.match(text, /^\/\* @noble\/post-quantum \d+\.\d+\.\d+ and @noble\/hashes [^]*The MIT License[^]*Paul Miller/);
  assert.ok(textOf().includes(text.replace("export const noble", "const noble")));
  const { vendored } = await import("../vendor/vendor.js");
  const given = await vendored().catch(({ message }) => context.skip(message));
  if (given) assert.equal(given, text);
});

/** Bytes as they lie and as they travel, of what an entry needs, without names and spaces. */
async function minified(contents) {
  const stdin = { contents, resolveDir: new URL(".", HERE).pathname };
  const named = { bundle: true, minify: true, format: "esm", target: "es2022", write: false };
  const [{ contents: bytes }] = (await esbuild.build({ stdin, ...named })).outputFiles;
  return [bytes.length, gzipSync(bytes, { level: 9 }).length];
}

test(
  "minified, the client is at most 54.5 kB as it lies and 22.6 kB as it travels, with the page's form 61 and 25.1",
  {
    skip: esbuild?.version === ESBUILD ? false : WITHOUT,
  },
  async () => {
    const client = await minified('export * from "./privstats.js";');
    const page = await minified('export * from "./privstats.js"; import { start } from "./src/page.js"; start();');
    assert.ok(client[0] <= 54_500 && client[1] <= 22_600, `${client} bytes`);
    assert.ok(page[0] <= 61_000 && page[1] <= 25_100, `${page} bytes`);
  },
);

const typescript = existsSync(new URL("node_modules/typescript/bin/tsc", HERE));

test(
  "the declarations are those of the sources, and of no other",
  {
    skip: typescript ? false : "npm install --no-save typescript@7.0.2 in clients/javascript",
  },
  () => {
    const done = spawnSync(process.execPath, ["node_modules/typescript/bin/tsc", "-p", "."], { cwd: HERE });
    assert.equal(done.status, 0, String(done.stdout));
  },
);

test("there is no dependency", () => {
  const { dependencies, devDependencies } = JSON.parse(readFileSync(new URL("package.json", HERE), "utf8"));
  assert.deepEqual([dependencies, devDependencies], [undefined, undefined]);
});

test("every public name is declared for TypeScript, and no other", () => {
  const declared = readFileSync(new URL("privstats.d.ts", HERE), "utf8");
  const names = [...declared.matchAll(/^export (?:declare )?(?:const|function|class) (\w+)/gm)].map(([, name]) => name);
  assert.deepEqual(names.sort(), Object.keys(modules).sort());
});
