"""Samples of the kinds of course that rooms of contrib announce, from ``course_sample.py`` of each room's tests."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

import privstats as ps
from privstats.course.kinds import COURSE_KINDS


@dataclass(frozen=True)
class CourseSample:
    """A course of one kind, and what the tests of every kind do with it.

    Attributes:
        course: the course.
        whole: a plan that states the promise of all sessions together, from which a course of the kind follows.
        changed: every field that is its own, with another value.
        implied: fields that follow from the others.
        private: a course with a promise, where ``course`` has none.
        more: further courses, for the histories of lost sessions.
    """

    course: Any
    whole: ps.Plan
    changed: Mapping[str, Any]
    implied: frozenset[str] = frozenset()
    private: Any = None
    more: list[Any] = field(default_factory=list)


class Samples(dict[str, Any]):
    """Values by kind of course; a kind that no installed package announces is refused by its door."""

    def __missing__(self, name: str) -> Any:
        COURSE_KINDS.needed(name, "this test")
        raise KeyError(name)


def announced_samples() -> dict[str, CourseSample]:
    """Return the sample of each announced kind."""
    rooms = {name: COURSE_KINDS[name].type.__module__.split(".")[1:3] for name in COURSE_KINDS}
    return {
        name: import_module(f"tests.contrib.{room[1]}.course_sample").SAMPLE
        for name, room in rooms.items()
        if room[0] == "contrib"
    }
