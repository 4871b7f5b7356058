"""A party's records of one epoch, as a file: ids, rows, labels or targets, and the ids that leave.

An ``.npz`` without pickled objects, read and selected here; ``inbox`` uses it.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np
from numpy.typing import NDArray

from privstats.errors import DataError

__all__ = ["Batch", "picked", "read_batch", "written_apart"]

_MOST_BYTES = 1 << 34
_WHOLE = re.compile(r"(?P<sign>[+-]?)0*(?P<digits>[0-9]+?)(?:\.0*)?", re.ASCII)


@dataclass(frozen=True, eq=False)
class Batch:
    """One party's records in one epoch.

    Attributes:
        ids: one text per record, which stays with it.
        X, y: the records.
        leave: ids of records of earlier epochs that leave.
    """

    ids: tuple[str, ...]
    X: NDArray[Any]
    y: NDArray[Any]
    leave: tuple[str, ...] = ()


def read_batch(path: Path) -> Batch:
    """The batch in a file.

    Raises:
        DataError: it cannot be read, is no such file, or holds arrays of different lengths.
    """
    try:
        small = path.stat().st_size <= _MOST_BYTES
        with np.load(path, allow_pickle=False) as arrays:
            held = {name: arrays[name] for name in arrays.files} if small else {}
    except (OSError, ValueError, EOFError, KeyError, AttributeError, TypeError, BadZipFile, zlib.error) as error:
        why = f"cannot read {path} as records ({type(error).__name__}); save ids, X and y with np.savez"
        raise DataError(why) from None
    if not small:
        raise DataError(f"{path} is larger than {_MOST_BYTES} bytes; bring fewer records in one epoch")
    unknown = sorted(set(held) - {"ids", "X", "y", "leave"})
    if unknown or not {"ids", "X", "y"} <= set(held):
        raise DataError(
            f"{path} must hold the arrays ids, X and y, and leave where records leave; it has {list(held)}; where "
            "records only leave, save ids=[], X=np.empty((0, FEATURES)) and y=[] beside it"
        )
    if not all(isinstance(each, np.ndarray) for each in held.values()) or not held["X"].ndim or not held["y"].ndim:
        raise DataError(f"{path} must hold X with one row and y with one entry for every record; it has less")
    texts = {name: _texts(path, name, held[name]) for name in ("ids", "leave") if name in held}
    if len(texts["ids"]) != len(held["X"]) or len(texts["ids"]) != len(held["y"]):
        raise DataError(f"{path} must hold one id, one row and one label for every record")
    return Batch(texts["ids"], held["X"], held["y"], texts.get("leave", ()))


def picked(batches: Mapping[int, Batch], ids: Collection[str]) -> tuple[NDArray[Any], NDArray[Any]] | None:
    """The rows and labels of these records, in the order of their epochs; None where there are none."""
    wanted, parts = set(ids), []
    for batch in batches.values():
        rows = [place for place, record in enumerate(batch.ids) if record in wanted]
        if rows:
            parts.append((batch.X[rows], batch.y[rows]))
    if not parts:
        return None
    return _joined([X for X, _ in parts]), _joined([y for _, y in parts])


def _joined(parts: Sequence[NDArray[Any]]) -> NDArray[Any]:
    """Arrays one after the other; each value keeps its type, which that of another day would change."""
    if len({part.dtype for part in parts}) == 1:
        return np.concatenate(parts)
    return np.concatenate([np.fromiter(part.reshape(-1), object, part.size).reshape(part.shape) for part in parts])


def written_apart(earlier: Collection[str], ids: Collection[str]) -> int:
    """How many ids are an earlier one, or another of these, written in another way: ``7``, ``007`` and ``7.0``.

    A table's column of ids is of numbers on one day and of texts on the next, if one of them holds a letter; a record
    with two ids would enter twice.
    """
    known = {_plain(record): record for record in earlier}
    return sum(known.setdefault(_plain(record), record) != record for record in ids)


def _plain(record: str) -> str:
    """A whole number in its shortest form, of any length; another text as it stands."""
    number = _WHOLE.fullmatch(record.strip())
    return record if number is None else ("-" if number["sign"] == "-" else "") + number["digits"]


def _texts(path: Path, name: str, array: NDArray[Any]) -> tuple[str, ...]:
    if array.ndim != 1 or (array.size and array.dtype.kind not in "Uiu"):
        raise DataError(f"{name} in {path} must be a list of texts or whole numbers; give one per record")
    return tuple(str(each) for each in array.tolist())
