/**
 * Writes noble.js: ML-KEM-768 and SHA3-256 of @noble/post-quantum, in one minified file.
 *
 *     npm install --no-save --ignore-scripts @noble/post-quantum@0.7.1 esbuild@0.28.2   in clients/javascript
 *     node vendor/vendor.js          writes it
 *     node vendor/vendor.js --check  exits with 1 where it is not what these packages give
 */
import { readFileSync, writeFileSync } from "node:fs";

const PACKAGES = { "@noble/post-quantum": "0.7.1", "@noble/hashes": "2.4.0", esbuild: "0.28.2" };
const TARGET = new URL("noble.js", import.meta.url);
const WANTED = `
export { ml_kem768 } from "@noble/post-quantum/ml-kem.js";
export { sha3_256 } from "@noble/hashes/sha3.js";`;

/** Where a package is installed. */
const at = (name, file) => new URL(`../node_modules/${name}/${file}`, import.meta.url);

/** The text of noble.js, of the installed packages; throws where one is missing or of another version. */
export async function vendored() {
  for (const [name, wanted] of Object.entries(PACKAGES)) {
    const { version } = JSON.parse(readFileSync(at(name, "package.json"), "utf8"));
    if (version !== wanted) throw new Error(`${name} ${version} is installed, wanted ${wanted}`);
  }
  const { build } = await import("esbuild");
  const stdin = { contents: WANTED, resolveDir: new URL(".", import.meta.url).pathname };
  const short = { minify: true, legalComments: "none" };
  const how = { bundle: true, format: "iife", globalName: "noble", target: "es2022", charset: "ascii", write: false };
  const [{ text }] = (await build({ stdin, ...short, ...how })).outputFiles;
  const { esbuild, ...sources } = PACKAGES;
  const named = Object.entries(sources).map((pair) => pair.join(" "));
  const holder = /^Copyright.*$/m;
  const [licence, other] = Object.keys(sources).map((name) => readFileSync(at(name, "LICENSE"), "utf8").trim());
  const whole = licence.replace(holder, (line) => `${line}\n${other.match(holder)[0]}`);
  return `/* ${named.join(" and ")}, by vendor.js with esbuild ${esbuild}.\n${whole} */\n${text.replace("var", "export const")}`;
}

if (process.argv[1] === new URL(import.meta.url).pathname) {
  const text = await vendored();
  if (process.argv.includes("--check")) process.exit(readFileSync(TARGET, "utf8") === text ? 0 : 1);
  writeFileSync(TARGET, text);
}
