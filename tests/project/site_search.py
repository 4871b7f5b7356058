"""The search of the built site, as a reader's browser computes it, without a browser: Sphinx's own scripts in node.

It needs node and a built site. It shows no page and reads no network.
"""

import json
import re
from collections.abc import Iterable
from pathlib import Path

from tests.javascript.node import evaluated

DOCS = Path(__file__).parents[2] / "docs"
ENTRIES = re.compile(r"^```{index} (.+)$", re.MULTILINE)
_SCRIPT = """
import fs from "node:fs";
import path from "node:path";
import vm from "node:vm";

const { site, queries } = JSON.parse(fs.readFileSync(process.argv[1], "utf8"));
const page = fs.readFileSync(path.join(site, "search.html"), "utf8");
const own = /documentation_options|doctools|searchtools|language_data|searchindex|stemmer/;
const scripts = [...page.matchAll(/<script src="([^"?]+)/g)].map((found) => found[1]).filter((name) => own.test(name));
const element = { lastChild: null, dataset: {} };
const context = vm.createContext({
  document: { readyState: "loading", addEventListener() {}, getElementById: () => element, documentElement: element },
  addEventListener() {}, URLSearchParams, console, SPHINX_HIGHLIGHT_ENABLED: false,
});
context.window = context;
const run = (filename) => vm.runInContext(fs.readFileSync(path.join(site, filename), "utf8"), context, { filename });
scripts.forEach(run);
const results = "Search._performSearch(...Search._parseQuery(query)).reverse()";
const found = {};
for (const query of queries) {
  context.query = query;
  found[query] = [...new Set(vm.runInContext(results, context).map((result) => result[0]))];
}
console.log(JSON.stringify(found));
"""


def search(site: Path, queries: Iterable[str]) -> dict[str, list[str]]:
    """Return the pages found for each query, best first, by path in ``docs/``."""
    found: dict[str, list[str]] = json.loads(evaluated(_SCRIPT, {"site": str(site), "queries": [*queries]}, site))
    return found


def entries() -> dict[str, set[str]]:
    """Return what the pages' main index entries promise: the pages by query, which is an entry or a page's title."""
    expected: dict[str, set[str]] = {}
    for path in sorted(DOCS.rglob("*.md")):
        page, text = path.relative_to(DOCS).with_suffix("").as_posix(), path.read_text("utf-8")
        if text.startswith("---\norphan: true\n") or page.startswith("reference/"):
            continue
        title = re.search(r"^# (.+)$", text, re.MULTILINE)
        main = {each.strip()[1:].strip() for line in ENTRIES.findall(text) for each in line.split(",") if "!" in each}
        for query in main | ({title[1].replace("`", "")} if title else set()):
            expected.setdefault(query, set()).add(page)
    return expected
