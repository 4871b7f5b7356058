"""Made-up kinds: one number per feature under a letter of their own, which no table but their row knows."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, ClassVar

import privstats as ps
from privstats.moments.base import containers
from privstats.moments.opened import Opened
from privstats.schema.public_values import Values
from privstats.schema.reading import Unread


@dataclass(frozen=True)
class MadeUpSchema(ps.schema.Schema):
    """Its task, its letters and their table are those of a subclass."""

    statistics: ClassVar[str] = "a"

    features: int = 2
    clip_norm: float = 1.0
    grid_bits: int = 12
    nonnegative: bool = False
    transform: tuple[Any, ...] = ()
    feature_names: tuple[str, ...] | None = None

    @property
    def sizes(self) -> dict[str, int]:
        return {"feature": self.features}

    @property
    def goal(self) -> Unread:
        return Unread()

    @property
    def record(self) -> str:
        return self.columns


def made_up_kind(schema: type[MadeUpSchema], measure: Any, **more: Any) -> ps.moments.Kind:
    """Its row: ``measure`` from sums to its container, in which what is released is in wire steps as well."""
    name = schema.task.capitalize()
    moments, _ = containers(name, schema, schema.table, ("features",), "records")  # type: ignore[arg-type]

    def measured(given: Any, records: Opened, values: Mapping[str, Values]) -> Any:
        return moments(given, *measure(given, records.X, records.y, values, records.progress))

    units = SimpleNamespace(of_sums=lambda _, arrays: arrays[schema.statistics])
    return ps.moments.Kind(schema, moments, units, measured, **more)
