"""The project's own rules, as tests: style, types, layers, documentation."""

import ast
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tests.lacking import needs
from tests.without import WHOLE

ROOT = Path(__file__).parents[2]


def run(*command: str) -> None:
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def tool(name: str) -> str:
    return str(Path(sys.executable).with_name(name))


@WHOLE
def test_ruff_finds_nothing():
    needs("ruff")
    run(sys.executable, "-m", "ruff", "check", ".")
    run(sys.executable, "-m", "ruff", "format", "--check", ".")


@WHOLE
@pytest.mark.waits
@pytest.mark.parametrize(
    "words",
    [pytest.param((), marks=pytest.mark.ci), pytest.param(("--cache-dir", os.devnull), marks=pytest.mark.nightly)],
    ids=["stored", "without a cache"],
)
def test_mypy_strict_finds_nothing(words):
    """``.ci/run`` sets a cache that a fresh checkout can use."""
    needs("mypy")
    run(sys.executable, "-m", "mypy", *words)


@WHOLE
def test_imports_only_go_downwards():
    needs("importlinter")
    run(tool("lint-imports"), "--no-cache")


def loads_none_of(modules, code):
    run(sys.executable, "-c", f"import sys, {code}; sys.exit(' '.join({set(modules)!r} & set(sys.modules)) or 0)")


@pytest.mark.ci
def test_the_core_imports_without_extras():
    """No public name, nor the command line, pulls an optional dependency in."""
    names = "[getattr(privstats, name) for name in privstats.__all__]"
    loads_none_of(["torch", "opacus", "matplotlib", "jinja2", "hypothesis"], f"privstats, privstats.cli; {names}")


def test_importing_the_package_loads_no_heavy_one():
    loads_none_of(["scipy", "sklearn", "numpy", "rich", "cryptography"], "privstats")


@pytest.mark.ci
def test_measuring_does_not_wait_for_heads():
    code = "numpy, privstats as ps; ps.measure(ps.ClassSchema(2, 2, 'NA', 1.0), numpy.eye(2), [0, 1])"
    loads_none_of(["sklearn", "scipy.stats", "scipy.optimize"], code)


def test_no_name_of_the_core_says_only_that_something_was_found_told_or_kept():
    """Such a name does not say what the value is. ``left`` may be a side."""
    odd = re.compile("(told|said|found|made|kept|brought|asked|untold)")
    rooms = tomllib.loads((ROOT / "tests/project/core.toml").read_text("utf-8"))["core"]["rooms"]
    paths = [path for room in rooms for form in ("/**/*.py", ".py") for path in (ROOT / "privstats").glob(room + form)]
    assert len(paths) > 100
    names = {
        f"{path.relative_to(ROOT)}:{node.lineno}: {node.id}"
        for path in paths
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) and odd.fullmatch(node.id)
    }
    assert names == set()
