"""The package as npm packs it, installed in a fresh folder: imported by Node, by a bundler, and by a plain script."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.browser import browsing, needs_chromium
from tests.javascript.node import CLIENT, needs_node
from tests.javascript.study import serving

NPM = shutil.which("npm")
NAMES = ["OTHER", "PrivstatsError", "inBrowser", "inMemory", "open", "outbox"]
ESBUILD = CLIENT / "node_modules" / "esbuild" / "bin" / "esbuild"
pytestmark = [pytest.mark.ci, needs_node, pytest.mark.skipif(NPM is None, reason="npm is not installed here")]


def said(*command: object, cwd: Path) -> str:
    return subprocess.run(
        [*map(str, command)], cwd=cwd, capture_output=True, text=True, timeout=120, check=True
    ).stdout.strip()


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A fresh folder with the package in it, packed from a copy of the client."""
    place = tmp_path_factory.mktemp("package")
    copy = place / "checkout" / "clients" / "javascript"
    shutil.copytree(CLIENT, copy, ignore=shutil.ignore_patterns("node_modules"))
    shutil.copy(CLIENT.parents[1] / "LICENSE", place / "checkout")
    before = (copy / "package.json").read_text("utf-8")
    address = {"PRIVSTATS_PROJECT_URL": "https://project.example/privstats"}
    told = subprocess.run(
        [str(NPM), "pack", "--json", "--pack-destination", str(place)],
        cwd=copy,
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
        env={**os.environ, **address},
    ).stdout
    assert (copy / "package.json").read_text("utf-8") == before
    assert not (copy / "LICENSE").exists()
    fresh = place / "fresh"
    fresh.mkdir()
    (fresh / "package.json").write_text('{"type": "module"}')
    name = json.loads(told[told.index("[") :])[0]["filename"]
    said(NPM, "install", "--offline", "--no-audit", "--no-fund", place / name, cwd=fresh)
    return fresh


def test_it_brings_its_licence_its_repository_and_no_test(installed: Path) -> None:
    package = installed / "node_modules" / "privstats-client"
    named = json.loads((package / "package.json").read_text("utf-8"))
    assert (package / "LICENSE").read_bytes() == (CLIENT.parents[1] / "LICENSE").read_bytes()
    assert named["repository"]["url"] == "https://project.example/privstats"
    assert not (package / "test").exists()
    told = json.loads((CLIENT / "package.json").read_text("utf-8"))
    assert "repository" not in told  # no address is in the checkout


def test_node_imports_every_entry(installed: Path) -> None:
    script = (
        "const at = (name) => import(`privstats-client${name}`);"
        'const words = (await import("privstats-client/words.json", { with: { type: "json" } })).default;'
        'const names = Object.keys(await at("")).sort();'
        'console.log(JSON.stringify([names, Object.keys(await at("/bundle")).sort(), '
        'Object.keys(await at("/page")),'
        'Object.keys(await at("/folder")), Object.keys(words)]));'
    )
    found = json.loads(said("node", "--no-warnings", "--input-type=module", "--eval", script, cwd=installed))
    assert found == [NAMES, NAMES, ["start"], ["inFolder"], ["de", "en", "es", "fr"]]


@pytest.mark.skipif(not ESBUILD.exists(), reason="npm install --no-save esbuild@0.28.2 in clients/javascript")
def test_a_bundler_takes_what_is_used_and_leaves_the_form(installed: Path) -> None:
    (installed / "app.js").write_text('import { open } from "privstats-client"; globalThis.opened = open;')
    (installed / "form.js").write_text(
        'import { start } from "privstats-client/page"; import words from "privstats-client/words.json";'
        "globalThis.begin = () => start(undefined, { words: words.de });"
    )
    sizes = {}
    for name in ("app", "form"):
        said(ESBUILD, f"{name}.js", "--bundle", "--format=esm", f"--outfile={name}.out.js", cwd=installed)
        sizes[name] = (installed / f"{name}.out.js").read_text("utf-8")
    assert "querySelector" not in sizes["app"]
    assert "fieldset" in sizes["form"]
    assert "Ihre vertrauliche Antwort" in sizes["form"]
    said("node", "app.out.js", cwd=installed)


@needs_chromium
def test_a_plain_script_of_a_page_imports_it(installed: Path, tmp_path: Path) -> None:
    package = installed / "node_modules" / "privstats-client"
    page = (
        b'<!doctype html><title>plain</title><script type="module">import * as all from "/privstats.js"; '
        b"document.title = Object.keys(all).join();</script>"
    )

    def answer(asked):
        file = package / asked.path.lstrip("/")
        if file.suffix != ".js":
            return 200, {"Content-Type": "text/html"}, page
        return 200, {"Content-Type": "text/javascript"}, file.read_bytes()

    with serving(answer) as site, browsing(tmp_path / "profile") as browser:
        tab = browser.tab(site)
        tab.until("document.title !== 'plain'")
        assert sorted(tab.value("document.title").split(",")) == NAMES
