"""Bounds of heads' parameters, as data, and one check of them before anything is fitted.

In the manner of scikit-learn's parameter constraints: each head lists its own, and fitting on records and on releases
checks them first. Bounds that depend on the data (one prior per class) are checked with the data.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, TypeAlias

import numpy as np

from privstats.errors import HeadError

__all__ = [
    "DEVICE",
    "MODULE",
    "NONE",
    "PRIORS",
    "SHRINKAGE",
    "SUBSPACE",
    "SWITCH",
    "TRAINING",
    "WEIGHT",
    "Bounds",
    "Constraints",
    "Number",
    "Text",
    "Whole",
    "check_dimension",
    "check_parameters",
    "check_value",
    "describe",
]

_LONGEST_SHOWN = 60


class Constraint(ABC):
    """One condition that a value may meet."""

    @abstractmethod
    def admits(self, value: Any) -> bool:
        """Whether the value meets the condition."""

    @abstractmethod
    def __str__(self) -> str: ...


Constraints: TypeAlias = tuple[Constraint, ...]
Bounds: TypeAlias = Mapping[str, Constraints]
"""For each parameter its conditions, of which the value must meet one."""


class Text(Constraint):
    """One of some words."""

    def __init__(self, *words: str) -> None:
        self.words = words

    def admits(self, value: Any) -> bool:
        """Exactly one of the words."""
        return isinstance(value, str) and value in self.words

    def __str__(self) -> str:
        return ", ".join(map(repr, self.words))


@dataclass(frozen=True)
class Number(Constraint):
    """A finite real number from ``low`` to ``high``; ``low`` itself only where ``closed``."""

    low: float = 0.0
    high: float = math.inf
    closed: bool = True

    def admits(self, value: Any) -> bool:
        """A number within the bounds; truth values are none."""
        if isinstance(value, bool | np.bool_) or not isinstance(value, Real):
            return False
        try:
            number = float(value)
        except OverflowError:
            return False
        above = number >= self.low if self.closed else number > self.low
        return math.isfinite(number) and above and number <= self.high

    def __str__(self) -> str:
        if math.isinf(self.high):
            return f"a finite number {'of at least' if self.closed else 'above'} {self.low:g}"
        return f"a number in {'[' if self.closed else '('}{self.low:g}, {self.high:g}]"


@dataclass(frozen=True)
class Share(Constraint):
    """A share in (0, 1] written as a fraction: 1 would be a whole number."""

    def admits(self, value: Any) -> bool:
        """A number in (0, 1] that is no integer type."""
        return not isinstance(value, Integral) and Number(0.0, 1.0, closed=False).admits(value)

    def __str__(self) -> str:
        return "a share of energy in (0, 1]"


@dataclass(frozen=True)
class Whole(Constraint):
    """A whole number of at least ``low``, and below 2**31."""

    low: int = 0

    def admits(self, value: Any) -> bool:
        """An integer within the bounds; truth values are none."""
        return isinstance(value, Integral) and not isinstance(value, bool) and self.low <= int(value) < 1 << 31

    def __str__(self) -> str:
        return f"a whole number of at least {self.low}"


class Constant(Constraint):
    """One of some values that are compared by identity."""

    def __init__(self, *values: Any) -> None:
        self.values = values

    def admits(self, value: Any) -> bool:
        """Exactly one of the values."""
        return any(value is one for one in self.values)

    def __str__(self) -> str:
        return " or ".join(map(repr, self.values))


class PerClass(Constraint):
    """Positive numbers, one per class; how many is known only with the classes."""

    def admits(self, value: Any) -> bool:
        """A one-dimensional array of positive finite numbers."""
        if isinstance(value, str):
            return False
        try:
            array = np.asarray(value, np.float64)
        except (TypeError, ValueError, OverflowError):
            return False
        return array.ndim == 1 and array.size > 0 and bool((np.isfinite(array) & (array > 0)).all())

    def __str__(self) -> str:
        return "positive numbers, one per class"


class ModuleWord(Constraint):
    """A module of refinement rounds by its word."""

    def admits(self, value: Any) -> bool:
        """KIND/SIZE; whether a package brings it is asked where it is used."""
        from privstats.schema.modules import is_word

        return is_word(value)

    def __str__(self) -> str:
        return "a module's KIND/SIZE, such as 'mlp/64'"


class Device(Constraint):
    """A torch device by name."""

    def admits(self, value: Any) -> bool:
        """cpu, auto, cuda, or cuda with a number."""
        if not isinstance(value, str):
            return False
        kind, _, number = value.partition(":")
        return value in ("auto", "cpu", "cuda") or (kind == "cuda" and number.isascii() and number.isdigit())

    def __str__(self) -> str:
        return "'auto', 'cpu', 'cuda' or 'cuda:0'"


NONE = Constant(None)
SWITCH: Constraints = (Constant(True, False),)
WEIGHT: Constraints = (Number(0.0, 1.0),)
SHRINKAGE: Constraints = (Text("auto", "oas"), NONE, Number(0.0, 1.0))
PRIORS: Constraints = (Text("counts", "uniform"), PerClass())
SUBSPACE: Constraints = (NONE, Text("auto"), Whole(1), Share())
DEVICE: Constraints = (Device(),)
MODULE: Constraints = (NONE, ModuleWord())
TRAINING: Bounds = {
    "dimension": SUBSPACE[1:],
    "per_class": (Text("auto"), Whole(1)),
    "dispersion": (Text("auto"), Number(closed=False)),
    "pooled_weight": WEIGHT,
    "shrinkage": SHRINKAGE,
    "priors": PRIORS,
    "weight_decay": (Number(),),
    "max_rounds": (Whole(1),),
    "patience": (Whole(1),),
    "random_state": (Whole(),),
    "device": DEVICE,
    "progress": SWITCH,
}
"""Bounds that all heads trained on synthetic records share."""


def check_parameters(head: Any, bounds: Bounds) -> None:
    """Refuse a head whose parameters are out of their bounds.

    Args:
        head: an estimator.
        bounds: of every parameter it has.

    Raises:
        HeadError: naming the parameter, what it may be, and what it is; or that the head has no bounds for it.
    """
    for name, value in head.get_params(deep=False).items():
        if name not in bounds:
            raise HeadError(f"{type(head).__name__} has no bounds for its parameter {name}; add them to its class")
        check_value(name, value, bounds[name])


def check_value(name: str, value: Any, kinds: Constraints) -> None:
    """Raise HeadError unless ``value`` meets one of the conditions."""
    if not any(kind.admits(value) for kind in kinds):
        shown = repr(value) if len(repr(value)) <= _LONGEST_SHOWN else f"a {type(value).__name__}"
        raise HeadError(f"{name} must be {describe(kinds)}, got {shown}")


def check_dimension(name: str, value: Any, features: int) -> None:
    """Raise HeadError where a subspace would have more dimensions than there are features."""
    if isinstance(value, Integral) and int(value) > features:
        raise HeadError(f"{name}={value} is more than the {features} features; give at most {features}, or 'auto'")


def describe(kinds: Constraints) -> str:
    """The conditions as a phrase: "'auto', 'oas', None or a number in [0, 1]"."""
    parts = [str(kind) for kind in kinds]
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} or {parts[-1]}"
