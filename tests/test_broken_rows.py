"""A broken row of another package is refused in one sentence that says what to mend, and stops no other row."""

import re
import sys
import warnings
from collections.abc import Collection, Iterator
from dataclasses import MISSING, fields, replace
from importlib.metadata import EntryPoint
from pathlib import Path
from pkgutil import resolve_name
from typing import Any

import pytest
from typer.testing import CliRunner

import privstats as ps
import threat_models.attack as attack_table
from privstats.cli import main as command_line
from privstats.cli.main import app
from privstats.cli.parts.plan_tasks import PlanTask, Question
from privstats.cli.parts.questions import questions
from privstats.doors import Door
from privstats.errors import BrokenPackageWarning, PrivstatsError
from privstats.heads.registry import HEADS, entries
from privstats.heads.rules import rule
from privstats.plan.forms import Levels
from privstats.plan.provers import PROVERS
from privstats.review.plan_notes import plan_notes
from privstats.row_fields import fault_of, hints_of
from privstats.workflows.report.further import AdjacentFile, FurtherPage
from tests import made
from tests.brought import PACKAGES, brought, install, points
from tests.planted import _Package, plant_entries
from tests.project.every_door import every_door, row_classes
from tests.without import WHOLE

FOLDER = Path(__file__).parent / "brought"
HEADS_GROUP = "privstats.heads"
DOORS: dict[str, Door[Any]] = {door.group: door for door in map(resolve_name, every_door())}
ROWS = {
    f"{folder}: {name}": (folder, group, name, place)
    for folder, project in PACKAGES.items()
    for group, own in project.get("entry-points", {}).items()
    for name, place in own.items()
}
"""Every row of the packages of strangers: its folder, group of entry points, name and place."""
LIGHT = [row for row, (folder, *_) in ROWS.items() if "torch" not in str(PACKAGES[folder]["dependencies"])]
VALUES = [row for row, (folder, *_) in ROWS.items() if folder in {"chunks", "totals", "twice", "ulm"}]
"""Rows that are dataclasses."""
WRONG = ("...", "3", "'no such thing'", "[1]", "None", "{'classes': 3}", "lambda: 0")
PLACES = ("nowhere:late", "math:nowhere", "math", "math:pi", "sys:path", "builtins:len", "no place", "")


class Package:
    """A package that changes: what it announces stays, and its text is another one at each call."""

    def __init__(self, patch: pytest.MonkeyPatch, site: Path) -> None:
        self._patch, self._site, self._count = patch, site, 0
        patch.setattr(sys, "dont_write_bytecode", True)  # a file of the same size and second would be read as before

    def announce(self, group: str, name: str, place: str) -> None:
        plant_entries(self._patch, group, {name: place}, "stranger")
        entry = EntryPoint(name, place, group)
        vars(entry).update(dist=_Package("stranger"))
        if group == HEADS_GROUP:
            self._patch.setattr(entries, "announced", lambda _: [entry])

    def write(self, folder: str, path: str = "", text: str = "") -> None:
        """Write a package's modules anew, with another text of one of them."""
        self._count += 1
        site = self._site / str(self._count)
        for each in sorted((FOLDER / folder).rglob("*.py")):
            own = site / each.relative_to(FOLDER / folder)
            own.parent.mkdir(parents=True, exist_ok=True)
            own.write_text(each.read_text("utf-8"), "utf-8")
            sys.modules.pop(".".join(own.relative_to(site).with_suffix("").parts).removesuffix(".__init__"), None)
        if path:
            (site / path).write_text(text, "utf-8")
            sys.modules.pop(Path(path).stem, None)
        self._patch.syspath_prepend(site)


@pytest.fixture
def package(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Package]:
    yield Package(monkeypatch, tmp_path)
    files = {name: str(getattr(each, "__file__", "")) for name, each in sys.modules.items()}
    written = {name for name, file in files.items() if file.startswith(str(tmp_path))}
    for name in written:
        del sys.modules[name]
    for table in (rule._RULES, attack_table._ATTACKS):  # in which classes register themselves
        for name in [name for name, cls in table.items() if cls.__module__ in written]:
            del table[name]


def refusal(group: str, name: str, place: str) -> str:
    """Return why a row is refused; empty where it is sound. All other rows are listed in either case."""
    table: Any = type(HEADS)() if group == HEADS_GROUP else DOORS[group]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", BrokenPackageWarning)
        listed = set(table) if group == HEADS_GROUP else set(table.rows())
        try:
            _ = table.class_of(name) if group == HEADS_GROUP else table[name]
        except PrivstatsError as error:
            said = str(error)
        else:
            said = ""
    if group != HEADS_GROUP:
        assert listed == set(table) - ({name} if said else set())
        no_row = f"which is no {table.noun} of that name"
        announced = f"stranger 0.1 announces the {table.noun} {name!r} as {place!r}, {no_row}"
        loaded = f"the {table.noun} {name!r} of stranger 0.1 cannot be loaded"
        ends = "; (mend|repair) or uninstall that package"
        assert not said or re.fullmatch(f"({re.escape(announced)}|{re.escape(loaded)}): .+{ends}", said), said
    elif said:
        assert "LDA" in listed
        assert "stranger 0.1" in said
        assert repr(name) in said
        assert "\n" not in said
    return said


@WHOLE
@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("group", [*DOORS, HEADS_GROUP])
def test_a_row_at_a_wrong_place_is_refused(package: Package, group: str, place: str) -> None:
    package.announce(group, "late", place)
    said = refusal(group, "late", place)
    called = {"privstats.modules": "builtins:len"}  # it is called with a size on use
    assert bool(said) == (place != called.get(group))


@pytest.mark.parametrize("row", VALUES)
def test_a_field_of_another_type_is_refused_by_its_name(package: Package, row: str) -> None:
    folder, group, name, place = ROWS[row]
    module, _, attribute = place.partition(":")
    package.write(folder)
    package.announce(group, name, "broken_row:ROW")
    sound: Any = resolve_name(place)
    for field in (each.name for each in fields(sound)):
        for value in WRONG:
            text = f"from dataclasses import replace\nfrom {module} import {attribute} as row\n"
            package.write(folder, "broken_row.py", f"{text}ROW = replace(row, {field}={value})\n")
            said = refusal(group, name, "broken_row:ROW")
            assert not said or f"its {field} is " in said, said
            assert said or value != "...", f"{field} may be anything"


@pytest.mark.parametrize("row", VALUES)
def test_a_row_without_a_field_is_refused_by_its_name(package: Package, row: str) -> None:
    folder, group, name, place = ROWS[row]
    package.write(folder)
    package.announce(group, name, "broken_row:ROW")
    sound: Any = resolve_name(place)
    for gone in (each for each in fields(sound) if each.default is each.default_factory is MISSING):
        others = ", ".join(f"{each.name}=row.{each.name}" for each in fields(sound) if each is not gone)
        text = f"from pkgutil import resolve_name\nrow = resolve_name({place!r})\nROW = type(row)({others})\n"
        package.write(folder, "broken_row.py", text)
        said = refusal(group, name, "broken_row:ROW")
        assert "cannot be loaded: TypeError: " in said
        assert repr(gone.name) in said


@pytest.mark.parametrize("row", LIGHT)
def test_a_package_that_lacks_a_line_stops_no_other_row(package: Package, row: str) -> None:
    """Without one line a row is sound or refused in one sentence; no other error leaves the door."""
    folder, group, name, place = ROWS[row]
    if group not in DOORS and group != HEADS_GROUP:
        pytest.skip("no row")
    package.announce(group, name, place)
    refused = 0
    for path in sorted((FOLDER / folder).rglob("*.py")):
        lines = path.read_text("utf-8").splitlines(keepends=True)
        for gone in (each for each, line in enumerate(lines) if line.strip()):
            text = "".join(lines[:gone] + lines[gone + 1 :])
            package.write(folder, path.relative_to(FOLDER / folder).as_posix(), text)
            refused += bool(refusal(group, name, place))
    assert refused > 1


@WHOLE
@pytest.mark.parametrize("group", DOORS)
def test_a_package_takes_no_name_of_ours(package: Package, group: str) -> None:
    door = DOORS[group]
    if not (ours := door.rows(of_others=False)):
        pytest.skip("every row is another package's")
    known, name = door.rows(), list(ours)[-1]
    package.announce(group, name, "nowhere:late")
    with pytest.warns(BrokenPackageWarning, match=f"privstats and stranger 0.1 both have the {door.noun} {name!r}"):
        assert door.rows() == known
    assert door[name] is known[name]
    assert door.origin(name) == ""


LISTS: dict[str, list[str]] = {
    "privstats.commands": ["--help"],
    "privstats.commands.course": ["course", "--help"],
    "privstats.courses": ["course", "init", "--help"],
    "privstats.findings": ["report", "--help"],
    "privstats.notes": ["plan", "check", "plan.toml"],
    "privstats.pages": ["report", "--help"],
    "privstats.readers": ["table", "--help"],
    "privstats.sources": ["plan", "init", "--help"],
    "privstats.summers": ["http", "lead", "--help"],
    "privstats.tasks": ["plan", "init", "--help"],
}


@WHOLE
@pytest.mark.parametrize("group", LISTS)
def test_a_command_that_lists_rows_does_without_a_broken_one(
    package: Package, group: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    plan = made.plan(ps.ClassSchema(2, 3, "NAB", 1.0), ps.Cohort(3, 2, 100), made.promise())
    Path("plan.toml").write_text(plan.to_toml())
    package.announce(group, "late", "nowhere:late")
    questions.cache_clear()
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            done = CliRunner().invoke(app, LISTS[group])
    finally:
        questions.cache_clear()
    assert done.exit_code == 0, done.exception
    said = {str(each.message) for each in caught if each.category is BrokenPackageWarning}
    if group == "privstats.commands.course":  # a list of a group's commands loads none of another package
        assert "A command of stranger 0.1." in done.stdout
    else:
        assert [each for each in said if "'late' of stranger 0.1 cannot be loaded: ModuleNotFoundError" in each]


@WHOLE
def test_a_module_that_exits_is_refused_and_ends_no_command(package: Package) -> None:
    """A check of a plan ended with code 0 and without its notes."""
    package.write("ulm", "exits.py", "raise SystemExit(0)\n")
    package.announce("privstats.notes", "late", "exits:NOTE")
    assert "'late' of stranger 0.1 cannot be loaded: SystemExit: 0;" in refusal("privstats.notes", "late", "exits:NOTE")


@WHOLE
def test_the_sentence_on_levels_of_proofs_does_without_a_broken_one(package: Package) -> None:
    package.announce("privstats.provers", "late", "nowhere:late")
    with pytest.warns(BrokenPackageWarning, match="the prover 'late' of stranger 0.1 cannot be loaded"):
        assert '"norm"' in Levels(PROVERS, remedy="omit validity").bounds


@WHOLE
@pytest.mark.parametrize("group", [group for group in LISTS if group != "privstats.commands.course"])
def test_a_warning_of_a_broken_package_that_is_an_error_is_one_sentence(
    package: Package,
    group: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """``python -W error`` showed it as a bug in privstats, with a traceback."""
    monkeypatch.chdir(tmp_path)
    plan = made.plan(ps.ClassSchema(2, 3, "NAB", 1.0), ps.Cohort(3, 2, 100), made.promise())
    Path("plan.toml").write_text(plan.to_toml())
    package.announce(group, "late", "nowhere:late")
    monkeypatch.setattr(sys, "argv", ["privstats", *LISTS[group]])
    monkeypatch.setattr(warnings, "showwarning", warnings.showwarning)  # which a command replaces
    questions.cache_clear()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", BrokenPackageWarning)
            with pytest.raises(SystemExit) as ending:
                command_line()
    finally:
        questions.cache_clear()
    said = " ".join(capsys.readouterr().err.split())
    assert ending.value.code == 2
    sentence = r"error: the \D+ 'late' of stranger 0\.1 cannot be loaded: ModuleNotFoundError: .+; mend or uninstall .+"
    assert re.fullmatch(sentence, said), said


ATTACK = """
import numpy as np
from threat_models.attack import Attack

class Late(Attack):
    name, number, goal, title = "late", 17, "membership", "a stranger's"

    def run(self, view, rng):
        return np.zeros(len(view.candidates))
"""
WRONG_ATTACKS = {
    "number": 'Late.number = "17"',
    "a number of ours": "Late.number = 3",
    "goal": 'Late.goal = "none"',
    "title": "Late.title = 3",
    "effort": 'Late.effort = "more"',
    "no title": "del Late.title",
    "no method": "del Late.run; Late.__abstractmethods__ = frozenset({'run'})",
}


@pytest.mark.parametrize("fault", WRONG_ATTACKS)
def test_a_wrong_attack_of_a_package_is_left_out_with_a_warning(package: Package, fault: str) -> None:
    """An attack with a number of ours was warned of, and listed all the same."""
    before = [each.name for each in attack_table.attacks()]
    package.write("ulm", "late_attack.py", ATTACK)
    package.announce("privstats.attacks", "late", "late_attack:Late")
    assert sorted(each.name for each in attack_table.attacks()) == sorted([*before, "late"])
    package.write("ulm", "late_attack.py", f"{ATTACK}\n{WRONG_ATTACKS[fault]}\n")
    with pytest.warns(BrokenPackageWarning, match="announces the attack 'late'"):
        assert [each.name for each in attack_table.attacks()] == before


@pytest.mark.parametrize("change", [{"title": 3}, {"goal": "none"}, {"number": None}])
def test_a_wrong_attack_of_ours_is_a_bug(change: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """It was missing from every list, and nothing said so."""
    own = type(attack_table.attacks()[0])
    for name, value in change.items():
        monkeypatch.setattr(own, name, value)
    with pytest.raises(TypeError, match=f"{own.name!r} .* its {name} is"):
        attack_table.attacks()


def _inner(row: Any, classes: Collection[type[Any]]) -> Iterator[tuple[str, Any]]:
    """Yield a field's name and a value of a row class in it."""
    for field in fields(row):
        value = getattr(row, field.name)
        several = value if isinstance(value, tuple) else (value,)
        yield from ((field.name, each) for each in several if type(each) in classes)


def test_a_wrong_field_within_a_field_is_refused_by_its_name() -> None:
    """A question of a task, and a file of a page, were not looked at."""
    asked = Question("depth", "x", str, "Late", "", "Which?", "Why.", "Help.", where=("task", ("late",)))
    rows = [
        PlanTask("late", "late", lambda *_: None, questions=(asked, asked)),  # type: ignore[arg-type, return-value]
        FurtherPage("late", "A page.", "a plan", lambda _: "", files=(AdjacentFile("a.txt", "a file", lambda _: ""),)),
    ]
    classes, tried = row_classes(), 0
    rows += [row for door in DOORS.values() for row in door.rows().values() if type(row) in classes]
    for row in rows:
        for name, inner in _inner(row, classes):
            for field in fields(inner):
                wrong = replace(inner, **{field.name: ...})
                held = (wrong,) if isinstance(getattr(row, name), tuple) else wrong
                why = fault_of(replace(row, **{name: held}))
                if not (free := fault_of(wrong) == ""):
                    assert why.startswith(f"its {name} has a")
                    assert f"its {field.name} is an ellipsis" in why
                assert not free or field.name == "harmless", field.name
                tried += not free
    assert tried > 10


NOTES = {
    "3": "it is not iterable",
    "None": "it is not iterable",
    "'one sentence'": "it returns 'o' as a sentence; return a list of texts",
    "[3]": "it returns 3 as a sentence; return a list of texts",
    "plan.nothing": "has no attribute 'nothing'",
}


@pytest.mark.parametrize("returns", NOTES)
def test_a_note_whose_code_fails_is_a_warning_of_the_check(package: Package, returns: str) -> None:
    text = f"from privstats.extend.plans import PlanNote\nNOTE = PlanNote('ulm', lambda plan: {returns})\n"
    package.write("ulm", "ulm_office.py", text)
    plan = made.plan(ps.ClassSchema(2, 3, "NAB", 1.0), ps.Cohort(3, 2, 100), made.promise())
    before = plan_notes(plan)
    package.announce("privstats.notes", "ulm", "ulm_office:NOTE")
    (said,) = (each for each in plan_notes(plan) if each not in before)
    assert said.startswith("WARNING: the note on plans 'ulm' of stranger 0.1 failed with ")
    assert NOTES[returns].removeprefix("it is ") in said


def test_code_of_a_package_that_fails_in_a_command_is_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A traceback and "this is a bug in privstats" named no package."""
    site = install("totals", tmp_path / "site")
    reader = site / "totals_reader.py"
    reader.write_text(reader.read_text("utf-8").replace(".moments.N.sum()", ".moments.nothing.sum()"), "utf-8")
    schema = ps.ClassSchema(2, 2, "NA", clip_norm=1.0)
    ps.Release.exact(schema, ps.measure(schema, [[0.5, 0.0], [0.25, 0.0]], [0, 1])).save(tmp_path / "r.release")
    monkeypatch.setattr(sys, "argv", ["privstats", "table", str(tmp_path / "r.release"), "--reader", "totals"])
    with brought(site), pytest.raises(SystemExit) as ending:
        command_line()
    said = capsys.readouterr().err
    assert ending.value.code == 2
    assert "error: the place of the table reader 'totals' of totals 0.1 failed with AttributeError: " in said
    assert "Traceback" not in said
    assert "bug in privstats" not in said
    assert points("totals", "privstats.readers") == {"totals": "totals_reader:READER"}


def test_our_own_rows_fit_the_annotations_of_their_fields() -> None:
    classes = row_classes()
    rows = [(door, name, row) for door in DOORS.values() for name, row in door.rows().items() if type(row) in classes]
    assert len(rows) > 30
    assert [(name, why) for _, name, row in rows if (why := fault_of(row))] == []
    assert all(door._fits(row, name) for door, name, row in rows)


def test_each_annotation_of_a_row_can_be_read() -> None:
    for cls in row_classes():
        assert hints_of(cls).keys() == {each.name for each in fields(cls)}
