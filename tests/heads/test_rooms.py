"""A module of heads stands on a floor or is a head, which nobody imports; what a head sets is read by somebody."""

import ast
import inspect
import re
import tomllib
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path

import grimp
import pytest

from privstats import heads
from privstats.errors import HeadError
from privstats.heads.registry import HEADS, head_class, named
from tests.heads.conftest import quick
from tests.without import WHOLE

PACKAGE = "privstats.heads"


@pytest.fixture(scope="module")
def graph():
    return grimp.build_graph("privstats", cache_dir=None)


@pytest.fixture(scope="module")
def floors():
    document = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())
    contracts = document["tool"]["importlinter"]["contracts"]
    (layers,) = (one["layers"] for one in contracts if one.get("containers") == [PACKAGE])
    return {f"{PACKAGE}.{room.strip()}" for layer in layers for room in layer.split("|")}


def test_what_stands_on_no_floor_is_a_head(graph, floors):
    assert floors < graph.find_children(PACKAGE)
    modules = {head_class(name).__module__ for name in HEADS}
    assert graph.find_children(PACKAGE) - floors == {each for each in modules if each.startswith(f"{PACKAGE}.")}


def test_nobody_imports_a_head_but_the_package_itself(graph, floors):
    rooms = graph.find_descendants(PACKAGE)
    for head in graph.find_children(PACKAGE) - floors:
        assert not graph.find_modules_that_directly_import(head) & rooms


def test_a_head_has_a_test_of_its_own_and_a_type():
    """The contract tests find a head by themselves; its formula they cannot know, and type checkers read a line.

    A head of another package, or of contrib, has no line: nothing here imports it.
    """
    lines = Path(heads.__file__).read_text()
    for name in HEADS:
        module = head_class(name).__module__
        room, _, own = module.partition(".")[2].rpartition(".")
        assert (Path(__file__).parents[1] / room.replace(".", "/") / f"test_{own}.py").exists()
        assert (f"    from {module} import {name} as {name}\n" in lines) == module.startswith(f"{PACKAGE}.")


@WHOLE
def test_the_page_of_heads_has_a_row_of_every_head():
    page = (Path(__file__).parents[2] / "docs/heads.md").read_text()
    rows = set(re.findall(r"^\| `(\w+)` \|", page, re.MULTILINE))
    assert rows == set(HEADS)


@pytest.mark.parametrize("name", named("classes"))
def test_what_a_head_says_of_its_temperature_and_its_rows_is_so(name, blobs):
    """A wrong ``has_calibration`` hid a card's temperature, a wrong ``unit_rows`` that a fit lacks its clip norm."""
    head, (X, y) = head_class(name), blobs(n=80, d=3, classes=2)
    assert head.has_calibration == ("self.temperature_ =" in Path(inspect.getfile(head)).read_text("utf-8"))
    terms = {"epsilon": 3.0, "delta": 1e-5, "adjacency": "replace-one", "classes": range(2), "ledger": "uncharged"}
    with nullcontext() if head.unit_rows else pytest.raises(HeadError, match="a private fit needs clip_norm=...:"):
        quick(name).fit_private(X, y, **terms)


ROOT = Path(__file__).parents[2]
FOLDER = "privstats/heads"


def attributes(context: type[ast.expr_context]) -> Iterator[str]:
    """What the heads' own modules set, or read."""
    for path in (ROOT / FOLDER).rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Attribute) and isinstance(node.ctx, context):
                yield node.attr


def elsewhere() -> Iterator[str]:
    """Everything of the form ``.name_`` in other code: no other code sets one."""
    for folder in ("privstats", "threat_models", "tests", "benchmarks"):
        for path in (ROOT / folder).rglob("*.py"):
            if not path.is_relative_to(ROOT / FOLDER):
                yield from re.findall(r"\.([a-z]\w*_)\b(?!\s*=[^=])", path.read_text("utf-8"))


def test_every_fitted_attribute_is_read_somewhere():
    fitted = {name for name in attributes(ast.Store) if re.fullmatch(r"[a-z]\w*_", name)}
    read = {*attributes(ast.Load), *elsewhere()}
    pages = " ".join(path.read_text("utf-8") for path in (ROOT / "docs").rglob("*.md"))
    assert "rule_" in fitted
    assert {name for name in fitted - read if not re.search(rf"\b{name}\b", pages)} == set()
