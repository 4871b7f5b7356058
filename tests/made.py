"""What tests hold on to, as plain as it comes: a promise, a plan, a ledger; a test says what matters to it.

The library has no default for a privacy choice, and neither has a plan: the usual ones stand here, for tests alone.
"""

import math
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import privstats as ps
from privstats.course.base import as_next
from privstats.dp import Ledger
from privstats.dp.privacy import MODELS as EVERY

MODELS = tuple(name for name, row in EVERY.items() if row.drawn_by != "member")
"""The trust models of a plan without a panel."""

USUAL = {"unit": "record", "adjacency": "add-remove"}


def promise(model: str = "central", **changes: Any) -> ps.Privacy:
    """Epsilon 1 at delta 1e-5 for one record that is added or removed."""
    return ps.Privacy(**{"model": model, **USUAL, "epsilon": 1.0, "delta": 1e-5, **changes})


def plan(schema: Any, cohort: ps.Cohort, privacy: Any = None, **more: Any) -> ps.Plan:
    """A plan that promises nothing, unless a promise is given."""
    return ps.Plan(schema=schema, cohort=cohort, privacy=privacy or ps.NoPrivacy(), **more)


def cap(epsilon: float = 3.0, delta: float = 1e-5, **changes: Any) -> dict[str, Any]:
    """What ``set_cap`` takes, for one record that is added or removed."""
    return {**USUAL, "epsilon": epsilon, "delta": delta, **changes}


def ledger(path: Path, dataset: str = "ward", **terms: Any) -> Ledger:
    """A new ledger, with such a clock and time-out, whose one account has a cap of the other terms."""
    created = Ledger.create(path, **{name: terms.pop(name) for name in ("clock", "timeout") if name in terms})
    created.set_cap(dataset, **cap(**terms))
    return created


def worth(plan: ps.Plan, moved: np.ndarray) -> float:
    """How many times mu a change of the sums is worth, by the noise of the plan alone."""
    parts = zip(plan.layout.segments, plan.layout.slices, strict=True)
    square = math.fsum(float(((moved[at] / plan.noise.grid_sigma(each)) ** 2).sum()) for each, at in parts)
    return math.sqrt(square) / plan.noise.mu


def refused(error: Any, said: str, call: Callable[..., object], /, *given: Any, **named: Any) -> None:
    """This call is refused with such an error, whose message holds a match of what it says."""
    __tracebackhide__ = True
    with pytest.raises(error, match=said):
        call(*given, **named)


def named(course: Any, releases: Iterable[ps.Release | None]) -> list[ps.Release | None]:
    """The releases as those of this course's sessions, in order, whatever they named before."""
    found: list[ps.Release | None] = []
    for each in releases:
        found.append(None if each is None else as_next(course, found, unnamed(each)))
    return found


def unnamed(release: ps.Release) -> ps.Release:
    """The release without its position, which names no course: tests move it to another place."""
    return replace(release, plan=release.plan.at(None), position=None)
