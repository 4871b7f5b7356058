"""Readers of tables are rows: their options, what refuses them, and which one is read without a name."""

from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
import pytest

import privstats as ps
from privstats.doors import resolved
from privstats.errors import PrivstatsError, ReleaseError
from privstats.row_options import Option, flag_of
from privstats.workflows.tables import READERS, Options, TableReader, read
from privstats.workflows.tables.options import Grouped, OfColumns, names_in, options_of, stated
from privstats.workflows.tables.reading import fitting
from tests import made
from tests.cli.test_loading import COMPUTES, loaded
from tests.made import refused
from tests.planted import plant
from tests.workflows.test_plans_and_readers import CLOCK, COHORT, DIED, SEX, WARD, counted, labelled

OPTIONS = "from privstats.cli.table import _options\nassert _options().joined().__name__ == 'Options'"


def test_the_options_of_all_readers_are_loaded_without_what_computes() -> None:
    """What loads numpy here costs everybody who asks for help."""
    assert not {name.partition(".")[0] for name in loaded(OPTIONS)} & COMPUTES


@pytest.mark.parametrize("name", READERS)
def test_a_row_names_functions_that_are_there(name: str) -> None:
    row = READERS[name]
    assert isinstance(row, TableReader)
    assert set(row.letters) <= set(ps.kinds.KINDS)
    assert row.requested_by in ("", *names_in(row.options))
    assert not set(row.instead) & set(names_in(row.options))
    plan = made.plan(ps.MeanSchema(2, clip_norm=1.0), COHORT)
    assert not row.accepts(plan)
    for place in filter(None, (row.place, row.check)):
        assert callable(resolved(place))


@dataclass(frozen=True)
class Ward(Options):
    columns: Annotated[list[str] | None, Option("a ward.", "NAME", "--column")] = None


@dataclass(frozen=True)
class Other(Options):
    columns: Annotated[str | None, Option("one column.")] = None


def test_an_option_of_several_readers_shows_what_each_says_of_it() -> None:
    options = options_of({"a": OfColumns, "b": OfColumns, "c": Ward, "d": Grouped}).joined()
    assert stated(options, "columns").help == "a, b: a column of the model; repeat. Default: all. c: a ward."
    assert stated(options, "by").help == "d: the variable of groups."
    assert stated(options, "alpha").help == "Level of the intervals."
    assert (flag_of(options, "columns"), flag_of(options, "by")) == ("--column", "--by")
    said = (
        "'b' of privstats cannot be used: its option 'columns', --columns, is unlike 'columns', --column, of .* 'a' of"
    )
    with pytest.raises(PrivstatsError, match=said):
        options_of({"a": OfColumns, "b": Other}).joined()


def _released(schema: Any, records: Any) -> ps.Release:
    return ps.Release.exact(schema, ps.measure(schema, *records(400)))


CROSSED = ps.CountSchema((CLOCK, DIED, SEX), (("sex", "months", "died"),))
NUMBERS = ps.CountSchema((SEX,), (), numbers=(ps.Number("hours", 0, 1, by=("sex",)),))
CARD = ps.ClassSchema(2, WARD.width, "NAB", 1.0, transform=(WARD,))


@pytest.mark.parametrize(
    ("schema", "records", "given", "name"),
    [
        (CROSSED, counted, (), "km"),
        (CROSSED, counted, ("by",), "table-one"),
        (CROSSED, counted, ("by", "time", "event"), "km"),
        (CROSSED, counted, ("by", "event"), "km"),
        (CROSSED, counted, ("columns",), "proportions"),
        (NUMBERS, counted, (), "averages"),
        (NUMBERS, counted, ("columns",), "averages"),
        (CARD, labelled, (), "scorecard"),
        (CARD, labelled, ("time",), "scorecard"),
    ],
)
def test_without_a_name_the_first_that_fits_and_has_the_options_is_read(
    schema: Any, records: Any, given: tuple[str, ...], name: str
) -> None:
    assert fitting([_released(schema, records)], given) == name


def test_sums_that_no_table_reads_are_refused_by_their_letters() -> None:
    schema = ps.MeanSchema(2, clip_norm=1.0)
    release = ps.Release.exact(schema, ps.measure(schema, np.eye(2), np.zeros(2)))
    refused(ReleaseError, "no table is read from x of a MeanSchema; fit a head", fitting, [release], ())


def test_a_notebook_reads_a_table_by_name() -> None:
    release = _released(CROSSED, counted)
    table = read("km", release, time="months", event="died", times="discrete")
    assert table.reported
    assert str(table.summary) == str(
        ps.inference.kaplan_meier(release, time="months", event="died", times="discrete").summary()
    )
    named = "missing, table-one and imputed" if "imputed" in READERS else "missing and table-one"
    refusal = rf"^by is for km, {named}, not proportions; omit it: --reader table-one"
    with pytest.raises(ReleaseError, match=refusal):
        read("proportions", release, by="sex")
    with pytest.raises(ReleaseError, match="proportions has no option 'colour'; it has alpha, columns"):
        read("proportions", release, colour="red")
    with pytest.raises(ReleaseError, match="reader must be one of ols, .*, got 'cox'"):
        read("cox", release)
    with pytest.raises(ReleaseError, match="reader proportions reads one release, got 2; name one file"):
        read("proportions", [release, release], columns=["sex"])


def test_the_letters_of_a_strangers_kind_need_not_be_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    plant(monkeypatch, READERS, "far", TableReader("far", {"abs": "x"}, "nowhere:far"))
    assert READERS["far"].wanted == "the task 'abs', which no installed kind of schema has, with statistics x"
    assert not READERS["far"].fits(CARD)
