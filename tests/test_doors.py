"""A door lists our rows and those of installed packages; nobody assigns a row, and no package replaces one of ours."""

from collections.abc import Callable
from dataclasses import dataclass, field, fields, make_dataclass
from datetime import datetime
from inspect import Parameter, Signature
from pathlib import Path
from typing import Annotated, Any, Literal

import pytest
import typer

from privstats.course.kinds import COURSE_KINDS
from privstats.doors import Door, is_row
from privstats.errors import BrokenPackageWarning, PlanError, PrivstatsError
from privstats.heads.rules.rule import kinds as rules
from privstats.kinds import KINDS
from privstats.row_fields import RowError
from privstats.row_options import Option, RowOptions, given, is_typed
from privstats.secagg.protocols import PROTOCOLS
from privstats.transforms.base import kinds as transforms
from privstats.workflows.tables import READERS
from tests.planted import plant_entries


@dataclass(frozen=True)
class Colour:
    name: str


RED, GREEN, WRONG = Colour("red"), Colour("green"), "no colour"
GROUP = "tests.colours"


def fits(row: object, name: str) -> bool:
    return isinstance(row, Colour) and row.name == name


Brings = Callable[..., Door[Colour]]


@pytest.fixture
def brings(monkeypatch: pytest.MonkeyPatch) -> Brings:
    """Make a door whose own row is red, with a row that each of some packages announces."""

    def made(*rows: tuple[str, str, str]) -> Door[Colour]:
        plant_entries(monkeypatch, GROUP, {}, alone=True)
        for name, value, package in rows:
            plant_entries(monkeypatch, GROUP, {name: value if ":" in value else f"{__name__}:{value}"}, package)
        return Door(GROUP, "colour", PlanError, fits, {"red": RED})

    return made


def test_ours_come_first_and_each_row_has_an_origin(brings: Brings) -> None:
    door = brings(("green", "GREEN", "stranger"))
    assert dict(door) == {"red": RED, "green": GREEN}
    assert [door.origin(name) for name in door] == ["", "stranger 0.1"]
    assert (len(door), "green" in door, "blue" in door, door.get("blue")) == (2, True, False, None)
    assert brings(("green", "GREEN", "privstats")).origin("green") == "privstats 0.1"  # outside our modules
    assert brings(("green", "privstats.row_options:Option", "privstats")).origin("green") == ""


def test_ours_come_first_whatever_another_package_s_row_is_called(brings: Brings) -> None:
    door = brings(("blue", "GREEN", "stranger"), ("white", "privstats.row_options:Option", "privstats"))
    assert list(door) == ["red", "white", "blue"]


def test_no_package_replaces_a_row_of_ours(brings: Brings) -> None:
    door = brings(("red", "GREEN", "stranger"))
    assert (door["red"], door.origin("red")) == (RED, "")
    said = "privstats and stranger 0.1 both have the colour 'red'; rename it in one of them"
    with pytest.warns(BrokenPackageWarning, match=said):
        assert list(door) == ["red"]
    assert repr(door) == "<Door tests.colours: red>"  # shown in a traceback of that refusal, too


def test_no_package_stops_what_names_an_announced_row_of_ours(brings: Brings) -> None:
    door = brings(("green", "privstats.row_options:Option", "privstats"), ("green", "GREEN", "stranger"))
    with pytest.raises(
        PlanError, match="announces the colour 'green' as 'privstats.row_options:Option', which is no colour"
    ):
        door["green"]  # ours is read, and is no colour
    assert door.origin("green") == ""
    with pytest.warns(BrokenPackageWarning, match="privstats and stranger 0.1 both have the colour 'green'"):
        assert list(door) == ["red", "green"]


def test_two_packages_of_one_name_are_refused_by_their_names(brings: Brings) -> None:
    door = brings(("green", "GREEN", "one"), ("green", "WRONG", "two"))
    assert door["red"] is RED
    said = "one 0.1 and two 0.1 both have the colour 'green'"
    for asked in (lambda: door["green"], lambda: door.needed("green", "a wall"), lambda: door.origin("green")):
        with pytest.raises(PlanError, match=said):
            asked()
    with pytest.warns(BrokenPackageWarning, match=said):
        assert list(door) == ["red"]


@pytest.mark.parametrize("value", ["WRONG", "RED"])
def test_what_is_no_row_of_its_name_is_refused(brings: Brings, value: str) -> None:
    with pytest.raises(
        PlanError, match="stranger 0.1 announces the colour 'green' as .*, which is no colour of that name"
    ):
        brings(("green", value, "stranger"))["green"]


def test_a_broken_package_stops_what_names_its_row_alone(brings: Brings) -> None:
    door = brings(("green", "NOTHING", "stranger"))
    assert (door["red"], list(door)) == (RED, ["red", "green"])
    with pytest.raises(PlanError, match="the colour 'green' of stranger 0.1 cannot be loaded"):
        door["green"]
    with pytest.warns(BrokenPackageWarning, match="the colour 'green' of stranger 0.1 cannot be loaded"):
        assert door.rows() == {"red": RED}


def test_our_rows_come_first_and_those_of_others_may_be_left_unread(brings: Brings) -> None:
    door = brings(("blue", "NOTHING", "stranger"), ("green", "GREEN", "stranger"))
    assert door.rows(of_others=False) == {"red": RED}
    with pytest.warns(BrokenPackageWarning, match="'blue'"):
        assert list(door.rows()) == ["red", "green"]


def test_what_a_row_s_code_raises_is_refused_by_its_package(brings: Brings) -> None:
    door = brings(("green", "GREEN", "stranger"))
    said = "the colour 'green' of stranger 0.1 failed with ZeroDivisionError: division"
    with pytest.raises(PlanError, match=said), door.using("green"):
        _ = 1 / 0
    with pytest.raises(ZeroDivisionError), door.using("red"):
        _ = 1 / 0
    with pytest.raises(FileNotFoundError), door.using("green"):
        open("nowhere")  # noqa: PTH123, SIM115


def test_a_row_that_no_package_announces_is_named_with_what_needs_it(brings: Brings) -> None:
    door = brings()
    assert door.needed("red", "a wall") is RED
    with pytest.raises(PlanError, match="a wall needs the colour 'blue', which no installed package ann") as refused:
        door.needed("blue", "a wall")
    assert str(refused.value).endswith(
        f"announces under the entry points {GROUP} (installed: red); install the package that does"
    )
    with pytest.raises(PlanError, match="install the package that does, or paint it red$"):
        door.needed("blue" * 99, "a wall", "paint it red")


@pytest.mark.parametrize("table", [KINDS, COURSE_KINDS, PROTOCOLS, READERS, rules(), transforms()])
def test_no_code_assigns_a_row(table: Any) -> None:
    name = next(iter(table))
    with pytest.raises(TypeError, match="does not support item assignment"):
        table[name] = table[name]
    with pytest.raises(TypeError, match="does not support item deletion"):
        del table[name]


@dataclass(frozen=True)
class Digits:
    digits: Annotated[int | None, Option("Digits after the point.")] = None
    words: Annotated[list[str], Option("Words.")] = field(default_factory=list)


@dataclass(frozen=True)
class Same:
    digits: Annotated[int | None, Option("Digits, in other words.")] = None


@dataclass(frozen=True)
class Other:
    digits: Annotated[str, Option("Digits in words.")] = "three"


@dataclass(frozen=True)
class Three:
    digits: Annotated[int | None, Option("Digits after the point.")] = 3


@dataclass(frozen=True)
class Unlike:
    digits: Annotated[int | None, Option("Digits after the point.", flag="--places")] = None


def test_options_of_several_rows_are_one_value() -> None:
    joined = RowOptions({"a": Digits, "b": Same, "c": Digits}, {"b": "stranger 0.1"}.get).joined()
    assert [each.name for each in fields(joined)] == ["digits", "words"]
    assert (joined().digits, joined().words, joined(digits=3).digits) == (None, [], 3)
    assert (given(joined()), given(joined(digits=3, words=["x"]))) == ({}, {"digits": 3, "words": ["x"]})


@pytest.mark.parametrize("other", [Other, Three, Unlike])
def test_two_options_of_one_name_are_refused_by_their_packages(other: type[Any]) -> None:
    said = "the row 'b' of {} cannot be used: its option 'digits', --(digits|places), is unlike .digits., --digits,"
    with pytest.raises(PrivstatsError, match=said.format("privstats")):
        RowOptions({"a": Digits, "b": other}, lambda _: "").joined()
    with pytest.warns(BrokenPackageWarning, match=said.format("stranger 0.1")):
        joined = RowOptions({"b": other, "a": Digits}, lambda row: {"b": "stranger 0.1"}.get(row, "")).joined()
    assert joined().digits is None


@dataclass(frozen=True)
class Row:
    name: str
    terms: Any
    more: Any = None


@dataclass(frozen=True)
class Needed:
    digits: int


@dataclass(frozen=True)
class Typed:
    digits: Annotated[dict[str, int] | None, Option("Digits by name.")] = None


@dataclass(frozen=True)
class Misspelt:
    digits: "Annotated[nowhere, Option('Digits.')]" = None  # type: ignore[name-defined]  # noqa: F821


def test_options_of_a_row_are_a_dataclass_whose_fields_have_defaults() -> None:
    """The options of all rows are those of one command, which each of them must leave as usable as it was."""
    has, may = is_row(Row, options="terms"), is_row(Row, options="more")
    wrong = ({"digits": 3}, Digits(), Needed, int, Typed, Misspelt)
    assert has(Row("x", Digits), "x")
    assert may(Row("x", 0, Digits), "x")
    assert may(Row("x", 0, None), "x")
    assert is_row(Row)(Row("x", 0), "x")
    for own in wrong:
        with pytest.raises(RowError, match="terms"):
            has(Row("x", own), "x")
        with pytest.raises(RowError, match="more"):
            may(Row("x", 0, own), "x")
    for row, said in ((Row("y", Digits), "its name is 'y', and must be 'x'"), ("x", "it is 'x', and must be an inst")):
        with pytest.raises(RowError, match=said):
            has(row, "x")


READ = (int, str | None, list[Path], list[float] | None, Literal["a", "b"] | None, datetime, Annotated[bool, "flag"])
UNREAD = (
    int | str,
    Literal[1],
    list[Literal["a"]],
    list[list[int]],
    list[int | None],
    list[None],
    list,
    dict[str, int],
    tuple[int],
)


@pytest.mark.parametrize(("hint", "reads"), [*((each, True) for each in READ), *((each, False) for each in UNREAD)])
def test_an_option_is_of_a_type_that_a_command_reads(hint: Any, reads: bool) -> None:
    """An option of two types was a row, and each call of the command for help ended in an AssertionError."""

    def call(**given: Any) -> None:
        """Do nothing."""

    command, parameter = typer.Typer(), Parameter("value", Parameter.KEYWORD_ONLY, default=None, annotation=hint)
    call.__signature__ = Signature([parameter])  # type: ignore[attr-defined]
    call.__annotations__ = {}
    command.command()(call)
    try:
        typer.main.get_command(command)
    except (AssertionError, RuntimeError):
        assert not reads
    assert is_typed(hint) == reads
    own = make_dataclass("Own", [("value", Annotated[hint, Option("A value.")], None)])
    assert (_refused(own) == "") == reads


def _refused(own: type[Any]) -> str:
    try:
        is_row(Row, options="terms")(Row("x", own), "x")
    except RowError as why:
        return str(why)
    return ""
