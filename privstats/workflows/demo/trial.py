"""One data set dealt to the demo's clients: a release, a course of rounds or private gradient descent from it, scored.

It runs and scores; which of them at which epsilon is ``experiment``'s choice.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privstats import session, transforms
from privstats.course import Course, Round, Rounds
from privstats.course import run as follow
from privstats.moments import Moments, exact_moments
from privstats.plan import Plan
from privstats.randomness import seeded
from privstats.release import Release
from privstats.workflows.demo.gradient_descent import descend
from privstats.workflows.demo.tasks import DELTA, Settings, Task
from privstats.workflows.score import noise_draw
from privstats.workflows.simulate import Run, run

__all__ = ["Records", "Trial"]

Records = tuple[NDArray[Any], NDArray[Any]]


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
