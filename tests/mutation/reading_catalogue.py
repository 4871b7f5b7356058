"""Deliberate bugs of reading: a container's shortcut lets one record decide what the values of others mean."""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from privstats.intake.columns import array_of
from privstats.intake.frames import _Dataset
from privstats.intake.table_files import Parquet
from privstats.intake.tables import is_list, of_list, plain_numbers
from tests.mutation.mutant import Mutant, bug
from tests.mutation.planting import member, name_in

_LAW = "tests/intake/test_containers.py::test_a_table_that_once_broke_the_law_breaks_it_nowhere"


def _by_its_array(_: Any) -> Any:
    """A frame is one array of numbers wherever its library makes one of its values."""

    def numbers(X: Any) -> Any:
        try:
            table = np.asarray(X)
        except Exception:  # the library refuses to mix these types
            return None
        return table if table.ndim == 2 and table.dtype.kind in "fiub" else None

    return numbers


def _of_their_own_width(_: Any) -> Any:
    """Rows of lists have the width that all of them have."""
    return lambda rows, width: of_list(rows)


def _as_the_first_file(self: Parquet, wanted: Any, *, gaps: bool) -> Iterator[Mapping[str, Any]]:
    from pyarrow import parquet

    table = parquet.ParquetDataset(self.path).read(columns=list(wanted))
    yield {name: array_of(table.column(name)) for name in wanted}


def _as_the_schema(self: _Dataset, names: list[str]) -> Any:
    yield from self.table.to_batches(columns=names)


def _lists_as_arrays(right: Any) -> Any:
    """Rows of lists have the width that they have, and not the plan's."""

    def held(name: str, values: Any) -> Any:
        plain = plain_numbers(values) if is_list(values) else None
        return right(name, values) if plain is None else plain

    return held


READING_MUTANTS: dict[str, Mutant] = {
    "frames by their array": bug("a gap or a word in one column decides whether another one holds dates or numbers",
        name_in("privstats.intake.tables", "_as_numbers", _by_its_array), _LAW),
    "rows of their own width": bug("a row of another length has all rows of lists refused",
        name_in("privstats.moments.readable", "rectangle", _of_their_own_width), _LAW),
    "a folder as its first file": bug("the types of the first file of a folder are those of all others",
        member(Parquet, "parts", _as_the_first_file), _LAW),
    "a dataset as its schema": bug("the types of the first file of a dataset are those of all others",
        member(_Dataset, "batches", _as_the_schema), _LAW),
    "lists as arrays": bug("rows of persons have the width of their lists, so rows that are all broken are refused",
        name_in("privstats.contrib.streams.person_rows", "_held", _lists_as_arrays), _LAW),
}  # fmt: skip
