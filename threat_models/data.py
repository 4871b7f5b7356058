"""Records for a run that brings none: the bundled digits where they fit the plan, synthetic vectors where they do not.

They are split here into private records and a public sample, so that every run has both.
"""

from __future__ import annotations

import os
from collections.abc import Collection
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import load_digits

from privstats.errors import DataError, PrivstatsError
from privstats.files.arrays import read_arrays
from privstats.kinds import RecordSchema, RidgeSchema, SitesSchema, of_records
from privstats.moments import quantize
from privstats.plan import Plan
from privstats.randomness import Generator, uniform
from threat_models.chance import normal
from threat_models.world import Pool

_SYNTHETIC_PER_CLASS = 200
_MOST_SYNTHETIC = 40_000


def bundled(plan: Plan, rng: Generator) -> tuple[Pool, str]:
    """(records for this plan, what they are); none where the sums are functions of whole sites."""
    if isinstance(plan.schema, SitesSchema):
        nothing = np.empty((0, plan.schema.features))
        return Pool(nothing, nothing[:, 0], nothing, nothing[:, 0]), "made-up sites"
    X, y = load_digits(return_X_y=True)
    try:
        quantize(plan.schema, X[:2])
        fits = of_records(plan.schema).sizes.get("class") == 10
    except PrivstatsError:
        fits = False
    if fits:
        return Pool.split(X, y, rng), "handwritten digits, 1,797 scans of 8 x 8 pixels"
    return synthetic_pool(plan, rng), "made-up Gaussian vectors"


def to_attack(plan: Plan, rng: Generator) -> tuple[Pool, str]:
    """(records for this plan, what they are); none where no attack plays over records of the plan's kind."""
    if isinstance(plan.schema, RecordSchema | SitesSchema):
        return bundled(plan, rng)
    nothing = np.empty((0, plan.schema.features))
    return Pool(nothing, nothing[:, 0], nothing, nothing[:, 0]), "no records"


def synthetic_pool(plan: Plan, rng: Generator, *, per_class: int | None = None) -> Pool:
    """Gaussian vectors of typical norm 2/3 of the clip, behind the transform; classes differ in their means."""
    schema = of_records(plan.schema)
    classes = schema.sizes.get("class", 1)
    records = per_class or max(4, min(_SYNTHETIC_PER_CLASS, _MOST_SYNTHETIC // classes))
    y = np.repeat(np.arange(classes), records)
    noise = normal(len(y) * schema.features, rng).reshape(len(y), -1)
    centres = normal(classes * schema.features, rng).reshape(classes, -1)
    scale = schema.clip_norm * 2 / 3 / np.sqrt(schema.features * 1.1)
    X = scale * (noise + 0.3 * centres[y])
    labels: NDArray[Any] = y
    if isinstance(schema, RidgeSchema):
        slope = X[:, :1] / np.abs(X[:, :1]).max() * schema.target_bound / np.sqrt(schema.targets)
        labels = np.asarray(np.tile(slope, (1, schema.targets)) if schema.targets > 1 else slope[:, 0])
    if schema.nonnegative:
        X = np.abs(X)
    return Pool.split(X, labels, rng, behind_transform=True)


def people(plan: Plan, rng: Generator, sizes: tuple[int, ...], *, count: int, follows: float = 0.0) -> Pool:
    """Records of one-hot attributes, behind the transform: of each attribute one column is above 0, all equally.

    Args:
        sizes: values of each attribute; together at most the plan's features, and the rest stays 0.
        count: records per class.
        follows: how often the last attribute copies the first; otherwise it is drawn like the others, uniformly.
    """
    schema = of_records(plan.schema)
    classes = schema.sizes.get("class", 1)
    n = count * classes
    drawn = [(uniform(n, rng) * size).astype(np.int64) for size in sizes]
    copied = uniform(n, rng) < follows
    drawn[-1] = np.where(copied, drawn[0] % sizes[-1], drawn[-1])
    X = np.zeros((n, schema.features))
    for values, start in zip(drawn, np.cumsum((0, *sizes)), strict=False):
        X[np.arange(n), start + values] = 1.0
    labels: NDArray[Any] = np.arange(n) % classes
    if (targets := schema.sizes.get("target")) is not None:
        labels = np.zeros((n, targets) if targets > 1 else n)
    return Pool.split(X * (schema.clip_norm / np.sqrt(len(sizes))), labels, rng, behind_transform=True)


def from_file(plan: Plan, path: str | os.PathLike[str], rng: Generator) -> Pool:
    """Records from an npz file with X and y, or X_train and y_train.

    Raises:
        DataError: the file cannot be read, lacks the arrays, or holds records that do not fit the plan.
    """

    def asked(held: Collection[str]) -> tuple[str, str]:
        names = ("X", "y") if "X" in held else ("X_train", "y_train")
        missing = [name for name in names if name not in held]
        if missing:
            raise DataError(f"{path} lacks {' and '.join(missing)}; write it with numpy.savez(path, X=X, y=y)")
        return names

    held = read_arrays(path, asked)
    try:
        X, y = (np.asarray(each, np.float64) for each in held.values())
    except ValueError:
        raise DataError(f"{path} must hold plain arrays of numbers; write it with numpy.savez") from None
    quantize(plan.schema, X[:2])
    classes = plan.schema.sizes.get("class")
    return Pool.split(X, y if classes is None else _labels(y, classes), rng)


def _labels(y: NDArray[np.float64], classes: int) -> NDArray[np.int64]:
    if y.ndim != 1 or not np.isin(y, np.arange(classes)).all():
        raise DataError(f"y must hold whole labels in 0..{classes - 1}, one per record; number the classes first")
    return y.astype(np.int64)
