"""The room is announced as another package would announce it."""

from importlib import import_module
from pathlib import Path
from tomllib import loads

from privstats.contrib.synthetic.rows import synthetic
from privstats.course.kinds import KINDS
from tests.contrib.synthetic.cases import course


def test_the_entry_point_names_what_draws_rows():
    project = loads((Path(__file__).parents[3] / "pyproject.toml").read_text())["project"]
    module, _, name = project["entry-points"]["privstats.contrib"]["synthetic"].partition(":")
    assert getattr(import_module(module), name) is synthetic


def test_a_course_has_a_row_and_a_file():
    row = KINDS["synthetic"]
    assert row.type is type(course())
    assert row.asked == "synthetic"
    assert row.options == ("share", "screen", "levels", "columns")
