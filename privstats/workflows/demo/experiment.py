"""The demo's measurements: masked sessions, then draws of releases, courses and a rival at each epsilon.

Pure apart from the simulation it drives; showing the numbers is ``show``'s work.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import mean
from typing import Any

from privstats.course import Course, Single
from privstats.plan import Plan
from privstats.release import Release
from privstats.workflows.demo.tasks import Settings, Task
from privstats.workflows.demo.trial import Trial
from privstats.workflows.score import EPSILONS, WITHOUT_NOISE, Point, scored

__all__ = ["SHOWN_EPSILON", "Demo", "run_demo", "ticks"]

SHOWN_EPSILON = 1.0
ONE_RELEASE, ROUNDS, DESCENT = "one release", "refinement rounds", "DP-GD"


@dataclass(frozen=True)
class Demo:
    """Everything the demo found.

    Attributes:
        plan: the plan at ``SHOWN_EPSILON``, whose budget is shown and which ``--out`` writes.
        release: one release under that plan.
        peer: score of the centralised scikit-learn model on all training records.
        peer_survivors: the same model on the survivors' records only, the fair comparison.
        without_dp: our score from the unmasked sums without noise.
        curves: scores with noise by name: one release, refinement rounds, and gradient descent under the same promise
            by one trusted holder of all records, where the task has recipes for it.
        exact: every masked session's total equalled its survivors' sum.
        runs: how many sessions that was.
        rounds: fewest and most rounds that followed the release in a course.
        survivors: clients in the total.
        records: training records, and those of the survivors.
        bytes_sent: bytes each client sent.
        seconds: mean wall time per stage of one masked session.
    """

    task: Task
    settings: Settings
    plan: Plan
    release: Release
    peer: float
    peer_survivors: float
    without_dp: float
    curves: Mapping[str, tuple[Point, ...]]
    exact: bool
    runs: int
    rounds: tuple[int, int]
    survivors: tuple[int, ...]
    records: tuple[int, int]
    bytes_sent: tuple[int, ...]
    seconds: Mapping[str, float]


def ticks(task: Task, settings: Settings) -> int:
    """How often :func:`run_demo` calls its ``tick``."""
    return 1 + (1 + 2 * settings.repeats) * len(EPSILONS) + settings.repeats * len(task.descents)


def run_demo(task: Task, settings: Settings, tick: Callable[[], None]) -> Demo:
    """Run the demo: a session through the protocol at each epsilon, and ``repeats`` draws of the same sums in clear.

    ``tick`` is called :func:`ticks` times.
    """
    trial = Trial.of(task, settings, tick)
    runs = {epsilon: trial.masked(epsilon) for epsilon in (WITHOUT_NOISE, *EPSILONS)}
    exact = runs[WITHOUT_NOISE]
    survivors = exact.release.survivors
    everything, mine = trial.joined(range(settings.clients)), trial.joined(survivors)
    courses = {epsilon: trial.course(epsilon) for epsilon in EPSILONS}
    scores = {
        ONE_RELEASE: {e: _drawn(trial, task.head(), Single(trial.plan(e)), survivors) for e in EPSILONS},
        ROUNDS: {e: _drawn(trial, task.refined(), courses[e], survivors) for e in EPSILONS},
        DESCENT: {e: trial.descents(e, everything) for e in task.descents},
    }
    return Demo(
        task=task,
        settings=settings,
        plan=trial.plan(SHOWN_EPSILON),
        release=runs[SHOWN_EPSILON].release,
        peer=trial.score(task.fit_peer(*everything)),
        peer_survivors=trial.score(task.fit_peer(*mine)),
        without_dp=trial.score(task.head().fit_release(exact.release)),
        curves={name: _curve(name, of) for name, of in scores.items() if of},
        exact=all(done.exact for done in runs.values()),
        runs=len(runs),
        rounds=_span([course.rounds for course in courses.values()]),
        survivors=survivors,
        records=(trial.records, len(mine[1])),
        bytes_sent=exact.bytes_sent,
        seconds={stage: mean(done.seconds[stage] for done in runs.values()) for stage in exact.seconds},
    )


def _drawn(trial: Trial, head: Any, course: Course, survivors: Sequence[int]) -> list[float]:
    """Scores of a head of every release of a course, one for each draw of the noise."""
    draws = (trial.releases(course, survivors, repeat) for repeat in range(trial.settings.repeats))
    return [trial.score(head.fit_releases(found) if len(found) > 1 else head.fit_release(found[0])) for found in draws]


def _curve(name: str, scores: Mapping[float, Sequence[float]]) -> tuple[Point, ...]:
    return tuple(scored(name, epsilon, drawn) for epsilon, drawn in scores.items())


def _span(counts: Sequence[int]) -> tuple[int, int]:
    return min(counts), max(counts)
