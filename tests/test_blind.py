"""Rooms can be deleted: a copy forgets all of a room, and tests that need it are skipped by its name, no others."""

from importlib.metadata import distributions
from pathlib import Path
from types import new_class
from typing import Any

import pytest

from privstats.course.kinds import COURSE_KINDS
from privstats.errors import PlanError
from tests import blind, night, without
from tests.lacking import skipped_where_lacking, why_skipped

PROJECT = """[project]
name = "privstats"

[project.scripts]
privstats = "privstats.cli:main"

[project.entry-points."privstats.courses"]
gone = "privstats.contrib.gone.course_kind:KIND"
left = "privstats.contrib.left.course_kind:KIND"

[project.entry-points."privstats.findings"]
audit = "threat_models.finders:AUDIT"

[tool.hatch.build.targets.sdist]
include = [
    "privstats",
    "threat_models",
]
"""
CORE_TESTS = (
    'tests = [\n    "contrib/gone/test_sums.py::test_a",\n    "contrib/left/test_b.py",\n    "dp/test_c.py",\n]\n'
)
HOLDS = '[holds]\n"contrib.gone" = "one"\n"contrib.left" = "two"\n'
STATED = ("privstats.contrib.gone", "tests.contrib.gone", "privstats.courses:gone", "privstats.commands:depart")


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A checkout with two contributed rooms and an attacker."""
    files = {
        "pyproject.toml": PROJECT,
        "tests/core.toml": CORE_TESTS,
        "tests/project/core.toml": HOLDS,
        f".ci/{night.SECONDS.name}": '{"tests/contrib/gone/test_sums.py": 3, "tests/dp/test_c.py": 4}',
        "tests/dp/test_c.py": "",
        **{f"{room}/__init__.py": "" for room in ("privstats/contrib", "threat_models", "tests/threat_models")},
        **{f"privstats/contrib/{room}/__init__.py": "" for room in ("gone", "left")},
        **{f"tests/contrib/{room}/test_sums.py": "" for room in ("gone", "left")},
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path


def test_a_copy_forgets_a_room_its_tests_and_every_line_of_a_list(checkout: Path) -> None:
    assert blind.rooms(checkout) == ["gone", "left", "threat_models"]
    stated = blind.delete(["gone"], checkout)
    assert stated == ["privstats.contrib.gone", "tests.contrib.gone", "privstats.courses:gone"]
    assert not (checkout / "privstats/contrib/gone").exists()
    assert not (checkout / "tests/contrib/gone").exists()
    for name in blind._LISTS:
        text = (checkout / name).read_text()
        assert "gone" not in text
        assert ("left" in text) == (
            "left" in {"pyproject.toml": PROJECT, "tests/core.toml": CORE_TESTS}.get(name, HOLDS)
        )
    assert (checkout / ".ci" / night.SECONDS.name).read_text() == '{\n"tests/dp/test_c.py": 4\n}\n'
    assert blind.rooms(checkout) == ["left", "threat_models"]


def test_all_rooms_together_take_the_folder_above_them_too(checkout: Path) -> None:
    stated = blind.delete(blind.rooms(checkout), checkout)
    assert {"privstats.contrib", "threat_models", "tests.threat_models", "privstats.findings:audit"} <= {*stated}
    assert not (checkout / "privstats/contrib").exists()
    assert '"threat_models"' not in (checkout / "pyproject.toml").read_text()
    assert '"privstats"' in (checkout / "pyproject.toml").read_text()


def test_the_entry_points_that_remain_are_found_without_an_install(checkout: Path) -> None:
    blind.delete(["gone"], checkout)
    blind.write_entry_points(checkout)
    (found,) = distributions(path=[str(checkout)])
    assert found.name == "privstats"
    assert {(each.group, each.name) for each in found.entry_points} == {
        ("console_scripts", "privstats"),
        ("privstats.courses", "left"),
        ("privstats.findings", "audit"),
    }


def test_every_second_commit_deletes_each_room_alone_then_all_and_runs_every_part() -> None:
    names = ["one", "two"]
    turns = [blind.of_commit(number, names) for number in range(2 * 3 * blind.PARTS)]
    assert turns[:8] == [None, (["one"], 0), None, (["two"], 0), None, (["one", "two"], 0), None, (["one"], 1)]
    assert {(tuple(turn[0]), turn[1]) for turn in turns if turn} == {
        (deleted, part) for deleted in (("one",), ("two",), ("one", "two")) for part in range(blind.PARTS)
    }


def refusal(name: str) -> PlanError:
    with pytest.raises(PlanError) as caught:
        COURSE_KINDS.needed(name, "course.kind")
    return caught.value


CANNOT_IMPORT = "cannot import name 'gone' from 'privstats.contrib' (privstats/contrib/__init__.py)"
REASONS: list[tuple[Any, str]] = [
    (lambda: refusal("gone"), "no installed package announces the kind of course 'gone' (privstats.courses)"),
    (lambda: ModuleNotFoundError("No module", name="privstats.contrib.gone.sums"), "contrib.gone is deleted"),
    (lambda: ModuleNotFoundError("No module", name="tests.contrib.gone"), "contrib.gone is deleted"),
    (lambda: ImportError(CANNOT_IMPORT, name="privstats.contrib"), "contrib.gone is deleted"),
    (
        lambda: FileNotFoundError(2, "No such file", str(without.ROOT / "tests" / "contrib" / "gone" / "test_sums.py")),
        "contrib.gone is deleted",
    ),
    (
        lambda: AssertionError("exit 2: Error: No such command 'depart'.\n"),
        "no installed package announces the command 'depart' (privstats.commands)",
    ),
]


@pytest.mark.parametrize(("error", "reason"), REASONS)
def test_what_is_deleted_is_named_where_a_run_states_it_and_nowhere_else(error: Any, reason: str) -> None:
    assert without.reason(error(), STATED) == reason
    assert without.reason(error(), ()) == ""
    assert without.reason(error(), ("privstats.contrib.other", "privstats.courses:other")) == ""


@pytest.mark.parametrize(
    "error",
    [
        lambda: refusal("strange"),
        lambda: ModuleNotFoundError("No module", name="privstats.contrib.goner"),
        lambda: ModuleNotFoundError("No module", name="numpy"),
        lambda: KeyError("gone"),
        lambda: FileNotFoundError(2, "No such file", "gone"),
    ],
)
def test_another_error_skips_nothing_while_a_room_is_deleted(error: Any) -> None:
    assert without.reason(error(), STATED) == ""


def test_with_all_rooms_a_refusal_of_a_door_is_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else a broken entry point would turn a failure into a skip."""
    if not without.STATED:
        assert why_skipped(refusal("gone")) == ""
        with pytest.raises(PlanError), skipped_where_lacking():
            raise refusal("gone")


def test_a_room_that_is_said_to_be_deleted_and_is_here_stops_the_run() -> None:
    assert without.wrong(("tests.dp", "privstats.modules:pairs", "tests.gone", "privstats.courses:gone")) == (
        "PRIVSTATS_WITHOUT states that tests.dp, privstats.modules:pairs is deleted, and it is here"
    )
    assert without.wrong(("privstats.gone.sums", "privstats.courses:gone")) == ""


def test_a_stand_in_skips_whoever_uses_it_and_no_one_who_imports_it() -> None:
    importing = without._importing(__import__, ("privstats.contrib.gone", "tests.dp"))
    asked = {"__name__": "tests.test_sums"}
    found = importing("privstats.contrib.gone.sums", asked, None, ("Sum",)).Sum
    assert without.present({"left": len, "gone": found}) == {"left": len}
    assert importing("tests", asked, None, ("dp", "night")).night is night
    used = (found, lambda: found.of(3), lambda: list(found), lambda: isinstance(3, found), lambda: found == 3)
    for use in (*used, lambda: new_class("Mine", (importing("tests", asked, None, ("dp",)).dp,))):
        with pytest.raises(pytest.skip.Exception, match=" is deleted"):
            use()
    with pytest.raises(ModuleNotFoundError):  # code of the library gets no stand-in
        importing("privstats.contrib.gone", {"__name__": "privstats.plan"}, None, ("sums",))
