"""The full way to a statistic: a kind that states its bound itself."""

from dataclasses import dataclass

import numpy as np

from privstats.extend.kinds import REQUIRED, Statistic, Unread, checked_vectors, containers, settle
from privstats.kinds import Kind
from privstats.transforms import apply


@dataclass(frozen=True)
class AbsSchema(Kind):
    """Sum of |x|. Guarantee: |x| has the norm of x, at most R, and no negative entry: R, and sqrt 2 R replaced."""

    task, purpose, no_persons = "abs", "the average size of every column", "its authors bound no person"
    table = (Statistic("x", "pooled", ("feature",), (1, 0), meaning="the sum of sizes"),)
    statistics, proved, nonnegative, goal, grid_bits, feature_names = "x", "x", False, Unread(), 12, None
    features: int = REQUIRED
    clip_norm: float = REQUIRED
    transform: tuple = ()
    __post_init__ = lambda self: settle(self, **checked_vectors(self))  # noqa: E731
    sizes = property(lambda self: {"feature": self.features})
    example = classmethod(lambda cls: cls(3, 1.0))
    containers = classmethod(lambda _: (AbsMoments, RealAbsMoments))

    def move(self, weights, adjacency):
        return weights["x"] * self.clip_norm**2 * (1 if adjacency == "add-remove" else 2)

    def moments_of(self, records, _):
        rows = np.concatenate([np.zeros((0, self.features)), *(apply(self.transform, x) for x, _ in records.pieces())])
        steps = self.scale * np.minimum(1.0, self.clip_norm / np.maximum(np.linalg.norm(rows, axis=1), 1e-300))
        return AbsMoments(self, np.trunc(np.abs(rows) * steps[:, None]).astype(np.int64).sum(axis=0), len(rows))


AbsMoments, RealAbsMoments = containers("Abs", AbsSchema, AbsSchema.table, ("features",), "records")
