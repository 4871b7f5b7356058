"""A rehearsal in one call, on tables in memory or on files."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

from privstats.errors import DataError
from privstats.files.atomic import require_place
from privstats.moments import RecordFile
from privstats.progress import progress_bar
from privstats.randomness import Generator
from privstats.workflows.rehearsal.asked import Asked
from privstats.workflows.rehearsal.dialects import written_as
from privstats.workflows.rehearsal.held_tables import HeldTable, Source
from privstats.workflows.rehearsal.page import write_page
from privstats.workflows.rehearsal.run import Opened, Rehearsal, opened, rehearsed

__all__ = ["rehearse", "with_progress"]


def rehearse(
    tables: Mapping[str, Any] | Sequence[Any],
    *,
    target: str,
    epsilon: float,
    delta: float | None = None,
    adjacency: str | None = None,
    model: str | None = None,
    test: float = 0.25,
    drop: Sequence[str] = (),
    persons: str | None = None,
    page: str | os.PathLike[str] | None = None,
    rng: Generator | None = None,
) -> Rehearsal:
    """Rehearse a study on tables that you may look at, with real masks and real noise: ``privstats try`` in Python.

    What a study must know beforehand is read from the tables, so **nothing that comes of it is a release**. Numbers and
    page are those that the command makes of the same tables as files; its next commands name a CSV file per table.

    Args:
        tables: one per party, at least two, by the party's name or in a sequence: frames of pandas or polars, tables of
            Arrow, relations of DuckDB, mappings of columns, or paths of CSV and Parquet files.
        target: the column that is predicted, of a few classes.
        epsilon: of the promise.
        delta, adjacency, model: of the promise; a word of the rehearsal where it is not said.
        test: about the share of the records to score on, 0 to 1.
        drop: columns to leave out.
        persons: the column that tells whose a record is. The promise is one per person then, whose rows at one party
            weigh at most one together; all rows of a person are summed or scored on, by the id alone, in every table;
            rows without an id are left out. None: per record, and rows of one person may stand on both sides.
        page: where to write the page, which is replaced; None: nowhere.
        rng: a generator of test randomness; the operating system's when omitted.

    Raises:
        DataError: tables without common columns, without names, without the column of ids, or with too few records of a
            class.
        SchemaError: more columns than a plan may declare.
        PlanError: a promise out of its bounds.
        PrivstatsError: the page cannot be written there.
        MissingExtraError: a page, and jinja2 or matplotlib is not installed.

    Example:
        >>> dose = np.random.default_rng(0).normal(size=(2, 400))
        >>> tables = {name: {"dose": x, "ill": x > 0.5} for name, x in zip(("north", "south"), dose)}
        >>> found = ps.rehearse(tables, target="ill", epsilon=20.0)
        >>> list(found.alone), found.exact.value > 0.9
        (['north', 'south'], True)
    """
    if page is not None:
        require_place(page)
    asked = Asked(target, epsilon, delta, adjacency, model, test, tuple(drop), persons)
    found = with_progress(opened(_sources_of(tables, target), asked), rng)
    if page is not None:
        write_page(found, page)
    return found


def with_progress(what: Opened, rng: Generator | None = None) -> Rehearsal:
    """:func:`rehearsed` beside its bar, in one thread: its matrices are small."""
    from threadpoolctl import threadpool_limits

    with progress_bar("rehearsing", len(what.parties) + 3) as advance, threadpool_limits(1):
        return rehearsed(what, advance, rng)


def _sources_of(tables: Mapping[str, Any] | Sequence[Any], target: str) -> list[Source]:
    """Files and tables by the name of their party; those of a sequence are numbered.

    Raises:
        DataError: fewer than two.
    """
    named = isinstance(tables, Mapping)
    pairs = list(tables.items()) if isinstance(tables, Mapping) else [("", each) for each in tables]
    if len(pairs) < 2:
        raise DataError("a rehearsal needs two tables or more, one for each party: {'north': frame, 'south': frame}")
    found: list[Source] = []
    for place, (name, each) in enumerate(pairs, 1):
        if isinstance(each, str | os.PathLike):
            found.append(written_as(RecordFile(each, target), (None, None, None)))
        else:
            found.append(HeldTable(str(name) if named else f"party {place}", each))
    return found
