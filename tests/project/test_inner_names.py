"""Contributed rooms and other packages import public names; the list of exceptions only shrinks."""

from pathlib import Path

import pytest

from tests.brought import PACKAGES
from tests.project.inner_names import ROOT, excepted, imported, inner, kept, uses


def test_contributed_rooms_import_public_names_and_the_listed_exceptions_alone() -> None:
    """A room that was deleted keeps its lines here until the command takes them out."""
    used, listed = uses(), excepted()
    new = [f"+ {room} {name}" for room in used for name in sorted(used[room] - listed.get(room, set()))]
    gone = [f"- {room} {name}" for room in used for name in sorted(listed.get(room, set()) - used[room])]
    assert not new, "\n".join(["import a public name, or one of privstats.extend:", *new])
    assert not gone, "\n".join(["these exceptions are not used any more: python -m tests.project.inner_names", *gone])


def test_an_exception_is_of_one_room() -> None:
    """A name that two rooms import has a place in ``privstats.extend``."""
    names = [name for listed in excepted().values() for name in listed]
    assert sorted({name for name in names if names.count(name) > 1}) == []


@pytest.mark.parametrize("package", PACKAGES)
def test_another_package_imports_public_names_alone(package: str) -> None:
    folder = ROOT / "tests" / "brought" / package
    assert {file: names for file, names in uses(folder, "").items() if names} == {}


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("from privstats.intake.tables import is_list", {"privstats.intake.tables.is_list"}),
        ("from privstats.intake import tables", {"privstats.intake.tables"}),
        ("from privstats import workflows", {"privstats.workflows"}),
        ("import privstats.intake.tables as t", {"privstats.intake.tables"}),
        ("from privstats.intake.tables import *", {"privstats.intake.tables.*"}),
        ("def f():\n    from privstats.intake.tables import is_list", {"privstats.intake.tables.is_list"}),
        ("if TYPE_CHECKING:\n    from privstats.plan.plan import Plan", {"privstats.plan.plan.Plan"}),
        ("from privstats.contrib.other.rows import Row", {"privstats.contrib.other.rows.Row"}),
        ("from privstats.contrib.mine.rows import Row", set()),
        ("from privstats.plan import Plan\nfrom privstats import session", set()),
        ("from privstats.errors import HeadError\nfrom privstats import domains", set()),
        ("import privstats as ps\nimport numpy as np", set()),
    ],
)
def test_each_form_of_import_is_found(line: str, found: set[str]) -> None:
    assert inner(imported(line), "privstats.contrib.mine") == found


def test_a_room_is_a_folder_or_a_file(tmp_path: Path) -> None:
    (tmp_path / "deep" / "deeper").mkdir(parents=True)
    for file in ("deep/deeper/one.py", "two.py"):
        (tmp_path / file).write_text("from privstats.intake.tables import is_list\n")
    assert uses(tmp_path) == {room: {"privstats.intake.tables.is_list"} for room in ("deep", "two")}


def test_the_command_adds_no_exception() -> None:
    assert kept({"a": {"x", "y"}, "b": {"z"}}, {"a": {"y", "new"}, "c": {"x"}}) == {"a": {"y"}, "b": set()}
