"""Read a table's declared columns at once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from privstats.errors import DataError
from privstats.intake.column_names import places_in
from privstats.intake.declared.columns import Column
from privstats.intake.tables import Codes, names_of_columns


def sources_of(columns: Sequence[Column], table: Any) -> tuple[Any, ...]:
    """Return the table's names of the columns.

    Column names are compared normalised (NFC), stripped and in any case.
    """
    names, wanted = names_of_columns(table) or [], [column.name for column in columns]
    places = places_in(wanted, names)
    if None in places:
        raise DataError(f"the table lacks the column {wanted[places.index(None)]!r}; give every column of the plan")
    return tuple(names[place] for place in places if place is not None)


def coded(columns: Sequence[Column], table: Any) -> Codes:
    """Return the codes of records, and the values in no cell of their own. No value of any kind raises."""
    each = [
        column.codes_and_lost(column.readings(table[name]))
        for column, name in zip(columns, sources_of(columns, table), strict=True)
    ]
    if len({len(codes) for codes, _ in each}) > 1:
        raise DataError("the columns of the table have different lengths; give one value per record in each")
    lost = {column.name: lost for column, (_, lost) in zip(columns, each, strict=True)}
    return Codes(np.column_stack([codes for codes, _ in each]), lost)
