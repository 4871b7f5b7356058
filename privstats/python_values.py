"""Convert numpy's numbers to Python's, to be compared, hashed or saved, and check bounds."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import fields
from functools import cached_property
from numbers import Real
from typing import Any

import numpy as np

from privstats.errors import PlanError


def python_value(value: Any) -> Any:
    """Return numpy scalars as Python's and flat arrays as tuples, also inside tuples, lists and mappings.

    Example:
        >>> from privstats.python_values import python_value
        >>> python_value(np.int64(3)), python_value(np.array([1.5, 2.0])), python_value({"N": np.float32(0.5)})
        (3, (1.5, 2.0), {'N': 0.5})
    """
    match value:
        case np.generic():
            return value.item()
        case np.ndarray() if value.ndim == 1 and value.dtype.kind != "O":
            return tuple(value.tolist())
        case tuple() if type(value) is tuple:
            return tuple(map(python_value, value))
        case list():
            return [python_value(each) for each in value]
        case Mapping():
            return {name: python_value(each) for name, each in value.items()}
    return value


def python_fields(frozen: Any) -> None:
    """Convert a frozen dataclass's fields by :func:`python_value`, first in its ``__post_init__``.

    Example:
        >>> cohort = ps.Cohort(clients=np.int64(3), min_survivors=2, max_records=100)  # which does it
        >>> type(cohort.clients)
        <class 'int'>
    """
    for field in fields(frozen):
        object.__setattr__(frozen, field.name, python_value(getattr(frozen, field.name)))


def unstated(frozen: Any) -> list[str]:
    """Return the names of values that a frozen dataclass holds, and that its arguments do not state.

    A value that a method stored, and a field that is no argument or is not compared, are in no plan's digest. What a
    ``cached_property`` stores follows from the fields, and a copy of the class's attribute from the class.

    Example:
        >>> from privstats.python_values import unstated
        >>> unit = ps.transforms.UnitNorm()
        >>> vars(unit)["mean"] = 3.0
        >>> unstated(unit)
        ['mean']
    """
    own, found = fields(frozen), [pair for cls in type(frozen).__mro__ for pair in vars(cls).items()]
    held = {name for name, value in vars(frozen).items() if not any(name == n and value is v for n, v in found)}
    cached = {name for name, value in found if isinstance(value, cached_property)}
    stated = {each.name for each in own if each.init and each.compare}
    return sorted(held.union(each.name for each in own) - stated - cached)


def check_number(
    field: str, value: object, bound: str, low: float, high: float = math.inf, *, ends: str = "[]"
) -> float:
    """Return ``value`` as a float; raise PlanError unless it is between ``low`` and ``high``.

    Args:
        bound: the allowed values, for the message.
        ends: which ends are included: "[]", "(]", "[)" or "()".

    Example:
        >>> from privstats.python_values import check_number
        >>> check_number("delta", 1e-5, "a number in [0, 0.1]", 0, 0.1)
        1e-05
    """
    try:
        number = float(value) if isinstance(value, Real) and not isinstance(value, bool) else math.nan
    except OverflowError:
        raise PlanError(f"{field} must be {bound}, got a number beyond every float") from None
    above = number >= low if ends[0] == "[" else number > low
    below = number <= high if ends[1] == "]" else number < high
    if not (above and below):
        raise PlanError(
            f"{field} must be {bound}, got {value if isinstance(value, Real | str) else type(value).__name__!r}"
        )
    return number
