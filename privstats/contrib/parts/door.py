"""Measure a party's records where their engine has them: one call for every engine."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import chain, islice
from typing import TYPE_CHECKING, Any

from privstats.contrib.parts import dask, ray, spark, tables
from privstats.contrib.parts.partitioned import Partitioned
from privstats.intake.frames import engine_of
from privstats.moments import Moments
from privstats.schema import Schema

if TYPE_CHECKING:
    from privstats.extend.kinds import Published
    from privstats.extend.records import Clip, Unreadable


def measure(
    schema: Schema,
    X: Any,
    y: Any = None,
    *,
    published: Published | None = None,
    unreadable: Unreadable = "refuse",
    persons: Any = None,
    person_clip: Clip | None = None,
    progress: bool = False,
) -> Moments:
    """Return exact moments of records in parts; equal to ``privstats.measure`` of all of them together.

    Nothing is private inside the engine: its workers see records, so it must be the party's own.

    Args:
        schema: the statistics to measure, which must be sums over records.
        X: the records, one of these:

            - Dask: a frame or array, a bag of ``(X, y)`` batches, or a list of delayed batches. It runs on the current
              ``distributed.Client``, or on Dask's local scheduler.
            - A Spark frame, classic or over Spark Connect; a Ray data set.
            - A DuckDB relation. With ``persons`` its parts are by a hash of the id, one in memory at a time.
            - An Arrow dataset, or a path of files (docs/parts.md, Which files): each file is a part.
            - An iterable of tables of any library, such as Arrow batches: each is a part. With ``persons`` all tables
              are in memory.
        y: the name of the column of labels or targets, or a list of names. For Dask also an array or series that is
            partitioned like ``X``.
        published, unreadable, person_clip: pass the plan's.
        persons: the name of the column of ids. For Dask also an array or series that is partitioned like ``X``. A Dask
            frame, Spark and Ray group rows by the person. Of other containers the ids are read first, and the rows of
            persons in several parts are measured together, about a million at a time.
        progress: show a progress bar.

    Guarantee:
        The result is the same integers for every partitioning, every order and every number of retries. A person with
        rows in several parts is clipped once over all of them.

    Warns:
        ClippedWarning, UnreadableRecordsWarning: as ``privstats.measure``, once for all parts. From Spark and Ray they
            hold numbers and no texts of records.

    Raises:
        DataError: records do not fit; the message names the part.
        SchemaError: sums under this schema are not over records.
        MissingExtraError: the engine's package is not installed.

    Example:
        >>> from privstats.contrib import parts
        >>> schema = ps.CountSchema((ps.Categories("sex", ("f", "m")),), (("sex",),))
        >>> parts.measure(schema, [{"sex": ["f", "m"]}, {"sex": ["f"]}]).T.tolist()  # two days
        [2, 1]
    """
    door = Partitioned(schema, published, unreadable, person_clip)
    X, first = _opened(X)
    engine: Any = _ENGINES[engine_of(X) or engine_of(first)]
    return door.warned(engine.summed(door, X, y, persons, progress=progress), stacklevel=4)


_ENGINES: Mapping[str, Any] = {"Dask": dask, "Spark": spark, "Ray": ray, "": tables}
"""Adapters by engine; "" for tables in this process."""


def _opened(X: Any) -> tuple[Any, Any]:
    """Return X and its first part, where X is a list or an iterator of parts."""
    if isinstance(X, Iterator):
        X = list(islice(X, 1)), X
        return chain(*X), next(iter(X[0]), None)
    return X, X[0] if isinstance(X, list) and X else None
