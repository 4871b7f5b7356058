"""List this library's table readers; other packages announce theirs."""

from __future__ import annotations

from typing import Any

from privstats.doors import Door, is_row
from privstats.errors import ReleaseError
from privstats.row_fields import RowError
from privstats.tables import by_name
from privstats.workflows.tables.options import (
    Grouped,
    OfAverages,
    OfColumns,
    OfEffect,
    OfHazards,
    OfLogit,
    OfOls,
    OfPoisson,
    OfShares,
    OfSurvival,
    OfTableOne,
    Options,
    names_in,
)
from privstats.workflows.tables.reader import TableReader

_HERE = "privstats.workflows.tables"

_CHECKS = f"{_HERE}.checks"
_BY_GROUP = {"by": "--reader table-one --by NAME has shares by group, and averages has the groups of a number's `by`"}

_OWN = by_name(
    [
        TableReader(
            "ols",
            {"ridge": ""},
            f"{_HERE}.regressions:ols",
            OfOls,
            check=f"{_CHECKS}:of_columns",
            of_courses=True,
        ),
        TableReader(
            "fixed-effects",
            {"sites": ""},
            f"{_HERE}.regressions:fixed_effects",
            OfColumns,
            check=f"{_CHECKS}:of_dummies",
        ),
        TableReader("mixed", {"sites": ""}, f"{_HERE}.regressions:mixed", OfColumns, check=f"{_CHECKS}:of_levels"),
        TableReader("averages", {"counts": "Txq"}, f"{_HERE}.counts:averages", OfAverages, instead=_BY_GROUP),
        TableReader(
            "km",
            {"counts": ""},
            f"{_HERE}.counts:survival",
            OfSurvival,
            check=f"{_CHECKS}:of_times",
            requested_by="time",
        ),
        TableReader("proportions", {"counts": ""}, f"{_HERE}.counts:shares", OfShares, instead=_BY_GROUP),
        TableReader("missing", {"counts": ""}, f"{_HERE}.counts:missing", Grouped, check=f"{_CHECKS}:of_gaps"),
        TableReader("score", {"scoring": ""}, f"{_HERE}.scores:score"),
        TableReader(
            "table-one",
            {"classes": "NAD", "counts": ""},
            f"{_HERE}.counts:table_one",
            OfTableOne,
            check=f"{_CHECKS}:of_groups",
            shares={"N": 0.05, "A": 0.60, "D": 0.35},
            requested_by="by",
        ),
        TableReader("effect", {"effect": ""}, f"{_HERE}.effects:effect", OfEffect, of_courses=True),
        TableReader(
            "logit",
            {"score": ""},
            f"{_HERE}.regressions:logit",
            OfLogit,
            check=f"{_CHECKS}:of_columns",
            family="logistic",
            of_courses=True,
        ),
        TableReader(
            "poisson",
            {"score": ""},
            f"{_HERE}.regressions:poisson",
            OfPoisson,
            check=f"{_CHECKS}:of_columns",
            family="poisson",
            of_courses=True,
        ),
        TableReader(
            "hazards",
            {"hazard": ""},
            f"{_HERE}.regressions:hazards",
            OfHazards,
            check=f"{_CHECKS}:of_columns",
            of_courses=True,
        ),
        TableReader(
            "scorecard",
            {"classes": "NAS NAB", "gradients": ""},
            f"{_HERE}.scores:scorecard",
            check=f"{_CHECKS}:of_cells",
            intervals=False,
            of_courses=True,
            proposed=False,
        ),
    ],
    lambda reader: reader.name,
    "table reader",
)


_has_fields = is_row(TableReader, options="options", over=Options)


def _is_reader(row: Any, name: str) -> bool:
    """Return whether an announced object is a table reader; refuse what the annotations of its fields do not state."""
    good = _has_fields(row, name)
    if not row.letters:
        raise RowError("its letters are empty, and must state statistics by task, such as {'classes': 'NA'}")
    if row.requested_by and row.requested_by not in (names := names_in(row.options)):
        raise RowError(
            f"its requested_by is {row.requested_by!r}, and must be an option of its own: {', '.join(names)}"
        )
    READERS.require_own(name, row.requested_by, "requested_by", "options")
    return good


READERS: Door[TableReader] = Door("privstats.readers", "table reader", ReleaseError, _is_reader, _OWN)
"""The table readers by the name that users type: ours, then those that installed packages announce."""


def reader_of(name: str) -> TableReader:
    """Return a reader by its name.

    Raises:
        PrivstatsError: no such reader, or one whose package is broken.

    Example:
        >>> from privstats.workflows.tables.rows import reader_of
        >>> reader_of("ols").name
        'ols'
    """
    if name not in READERS:
        raise ReleaseError(f"reader must be one of {', '.join(READERS)}, got {name!r}")
    return READERS[name]
