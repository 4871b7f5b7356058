import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { test } from "node:test";
import { gzipSync } from "node:zlib";

import { bundled, ENTRIES } from "../build.js";
import * as modules from "../privstats.js";

const HERE = new URL("../", import.meta.url);
const MOST = { privstats: 20_000, "privstats.hybrid": 30_000 };
const textOf = (entry) => readFileSync(new URL(`${entry}.bundle.js`, HERE), "utf8");
const ESBUILD = "0.28.2";
const esbuild = await import("esbuild").catch(() => null);
const WITHOUT = `npm install --no-save esbuild@${ESBUILD} in clients/javascript`;

test("the bundles are what the sources give, twice to the same bytes", () => {
  assert.deepEqual(ENTRIES, Object.keys(MOST));
  for (const entry of ENTRIES) {
    assert.equal(bundled(entry), textOf(entry), "run `npm run build`");
    assert.equal(bundled(entry), bundled(entry));
  }
});

test("a bundle has the same names, needs no other file, and travels in at most 20 kB, with ML-KEM in 30", async () => {
  for (const entry of ENTRIES) {
    const bundle = await import(`../${entry}.bundle.js`);
    const [text, named] = [textOf(entry), await import(`../${entry}.js`)];
    assert.deepEqual(Object.keys(bundle).sort(), Object.keys(named).sort());
    assert.deepEqual(Object.keys(named).sort(), Object.keys(modules).sort());
    const code = text.replace(/^\/\* @noble[^]*?\*\//m, "");
    assert.doesNotMatch(code, /^import|import\(|require\(|https?:\/\//m);
    assert.doesNotMatch(
      code,
      /<\/script|<!--|innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(|new Function/,
    );
    const size = gzipSync(text, { level: 9 }).length;
    assert.ok(size <= MOST[entry], `${entry}: ${size} bytes compressed`);
  }
});

test("the vendored module says whose it is, and where its packages are installed it is what they give", async (context) => {
  const text = readFileSync(new URL("vendor/noble.js", HERE), "utf8");
  assert.match(text, /^\/\* @noble\/post-quantum \d+\.\d+\.\d+ and @noble\/hashes [^]*The MIT License[^]*Paul Miller/);
  assert.ok(textOf("privstats.hybrid").includes(text.replace("export const noble", "const noble")));
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
  "minified, the client is at most 35.5 kB as it lies and 14.8 kB as it travels, with the page's form 42 and 17.2",
  {
    skip: esbuild?.version === ESBUILD ? false : WITHOUT,
  },
  async () => {
    const client = await minified('export * from "./privstats.js";');
    const page = await minified('export * from "./privstats.js"; import { start } from "./src/page.js"; start();');
    assert.ok(client[0] <= 35_500 && client[1] <= 14_800, `${client} bytes`);
    assert.ok(page[0] <= 42_000 && page[1] <= 17_200, `${page} bytes`);
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
