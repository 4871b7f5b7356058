"""Tasks on a party's own Dask cluster, which sees its records: moments, or sums of a leader's settled parts.

A repeated task replaces its value in a tree of sums, so nothing counts twice.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable, Sequence
from ipaddress import ip_address
from itertools import chain
from typing import Any
from urllib.parse import urlsplit

import numpy as np

from privstats.contrib.parts.part_store import StoredPart, content_of
from privstats.contrib.parts.partitioned import Partitioned, PartSum, Present, Rows, in_several_parts, person_by_row
from privstats.encoding import Ring
from privstats.errors import DataError, LocalProtocolError, PrivstatsError
from privstats.extend.kinds import Unread
from privstats.extend.plans import PROTOCOLS
from privstats.extend.support import optional_dependencies
from privstats.intake.column_names import place_of

_PARTS = "contrib.parts.dask.PartTasks"
_CONNECT_SECONDS = 20
_SAFE = ["dask", "msgpack", "error"]
"""Serialisations accepted in results of the cluster: none runs code when it is read."""

_FAN_IN = 8
_PERSON = "privstats person"
_BY = "contrib.parts.measure"
_CUT = "partition both alike, for example with rechunk or repartition"


def summed(door: Partitioned, X: Any, y: Any, persons: Any, *, progress: bool) -> PartSum:
    """Return the sum of all partitions, added as a tree on the cluster.

    Raises:
        DataError: no Dask collection, other partitions of ``y`` or ``persons``, or records that do not fit; the message
            names the partition.
        PrivstatsError: one partition's workers died one after another.
        MissingExtraError: Dask is not installed.
    """
    dask = optional_dependencies.load("dask", by=_BY)
    in_batches = y is None and not isinstance(door.schema.goal, Unread)
    parts: Sequence[Any] = _batches(X, persons) if in_batches else _columns(X, y, persons)
    known = dask.delayed(door)  # the door is sent once, not with every task
    added = dask.delayed(_added, pure=False)
    if in_batches:
        measured = dask.delayed(_measured_batches, pure=False)
        level = [measured(known, str(place), *part) for place, part in enumerate(parts)]
    else:
        # A frame's partitions are by the person already.
        apart = persons is not None and len(parts) > 1 and not (isinstance(persons, str) and _is_collection(X))
        level = _sums_of(known, parts, _present_in(known, parts, progress) if apart else [])
    if not level:
        raise DataError("X has no partition; pass at least one, possibly of no rows")
    while len(level) > 1:
        level = [added(known, level[start : start + _FAN_IN]) for start in range(0, len(level), _FAN_IN)]
    total: PartSum = _computed(level[0], progress)
    if total == door.zero:
        raise DataError("the bag holds no batch; pass at least one (X, y) batch, possibly of no rows")
    return total


def _present_in(door: Any, parts: Sequence[tuple[Any, Any, Any]], progress: bool) -> list[Present]:
    """Return the persons of each partition, computed before any sum: a graph of both would hold all partitions."""
    dask = optional_dependencies.load("dask", by=_BY)
    present = dask.delayed(_present, pure=False)
    level = [present(door, str(place), X, persons) for place, (X, _, persons) in enumerate(parts)]
    found: list[Present] = _computed(dask.delayed(list)(level), progress)
    return found


def _sums_of(door: Any, parts: Sequence[tuple[Any, Any, Any]], present: Sequence[Present]) -> list[Any]:
    """Return the delayed sums of each partition, and of the persons that ``present`` has in several of them."""
    dask = optional_dependencies.load("dask", by=_BY)
    measured, rows_of, measured_shared = (
        dask.delayed(each, pure=False) for each in (_measured, _rows_of, _measured_shared)
    )
    groups = in_several_parts(present)
    shared = dask.delayed(groups)
    sums = [measured(door, str(place), *part, shared) for place, part in enumerate(parts)]
    for group in groups:
        chosen, holding = dask.delayed(group), [np.isin(group, each.persons).any() for each in present]
        rows = [rows_of(door, str(place), *part, chosen) for place, part in enumerate(parts) if holding[place]]
        sums.append(measured_shared(door, rows))
    return sums


def _measured(door: Partitioned, name: str, X: Any, y: Any, persons: Any, shared: Sequence[Any]) -> PartSum:
    return door.measure(X, y, persons=persons, part=name, shared=shared)


def _present(door: Partitioned, name: str, X: Any, persons: Any) -> Present:
    return door.present(X, persons=persons, part=name)


def _rows_of(door: Partitioned, name: str, X: Any, y: Any, persons: Any, chosen: Any) -> Rows:
    return door.rows_of(X, y, persons=persons, chosen=chosen, part=name)


def _measured_shared(door: Partitioned, rows: list[Rows]) -> PartSum:
    return door.measure_shared(rows)


def _measured_batches(door: Partitioned, name: str, batches: Iterable[Any]) -> PartSum:
    several = iter(batches)
    first = next(several, None)
    return door.zero if first is None else door.measure(chain([first], several), part=name)


def _added(door: Partitioned, sums: list[PartSum]) -> PartSum:
    return door.added(sums)


def _batches(X: Any, persons: Any) -> list[tuple[Any]]:
    """Return the delayed batches of each partition."""
    if persons is not None:
        raise DataError("batches do not show which person a row belongs to: pass a frame, or arrays of X, y and ids")
    if _is_bag(X):
        return [(part,) for part in X.to_delayed()]
    if not isinstance(X, Iterable) or isinstance(X, str | bytes) or _is_collection(X):
        raise DataError(
            "y is missing; pass the name of a frame's column, labels or targets with X, or a bag or a list of delayed "
            "(X, y) batches"
        )
    return [([batch],) for batch in _delayed_ones(list(X), "(X, y) batches")]


def _delayed_ones(parts: list[Any], what: str) -> list[Any]:
    """Return the parts, which must all be delayed."""
    for part in parts:
        if not _is_collection(part) or _is_cut(part):
            raise DataError(
                f"a list must hold delayed {what}, got {type(part).__name__}; wrap what loads one in dask.delayed"
            )
    return parts


def _columns(X: Any, y: Any, persons: Any) -> list[tuple[Any, Any, Any]]:
    """Return the delayed rows, labels and ids of each partition; names of columns stay names."""
    if not _is_collection(X) and all(map(_is_named, (y, persons))):
        return [(each, y, persons) for each in _delayed_ones(list(X), "tables")]
    _require_collection("X", X)
    if isinstance(persons, str):
        X = _by_person(X, persons)
    sides = {"y": y, "persons": persons}
    sides = {name: side if _is_named(side) else _aligned(name, side, X) for name, side in sides.items()}
    rows = _delayed(X.rechunk({1: -1}) if _is_array(X) else X)
    return list(zip(rows, *(_parts_of(name, side, len(rows)) for name, side in sides.items()), strict=True))


def _is_named(side: Any) -> bool:
    """Return whether this is None, a column's name or a list of names, which holds for every partition."""
    return side is None or isinstance(side, str) or (isinstance(side, list) and all(isinstance(n, str) for n in side))


def _by_person(X: Any, persons: str) -> Any:
    """Return a frame whose partitions are by the person that each id names."""
    if not _is_frame(X) or (place := place_of(persons, list(X.columns))) is None:
        raise DataError(f"persons={persons!r:.40} names no column of X; name a frame's column of ids, or pass the ids")
    if X.npartitions == 1:
        return X
    bits = X[X.columns[place]].map_partitions(_persons_of, meta=(_PERSON, "u8"))
    # A cluster's own method (p2p) fails for all rows where one record gives its partition another type.
    return X.shuffle(on=bits, shuffle_method=None if _client() is None else "tasks")


def _persons_of(ids: Any) -> Any:
    return type(ids)(person_by_row(ids), index=ids.index, name=_PERSON)


def _require_collection(name: str, value: Any) -> None:
    if not (_is_array(value) or _is_frame(value)):
        raise DataError(
            f"{name} must be a Dask array, dataframe or series, got {type(value).__name__}; what is in memory as a "
            "whole is privstats.measure's"
        )


def _aligned(name: str, side: Any, X: Any) -> Any:
    """Return labels, targets or ids cut as X is, where both are arrays of known sizes."""
    if name == "persons" and isinstance(side, np.ndarray) and _is_array(X):
        side = optional_dependencies.load("dask.array", by=_BY).from_array(side, chunks=-1)
    _require_collection(name, side)
    if not (_is_array(X) and _is_array(side)):
        return side
    if X.ndim != 2:
        raise DataError(f"X must have shape (records, features), got {X.ndim} dimensions; reshape it")
    if side.ndim not in (1, 2):
        raise DataError(
            f"{name} must have shape (records,) or (records, targets), got {side.ndim} dimensions; reshape it"
        )
    known = all(size == size for size in (*X.chunks[0], *side.chunks[0]))  # NaN if unknown
    if known and X.shape[0] != side.shape[0]:
        raise DataError(f"X has {X.shape[0]} rows but {name} has {side.shape[0]}; {_ONE_EACH[name]}")
    side = side.rechunk({0: X.chunks[0]}) if known else side
    return side.rechunk({1: -1}) if side.ndim == 2 else side


_ONE_EACH = {"y": "pass one label or target per row", "persons": "pass one id per row"}


def _parts_of(name: str, side: Any, partitions: int) -> list[Any]:
    if _is_named(side):
        return [side] * partitions
    parts = _delayed(side)
    if len(parts) != partitions:
        raise DataError(f"X has {partitions} partitions and {name} has {len(parts)}; {_CUT}")
    return parts


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
    _warn_of_allocator(client)
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


_MIN_TRIM = 16 << 20
_TRIM = "MALLOC_TRIM_THRESHOLD_"


def _trim_threshold() -> str:
    return os.environ.get(_TRIM, "")


def _warn_of_allocator(client: Any) -> None:
    """Warn where workers return each freed array to the system, as Dask sets them up by default."""
    known = client.run(_trim_threshold, on_error="ignore")
    low = [each for each in known.values() if each.isdecimal() and int(each) < _MIN_TRIM]
    if low:
        warnings.warn(
            f"{len(low)} of {len(known)} workers run with {_TRIM}={low[0]}, Dask's own setting, which costs many times "
            f"the processor time here: set {_TRIM}=268435456 and MALLOC_MMAP_THRESHOLD_=33554432 in the environment "
            "before the workers start",
            UserWarning,
            stacklevel=5,
        )


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
