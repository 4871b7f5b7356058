"""Read tables that are not in memory, column by column, and refuse in one sentence what cannot be read."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from privstats.errors import DataError, PrivstatsError
from privstats.intake.accepted import RecordsLike
from privstats.intake.column_names import places_in

if TYPE_CHECKING:
    from privstats.intake.declared.columns import Column
    from privstats.intake.tables import Codes

INT96_UNIT = "us"
"""Unit in which the INT96 timestamps of Parquet files (Spark's) are read.

Arrow's nanoseconds wrap around outside the years 1677 to 2262, where registers keep an end that is still open.
"""


@dataclass(frozen=True, repr=False)
class Source(ABC):
    """A table that is not in memory; every request reads it again."""

    table: Any

    @property
    @abstractmethod
    def names(self) -> list[str]:
        """The columns."""

    @abstractmethod
    def batches(self, names: list[str]) -> Generator[Any]:
        """Yield columns of some records at a time, each batch with ``[name]`` and ``select(names)``."""

    @abstractmethod
    def load(self, names: list[str]) -> Any:
        """Load columns of all records."""

    def lacking(self, name: str) -> str:  # noqa: ARG002
        """Return why a column is not among the names, as a sentence; "" where it is simply none of them."""
        return ""

    def present(self, wanted: Sequence[str]) -> list[str]:
        """Return those of some columns that the table has, as it writes them."""
        names = self.names
        places = places_in(wanted, names)
        for name, place in zip(wanted, places, strict=True):
            if place is None and (why := self.lacking(name)):
                raise DataError(why)
        return [names[place] for place in places if place is not None]


Refusal: TypeAlias = Callable[[str], DataError]
"""From the class of a library's error to the refusal that is raised instead."""


@contextmanager
def refusing(refusal: Refusal) -> Iterator[None]:
    """Replace a library's errors while it reads: their text may hold a record's value."""
    try:
        yield
    except PrivstatsError:
        raise
    except Exception as error:
        raise refusal(type(error).__name__) from None


def each_refusing(parts: Generator[Any], refusal: Refusal) -> Generator[Any]:
    """Yield the parts; their errors are replaced as by :func:`refusing`."""
    try:
        while True:
            with refusing(refusal):
                part = next(parts, None)
            if part is None:
                return
            yield part
    finally:
        parts.close()


def columns_named(requested: Declaration | tuple[str, ...] | None, *named: object) -> list[str] | None:
    """Return the columns that a plan declares and its caller names; None where the plan declares none.

    Args:
        requested: declared columns, or names of features.
        named: names, and lists of names; anything else names no column.

    Example:
        >>> from privstats.intake.sources import columns_named
        >>> columns_named(("age", "sex"), "ill", ["no", "yes"]), columns_named(None, "ill")
        (['age', 'sex', 'ill', 'no', 'yes'], None)
    """
    if requested is None:
        return None
    features = requested if isinstance(requested, tuple) else [column.name for column in requested.columns]
    others = [each for name in named for each in (name if isinstance(name, list | tuple) else [name])]
    return list(dict.fromkeys((*features, *(each for each in others if isinstance(each, str)))))


class Declaration(Protocol):
    """Declared columns of a table, such as :class:`privstats.Cells`."""

    @property
    def columns(self) -> Sequence[Column]:
        """The columns, each with a name."""

    def read(self, table: RecordsLike) -> Codes:
        """Return the codes of records."""
