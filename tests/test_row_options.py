"""A row of another package takes no option of a command away, and no option of ours means such a row."""

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, make_dataclass
from inspect import isclass
from itertools import product
from typing import Annotated, Any, get_type_hints

import click
import pytest
import typer
from typer.testing import CliRunner

from privstats.cli.main import COMMANDS, app
from privstats.cli.parts.group import command_of
from privstats.cli.parts.options import COMPLETION, _bundle_in, _Expanded
from privstats.cli.parts.plan_tasks import TASK, TASKS, PlanTask, Question
from privstats.cli.parts.questions import QUESTIONS, answers_in, options_of, questions
from privstats.course.kinds import COURSE_KINDS, CourseKind
from privstats.doors import Door
from privstats.engines.network.summers import SUMMERS, Summer, summer_for
from privstats.errors import BrokenPackageWarning, PlanError, PrivstatsError
from privstats.row_options import Option, RowOptions, flag_of, left_out
from privstats.workflows.report.further import FINDERS, PAGES, FurtherFindings, FurtherPage
from privstats.workflows.sources import SOURCES, StudySource
from privstats.workflows.tables import READERS, Options, TableReader
from tests.planted import plant_entries
from tests.without import needing

ROWS: dict[str, Any] = {}


def __getattr__(name: str) -> Any:
    """Return the row that a planted entry point names."""
    if name not in ROWS:
        raise AttributeError(name)
    return ROWS[name]


MARKUP = "See [/late] of [b]Ulm[/b]."
"""A help text with what rich reads as markup."""


def terms(name: str, flag: str = "", over: type = object) -> type[Any]:
    option = Annotated[str | None, Option(MARKUP, flag=flag or None)]
    return make_dataclass("Terms", [(name, option, None)], bases=(over,), frozen=True)


def course(name: str, field: str, flag: str = "") -> CourseKind:
    return CourseKind(name, "a stranger's", "nowhere:Course", asked=field, terms=terms(field, flag))


def reader(name: str, field: str, flag: str = "") -> TableReader:
    return TableReader(name, {"classes": "N"}, "nowhere:read", terms(field, flag, Options))


def summer(name: str, field: str, flag: str = "") -> Summer:
    return Summer(name, terms(field, flag), lambda options: False, lambda options, folder: None)


def source(name: str, field: str, flag: str = "") -> StudySource:
    own = field if not flag else name
    return StudySource(own.replace("_", "-"), terms(own, flag), lambda options: None)  # type: ignore[arg-type, return-value]


def _named(field: str, flag: str) -> str:
    return flag.removeprefix("--") or field


def page(name: str, field: str, flag: str = "") -> FurtherPage:
    return FurtherPage(_named(field, flag), MARKUP, "the plan", lambda statement: "")


def finding(name: str, field: str, flag: str = "") -> FurtherFindings:
    return FurtherFindings(_named(field, flag), MARKUP, lambda plan, search: [])


def question(name: str, task: str, **more: Any) -> Question:
    about = {"heading": "Late", "part": "", "asks": "Which?", "why": "It matters.", "help": MARKUP}
    return Question(**{"name": name, "harmless": "x", "kind": str, "where": (TASK, (task,)), **about, **more})


def task(name: str, field: str, flag: str = "") -> PlanTask:
    own = _named(field, flag).replace("-", "_")
    return PlanTask(name, "late things", lambda *_: None, questions=(question(own, name),))  # type: ignore[arg-type, return-value]


MAKERS: Mapping[str, tuple[Door[Any], Callable[..., Any]]] = {
    door.group: (door, make)
    for door, make in (
        (COURSE_KINDS, course),
        (FINDERS, finding),
        (PAGES, page),
        (READERS, reader),
        (SOURCES, source),
        (SUMMERS, summer),
        (TASKS, task),
    )
}
"""Doors whose rows add options to a command, with a row of a stranger that has one option."""
SOUND = "unlike-any-other"


@pytest.fixture
def bring(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., None]]:
    """Announce rows as rows of a stranger's package."""

    def announce(door: Door[Any], *rows: Any, package: str = "stranger") -> None:
        announced(monkeypatch, door, rows, package)

    yield announce
    questions.cache_clear()


def announced(patch: pytest.MonkeyPatch, door: Door[Any], rows: Sequence[Any], package: str) -> None:
    named = {row.name: f"row_{package}_{row.name.encode().hex()}" for row in rows}
    for row in rows:
        patch.setitem(ROWS, named[row.name], row)
    plant_entries(patch, door.group, {name: f"{__name__}:{each}" for name, each in named.items()}, package)
    questions.cache_clear()


def commands() -> Iterator[tuple[tuple[str, ...], _Expanded]]:
    """Yield each command that may have options of rows, with its words."""
    for name in COMMANDS:
        infos = COMMANDS[name].registered_commands
        for each in infos:
            if isinstance(each.callback, _Expanded):
                own = each.name or typer.main.get_command_name(each.callback.__name__)
                yield (name,) if len(infos) == 1 else (name, own), each.callback


def built(words: tuple[str, ...]) -> click.Command:
    found: Any = command_of(COMMANDS[words[0]], words[0])
    for word in words[1:]:
        found = found.get_command(None, word)
    return found


def options_in(command: click.Command) -> dict[str, tuple[str, ...]]:
    return {each.name or "": (*each.opts, *each.secondary_opts) for each in command.params}


def extended(row: Any) -> list[tuple[str, ...]]:
    """Return the commands that have an option of a planted row."""
    word = row.name if isinstance(row, FurtherPage | FurtherFindings | StudySource) else SOUND
    return [words for words, _ in commands() if f"--{word}" in sum(options_in(built(words)).values(), ())]


@pytest.mark.parametrize("group", MAKERS)
def test_a_row_of_a_package_takes_no_option_of_a_command_away(group: str, bring: Callable[..., None]) -> None:
    """One page called ``sign`` ended every ``privstats report``."""
    door, make = MAKERS[group]
    field = SOUND.replace("-", "_")
    sound = make("sound", field)
    with pytest.MonkeyPatch.context() as patch:
        announced(patch, door, [sound], "stranger")
        adds = extended(sound)
    assert adds
    before = {words: options_in(built(words)) for words in adds}
    names = {name for options in before.values() for name in options}
    flags = {flag for options in before.values() for own in options.values() for flag in own if flag[:2] == "--"}
    pairs = [*((name, "") for name in sorted(names)), *(("fresh", flag) for flag in sorted({*flags, "--help"}))]
    every = (make(f"late{place}", *pair) for place, pair in enumerate(pairs))
    rows = {row.name: row for row in every if row.name not in door}
    bring(door, sound, *rows.values())
    for words in adds:
        known = {word for name, flags in before[words].items() for word in (name, *flags)} | {"--help"}
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            after = options_in(built(words))
        said = [str(each.message) for each in caught if each.category is BrokenPackageWarning]
        assert {name: after[name] for name in before[words]} == before[words]
        assert field in after
        for row in rows.values():
            for option in _options_of(row) & known:
                why = [each for each in said if f"{door.noun} {row.name!r} " in each and "stranger 0.1" in each]
                assert why, (words, row.name, option)
                assert any(word in each for word in _options_of(row) for each in why)


@pytest.mark.parametrize("group", MAKERS)
def test_a_help_text_is_printed_as_it_is(group: str, bring: Callable[..., None]) -> None:
    """A bracket in one option's help ended the help of the whole command."""
    door, make = MAKERS[group]
    sound = make("sound", SOUND.replace("-", "_"))
    bring(door, sound)
    for words in extended(sound):
        done = CliRunner().invoke(app, [*words, "--help"], env={"COLUMNS": "300"})
        assert done.exit_code == 0, done.exception
        assert MARKUP in done.stdout


def _options_of(row: Any) -> set[str]:
    """Return names and flags of a row's options."""
    if isinstance(row, PlanTask):
        return {word for each in row.questions for word in (each.name, each.option)}
    if isinstance(row, FurtherPage | FurtherFindings):
        return {row.name.replace("-", "_"), f"--{row.name}"}
    own = getattr(row, "terms", None) or row.options
    return {word for each in fields(own) if each.name != "alpha" for word in (each.name, flag_of(own, each.name))}


def test_each_door_that_adds_options_to_a_command_is_tried() -> None:
    bundles = [
        bundle
        for _, command in commands()
        for hint in get_type_hints(command._command, include_extras=True).values()
        if isinstance(bundle := _bundle_in(hint), RowOptions)
    ]
    assert {bundle.noun for bundle in bundles} == {door.noun for door, _ in MAKERS.values()}


def test_the_flags_of_an_option_are_those_that_typer_builds() -> None:
    types = (str, bool, bool | None, list[bool], int | None)
    shapes = [(f"{name}_{place}", hint) for place, (name, hint) in enumerate(product(("one", "Two_Words"), types))]
    every = [
        *((name, Annotated[hint, Option("An option.")], None) for name, hint in shapes),
        *((f"x{name}", Annotated[hint, Option("An option.", flag=f"--y{name}")], None) for name, hint in shapes),
        ("pair", Annotated[bool, Option("A pair.", flag="--on/--off")], None),
    ]
    own = make_dataclass("Own", every)

    @_Expanded
    def call(own: Annotated[Any, own]) -> None:
        """Do nothing."""

    command = typer.Typer()
    command.command()(call)
    found = {word for name, flags in options_in(typer.main.get_command(command)).items() for word in (name, *flags)}
    completion = {word for name in COMPLETION for word in (name, f"--{name.replace('_', '-')}")}
    assert RowOptions({"a": own}, lambda _: "").ours == found - completion


WRONG_FLAGS = ("digits", "-d", "", "--", "---digits", "--two words", "--a/--b", "--no=1", "\n--x")


@pytest.mark.parametrize("flag", WRONG_FLAGS)
def test_a_flag_that_no_command_has_is_refused_by_its_row(flag: str, bring: Callable[..., None]) -> None:
    option = Annotated[int, Option("Digits.", flag=flag)]
    own = make_dataclass("Terms", [("digits", option, 0)], frozen=True)
    bring(COURSE_KINDS, CourseKind("late", "late", "nowhere:Course", asked="digits", terms=own))
    if not flag:  # which is no flag, so that the field's name is
        assert COURSE_KINDS["late"].terms is own
        return
    with pytest.raises(PlanError, match="'digits' .* has the flag"):
        COURSE_KINDS["late"]


def test_two_options_of_a_row_with_one_flag_are_refused(bring: Callable[..., None]) -> None:
    option = Annotated[int, Option("Digits.", flag="--digits")]
    own = make_dataclass("Terms", [("digits", option, 0), ("places", option, 0)], frozen=True)
    bring(COURSE_KINDS, CourseKind("late", "late", "nowhere:Course", asked="digits", terms=own))
    with pytest.raises(PlanError, match="'places' .* --digits .* 'digits'"):
        COURSE_KINDS["late"]


@pytest.mark.parametrize("name", ["two words", "class", "_late", "2nd", "", "a=b"])
@pytest.mark.parametrize("door", [PAGES, FINDERS], ids=lambda door: door.group)
def test_a_name_that_is_no_option_is_refused(door: Door[Any], name: str, bring: Callable[..., None]) -> None:
    _, make = MAKERS[door.group]
    bring(door, make(name, name))
    with pytest.raises(PrivstatsError, match="its name .* an option"):
        door[name]


MEANS: dict[str, tuple[Door[Any], str, Callable[[str, type[Any]], Any]]] = {
    "asked": (COURSE_KINDS, "terms", lambda name, own: CourseKind("late", "late", "x:Y", asked=name, terms=own)),
    "requested_by": (
        READERS,
        "options",
        lambda name, own: TableReader("late", {"classes": "N"}, "nowhere:read", own, requested_by=name),
    ),
    "name": (
        SOURCES,
        "terms",
        lambda name, own: StudySource(name.replace("_", "-"), own, lambda options: None),  # type: ignore[arg-type, return-value]
    ),
}
"""Fields that name the option which means a row: the door, the field with its options, and a row."""
OURS = [
    (part, name, own)
    for part, (door, options, _) in MEANS.items()
    for row in door.rows(of_others=False).values()
    if (own := getattr(row, options)) is not None
    for name in [each.name for each in fields(own)]
]


@pytest.mark.parametrize(("part", "name", "own"), OURS, ids=lambda each: each.__name__ if isclass(each) else each)
def test_no_option_of_ours_means_a_row_of_a_package(
    part: str, name: str, own: type[Any], bring: Callable[..., None]
) -> None:
    """``privstats table --alpha 0.1`` read the table of another package in place of ours."""
    door, _, make = MEANS[part]
    row = make(name, own)
    if row.name in door or (part == "name" and next(e for e in fields(own) if e.name == name).default is not None):
        pytest.skip("refused for another reason")
    bring(door, row)
    with pytest.raises(PrivstatsError, match=f"{part} is {name!r}, an option"):
        door[row.name]
    with pytest.warns(BrokenPackageWarning, match=f"its {part} is {name!r}"):
        assert row.name not in door.rows()


@dataclass(frozen=True)
class UnlikeCluster:
    cluster: Annotated[int | None, Option("A number.")] = None
    late: Annotated[str | None, Option("A place.")] = None


def never(*_: Any) -> Any:
    raise AssertionError("a summer was asked")


@needing("privstats.summers:dask")
def test_a_summer_is_asked_only_by_an_option_of_its_own(bring: Callable[..., None]) -> None:
    """A summer whose options were left out was asked, and one that shared all options of ours ended each leader."""
    shared = Summer("alike", SUMMERS["dask"].terms, lambda options: True, never)
    bring(SUMMERS, shared, Summer("unlike", UnlikeCluster, never, never))
    with pytest.warns(BrokenPackageWarning, match="'unlike' of stranger 0.1 cannot"):
        options = SUMMERS.options("terms").joined()
    assert summer_for(options()) is None
    assert summer_for(options(cluster="tls://ulm:1", store="file:///x")) is SUMMERS["dask"]


def test_two_strangers_with_unlike_options_leave_one_row_out(bring: Callable[..., None]) -> None:
    bring(SUMMERS, Summer("first", terms("late"), lambda options: options.late is not None, never))
    bring(SUMMERS, Summer("second", UnlikeCluster, never, never), package="other")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", BrokenPackageWarning)
        options = SUMMERS.options("terms").joined()
    assert "second" in left_out(options)
    assert summer_for(options(late="there")).name == "first"  # type: ignore[union-attr]


WRONG_QUESTIONS: dict[str, tuple[dict[str, Any], str]] = {
    "a part of the plan": ({"part": "privacy"}, "its part is 'privacy', and must be ''"),
    "asked for every task": ({"where": None}, r"its where must be \('task', \('late',\)\)"),
    "asked for a task of ours": ({"where": (TASK, ("classes",))}, "its where must be"),
    "asked for a task of ours too": ({"also": (TASK, ("classes", "late"))}, "its where must be"),
    "an answer of ours": ({"where": ("unit", ("person",))}, "it depends on the question 'unit'"),
    "void by an answer of ours": ({"unless": ("unit", ("person",))}, "it depends on the question 'unit'"),
    "the question for the task": ({"name": TASK}, "its name is that of an earlier question"),
    "no option": ({"name": "two words"}, "its name is 'two words', and must be an option"),
    "no type of an option": ({"kind": dict}, "its kind is dict, and must be a type that a command reads"),
}


@pytest.mark.parametrize("fault", WRONG_QUESTIONS)
def test_a_question_that_changes_other_tasks_is_refused(fault: str, bring: Callable[..., None]) -> None:
    """A question without ``where`` was missing in every ``plan init``, and one of a part changed the promise."""
    change, said = WRONG_QUESTIONS[fault]
    bring(TASKS, PlanTask("late", "late", never, questions=(question(**{"name": "depth", "task": "late", **change}),)))
    with pytest.raises(PrivstatsError, match=f"question .* is wrong: .*{said}"):
        TASKS["late"]


def test_a_question_may_depend_on_an_earlier_one_of_its_task(bring: Callable[..., None]) -> None:
    first = question("depth", "late", choices=("deep", "flat"))
    second = question("metres", "late", where=("depth", ("deep",)))
    bring(TASKS, PlanTask("late", "late", never, questions=(first, second)))
    assert {first, second} < set(questions())


@pytest.mark.parametrize("name", [TASK, *(each.name for each in QUESTIONS)])
def test_a_question_of_a_name_of_ours_leaves_its_task_out(name: str, bring: Callable[..., None]) -> None:
    if name == TASK:
        pytest.skip("refused by the door")
    bring(TASKS, PlanTask("late", "late", never, questions=(question(name, "late"),)))
    with pytest.warns(BrokenPackageWarning, match=f"'late' of stranger .* '{name}'"):
        assert [each.name for each in questions()].count(name) == 1
    assert "late" not in questions()[0].choices


def test_two_tasks_share_no_question(bring: Callable[..., None]) -> None:
    bring(TASKS, PlanTask("first", "first", never, questions=(question("depth", "first"),)))
    bring(TASKS, PlanTask("second", "second", never, questions=(question("depth", "second"),)), package="other")
    with pytest.warns(BrokenPackageWarning, match="'second' of other .* 'depth'"):
        answers = options_of(("",)).joined()
    assert answers_in(answers(depth="deep")) == {"depth": "deep"}
    assert set(left_out(answers)) == {"second"}
