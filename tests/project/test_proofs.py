"""The list of the core's tests is complete: each core room has a file there, and each bug in the core a test."""

import ast
import subprocess
import sys
from functools import cache

import pytest

import privstats as ps
from tests.core import is_listed, nodes, promises
from tests.mutation.catalogue import MUTANTS
from tests.mutation.planting import homes
from tests.project.core_graph import PACKAGE, ROOT, Graph, core_of, read_core


def _rooms() -> list[str]:
    rooms: list[str] = read_core()["core"]["rooms"]  # type: ignore[assignment]
    return rooms


@cache
def _imports(file: str) -> set[str]:
    """Return the dotted names that a test file imports, and the modules of the public names that it uses as ``ps.``."""
    tree = ast.parse((ROOT / "tests" / file).read_text("utf-8"))
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module:
            names |= {node.module} | {f"{node.module}.{each.name}" for each in node.names}
        elif isinstance(node, ast.Import):
            names |= {each.name for each in node.names}
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "ps":
            names |= {f"{PACKAGE}.{node.attr}", str(getattr(getattr(ps, node.attr, None), "__module__", ""))}
    return names


def test_every_listed_test_exists_and_is_listed_once() -> None:
    listed = [f"tests/{node}" for proofs in promises().values() for node in proofs["tests"]]
    assert sorted(set(listed)) == sorted(listed)
    for node in listed:
        file, _, test = node.partition("::")
        assert f"def {test}(" in (ROOT / file).read_text("utf-8") if test else (ROOT / file).is_file(), node


def test_the_promises_are_those_of_the_page_of_the_core() -> None:
    page = (ROOT / "docs" / "core.md").read_text("utf-8")
    assert [promise for promise in promises() if f"| {promise} |" not in page] == []


@pytest.mark.parametrize("room", _rooms())
def test_each_room_of_the_core_has_a_proof_that_imports_it(room: str) -> None:
    proofs = [each for each in promises().values() if room in each["rooms"]]
    names = {name for each in proofs for node in each["tests"] for name in _imports(node.partition("::")[0])}
    module = f"{PACKAGE}.{room}"
    assert any(name == module or name.startswith(f"{module}.") for name in names)


def test_the_list_names_rooms_of_the_core_alone() -> None:
    assert {room for promise in promises().values() for room in promise["rooms"]} == {*_rooms()}


@pytest.mark.ci  # it reads every module
def test_each_planted_bug_in_the_core_has_a_listed_test() -> None:
    core, listed = core_of(Graph.read(), read_core()), nodes()
    inside = {name: mutant for name, mutant in MUTANTS.items() if homes(mutant.edits) & core}
    unseen = [name for name, mutant in inside.items() if not any(is_listed(test, listed) for test in mutant.tests)]
    assert len(inside) > 100
    assert unseen == [], "add a test that sees the bug, or its file, to tests/core.toml"


@pytest.mark.ci
def test_the_marker_selects_what_is_listed_alone() -> None:
    """In one room whose listed tests are whole files, one with single tests, and one without any."""
    rooms = ("tests/dp/", "tests/course/", "tests/cli/")
    command = [sys.executable, "-m", "pytest", "-n", "0", "-m", "core", "--collect-only", "-q", "-q", *rooms]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    counted = {line.rpartition(":")[0] for line in done.stdout.splitlines() if line.startswith("tests/")}
    listed = {node.partition("::")[0] for node in nodes()}
    assert counted == {file for file in listed if file.startswith(rooms)}
    assert [sum(file.startswith(room) for file in counted) > 0 for room in rooms] == [True, True, False]
