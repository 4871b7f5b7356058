"""What every table of plain rows shows besides: a frame of pandas, and itself in a notebook."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from privstats import optional_dependencies

if TYPE_CHECKING:
    from privstats.inference.summary import Summary

__all__ = ["RowTable"]


class RowTable(ABC):
    """A table that a reader returns: its rows as plain values, and its summary for publication."""

    @abstractmethod
    def to_rows(self) -> Sequence[Mapping[str, object]]:
        """The table as plain values, a mapping per row."""

    @abstractmethod
    def summary(self) -> Summary:
        """The table for publication."""

    def to_frame(self) -> Any:
        """:meth:`to_rows` as a pandas DataFrame.

        Raises:
            MissingExtraError: pandas is not installed.
        """
        return optional_dependencies.load("pandas", by="to_frame").DataFrame(self.to_rows())

    def _repr_html_(self) -> str:
        return self.summary().as_html()
