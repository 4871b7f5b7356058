"""Store what readers of a head use beyond its rule: calibration, pairs, class shares."""

from __future__ import annotations

from typing import Annotated, Any, Self, TypeAlias

import msgspec
import numpy as np

LARGEST = 1e100
"""Largest magnitude of a number in a head's file: products of its square with rows of a plan stay finite."""

Number: TypeAlias = Annotated[float, msgspec.Meta(ge=-LARGEST, le=LARGEST)]
Positive: TypeAlias = Annotated[float, msgspec.Meta(ge=1 / LARGEST, le=LARGEST)]
Share: TypeAlias = Annotated[float, msgspec.Meta(ge=0, le=1)]


class Facts(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """Facts about a fit, each the fitted attribute of its name with an underscore; None where the head has none.

    Attributes:
        temperature: divisor of the scores.
        link: divisor and shifts of the scores that correct for clipped residuals.
        pairs: names of the pairs of columns whose tables add to the scores.
        prevalence: class shares of the records, ``(C,)``.
        mean_noise: standard deviation that noise gives the mean probability of the second class.
        width: clip of a regression's residuals in their standard deviations, where it ends short of least squares.

    Example:
        >>> from privstats.heads.facts import Facts
        >>> X, y = np.array([[0.0, 0.0], [0.0, 0.2], [1.0, 0.0], [1.0, 0.2]]), [0, 0, 1, 1]
        >>> Facts.of(ps.heads.LDA().fit(X, y)).prevalence
        (0.5, 0.5)
    """

    temperature: Positive | None = None
    link: tuple[Positive, Number | tuple[Number, ...]] | None = None
    pairs: tuple[tuple[str, str], ...] | None = None
    prevalence: tuple[Share, ...] | None = None
    mean_noise: Annotated[float, msgspec.Meta(ge=0, le=1)] | None = None
    width: Positive | None = None

    @classmethod
    def of(cls, head: Any) -> Self | None:
        """Return a fitted head's facts; None without any."""
        facts = {name: _plain(getattr(head, f"{name}_", None)) for name in cls.__struct_fields__}
        return cls(**facts) if any(value is not None for value in facts.values()) else None

    def check(self, classes: int) -> None:
        """Raise ``ValueError`` unless shifts and shares are those of this number of classes."""
        shifts = self.link[1] if self.link is not None else 0.0
        if isinstance(shifts, tuple) and len(shifts) != classes:
            raise ValueError("the link has shifts of another number of classes")
        if self.prevalence is not None and (
            len(self.prevalence) != classes or abs(sum(self.prevalence) - 1) > _ROUNDING
        ):
            raise ValueError("prevalence must hold one share per class, which add up to 1")

    def restore(self, head: Any) -> None:
        """Set the attributes of a head without facts."""
        for name in self.__struct_fields__:
            if (value := getattr(self, name)) is not None:
                setattr(head, f"{name}_", value)
        if self.link is not None:
            head.link_ = self.link[0], _array(self.link[1])
        if self.prevalence is not None:
            head.prevalence_ = np.array(self.prevalence)


_ROUNDING = 1e-6


def _array(value: float | tuple[float, ...]) -> Any:
    return np.array(value) if isinstance(value, tuple) else value


def _plain(value: Any) -> Any:
    if isinstance(value, tuple):
        return tuple(map(_plain, value))
    if isinstance(value, np.ndarray):
        return tuple(value.tolist())
    return value.item() if isinstance(value, np.generic) else value
