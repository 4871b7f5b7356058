"""A door's row loads nothing that computes, because `--help` reads the rows of every command's doors."""

import ast
from collections.abc import Iterator
from pathlib import Path
from pkgutil import resolve_name

import pytest

from tests.cli.test_loading import COMPUTES, loaded
from tests.without import WHOLE

ROOT = Path(__file__).parents[2]
READ_ALL = "from pkgutil import resolve_name\ndict(resolve_name({!r}))\n"


def doors(text: str) -> Iterator[tuple[str, str]]:
    """Yield name and rows of each door that a module defines, as its annotation states them."""
    for node in ast.parse(text).body:
        match node:
            case ast.AnnAssign(
                target=ast.Name(id=name), annotation=ast.Subscript(value=ast.Name(id="Door"), slice=row)
            ):
                yield name, ast.unparse(row)


def every_door() -> dict[str, str]:
    """The place of each door of the library and its attacker, with what its rows are."""
    files = [path for package in ("privstats", "threat_models") for path in sorted((ROOT / package).rglob("*.py"))]
    return {
        f"{path.relative_to(ROOT).with_suffix('').as_posix().replace('/', '.')}:{name}": row
        for path in files
        if "Door(" in (text := path.read_text("utf-8"))
        for name, row in doors(text)
    }


EVERY = every_door()


@WHOLE
def test_a_door_is_found_with_its_rows() -> None:
    text = "X: Door[Row] = Door()\nY: Door[type[Row]] = Door()\nZ = 1"
    assert list(doors(text)) == [("X", "Row"), ("Y", "type[Row]")]
    assert EVERY["privstats.plan.provers:PROVERS"] == "Prover"
    assert EVERY["threat_models.attack:ANNOUNCED"] == "type[Listed]"


OF_OTHERS = {"threat_models.attack:ANNOUNCED"}
"""Doors of which every row is another package's."""


@WHOLE
@pytest.mark.parametrize("place", sorted(set(EVERY) - OF_OTHERS))
def test_every_door_has_a_row(place: str) -> None:
    """A door with a misspelled group is empty without a word."""
    door = resolve_name(place)
    assert list(door), f"no row under {door.group}: install again after a change of entry points"


@pytest.mark.ci
@pytest.mark.parametrize("place", [each for each, row in EVERY.items() if not row.startswith(("type[", "Callable["))])
def test_the_rows_of_a_door_load_nothing_that_computes(place: str) -> None:
    """A door of classes, or of functions that build them, is read when a file or a user names one of them."""
    names = {name.partition(".")[0] for name in loaded(READ_ALL.format(place))}
    assert not names & COMPUTES, "import in the function of the row what it loads"
