"""Declare a trial's interim looks before its first session, with the error that each may spend."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from itertools import pairwise
from typing import Literal, TypeAlias, get_args

from privstats.errors import PlanError

Spending: TypeAlias = Literal["obrien-fleming", "pocock"]
_MAX_LOOKS = 10


@dataclass(frozen=True)
class Looks:
    """The number of times that a trial's primary outcome is looked at, and how alpha is spent over them.

    A course with looks sums all records so far at each look. One budget covers all looks, in equal parts. It is charged
    before the first session, and stopping early gives nothing back.

    Args:
        number: of looks, the final one included, 2 to 10.
        spending: ``"obrien-fleming"``: little alpha early, by ``2 (1 - Phi(z / sqrt(t)))`` of each side. ``"pocock"``:
            about equal levels, by ``a log(1 + (e - 1) t)`` of each side (Lan and DeMets 1983).
        times: the share of alpha's clock at each look, rising to 1; empty: equal steps. They are declared here, so no
            result can move them.

    Example:
        >>> looks = ps.course.Looks(3, "obrien-fleming")
        >>> [round(time, 2) for time in looks.clock]
        [0.33, 0.67, 1.0]
    """

    number: int
    spending: Spending
    times: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        if type(self.number) is not int or not 2 <= self.number <= _MAX_LOOKS:
            raise PlanError(
                f"looks.number must be an integer from 2 to {_MAX_LOOKS}, the final look included, got {self.number!r}"
            )
        if self.spending not in get_args(Spending):
            raise PlanError(f"looks.spending must be 'obrien-fleming' or 'pocock', got {self.spending!r}")
        times = tuple(self.times) if isinstance(self.times, tuple | list) else (None,)
        if times and not _rise_to_one(times, self.number):
            raise PlanError(
                f"looks.times must be {self.number} rising numbers above 0, the last one 1, got {self.times!r}; or "
                "omit times for equal steps"
            )
        object.__setattr__(self, "times", tuple(float(each) for each in times if each is not None))

    @property
    def clock(self) -> tuple[float, ...]:
        """The share of alpha's clock at each look."""
        return self.times or tuple((place + 1) / self.number for place in range(self.number))

    @property
    def table(self) -> dict[str, object]:
        """The stated fields, for a file."""
        return {"number": self.number, "spending": self.spending, **({"times": list(self.times)} if self.times else {})}

    @classmethod
    def of(cls, table: object) -> Looks:
        """Build looks from a table ``[analysis.looks]``."""
        known = [field.name for field in fields(cls)]
        if not isinstance(table, Mapping) or not {"number", "spending"} <= set(table) <= set(known):
            raise PlanError("[analysis.looks] holds number and spending, and beside them times alone")
        return cls(**table)


def _rise_to_one(times: tuple[object, ...], number: int) -> bool:
    numbers = [each for each in times if type(each) in (int, float)]
    if len(numbers) != number or len(times) != number:
        return False
    ends: list[float] = [0.0, *numbers]  # type: ignore[list-item]
    return all(low < high for low, high in pairwise(ends)) and ends[-1] == 1
