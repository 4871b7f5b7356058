"""A module of heads stands on a floor of the import contract or is a head, and nobody imports a head."""

from __future__ import annotations

import tomllib
from pathlib import Path

import grimp
import pytest

from privstats import heads
from privstats.heads.registry import HEADS, head_class

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
    assert graph.find_children(PACKAGE) - floors == {head_class(name).__module__ for name in HEADS}


def test_nobody_imports_a_head_but_the_package_itself(graph, floors):
    rooms = graph.find_descendants(PACKAGE)
    for head in graph.find_children(PACKAGE) - floors:
        assert not graph.find_modules_that_directly_import(head) & rooms


def test_a_head_has_a_test_of_its_own_and_a_type():
    """The contract tests find a head by themselves; its formula they cannot know, and type checkers read a line."""
    lines = Path(heads.__file__).read_text()
    for name in HEADS:
        module = head_class(name).__module__
        assert Path(__file__).with_name(f"test_{module.rpartition('.')[2]}.py").exists()
        assert f"    from {module} import {name} as {name}\n" in lines
