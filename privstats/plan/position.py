"""Name the session of a course that a plan is for."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from privstats.errors import PlanError

_COURSE = re.compile("[0-9a-f]{64}")
_MAX_STEP, _MAX_PLACES = 64, 1 << 16
_SAME_DIGITS = 1e-10


@dataclass(frozen=True, eq=False)
class Position:
    """The position of a session in a course, which its plan and its release name.

    Two positions are equal if course, step and place are, and mu agrees in the digits in which all machines do.

    Attributes:
        course: the course's digest, 64 hexadecimal digits.
        step: name of the course's step, such as ``"round"``.
        place: index of the session in the course, from 0; sessions without a sum count.
        mu: Gaussian-DP parameter of all sessions of the course together; infinite without DP. A reader charges it where
            a session's own price is not in its releases.

    Raises:
        PlanError: no digest, no name, no index or no mu.

    Example:
        >>> position = ps.release.Position("c0" * 32, "round", place=1, mu=0.5)
        >>> position.step, position.place
        ('round', 1)
    """

    course: str
    step: str
    place: int
    mu: float

    def __post_init__(self) -> None:
        known = isinstance(self.course, str) and _COURSE.fullmatch(self.course)
        named = isinstance(self.step, str) and self.step.isprintable() and 0 < len(self.step) <= _MAX_STEP
        placed = type(self.place) is int and 0 <= self.place < _MAX_PLACES
        if not (known and named and placed and type(self.mu) is float and self.mu > 0):
            raise PlanError(
                f"a position has a course's digest of 64 hexadecimal digits, a step's name of at most {_MAX_STEP} "
                f"characters, a place from 0 to {_MAX_PLACES - 1} and a mu above 0; take it from the course's round"
            )

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Position):
            return NotImplemented
        return self.named == other.named and math.isclose(self.mu, other.mu, rel_tol=_SAME_DIGITS)

    def __hash__(self) -> int:
        return hash(self.named)

    @property
    def named(self) -> tuple[str, str, int]:
        """Course, step and place; mu follows from the course."""
        return self.course, self.step, self.place

    @property
    def table(self) -> dict[str, Any]:
        """The fields for a plan's file; without mu if it is infinite."""
        mu = {} if math.isinf(self.mu) else {"mu": self.mu}
        return {"course": self.course, "step": self.step, "place": self.place, **mu}

    @classmethod
    def of(cls, table: Mapping[str, Any]) -> Position:
        """Return the position of :attr:`table`; raises as the class."""
        course, step, place = (table.get(name) for name in ("course", "step", "place"))
        return cls(course, step, place, table.get("mu", math.inf))  # type: ignore[arg-type]

    def covers(self, mu: float) -> bool:
        """Return whether the course's mu is at least that of one of its sessions."""
        return self.mu >= mu * (1 - _SAME_DIGITS)

    def __str__(self) -> str:
        return f"session {self.step!r} at place {self.place} of course {self.course[:16]}..."
