"""Made-up kinds: one number per feature under a letter of their own, which no table but their class knows."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from types import SimpleNamespace
from typing import Any, ClassVar

import numpy as np

from privstats.kinds.base import Kind
from privstats.moments.base import Moments, containers
from privstats.records.opened import Opened
from privstats.records.reading import Unread
from privstats.schema.public_values import Values


@dataclass(frozen=True)
class MadeUpSchema(Kind):
    """Its task, its letters and their table are those of a subclass; what is released is in wire steps as well."""

    statistics: ClassVar[str] = "a"

    features: int = 2
    clip_norm: float = 1.0
    grid_bits: int = 12
    nonnegative: bool = False
    transform: tuple[Any, ...] = ()
    feature_names: tuple[str, ...] | None = None

    @classmethod
    def example(cls) -> "MadeUpSchema":
        return cls()

    @property
    def sizes(self) -> dict[str, int]:
        return {"feature": self.features}

    @property
    def goal(self) -> Unread:
        return Unread()

    @property
    def record(self) -> str:
        return self.columns

    def summed(self, X: Any, values: Mapping[str, Values]) -> tuple[np.ndarray, int]:
        """The sum, and how many records it has."""
        return np.zeros(self.features, np.int64), len(X)

    def moments_of(self, records: Opened, values: Mapping[str, Values]) -> Moments:
        return self.containers()[0](self, *self.summed(records.X, values))  # type: ignore[no-any-return]

    @classmethod
    @cache
    def containers(cls) -> tuple[Any, Any]:
        moments, _ = containers(cls.task.capitalize(), cls, cls.table, ("features",), "records")  # type: ignore[arg-type]
        return moments, SimpleNamespace(of_sums=lambda _, arrays: arrays[cls.statistics])
