"""A name belongs to one row: whatever registers itself, or is found, is refused where its name is taken."""

import inspect
import sys
from dataclasses import dataclass
from importlib.metadata import EntryPoint, EntryPoints
from typing import Any

import pytest
import typer
import typer.main

import threat_models.attack as attack_table
from privstats import heads, plug_ins
from privstats.cli import main as command_line
from privstats.cli.main import COMMANDS
from privstats.contrib.streams.mechanisms import MECHANISMS
from privstats.course.kinds import COURSE_KINDS
from privstats.dp.privacy import MODELS
from privstats.errors import DataError, HeadError, PrivstatsError, SchemaError
from privstats.heads import persistence
from privstats.heads.registry import HEADS, entries
from privstats.heads.rules import rule
from privstats.kinds import KINDS
from privstats.tables import LazyRows, by_name, register
from privstats.transforms import Transform, base
from privstats.workflows.report import finder
from privstats.workflows.report.further import FINDERS
from tests.planted import plant_entries
from threat_models.attack import Attack, attacks

TRANSFORMS = base.kinds()


def second_attack() -> None:
    class Second(Attack):
        name, number, goal, title = attacks()[0].name, 1, "membership", "somebody who takes a name"

        def run(self, view: Any, rng: Any) -> Any:
            return None


def second_transform() -> None:
    class Second(Transform):
        kind = "unit-norm"


def second_head() -> None:
    class LDA(heads.LDA):
        pass


def second_rule() -> None:
    class Second(rule.Rule):
        kind = "linear"


@pytest.mark.parametrize(
    ("second", "error", "table"),
    [
        (second_attack, DataError, attack_table._ATTACKS),
        (second_transform, SchemaError, base._TRANSFORMS),
        (second_head, HeadError, persistence._HEADS),
        (second_rule, HeadError, rule._RULES),
    ],
)
def test_a_second_class_of_a_name_is_refused_and_the_first_stays(second, error, table):
    attacks()
    base.kinds()
    rule.kinds()
    before = dict(table)
    with pytest.raises(error, match=r"another name$"):
        second()
    assert table == before


def test_a_class_that_a_reload_defines_again_keeps_its_name() -> None:
    table: dict[str, type[Any]] = {}

    def defined() -> type[Any]:
        @dataclass
        class Again:
            pass

        return Again

    first, again = defined(), defined()
    register(table, "again", first, "thing", DataError)
    register(table, "again", again, "thing", DataError)
    assert table["again"] is again


def test_a_second_head_of_the_package_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    text = inspect.getsource(sys.modules[heads.LDA.__module__])
    monkeypatch.setattr(entries, "_text", lambda module: text)
    with pytest.raises(PrivstatsError, match="two heads are called 'LDA'"):
        type(HEADS)()["LDA"]


@pytest.mark.parametrize(
    ("rows", "name"),
    [(lambda: MECHANISMS.values(), "name"), (lambda: MODELS.values(), "name"), (lambda: KINDS.values(), "task")],
)
def test_a_second_row_of_a_name_is_refused(rows: Any, name: str) -> None:
    listed = list(rows())
    assert list(by_name(listed, lambda row: getattr(row, name), "row").values()) == listed
    with pytest.raises(PrivstatsError, match="two rows are called"):
        by_name([*listed, listed[0]], lambda row: getattr(row, name), "row")


def test_every_module_beside_the_command_line_is_a_command() -> None:
    assert {"plan", "course"} <= set(COMMANDS)
    for name, app in COMMANDS.items():
        assert isinstance(app, typer.Typer), name


def test_no_command_has_two_subcommands_of_a_name() -> None:
    for name, app in COMMANDS.items():
        names = [typer.main.get_command_name(each.name or each.callback.__name__) for each in app.registered_commands]
        assert len(set(names)) == len(names), name


@pytest.mark.parametrize(
    ("name", "words", "one", "code"),
    [("plan", ["--help"], "privstats", 0), ("audit", ["audit", "--help"], "threat_models.cli:audit (no package)", 2)],
)
def test_a_second_command_of_a_name_is_refused_in_one_sentence(name, words, one, code, monkeypatch, capsys):
    """A command of ours runs whatever another package calls its own; a list of all warns of that package."""
    plant_entries(monkeypatch, COMMANDS.group, {"audit": "threat_models.cli:audit"}, alone=True)
    plant_entries(monkeypatch, COMMANDS.group, {name: "other:app"})
    monkeypatch.setattr("sys.argv", ["privstats", *words])
    with pytest.raises(SystemExit) as ending:
        command_line()
    assert ending.value.code == code
    said = " ".join(capsys.readouterr().err.split())
    assert f"{one} and other:app (no package) both have the command '{name}'; rename it in one of them" in said
    assert isinstance(COMMANDS["plan"], typer.Typer)


def test_a_command_that_is_announced_twice_alike_is_one(monkeypatch: pytest.MonkeyPatch) -> None:
    twice = [EntryPoint("audit", "threat_models.cli:audit", COMMANDS.group)] * 2
    monkeypatch.setattr(plug_ins, "_groups", lambda: plug_ins.grouped(EntryPoints(twice)))
    assert list(COMMANDS)[-1] == "audit"


def test_a_second_finder_of_a_name_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    plant_entries(monkeypatch, FINDERS.group, {"audit": "one:finder"}, alone=True)
    plant_entries(monkeypatch, FINDERS.group, {"audit": "two:finder"})
    with pytest.raises(PrivstatsError, match="one:finder .* and two:finder .* both have the finder 'audit'"):
        finder("audit")


def test_a_row_is_made_when_it_is_asked_for_and_once() -> None:
    made: list[str] = []
    rows = LazyRows({name: lambda name=name: made.append(name) or name.upper() for name in ("one", "two")})
    assert (list(rows), len(rows), "one" in rows, "three" in rows, made) == (["one", "two"], 2, True, False, [])
    assert (rows["one"], rows.get("one"), rows.get("three"), made) == ("ONE", "ONE", None, ["one"])
    assert (list(rows.values()), made) == (["ONE", "TWO"], ["one", "two"])
    with pytest.raises(TypeError, match="does not support item assignment"):
        rows["two"] = "another"  # type: ignore[index]
    with pytest.raises(KeyError, match="three"):
        rows["three"]


def test_rows_that_a_function_lists_are_listed_on_first_use() -> None:
    listed: list[str] = []
    rows = LazyRows(lambda: listed.append("once") or {"one": lambda: 1})
    assert listed == []
    assert (len(rows), rows["one"], listed) == (1, 1, ["once"])


@pytest.mark.parametrize("rows", [KINDS, COURSE_KINDS, TRANSFORMS])
def test_a_row_that_is_found_on_use_has_the_name_of_its_class(rows: Any) -> None:
    """A walk loads all; a place in the table that holds another class would read a file as another kind."""
    for name, row in rows.items():
        cls = row if isinstance(row, type) else row.type
        assert name == next(word for word in (getattr(cls, each, None) for each in ("task", "label", "kind")) if word)
