"""List this library's table readers; other packages announce theirs."""

from __future__ import annotations

import warnings
from collections.abc import Collection, Mapping
from dataclasses import fields
from typing import Any, TypeAlias

from privstats.doors import Door, default_of, flag_of, is_row
from privstats.errors import BrokenPackageWarning, PrivstatsError, ReleaseError
from privstats.row_fields import RowError, option_hints
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
    stated,
)
from privstats.workflows.tables.reader import TableReader, fault_of, titled

_Meanings: TypeAlias = list[tuple[str, str, tuple[str, str | None, str]]]

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


def _is_row(row: Any, name: str) -> bool:
    if not is_row(TableReader)(row, name):
        return False
    if why := fault_of(row):
        raise RowError(why)
    return True


READERS: Door[TableReader] = Door("privstats.readers", "table reader", ReleaseError, _is_row, _OWN)
"""The table readers by the name that users type: ours, then those that installed packages announce."""


def sorted_out(reserved: Collection[str] = ()) -> tuple[dict[str, TableReader], dict[str, PrivstatsError]]:
    """Return the readers that can be used, and the refusals of the others.

    A reader cannot be used where its row cannot be loaded, or where an option is unlike one of its name in a reader
    before it. Ours come first, so no package takes a reader of ours away.

    Args:
        reserved: names and flags of options that the command has besides those of readers.

    Example:
        >>> from privstats.workflows.tables.rows import sorted_out
        >>> rows, refused = sorted_out()
        >>> "ols" in rows, refused
        (True, {})
    """
    rows: dict[str, TableReader] = {}
    refused: dict[str, PrivstatsError] = {}
    known: dict[str, _Meanings] = {}
    for name in READERS:
        try:
            row = READERS[name]
            meanings = _meanings(row.options)
            if name not in _OWN:
                _require_own_options(name, meanings, known, reserved)
        except PrivstatsError as fault:
            refused[name] = fault
        else:
            rows[name], known[name] = row, meanings
    return rows, refused


def usable(reserved: Collection[str] = ()) -> dict[str, TableReader]:
    """Return the readers that can be used, and warn of each other one: it stops no reader but itself.

    Example:
        >>> from privstats.workflows.tables.rows import usable
        >>> next(iter(usable()))
        'ols'
    """
    rows, refused = sorted_out(reserved)
    for fault in refused.values():
        warnings.warn(str(fault), BrokenPackageWarning, stacklevel=2)
    return rows


def reader_of(name: str, reserved: Collection[str] = ()) -> TableReader:
    """Return a reader by its name.

    Raises:
        PrivstatsError: no such reader, or one that cannot be used.

    Example:
        >>> from privstats.workflows.tables.rows import reader_of
        >>> reader_of("ols").name
        'ols'
    """
    if name not in READERS:
        raise ReleaseError(f"reader must be one of {', '.join(READERS)}, got {name!r}")
    row = READERS[name]  # refuses a name that two packages have, which no list holds
    refused = {} if name in _OWN else sorted_out(reserved)[1]
    if name in refused:
        raise refused[name]
    return row


def _require_own_options(
    reader: str, meanings: _Meanings, known: Mapping[str, _Meanings], reserved: Collection[str]
) -> None:
    for name, flag, meaning in meanings:
        if {name, flag} & set(reserved):
            raise ReleaseError(
                f"{titled(reader)} cannot be used: its option {name!r}, {flag}, is one of the command itself; rename it"
            )
        for other, each in ((other, each) for other, own in known.items() for each in own):
            if (each[0] == name or each[1] == flag) and each != (name, flag, meaning):
                raise ReleaseError(
                    f"{titled(reader)} cannot be used: its option {name!r} is unlike {each[0]!r} of {titled(other)}; "
                    "rename it, or give both one type, default, metavar and flag"
                )


def _meanings(options: type[Any]) -> _Meanings:
    """Return each option's name, flag and meaning, without its sentence: readers may word one differently."""
    hints = option_hints(options)
    return [
        (
            each.name,
            flag_of(options, each.name),
            (str(hints[each.name].__origin__), stated(options, each.name).metavar, repr(default_of(each))),
        )
        for each in fields(options)
    ]
