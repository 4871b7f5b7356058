"""Numbers as callers give them: numpy's as Python's own, for values that are compared, hashed or saved, and bounds.

Plans, courses and transforms convert with it; privacy curves and samplers check their arguments.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import fields
from numbers import Real
from typing import Any

import numpy as np

from privstats.errors import PlanError


def python_value(value: Any) -> Any:
    """A number, truth value or text of numpy as Python's, a flat array as a tuple of them; also inside tuples, lists
    and mappings. Anything else is returned as it is.

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
    """Put :func:`python_value` values into a frozen dataclass, first of all in its ``__post_init__``.

    Example:
        >>> cohort = ps.Cohort(clients=np.int64(3), min_survivors=2, max_records=100)  # which does it
        >>> type(cohort.clients)
        <class 'int'>
    """
    for field in fields(frozen):
        object.__setattr__(frozen, field.name, python_value(getattr(frozen, field.name)))


def check_number(
    field: str, value: object, bound: str, low: float, high: float = math.inf, *, ends: str = "[]"
) -> float:
    """Return ``value`` as a float; raise unless it is between ``low`` and ``high``.

    Args:
        field: the caller's name for the value.
        value: the value to check.
        bound: the allowed values, for the message.
        low, high: the ends.
        ends: which ends are included, in the notation of intervals: "[]", "(]", "[)" or "()".

    Raises:
        PlanError: not a number, NaN, or out of bounds.

    Example:
        >>> from privstats.python_values import check_number
        >>> check_number("delta", 1e-5, "a number in [0, 0.1]", 0, 0.1)
        1e-05
    """
    number = float(value) if isinstance(value, Real) and not isinstance(value, bool) else math.nan
    above = number >= low if ends[0] == "[" else number > low
    below = number <= high if ends[1] == "]" else number < high
    if not (above and below):
        raise PlanError(
            f"{field} must be {bound}, got {value if isinstance(value, Real | str) else type(value).__name__!r}"
        )
    return number
