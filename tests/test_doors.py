"""A door lists our rows and those of installed packages; nobody assigns a row, and no package replaces one of ours."""

from collections.abc import Callable
from dataclasses import dataclass, field, fields
from importlib.metadata import EntryPoint
from typing import Annotated, Any

import pytest

from privstats import doors
from privstats.course.kinds import KINDS as COURSES
from privstats.doors import Door, Option, together
from privstats.errors import PlanError, PrivstatsError
from privstats.heads.rules.rule import kinds as rules
from privstats.kinds import KINDS
from privstats.secagg.protocols import PROTOCOLS
from privstats.transforms.base import kinds as transforms
from privstats.workflows.tables import READERS


@dataclass(frozen=True)
class Colour:
    name: str


class Stranger:
    """What a distribution tells an entry point of itself."""

    def __init__(self, name: str, version: str = "0.1") -> None:
        self.name, self.version = name, version

    def read_text(self, filename: str) -> None:
        """It has no further file."""


RED, GREEN, WRONG = Colour("red"), Colour("green"), "no colour"
GROUP = "tests.colours"


def point(name: str, value: str, package: str) -> EntryPoint:
    entry = EntryPoint(name, f"{__name__}:{value}", GROUP)
    vars(entry).update(dist=Stranger(package))
    return entry


def fits(row: object, name: str) -> bool:
    return isinstance(row, Colour) and row.name == name


Brings = Callable[..., Door[Colour]]


@pytest.fixture
def brings(monkeypatch: pytest.MonkeyPatch) -> Brings:
    """Make a door whose own row is red, with what some packages announce."""

    def made(*entries: EntryPoint) -> Door[Colour]:
        monkeypatch.setattr(doors, "announced", lambda group: list(entries) if group == GROUP else [])
        return Door(GROUP, "colour", PlanError, fits, {"red": RED})

    return made


def test_ours_come_first_and_each_row_has_an_origin(brings: Brings) -> None:
    door = brings(point("green", "GREEN", "stranger"))
    assert dict(door) == {"red": RED, "green": GREEN}
    assert [door.origin(name) for name in door] == ["", "stranger 0.1"]
    assert (len(door), "green" in door, "blue" in door, door.get("blue")) == (2, True, False, None)
    assert brings(point("green", "GREEN", "privstats")).origin("green") == "privstats 0.1"  # outside our modules
    ours = point("green", "GREEN", "privstats")
    vars(ours).update(value="privstats.doors:Option")
    assert brings(ours).origin("green") == ""


def test_no_package_replaces_a_row_of_ours(brings: Brings) -> None:
    door = brings(point("red", "GREEN", "stranger"))
    assert (door["red"], door.origin("red")) == (RED, "")
    with pytest.raises(
        PlanError, match="privstats and stranger 0.1 both bring the colour 'red'; rename it in one of them"
    ):
        list(door)
    assert repr(door) == "<Door tests.colours: red>"  # shown in a traceback of that refusal, too


def test_two_packages_of_one_name_are_refused_by_their_names(brings: Brings) -> None:
    door = brings(point("green", "GREEN", "one"), point("green", "WRONG", "two"))
    assert door["red"] is RED
    for asked in (lambda: door["green"], lambda: list(door), lambda: door.origin("green")):
        with pytest.raises(PlanError, match="one 0.1 and two 0.1 both bring the colour 'green'"):
            asked()


@pytest.mark.parametrize("value", ["WRONG", "RED"])
def test_what_is_no_row_of_its_name_is_refused(brings: Brings, value: str) -> None:
    with pytest.raises(
        PlanError, match="stranger 0.1 announces the colour 'green' as .*, which is no colour of that name"
    ):
        brings(point("green", value, "stranger"))["green"]


def test_a_broken_package_stops_what_names_its_row_alone(brings: Brings) -> None:
    door = brings(point("green", "NOTHING", "stranger"))
    assert (door["red"], list(door)) == (RED, ["red", "green"])
    with pytest.raises(PlanError, match="the colour 'green' of stranger 0.1 cannot be loaded"):
        door["green"]


def test_what_no_package_brings_is_named_with_who_needs_it(brings: Brings) -> None:
    door = brings()
    assert door.needed("red", "a wall") is RED
    with pytest.raises(PlanError, match="a wall needs the colour 'blue', which no installed package brings") as refused:
        door.needed("blue", "a wall")
    assert refused.value.lacking == GROUP
    assert str(refused.value).endswith(
        f"brings (installed: red); install the package that announces it under the entry points {GROUP}"
    )
    with pytest.raises(PlanError, match=f"entry points {GROUP}, or paint it red$"):
        door.needed("blue" * 99, "a wall", "paint it red")
    assert PrivstatsError("anything else").lacking == ""


@pytest.mark.parametrize("table", [KINDS, COURSES, PROTOCOLS, READERS, rules(), transforms()])
def test_no_code_assigns_a_row(table: Any) -> None:
    name = next(iter(table))
    with pytest.raises(TypeError, match="does not support item assignment"):
        table[name] = table[name]
    with pytest.raises(TypeError, match="does not support item deletion"):
        del table[name]


@dataclass(frozen=True)
class Digits:
    digits: Annotated[int | None, Option("Digits after the point.")] = None
    words: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Same:
    digits: Annotated[int | None, Option("Digits after the point.")] = None


@dataclass(frozen=True)
class Other:
    digits: Annotated[str, Option("Digits in words.")] = "three"


def test_options_of_several_rows_are_one_value() -> None:
    joined = together("Options", [Digits, Same, Digits])
    assert [each.name for each in fields(joined)] == ["digits", "words"]
    assert (joined().digits, joined().words, joined(digits=3).digits) == (None, [], 3)
    with pytest.raises(PrivstatsError, match="two options are called 'digits'"):
        together("Options", [Digits, Other])
