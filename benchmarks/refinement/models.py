"""What is compared under privacy: each model trains on one data set, at one epsilon, several times.

Not the tables. A model is a name and a function from a split, an epsilon and a number of draws to accuracies.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import privstats as ps
from benchmarks.data import Split
from benchmarks.heads.peers import diffprivlib_naive_bayes
from benchmarks.refinement import peers
from benchmarks.refinement.library import CENTRAL, DISTRIBUTED, Records, Setting, course_of, played
from privstats import heads
from privstats.kinds import of_records
from privstats.randomness import seeded

__all__ = ["DELTA", "MODELS", "Draws", "Model", "one_shot_plan"]

DELTA = 1e-5
DENSE = {"N": 0.02, "A": 0.4, "B": 0.58}


@dataclass(frozen=True)
class Draws:
    """Accuracies in percent, one per draw of the noise, and how they were reached."""

    accuracies: Sequence[float]
    recipe: str = ""


Model: TypeAlias = Callable[[Split, float, int], Draws]


def one_shot_plan(split: Split, statistics: str, epsilon: float, shares: Mapping[str, float] | None) -> ps.Plan:
    """Central, record level, add-remove, rows of norm 1."""
    X, _, y, _ = split
    return ps.Plan(
        schema=ps.ClassSchema(int(y.max()) + 1, X.shape[1], statistics, clip_norm=1.0),
        cohort=ps.Cohort(clients=2, min_survivors=2, max_records=len(X)),
        privacy=ps.Privacy(
            model="central", unit="record", adjacency="add-remove", epsilon=epsilon, delta=DELTA, shares=shares
        ),
    )


def _one_shot(head: Callable[[], Any], statistics: str, shares: Mapping[str, float] | None = None) -> Model:
    def model(split: Split, epsilon: float, draws: int) -> Draws:
        X, X_test, _, y_test = split
        plan = one_shot_plan(split, statistics, epsilon, shares)
        parts = _measured(id(X), statistics, of_records(plan.schema), split)
        accuracies = []
        for seed in range(draws):
            release = ps.session.aggregate_unmasked(plan, parts, seeded(seed))
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                accuracies.append(100 * head().fit_release(release).score(X_test, y_test))
        return Draws(accuracies)

    return model


_MEASURED: dict[tuple[int, str], list[Any]] = {}


def _measured(rows: int, statistics: str, schema: Any, split: Split) -> list[Any]:
    """The two clients' exact sums, measured once for all epsilons and draws."""
    if (rows, statistics) not in _MEASURED:
        _MEASURED.clear()
        X, _, y, _ = split
        _MEASURED[rows, statistics] = [ps.measure(schema, X[k::2], y[k::2]) for k in range(2)]
    return _MEASURED[rows, statistics]


def _diffprivlib(split: Split, epsilon: float, draws: int) -> Draws:
    return Draws(diffprivlib_naive_bayes(split, epsilon, draws))


def _opacus(split: Split, epsilon: float, draws: int) -> Draws:
    found = peers.opacus_dp_sgd(split, epsilon, DELTA, draws)
    return Draws(found.accuracies, str(found.recipe))


def _dp_gd(split: Split, epsilon: float, draws: int) -> Draws:
    found = peers.dp_gd(split, epsilon, DELTA, draws)
    return Draws(found.accuracies, str(found.recipe))


def _library(rounds: int | None, setting: Setting) -> Model:
    def model(split: Split, epsilon: float, draws: int) -> Draws:
        course = course_of(split, epsilon, DELTA, rounds, setting)
        return Draws(_courses(id(split[0]), course, split, setting, draws), f"T = {course.rounds}")

    return model


_COURSES: dict[Any, list[float]] = {}
_RECORDS: dict[tuple[int, int], Records] = {}


def _courses(rows: int, course: ps.Rounds, split: Split, setting: Setting, draws: int) -> list[float]:
    """Accuracies of a course's draws; two rows of a table may be one course."""
    key = (rows, course.digest, setting, draws)
    if key not in _COURSES:
        X, X_test, y, y_test = split
        if (rows, setting.clients) not in _RECORDS:
            _RECORDS.clear()
        records = _RECORDS.setdefault((rows, setting.clients), Records(X, y, setting.clients))
        ends = (played(course, X, y, setting, seed, records) for seed in range(draws))
        _COURSES[key] = [100 * heads.RefinedSoftmax().fit_releases(end).score(X_test, y_test) for end in ends]
    return _COURSES[key]


MODELS: Mapping[str, Model] = {
    "LDA": _one_shot(heads.LDA, "NAB"),
    "LDA, shares .02 / .4 / .58": _one_shot(heads.LDA, "NAB", DENSE),
    "RDA": _one_shot(heads.RDA, "NAS"),
    "diffprivlib GaussianNB": _diffprivlib,
    "Opacus DP-SGD": _opacus,
    "full-batch DP-GD": _dp_gd,
    "refined": _library(None, CENTRAL),
    "refined, T = 4": _library(4, CENTRAL),
    "refined, distributed": _library(None, DISTRIBUTED),
}
