"""Draw canaries for the audit of one run, flip their coins, and store both.

A canary is a made-up record that moves a release as far as the plan admits, in a direction of its own. Under add-remove
adjacency its coin decides whether it is among the records; under replace-one adjacency which of two records is.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from privstats.errors import DataError, PlanError
from privstats.files.arrays import read_arrays
from privstats.kinds import ClassSchema, of_records
from privstats.randomness import Generator
from privstats.system import open_private
from threat_models.audits.kinds import columns_of
from threat_models.audits.target import Target

Rows: TypeAlias = tuple[NDArray[np.float64], NDArray[Any]]
"""Features ``(n, columns)`` in front of the plan's public transform, and labels ``(n,)`` or targets."""

_STRETCH = 4.0
_ARRAYS = ("X", "y", "other_X", "other_y", "coins")
_FEWEST = 8


@dataclass(frozen=True, eq=False)
class Canaries:
    """Canaries with their coins.

    Attributes:
        rows: the records that enter where the coin is True.
        others: the records that enter where the coin is False; no rows under add-remove adjacency.
        coins: one fair coin a canary, ``(n,)``; secret until the attacker has guessed.
    """

    rows: Rows
    others: Rows
    coins: NDArray[np.bool_]

    @property
    def entering(self) -> Rows:
        """The records that a party adds to its own."""
        X, y = self.rows
        if not len(self.others[0]):
            return X[self.coins], y[self.coins]
        each = self.coins.reshape(-1, *[1] * (y.ndim - 1))
        return np.where(self.coins[:, None], X, self.others[0]), np.where(each, y, self.others[1])

    def save(self, path: str | PathLike[str]) -> None:
        """Write an npz file, which must not exist: the coins of a run are flipped once."""
        arrays = (*self.rows, *self.others, self.coins)
        write_arrays(path, dict(zip(_ARRAYS, arrays, strict=True)))

    @classmethod
    def load(cls, path: str | PathLike[str]) -> Canaries:
        """Read what :meth:`save` wrote.

        Raises:
            DataError: other arrays, or arrays of different lengths.
        """
        arrays: Mapping[str, NDArray[Any]] = read_arrays(path)
        if set(arrays) != set(_ARRAYS):
            raise DataError(f"{path} holds no canaries: give the file that `privstats audit plant` wrote")
        X, y, other_X, other_y, coins = (arrays[name] for name in _ARRAYS)
        lengths = {len(X), len(y), len(coins)}, {len(other_X), len(other_y)}
        if coins.dtype != np.bool_ or len(lengths[0]) > 1 or len(lengths[1]) > 1 or len(other_X) not in (0, len(X)):
            raise DataError(f"{path} holds arrays of canaries with different lengths: write it again")
        return cls((X, y), (other_X, other_y), coins)


def write_arrays(path: str | PathLike[str], arrays: Mapping[str, NDArray[Any]]) -> None:
    """Write arrays to a new npz file that only its owner may read.

    Raises:
        DataError: the file exists, or cannot be written.
    """
    try:
        with os.fdopen(open_private(Path(path), os.O_WRONLY | os.O_CREAT | os.O_EXCL), "wb") as file:
            np.savez(file, **dict(arrays))  # type: ignore[arg-type]
    except OSError as error:
        raise DataError(
            f"{path} cannot be written ({error.strerror}): name a new file in a folder that exists"
        ) from error


def plant(target: Target, count: int, rng: Generator) -> Canaries:
    """Draw canaries for a plan of records, and flip their coins.

    Directions are uniform on the sphere, four times beyond the clip norm, so that the record clip has to act. Labels
    are uniform; each target is one of its two bounds.

    Raises:
        PlanError: too few canaries, more than the cohort admits, or a promise about another unit than a record.
        SchemaError: the plan's sums are of another kind than classes or a regression.

    Example:
        >>> from privstats.randomness import seeded
        >>> from threat_models.audits.planted import plant
        >>> from threat_models.audits.target import target_of
        >>> privacy = ps.Privacy(model="central", unit="record", adjacency="add-remove", epsilon=1.0, delta=1e-5)
        >>> schema, cohort = ps.ClassSchema(2, 4, "NA", clip_norm=1.0), ps.Cohort(2, 2, 400)
        >>> plan = ps.Plan(schema=schema, cohort=cohort, privacy=privacy)
        >>> canaries = plant(target_of(plan), 40, seeded(1))
        >>> len(canaries.coins), canaries.rows[0].shape, len(canaries.others[0])
        (40, (40, 4), 0)
    """
    privacy, cohort = target.privacy, target.plan.cohort
    of_records(target.schema)
    if privacy.unit != "record":
        raise PlanError(f"canaries are single records, and unit={privacy.unit!r}: run privstats audit canary instead")
    if not _FEWEST <= count <= cohort.max_records:
        raise PlanError(f"{count} canaries, allowed {_FEWEST} to cohort.max_records={cohort.max_records}")
    if target.schema.feature_names is not None and any(map_.kind == "levels" for map_ in target.schema.transform):
        raise PlanError("canaries are rows of numbers, and this plan declares its columns: run privstats audit canary")
    both = [_drawn(target, count, rng) for _ in range(1 + (privacy.adjacency == "replace-one"))]
    none = both[0][0][:0], both[0][1][:0]
    return Canaries(both[0], both[1] if len(both) > 1 else none, rng.uint64(count) >> np.uint64(63) == 1)


def _drawn(target: Target, count: int, rng: Generator) -> Rows:
    schema: Any = target.schema
    columns = columns_of(schema)
    X = np.random.default_rng(list(rng.bytes(32))).normal(size=(count, columns))
    X *= _STRETCH * schema.clip_norm / np.linalg.norm(X, axis=1, keepdims=True)
    if isinstance(schema, ClassSchema):
        names = np.array(schema.class_names) if schema.class_names is not None else np.arange(schema.classes)
        return X, names[(rng.uint64(count) % np.uint64(schema.classes)).astype(np.int64)]
    signs = 2.0 * (rng.uint64(count * schema.targets) >> np.uint64(63)) - 1
    y = signs.reshape(count, schema.targets) * schema.target_bound
    return X, y if schema.targets > 1 else y[:, 0]
