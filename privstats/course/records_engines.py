"""The rows of engines of records: which container each holds, and how it sums that container."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from privstats.doors import Door, is_row, resolved
from privstats.errors import DataError
from privstats.row_fields import Place

if TYPE_CHECKING:
    from privstats.dp import NoPrivacy, Privacy
    from privstats.moments import Moments


@dataclass(frozen=True)
class RecordsEngine:
    """An engine that sums a party's records where it has them.

    Attributes:
        name: its name among the entry points.
        holds: whether a container ``X`` is this engine's; it imports no package that has not built ``X``.
        place: the function that measures, called as ``privstats.measure``, or ``"module:function"``. It returns the
            exact sums of all records together.
    """

    name: str
    holds: Callable[[Any], bool]
    place: Place | Callable[..., Moments]

    @property
    def measure(self) -> Callable[..., Moments]:
        """The function that measures."""
        with ENGINES.using(self.name):
            measure: Callable[..., Moments] = resolved(self.place)
        return measure


ENGINES: Door[RecordsEngine] = Door("privstats.records_engines", "engine of records", DataError, is_row(RecordsEngine))
"""The engines by name, as packages and ``privstats.contrib`` announce them."""


def engine_for(X: object, privacy: Privacy | NoPrivacy | None = None) -> RecordsEngine | None:
    """Return the engine that holds a container, this library's own first; None for records in this process.

    Another package's engine never receives an array, a list, a dict or a path.

    Args:
        privacy: the plan's; another package's engine is for ``NoPrivacy`` alone.

    Raises:
        DataError: another package's engine would form sums under a promise, whose claim does not name that package.

    Example:
        >>> from privstats.course.records_engines import engine_for
        >>> engine_for([[0.5, 0.0]]) is None, engine_for("ward.parquet").name
        (True, 'parts')
    """
    from privstats.dp import NoPrivacy  # which loads what computes

    plain = type(X).__module__ in ("builtins", "numpy") or isinstance(X, os.PathLike)
    engine = next((row for row in ENGINES.rows(of_others=not plain).values() if row.holds(X)), None)
    package = "" if engine is None or isinstance(privacy, NoPrivacy) else ENGINES.origin(engine.name)
    if package:
        raise DataError(
            f"{package} would form the sums of a {type(X).__name__}, and no claim on a plan names that package: under "
            "a promise pass the records as an array, a frame of another type or a file, or uninstall that package"
        )
    return engine
