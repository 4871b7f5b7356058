"""Name the session of a course that a plan is for."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from privstats.errors import PlanError

_COURSE = re.compile("[0-9a-f]{64}")
_MAX_NAME, _MAX_PLACES = 64, 1 << 16
_SAME_DIGITS = 1e-10


@dataclass(frozen=True, eq=False)
class Position:
    """The position of a session in a course, which its plan and its release name.

    Two positions are equal if course, phase and place are, and both mu agree in the digits in which all machines do.

    Attributes:
        course: the course's digest, 64 hexadecimal digits.
        phase: name of the course's phase, such as ``"round"``.
        place: index of the session in the course, from 0; sessions without a sum count.
        spent: Gaussian-DP parameter of the course's sessions up to this one together, with a sum or not; infinite
            without DP. A reader of the course's releases charges it.
        mu: that of all sessions of the course. A reader charges it where sessions without a sum follow.

    Raises:
        PlanError: no digest, no name, no index, or a mu that is not above 0.

    Example:
        >>> position = ps.release.Position("c0" * 32, "round", place=1, spent=0.4, mu=0.5)
        >>> position.phase, position.place
        ('round', 1)
    """

    course: str
    phase: str
    place: int
    spent: float
    mu: float

    def __post_init__(self) -> None:
        known = isinstance(self.course, str) and _COURSE.fullmatch(self.course)
        named = isinstance(self.phase, str) and self.phase.isprintable() and 0 < len(self.phase) <= _MAX_NAME
        placed = type(self.place) is int and 0 <= self.place < _MAX_PLACES
        priced = all(type(each) is float and each > 0 for each in (self.spent, self.mu))
        if not (known and named and placed and priced):
            raise PlanError(
                f"a position has a course's digest of 64 hexadecimal digits, a phase's name of at most {_MAX_NAME} "
                f"characters, a place from 0 to {_MAX_PLACES - 1}, and spent and mu above 0; take it from the course's "
                "round"
            )

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Position):
            return NotImplemented
        pairs = (self.spent, other.spent), (self.mu, other.mu)
        return self.named == other.named and all(math.isclose(*pair, rel_tol=_SAME_DIGITS) for pair in pairs)

    def __hash__(self) -> int:
        return hash(self.named)

    @property
    def named(self) -> tuple[str, str, int]:
        """Course, phase and place; the rest follows from the course."""
        return self.course, self.phase, self.place

    @property
    def table(self) -> dict[str, Any]:
        """The fields for a plan's file, where the phase is the ``step``; without those that are infinite."""
        priced = {name: value for name, value in (("spent", self.spent), ("mu", self.mu)) if not math.isinf(value)}
        return {"course": self.course, "step": self.phase, "place": self.place, **priced}

    @classmethod
    def of(cls, table: Mapping[str, Any]) -> Position:
        """Return the position of :attr:`table`; raises as the class."""
        course, phase, place = (table.get(name) for name in ("course", "step", "place"))
        spent, mu = (table.get(name, math.inf) for name in ("spent", "mu"))
        return cls(course, phase, place, spent, mu)  # type: ignore[arg-type]

    def covers(self, mu: float) -> bool:
        """Return whether what is spent is at least the mu of this session."""
        return self.spent >= mu * (1 - _SAME_DIGITS)

    def __str__(self) -> str:
        return f"session {self.phase!r} at place {self.place} of course {self.course[:16]}..."
