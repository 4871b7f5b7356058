"""Conversion of numpy's numbers to Python's own, for values that are compared, hashed or saved.

Plans, courses and transforms use it. It checks no bounds; they do.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

import numpy as np

__all__ = ["python_fields", "python_value"]


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
