/**
 * Writes privstats.bundle.js, the one file that a page loads: every module in a scope of its own, without comments and
 * indentation, and nothing else changed, so that people can read it. The same sources give the same bytes.
 *
 *     node build.js          writes it
 *     node build.js --check  exits with 1 where it is not what the sources give
 */
import { readFileSync, writeFileSync } from "node:fs";

const ROOT = new URL(".", import.meta.url);
const TARGET = new URL("privstats.bundle.js", ROOT);
const IMPORT = /^import \{([^}]*)\} from "(\.[^"]+)";$/gm;
const EXPORT = /^export (const|function|async function|class) (\w+)/gm;

function bare(text, name) {
  const without = text.replace(/^\s*\/\*\*[\s\S]*?\*\/\n/gm, "").replace(/^\s*\/\/.*\n/gm, "");
  const lines = without
    .split("\n")
    .map((line) => line.trim())
    .filter(Boolean);
  if (lines.some((line) => / \/\/ |\/\*/.test(line))) throw new Error(`${name}: write a comment on a line of its own`);
  return lines.join("\n");
}

const REEXPORT = /^export (\{[^}]*\}) from "(\.[^"]+)";$/gm;

/** The text of the bundle: what privstats.js exports, and a page's form where a document has one. */
export function bundled() {
  const scopes = new Map();
  const pieces = [];
  const visit = (url) => {
    if (scopes.has(url.href)) return scopes.get(url.href);
    const source = bare(readFileSync(url, "utf8"), url.pathname);
    const needed = [...source.matchAll(IMPORT)].map(
      ([, names, path]) => `const {${names}} = ${visit(new URL(path, url))};\n`,
    );
    const body = source.replace(IMPORT, "").replace(EXPORT, "$1 $2").trim();
    if (/^(import|export)\b/m.test(body)) throw new Error(`${url.pathname}: an import or export of another form`);
    const names = [...source.matchAll(EXPORT)].map(([, , name]) => name);
    const scope = `_${scopes.size}`;
    scopes.set(url.href, scope);
    pieces.push(`const ${scope} = (() => {\n${needed.join("")}${body}\nreturn { ${names.join(", ")} };\n})();\n`);
    return scope;
  };
  const shown = readFileSync(new URL("privstats.js", ROOT), "utf8").matchAll(REEXPORT);
  const last = [...shown].map(([, names, path]) => `export const ${names} = ${visit(new URL(path, ROOT))};\n`);
  last.push(`${visit(new URL("src/page.js", ROOT))}.start();\n`);
  return ["/* privstats: SPDX-License-Identifier: Apache-2.0 */\n", ...pieces, ...last].join("");
}

if (process.argv[1] === new URL(import.meta.url).pathname) {
  if (process.argv.includes("--check")) process.exit(readFileSync(TARGET, "utf8") === bundled() ? 0 : 1);
  writeFileSync(TARGET, bundled());
}
