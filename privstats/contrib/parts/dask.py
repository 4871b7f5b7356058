"""Tasks on a party's own Dask cluster, which sees its records: moments, or sums of a leader's settled parts.

A repeated task replaces its value in a tree of sums, so nothing counts twice.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from ipaddress import ip_address
from itertools import chain
from typing import Any, TypeAlias, overload
from urllib.parse import urlsplit

from privstats import moments as room
from privstats import optional_dependencies
from privstats.contrib.parts.part_store import StoredPart, content_of
from privstats.encoding import Ring
from privstats.errors import DataError, LocalProtocolError, PrivstatsError, SchemaError
from privstats.kinds import ClassMoments, ClassSchema, RidgeMoments, RidgeSchema
from privstats.moments import Moments
from privstats.records.reading import Unreadable
from privstats.schema import Schema, require_schema
from privstats.schema.public_values import Published
from privstats.secagg.protocols import PROTOCOLS

_PARTS = "contrib.parts.dask.PartTasks"
_CONNECT_SECONDS = 20
_SAFE = ["dask", "msgpack", "error"]
"""Serialisations accepted in results of the cluster: none runs code when it is read."""

_FAN_IN = 8
_BY = "contrib.parts.dask.measure"
_CUT = "partition both alike, for example with rechunk or repartition"

Part: TypeAlias = tuple[Any, ...]
"""The delayed values of one partition: rows and labels, or one iterable of batches."""


@overload
def measure(
    schema: ClassSchema, X: Any, y: Any = None, *, unreadable: Unreadable = "refuse", progress: bool = False
) -> ClassMoments: ...
@overload
def measure(
    schema: RidgeSchema, X: Any, y: Any = None, *, unreadable: Unreadable = "refuse", progress: bool = False
) -> RidgeMoments: ...
@overload
def measure(
    schema: Schema,
    X: Any,
    y: Any = None,
    *,
    published: Published | None = None,
    unreadable: Unreadable = "refuse",
    progress: bool = False,
) -> Moments: ...
def measure(
    schema: Schema,
    X: Any,
    y: Any = None,
    *,
    published: Published | None = None,
    unreadable: Unreadable = "refuse",
    progress: bool = False,
) -> Moments:
    """Return exact moments of records on a Dask cluster; equal to ``privstats.measure`` of all of them together.

    It runs on the current ``distributed.Client``, or on Dask's local scheduler. Partitions must return the same records
    at every read.

    Args:
        schema: the statistics to measure, which must be sums over records.
        X: a Dask array ``(n, features)``, or a Dask dataframe with one column per feature. Without ``y``: a bag, or a
            list of delayed values, of ``(X, y)`` batches.
        y: a Dask array or series of labels or targets, partitioned like ``X``; one column per target where there are
            several.
        published: pass ``plan.published``.
        unreadable: pass ``plan.unreadable``; workers' logs count the unreadable records.

    Guarantee:
        Integer sums are associative and every record's part of them depends on the record alone (``docs/moments.md``),
        so the result is the same integers for every partitioning, every order and every number of retries. Nothing is
        private inside the cluster: its workers see records, its scheduler runs any code that it receives.

    Raises:
        DataError: no Dask collection, other partitions of ``y``, or records that do not fit; the message names the
            partition.
        SchemaError: ``schema`` is not a schema of sums over records.
        PrivstatsError: one partition's workers died one after another.
        MissingExtraError: Dask is not installed.
    """
    require_schema(schema, "contrib.parts.dask.measure(schema, X, y)")
    if not schema.adds_up:
        raise SchemaError(
            f"sums of a {type(schema).__name__} are no sums over records, so no partition can be measured alone; "
            "pass all records to privstats.measure"
        )
    dask = optional_dependencies.load("dask", by=_BY)
    parts = _batches(X) if y is None else _pairs(X, y)
    measured, added = dask.delayed(_measured, pure=False), dask.delayed(_added, pure=False)
    known = dask.delayed((schema, published))  # sent once, not with every task
    level = [measured(known, unreadable, place, *part) for place, part in enumerate(parts)]
    if not level:
        raise DataError("X has no partition; pass at least one, possibly of no rows")
    while len(level) > 1:
        level = [added(level[start : start + _FAN_IN]) for start in range(0, len(level), _FAN_IN)]
    total: Moments | None = _computed(level[0], progress)
    if total is None:
        raise DataError("the bag holds no batch; pass at least one (X, y) batch, possibly of no rows")
    room.warn_if_clipped(total)
    return total


def _measured(known: tuple[Schema, Published | None], unreadable: Unreadable, place: int, *part: Any) -> Moments | None:
    schema, published = known
    try:
        if len(part) == 2:
            return room.exact_moments(schema, *part, published=published, unreadable=unreadable)
        batches = iter(part[0])
        first = next(batches, None)
        if first is None:
            return None
        return room.exact_moments(schema, chain([first], batches), published=published, unreadable=unreadable)
    except DataError as error:
        raise DataError(f"partition {place}: {error}") from None


def _added(parts: Sequence[Moments | None]) -> Moments | None:
    present: Any = [part for part in parts if part is not None]
    return sum(present[1:], present[0]) if present else None


def _batches(X: Any) -> list[Part]:
    if _is_bag(X):
        return [(part,) for part in X.to_delayed()]
    if not isinstance(X, Iterable) or isinstance(X, str | bytes) or _is_collection(X):
        raise DataError("y is missing; pass labels or targets with X, or a bag or a list of delayed (X, y) batches")
    batches = list(X)
    for batch in batches:
        if not _is_collection(batch) or _is_cut(batch):
            raise DataError(
                f"a list must hold delayed (X, y) batches, got {type(batch).__name__}; wrap what loads one in "
                "dask.delayed"
            )
    return [([batch],) for batch in batches]


def _pairs(X: Any, y: Any) -> list[Part]:
    for name, part in (("X", X), ("y", y)):
        if not (_is_array(part) or _is_frame(part)):
            raise DataError(
                f"{name} must be a Dask array, dataframe or series, got {type(part).__name__}; what is in memory as a "
                "whole is privstats.measure's"
            )
    if _is_array(X) and _is_array(y):
        X, y = _aligned(X, y)
    rows, targets = _delayed(X), _delayed(y)
    if len(rows) != len(targets):
        raise DataError(f"X has {len(rows)} partitions and y has {len(targets)}; {_CUT}")
    return list(zip(rows, targets, strict=True))


def _aligned(X: Any, y: Any) -> tuple[Any, Any]:
    if X.ndim != 2:
        raise DataError(f"X must have shape (records, features), got {X.ndim} dimensions; reshape it")
    if y.ndim not in (1, 2):
        raise DataError(f"y must have shape (records,) or (records, targets), got {y.ndim} dimensions; reshape it")
    known = all(size == size for size in (*X.chunks[0], *y.chunks[0]))  # NaN if unknown
    if known and X.shape[0] != y.shape[0]:
        raise DataError(f"X has {X.shape[0]} rows but y has {y.shape[0]}; pass one label or target per row")
    y = y.rechunk({0: X.chunks[0]}) if known else y
    return X.rechunk({1: -1}), y.rechunk({1: -1}) if y.ndim == 2 else y


def _delayed(collection: Any) -> list[Any]:
    parts = collection.to_delayed()
    return list(parts.ravel()) if hasattr(parts, "ravel") else list(parts)


def _computed(total: Any, progress: bool) -> Any:
    client = _client()
    if client is None:
        if not progress:
            return total.compute()
        with optional_dependencies.load("dask.diagnostics", by=_BY).ProgressBar():
            return total.compute()
    distributed = optional_dependencies.load("distributed", by=_BY)
    future = client.compute(total)
    if progress:
        distributed.progress(future, notebook=False)
    try:
        return future.result()
    except distributed.KilledWorker:
        raise PrivstatsError(
            "every worker of one partition died, mostly for lack of memory; use smaller partitions, or workers with "
            "more memory"
        ) from None


def _client() -> Any:
    try:
        return optional_dependencies.load("distributed", by=_BY).get_client()
    except ValueError:
        return None


def _is_collection(value: Any) -> bool:
    return hasattr(type(value), "__dask_graph__")


def _is_array(value: Any) -> bool:
    return _is_collection(value) and hasattr(type(value), "rechunk")


def _is_frame(value: Any) -> bool:
    return _is_collection(value) and hasattr(type(value), "divisions")


def _is_bag(value: Any) -> bool:
    """Ask the value's type: a delayed value has every attribute."""
    return _is_collection(value) and _is_cut(value) and not (_is_array(value) or _is_frame(value))


def _is_cut(value: Any) -> bool:
    return hasattr(type(value), "to_delayed")


class PartTasks:
    """A leader's own cluster, for sums of settled parts.

    A task may run twice. The cluster sees what the leader sees: bodies, each uniform to any observer who lacks one
    helper's streams. Its workers need this version of privstats.

    Args:
        scheduler: ``tls://HOST:PORT``, with Dask's configured certificates; plain ``tcp://`` on this machine only.

    Raises:
        LocalProtocolError: a plain address that other machines may reach.
        PrivstatsError: no answer at this address.
        MissingExtraError: Dask is not installed.

    Example:
        >>> from privstats.contrib.parts.dask import PartTasks
        >>> PartTasks("tcp://scheduler.example:8786")
        Traceback (most recent call last):
        privstats.errors.LocalProtocolError: tcp://scheduler.example:8786 is not encrypted, and keys of ...
    """

    def __init__(self, scheduler: str) -> None:
        _require_private(scheduler)
        self._distributed = optional_dependencies.load("distributed", by=_PARTS)
        named = {"set_as_default": False, "deserializers": _SAFE, "timeout": _CONNECT_SECONDS}
        try:
            self._client = self._distributed.Client(scheduler, **named)
        except (OSError, TypeError, ValueError) as error:
            raise PrivstatsError(
                f"no Dask scheduler answers at {scheduler} ({type(error).__name__}): start it, or omit --cluster"
            ) from None

    def submit(self, part: StoredPart, masking: Any, keys: bytes) -> Any:
        """Return a future of the part's packed sum; ``keys`` has each body's key and nonce, 44 bytes, in order."""
        name = f"privstats-part-{part.tag.hex()}-{part.url.rpartition('-')[2]}"
        return self._client.submit(_part_sum, part, masking.protocol, masking.ring.segments, keys, key=name, pure=False)

    def close(self) -> None:
        """Disconnect from the cluster."""
        self._client.close(timeout=_CONNECT_SECONDS)


def _part_sum(part: StoredPart, protocol: str, segments: tuple[tuple[int, int], ...], keys: bytes) -> bytes:
    added = PROTOCOLS[protocol].machines.sum_part
    assert added is not None  # noqa: S101  only a leader's journal defers parts
    ring = Ring(tuple((int(size), int(bits)) for size, bits in segments))
    return added(ring, content_of(part), keys)


def _require_private(scheduler: str) -> None:
    address = urlsplit(scheduler)
    try:
        local = address.hostname == "localhost" or ip_address(address.hostname or "").is_loopback
    except ValueError:
        local = False
    if address.scheme != "tls" and not (local and address.scheme == "tcp"):
        raise LocalProtocolError(
            f"{scheduler} is not encrypted, and keys of reports would travel there: name tls://HOST:PORT, or "
            "tcp://127.0.0.1 for a cluster on this machine"
        )
