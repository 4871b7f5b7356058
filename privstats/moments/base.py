"""What every kind of exact moments offers to those who send, count or add them up.

The interface between measuring and the rest of the way: encoding, session and simulation know no kind.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray

from privstats.schema import Schema
from privstats.schema.statistic import Statistic

__all__ = ["Moments"]


class Moments(ABC):
    """Exact whole-numbered sums of one party's records, frozen; each kind is a dataclass.

    Attributes:
        schema: what was measured.

    Example:
        >>> schema = ps.ClassSchema(2, 2, "NA", clip_norm=1.0)
        >>> moments = ps.measure(schema, [[0.5, 0.0], [0.0, 0.25]], [0, 1])
        >>> isinstance(moments, ps.moments.Moments), moments.records
        (True, 2)
    """

    if TYPE_CHECKING:

        @property
        @abstractmethod
        def schema(self) -> Schema:
            """What was measured."""

    @property
    @abstractmethod
    def records(self) -> int | None:
        """Records measured; None where that is unknown. Private, and never sent."""

    @abstractmethod
    def real(self) -> Any:
        """The same in real units, float64."""

    def seated(self, index: int | None) -> Moments:  # noqa: ARG002  kinds read it
        """What the client at this place of the roster sends: the same, unless a kind deals places to groups."""
        return self

    def sums(self, row: Statistic) -> NDArray[Any]:
        """The exact sums of one statistic, blocks first: what is sent for it."""
        array: NDArray[Any] = getattr(self, row.letter)
        return array
