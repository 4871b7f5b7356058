"""A door's row loads nothing that computes, because `--help` reads the rows of every command's doors."""

from pkgutil import resolve_name

import pytest

from benchmarks import row_tables, tables
from tests.cli.test_loading import COMPUTES, loaded
from tests.project.every_door import ROOT, doors, every_door, row_classes
from tests.without import WHOLE

READ_ALL = "from pkgutil import resolve_name\ndict(resolve_name({!r}))\n"
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


@WHOLE
def test_the_page_for_authors_has_the_fields_of_every_row() -> None:
    """``python -m benchmarks.tables`` compares the tables with the classes."""
    page = (ROOT / "docs" / "reference" / "extend.md").read_text("utf-8")
    assert {"TableReader", "CourseKind", "AdjacentFile", "Study"} <= {cls.__name__ for cls in row_classes()}
    assert [name for name in row_tables.TABLES if f"<!-- table: {name} -->" not in page] == []
    assert tables.rewritten(page) == page, "run: python -m benchmarks.tables --write"
