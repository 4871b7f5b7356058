"""Write the stored courses that later versions must read: their files, plans, releases and tables.

``python -m tests.course.stored_courses`` writes the folders of :data:`COURSES` that do not exist yet, next to this
module in ``stored``. An existing folder is never written again: ``test_stored_courses`` holds this version to it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from typer.testing import CliRunner

import privstats as ps
from privstats.cli.main import app
from privstats.randomness import seeded
from privstats.transforms import ConstantFeature
from tests.course.cases import COHORT, SOFTMAX, shards
from tests.made import promise

STORED = Path(__file__).with_name("stored")
CONSTANT = (ConstantFeature(1.0),)
CLIP = 5**0.5
"""No power of two, so that the constant 1 is no multiple of the grid's step."""
PEOPLE = 20_000
OPENED = np.linspace(-1, 1, 5)[:, None] * np.ones(6)
"""Rows at which a head's scores are stored."""


@dataclass(frozen=True)
class Case:
    """A course, and the records of its two parties."""

    course: Callable[[], Any]
    parts: Callable[[], list[Any]]


def cohort() -> ps.Cohort:
    return ps.Cohort(2, 2, 2 * PEOPLE)


def halves(X: Any, y: Any) -> list[Any]:
    return [(X[k::2], y[k::2]) for k in range(2)]


def arms_and_ages() -> tuple[Any, Any]:
    rng = np.random.default_rng(7)
    return rng, np.c_[rng.integers(0, 2, PEOPLE), rng.uniform(-1, 1, PEOPLE)] * 1.0


def rates() -> Any:
    schema = ps.ScoreSchema(
        3,
        CLIP,
        family="poisson",
        target_bound=12.0,
        rate=0.2,
        exposure="years",
        exposure_bound=10.0,
        transform=CONSTANT,
        feature_names=("treated", "age"),
    )
    return ps.Newton.start(schema, cohort(), promise(epsilon=8.0, delta=1e-6), 3)


def counted() -> list[Any]:
    rng, X = arms_and_ages()
    years = rng.uniform(0.1, 10, PEOPLE)
    return halves(X, np.c_[rng.poisson(years * np.exp(math.log(0.2) + X @ [0.5, 0.4])), years])


def answers() -> Any:
    schema = ps.ScoreSchema(3, CLIP, transform=CONSTANT, feature_names=("treated", "age"))
    return ps.Newton.start(schema, cohort(), promise(epsilon=8.0, delta=1e-6), 3)


def answered() -> list[Any]:
    rng, X = arms_and_ages()
    return halves(X, (rng.random(PEOPLE) < 1 / (1 + np.exp(0.5 - X @ [0.7, -0.9]))) * 1)


def hazards() -> Any:
    schema = ps.HazardSchema(
        3,
        clip_norm=CLIP,
        bins=ps.Bins("months", (0, 6, 12, 18, 24)),
        event="died",
        feature_names=("treated", "age"),
        transform=CONSTANT,
        times="continuous",
    )
    return ps.Hazard.start(schema, cohort(), promise(epsilon=8.0, delta=1e-6), by="treated", rounds=5)


def followed() -> list[Any]:
    rng, X = arms_and_ages()
    died = rng.exponential(1 / (0.05 * np.exp(X @ [-0.6, 0.5])))
    left = rng.uniform(0, 30, PEOPLE)
    columns = {"treated": X[:, 0], "age": X[:, 1], "months": np.minimum(died, left), "died": (died <= left) * 1}
    return [({name: column[k::2] for name, column in columns.items()}, None) for k in range(2)]


def effects() -> Any:
    schema = ps.EffectSchema.of({"age": (20.0, 90.0)}, treatment="treated", outcome=(0.0, 3.0), probability=0.5)
    return ps.Effect.start(schema, cohort(), promise(epsilon=8.0, delta=1e-6))


def treated() -> list[Any]:
    rng, X = arms_and_ages()
    y = np.clip(1 + 0.4 * X[:, 0] + 0.3 * X[:, 1] + rng.normal(size=PEOPLE) * 0.3, 0, 3)
    return halves(np.c_[55 + 35 * X[:, 1], X[:, 0]], y)


def gradients() -> Any:
    plan = ps.Plan(schema=SOFTMAX, cohort=COHORT, privacy=promise(epsilon=8.0))
    return ps.Rounds.within(plan, 2)


COURSES = {
    "scores": Case(answers, answered),
    "rates": Case(rates, counted),
    "hazards": Case(hazards, followed),
    "effects": Case(effects, treated),
    "gradients": Case(gradients, shards),
}
"""Courses by the name of their folder."""


def write(folder: Path, case: Case) -> None:
    """Write a course, each round's plan with its values and its release, and the table or head of the releases."""
    folder.mkdir(parents=True)
    course = case.course()
    ps.course.write(folder / "study.toml", course)
    plans: list[ps.Plan] = []

    def release_of(node: Any) -> ps.Release:
        plans.append(node.plan)
        return ps.simulate(node.plan, case.parts(), rng=seeded(len(plans)))

    releases = [each for each in ps.course.run(course, release_of) if each is not None]
    for place, (plan, release) in enumerate(zip(plans, releases, strict=True)):
        (folder / f"{place}.toml").write_text(plan.to_toml(), "utf-8")
        if plan.published is not None:
            plan.published.save(folder / f"{place}.values")
        release.save(folder / f"{place}.release")
    if releases[-1].plan.schema.task == "gradients":
        head = ps.heads.RefinedSoftmax().fit_releases(releases)
        head.save(folder / "study.head")
        (folder / "card.md").write_text(head.card(), "utf-8")
        np.savetxt(folder / "scores.csv", head.decision_function(OPENED), "%.12g", ",")
    else:
        files = [str(folder / f"{place}.release") for place in range(len(releases))]
        printed = CliRunner().invoke(app, ["table", *files, "--format", "csv"])
        (folder / "table.csv").write_text(printed.stdout, "utf-8")
    lines = [course.digest, repr(course.mu), *(each.digest for each in plans)]
    (folder / "digests.txt").write_text("\n".join(lines) + "\n", "utf-8")


if __name__ == "__main__":
    for name, case in COURSES.items():
        if not (STORED / name).exists():
            write(STORED / name, case)
