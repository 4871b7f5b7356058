"""The two bundled tasks: digits (classes) and diabetes (ridge), with their public choices spelled out.

Everything here is known without looking at private data: dimensions, pixel range, the target's published range.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import load_diabetes, load_digits
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import train_test_split

from privstats import heads
from privstats.dp import NoPrivacy, Privacy
from privstats.errors import DataError
from privstats.plan import Cohort, Plan
from privstats.randomness import Generator
from privstats.schema import ClassSchema, RidgeSchema, Schema
from privstats.transforms import CentreRows, ConstantFeature, UnitNorm
from privstats.workflows.demo.gradient_descent import Descent
from privstats.workflows.score import metric
from privstats.workflows.simulate import dirichlet_partition

__all__ = ["DELTA", "TASKS", "Settings", "Task"]

DELTA = 1e-5
_LEAST_ALPHA = 0.01
_SEEDS = 2**32
_MOST_CLIENTS = 100


class _Model(Protocol):
    def score(self, X: Any, y: Any) -> float: ...


@dataclass(frozen=True)
class Settings:
    """What the command line can change.

    Attributes:
        clients: parties in the cohort.
        alpha: Dirichlet concentration of the label skew.
        drop: clients that vanish, spread over the step before the upload, the upload and the last step.
        seed: fixes the split, the partition, the dropouts and the (test) noise.
        repeats: noise draws per epsilon.
    """

    clients: int = 20
    alpha: float = 0.05
    drop: int = 3
    seed: int = 0
    repeats: int = 10

    def __post_init__(self) -> None:
        if self.clients < 4:
            raise DataError(f"--clients must be at least 4 to hide anyone and lose someone, got {self.clients}")
        if not 0 <= self.drop <= self.clients // 4:
            raise DataError(
                f"--drop must be between 0 and {self.clients // 4} of {self.clients} clients, got {self.drop}"
            )
        if not self.alpha >= _LEAST_ALPHA:
            raise DataError(
                f"--alpha must be at least {_LEAST_ALPHA}, or one client holds everything, got {self.alpha}"
            )
        if not 0 <= self.seed < _SEEDS:
            raise DataError(f"--seed must be between 0 and 2**32 - 1, got {self.seed}")
        if self.clients > _MOST_CLIENTS:
            raise DataError(f"--clients must be at most {_MOST_CLIENTS} for a demo in one process, got {self.clients}")
        if self.repeats < 2:
            raise DataError(f"--repeats must be at least 2, so that there is a spread, got {self.repeats}")

    @property
    def cohort_floor(self) -> int:
        """Fewest survivors the plan admits: all but those that vanish, or a tenth; noise is sized for them."""
        return self.clients - max(self.drop, self.clients // 10)

    def dropouts(self, plan: Plan) -> dict[str, set[int]]:
        """Which clients vanish where: step by step in turn, the client index moving with the seed."""
        steps = plan.masking.steps
        upload = steps.index(plan.masking.upload_step)
        chosen, gone = (steps[max(upload - 1, 0)], steps[upload], steps[-1]), dict[str, set[int]]()
        for turn in range(self.drop):
            client = (self.seed + turn * (self.clients // max(self.drop, 1))) % self.clients
            gone.setdefault(chosen[turn % len(chosen)], set()).add(client)
        return gone


@dataclass(frozen=True)
class Task:
    """A bundled data set with its schema, head and centralised peer.

    Attributes:
        title: what it is, for headings.
        name: of the head.
        peer: name of the centralised scikit-learn model.
        load: the four arrays X_train, X_test, y_train, y_test for a seed.
        schema: the public choices.
        head: a fresh head of one release.
        refined: a fresh head of a course of refinement rounds.
        descents: recipes of private gradient descent by epsilon; none where the demo compares with none.
        fit_peer: fits the peer on records.
        strata: labels for the skewed partition.
    """

    title: str
    name: str
    peer: str
    load: Callable[[int], tuple[NDArray[Any], ...]]
    schema: Schema
    head: Callable[[], Any]
    refined: Callable[[], Any]
    descents: Mapping[float, Descent]
    fit_peer: Callable[[NDArray[Any], NDArray[Any]], _Model]
    strata: Callable[[NDArray[Any]], NDArray[Any]]

    @property
    def metric(self) -> str:
        """What ``score`` means, for columns."""
        return metric(self.schema)

    def plan(self, settings: Settings, records: int, epsilon: float) -> Plan:
        """The plan at one epsilon; infinite is without DP."""
        return Plan(
            schema=self.schema,
            cohort=Cohort(settings.clients, settings.cohort_floor, records, colluders=max(1, settings.clients // 20)),
            privacy=NoPrivacy()
            if math.isinf(epsilon)
            else Privacy(model="distributed", unit="record", adjacency="add-remove", epsilon=epsilon, delta=DELTA),
        )

    def shards(self, settings: Settings, y: NDArray[Any], rng: Generator) -> tuple[NDArray[np.int64], ...]:
        """Row indices per client."""
        return dirichlet_partition(self.strata(y), settings.clients, settings.alpha, rng)


def _digits(seed: int) -> tuple[NDArray[Any], ...]:
    X, y = load_digits(return_X_y=True)
    return tuple(train_test_split(X, y, test_size=0.25, random_state=seed, stratify=y))


_TARGET_LOW, _TARGET_HIGH = 25.0, 346.0  # the published range of the disease progression score


def _diabetes(seed: int) -> tuple[NDArray[Any], ...]:
    X, y = load_diabetes(return_X_y=True)
    return tuple(train_test_split(X, y - (_TARGET_LOW + _TARGET_HIGH) / 2, test_size=0.25, random_state=seed))


def _quantile_bins(y: NDArray[Any]) -> NDArray[Any]:
    return np.searchsorted(np.quantile(y, np.linspace(0, 1, 11)[1:-1]), y)


_TUNED_ON_DIGITS = {
    8.0: Descent(rate=128.0, clip=0.1, steps=50, momentum=0.9),
    3.0: Descent(rate=128.0, clip=0.1, steps=25, momentum=0.9),
    1.0: Descent(rate=4.0, clip=1.0, steps=50),
    0.3: Descent(rate=16.0, clip=0.3, steps=50),
}
"""The recipes that ``benchmarks.refinement.compare`` found best on held-out digits, at no charge to their budget."""

TASKS: Mapping[str, Task] = {
    "classes": Task(
        title="handwritten digits: 1,797 scans of 8 x 8 pixels, 10 classes",
        name="LDA",
        peer="LDA",
        load=_digits,
        schema=ClassSchema(10, 64, "NAB", clip_norm=1.0, transform=(CentreRows(), UnitNorm())),
        head=lambda: heads.LDA(),
        refined=lambda: heads.RefinedSoftmax(),
        descents=_TUNED_ON_DIGITS,
        fit_peer=lambda X, y: LinearDiscriminantAnalysis().fit(X, y),
        strata=lambda y: y,
    ),
    "ridge": Task(
        title="diabetes: 442 patients, 10 measurements, disease progression after a year",
        name="Ridge",
        peer="linear regression",
        load=_diabetes,
        schema=RidgeSchema(
            11,
            clip_norm=0.25,
            target_bound=(_TARGET_HIGH - _TARGET_LOW) / 2,
            transform=(ConstantFeature(0.15),),
        ),
        head=lambda: heads.Ridge(),
        refined=lambda: heads.RefinedRidge(),
        descents={},
        fit_peer=lambda X, y: LinearRegression().fit(X, y),
        strata=_quantile_bins,
    ),
}
