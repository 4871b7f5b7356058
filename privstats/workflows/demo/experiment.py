"""The demo's measurements: masked sessions, then draws of releases, courses and a rival at each epsilon.

Pure apart from the simulation it drives; showing the numbers is ``output``'s work.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from statistics import mean
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privstats import session, transforms
from privstats.course import Course, Round, Rounds, Single
from privstats.course import run as follow
from privstats.moments import Moments, exact_moments
from privstats.plan import Plan
from privstats.randomness import seeded
from privstats.release import Release
from privstats.workflows.demo.gradient_descent import descend
from privstats.workflows.demo.tasks import DELTA, Settings, Task
from privstats.workflows.score import EPSILONS, WITHOUT_NOISE, Point, Scores, noise_draw, scored
from privstats.workflows.simulate import Run, run

__all__ = ["SHOWN_EPSILON", "Demo", "Records", "Trial", "run_demo", "ticks"]

Records = tuple[NDArray[Any], NDArray[Any]]


SHOWN_EPSILON = 1.0
ONE_RELEASE, ROUNDS, DESCENT = "one release", "refinement rounds", "DP-GD"


@dataclass(frozen=True)
class Trial:
    """The task's records, dealt; the sums of a first release are measured once per client.

    Attributes:
        task, settings: what is run.
        shards: rows and labels of every client.
        test: rows and labels that no client holds.
        tick: called after every session, course and descent.
    """

    task: Task
    settings: Settings
    shards: tuple[Records, ...]
    test: Records
    tick: Callable[[], None]
    _first: dict[int, Moments] = field(default_factory=dict, repr=False)

    @classmethod
    def of(cls, task: Task, settings: Settings, tick: Callable[[], None]) -> Trial:
        """The bundled data set, split and dealt by the seed."""
        X, X_test, y, y_test = task.load(settings.seed)
        rows = task.shards(settings, y, seeded(settings.seed))
        return cls(task, settings, tuple((X[index], y[index]) for index in rows), (X_test, y_test), tick)

    @cached_property
    def records(self) -> int:
        """Training records of all clients."""
        return sum(len(y) for _, y in self.shards)

    def joined(self, clients: Iterable[int]) -> Records:
        """These clients' records in one place."""
        X, y = zip(*(self.shards[client] for client in clients), strict=True)
        return np.concatenate(X), np.concatenate(y)

    def masked(self, epsilon: float) -> Run:
        """One session through the protocol; infinite epsilon is without noise."""
        plan = self.plan(epsilon)
        done = run(plan, self.shards, self.settings.dropouts(plan), noise_draw(self.settings.seed, 0))
        self.tick()
        return done

    def plan(self, epsilon: float) -> Plan:
        """The plan of one release."""
        return self.task.plan(self.settings, self.records, epsilon)

    def course(self, epsilon: float) -> Rounds:
        """The refinement rounds that keep the same promise."""
        return Rounds.within(self.plan(epsilon))

    def releases(self, course: Course, survivors: Sequence[int], repeat: int) -> list[Release | None]:
        """Every round of a course over the survivors' sums, added in clear: the integers that masks leave."""
        rng = noise_draw(self.settings.seed, repeat)

        def release(round_: Round) -> Release:
            return session.aggregate_unmasked(
                round_.plan, [self._measured(round_.plan, each) for each in survivors], rng
            )

        done = follow(course, release)
        self.tick()
        return done

    def _measured(self, plan: Plan, client: int) -> Moments:
        if plan.schema != self.task.schema:
            return exact_moments(plan.schema, *self.shards[client], published=plan.published)
        if client not in self._first:
            self._first[client] = exact_moments(plan.schema, *self.shards[client])
        return self._first[client]

    def descents(self, epsilon: float, records: Records) -> list[float]:
        """Scores of private gradient descent by one holder of the records, one for each draw of the noise."""
        recipe, (X, y), (X_test, y_test) = self.task.descents[epsilon], records, self.test
        rngs = [noise_draw(self.settings.seed, repeat) for repeat in range(self.settings.repeats)]
        targets = np.eye(int(y_test.max()) + 1, dtype=np.float32)[y]
        W = descend(self._rows(X), targets, recipe, recipe.noise(epsilon, DELTA), rngs)
        for _ in rngs:
            self.tick()
        return [float(each) for each in ((self._rows(X_test) @ W).argmax(axis=-1) == y_test).mean(axis=-1)]

    def score(self, model: Any) -> float:
        """Of a fitted model, on the test records."""
        return float(model.score(*self.test))

    def _rows(self, X: NDArray[Any]) -> NDArray[np.float32]:
        """What a linear layer with a bias sees: the plan's public maps, and a one."""
        mapped = transforms.apply(self.task.schema.transform, X)
        return np.hstack([mapped, np.ones((len(X), 1))]).astype(np.float32)


@dataclass(frozen=True)
class Demo:
    """Everything the demo found.

    Attributes:
        plan: the plan at ``SHOWN_EPSILON``, whose budget is shown and which ``--out`` writes.
        release: one release under that plan.
        peer: score of the centralised scikit-learn model on all training records.
        peer_survivors: the same model on the survivors' records only, the fair comparison.
        without_dp: our score from the unmasked sums without noise.
        shown: all scores of the head of ``release``.
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
    shown: Scores
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
        shown=Scores.of(task.schema, task.head().fit_release(runs[SHOWN_EPSILON].release), *trial.test),
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
