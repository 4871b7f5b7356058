/**
 * Writes privstats.bundle.js, the one file that a page loads: each module after those that it imports, in one scope,
 * without comments and blanks, otherwise unchanged, so that people can read it. The same sources give identical bytes.
 * vendor/noble.js, which brings ML-KEM, is copied into it unchanged.
 *
 *     node build.js          writes it
 *     node build.js --check  exits with 1 if it differs from what the sources give
 */
import { readFileSync, writeFileSync } from "node:fs";

const ROOT = new URL(".", import.meta.url);
const TARGET = new URL("privstats.bundle.js", ROOT);
const IMPORT = /^import \{([^}]*)\} from "(\.[^"]+)";$/gm;
const EXPORT = /^export (const|function|async function|class) (\w+)/gm;

// texts, templates and regular expressions stay unchanged; elsewhere a blank stays between two words or two signs
const TEXT = /"(?:[^"\\]|\\.)*"/;
const TEMPLATE = /`(?:[^`\\]|\\.)*`/;
const PATTERN = /(?<=[(,=:[!&|?{};\n] ?)\/(?:[^/\\\n[]|\\.|\[(?:[^\]\\\n]|\\.)*\])+\/[a-z]*/;
const TOKENS = new RegExp(`(${[TEXT, TEMPLATE, PATTERN].map(({ source }) => source).join("|")})`);

function closed(text, name) {
  const pieces = text.replaceAll('" +"', "").split(TOKENS);
  const nested = (piece) => piece[0] === "`" && piece.split("{").length !== piece.split("}").length;
  if (pieces.some(nested)) throw new Error(`${name}: write a template inside a template as a name of its own`);
  return pieces
    .map((piece, i) =>
      i % 2
        ? piece
        : piece
            .replace(/ ?([^\w\s$+-]) ?|(?<![+-]) ?([+-]) (?![+-])| (?=[+-]=)/g, "$1$2")
            .replace(/([({[])\n|,\n?(?=[})\]])|(,)\n|;\n?(?=\})/g, "$1$2"),
    )
    .join("");
}

function bare(text, name) {
  const without = text.replace(/^\s*\/\*\*[\s\S]*?\*\/\n/gm, "").replace(/^\s*\/\/.*\n/gm, "");
  const lines = without.split("\n").filter((line) => line.trim());
  if (lines.some((line) => / \/\/ |\/\*/.test(line))) throw new Error(`${name}: write a comment on a line of its own`);
  // each function, value and class becomes one line
  return lines
    .join("\n")
    .replace(/(\w)\n\s+(?=\w)/g, "$1 ")
    .replace(/\n(?=[}\])])|\n\s+/g, "");
}

// this order of modules compresses best, by 2 %
const FIRST = ["errors", "bytes", "grid", "seal", "link", "english", "primitives", "pins", "send", "say", "plan", "words", "person", "lanes"];
const REEXPORT = /^export \{([^}]*)\} from "(\.[^"]+)";$/gm;
const DECLARED = /^(?:export )?(?:const|let|function|async function|class) (?:(\w+)|[[{]([^\]}]*)[\]}])/gm;

/** Returns the bundle's text: the exports of privstats.js, and the form, which starts if the document has a study. */
export function bundled() {
  const owners = new Map();
  const visited = new Set();
  const pieces = [];
  const visit = (url) => {
    if (visited.has(url.href)) return;
    visited.add(url.href);
    const text = readFileSync(url, "utf8");
    for (const [, one, several] of text.matchAll(DECLARED)) {
      for (const name of (one ?? several).split(/,\s*/)) {
        if (owners.has(name)) throw new Error(`${url.pathname}: ${owners.get(name)} has a "${name}" too: rename one`);
        owners.set(name, url.pathname);
      }
    }
    if (url.pathname.includes("/vendor/")) {
      pieces.push(text.replace(EXPORT, "$1 $2"));
      return;
    }
    const source = bare(text, url.pathname);
    for (const [, , path] of source.matchAll(IMPORT)) visit(new URL(path, url));
    const body = source.replace(IMPORT, "").replace(EXPORT, "$1 $2").trim();
    if (/^(import|export)\b/m.test(body)) throw new Error(`${url.pathname}: an import or export of another form`);
    pieces.push(`${closed(body, url.pathname)}\n`);
  };
  for (const each of FIRST) visit(new URL(`src/${each}.js`, ROOT));
  const entry = readFileSync(new URL("privstats.js", ROOT), "utf8");
  const shown = [...entry.matchAll(REEXPORT)].map(([, names, path]) => {
    visit(new URL(path, ROOT));
    return names.trim();
  });
  visit(new URL("src/page.js", ROOT));
  const begin = 'if (globalThis.document?.querySelector("main[data-study]")) start();\n';
  return ["/* privstats: SPDX-License-Identifier: Apache-2.0 */\n", ...pieces, `export{${shown}};\n`, begin].join("");
}

if (process.argv[1] === new URL(import.meta.url).pathname) {
  if (process.argv.includes("--check")) process.exit(readFileSync(TARGET, "utf8") === bundled() ? 0 : 1);
  writeFileSync(TARGET, bundled());
}
