"""The wrong pieces of code in streams, rounds and one party alone; as small as ``bugs``."""

from dataclasses import replace
from functools import cached_property
from types import SimpleNamespace
from typing import Any

import numpy as np

from privstats import session
from privstats.course import Rounds
from privstats.course.planned import Phased
from privstats.course.recipes import RidgeRounds
from privstats.dp import mechanisms
from privstats.dp.calibration import Noise, calibrate
from privstats.kinds import GradientSchema, MeanSchema
from privstats.plan import Plan
from privstats.randomness import Generator

right_draw, right_mean = mechanisms._sample, RidgeRounds.mean


def of_the_first_epoch(right: Any) -> Any:
    """Every epoch draws the noise of the first."""
    return lambda plan, seed, sums: right(plan, seed, sums[:1])


def a_tenth_too_small(right: Any) -> Any:
    return lambda plan, seed, sums: np.rint(0.9 * right(plan, seed, sums)).astype(np.int64)


def of_the_seed_alone(right: Any) -> Any:
    """Noise is bound to no sum: a copied seed draws it again beside another one."""
    return lambda sums: b""


def one_noise_for_all(right: Any) -> Any:
    """Every node of one party alone draws from the beginning of one stream."""
    kept: list[Generator] = []

    def release(plan: Plan, total: Any, survivors: Any, rng: Generator, *rest: Any, **options: Any) -> Any:
        kept.append(rng.spawn())
        again = Generator(kept[0]._seed, reproducible=rng.reproducible)
        return session.release(plan, total, survivors, again, *rest, **options)

    return SimpleNamespace(release=release, contribution=session.contribution)


def first_draw_again() -> Any:
    """What was drawn first under a plan is drawn ever after."""
    kept: dict[Any, Any] = {}
    return lambda noise, layout, rng: kept.setdefault((noise, layout), right_draw(noise, layout, rng))


def rounds_for_all_clients() -> Any:
    """A round's shares are sized as if nobody could vanish or collude."""

    def noise(plan: Plan) -> Noise | None:
        cohort = plan.cohort
        everybody = isinstance(plan.schema, GradientSchema)
        honest = cohort.clients if everybody else cohort.min_survivors - cohort.colluders
        return calibrate(plan.schema, plan.privacy, honest_shares=honest)  # type: ignore[arg-type]

    found = cached_property(noise)
    found.__set_name__(Plan, "noise")
    return found


def anybody_begins(right: Any) -> Any:
    return lambda entry, *, sums_only: None


class NeverDisjoint:
    """In the place of ``DisjointRounds``: no course is one."""


def undivided(right: Any) -> Any:
    """Every round gets the whole promise."""
    return lambda whole, part, shares: right(whole, 1.0, shares)


def without_the_mean(course: Phased) -> tuple[Plan, ...]:
    """The price of a course whose second session is not on its bill."""
    priced = course.phases.priced
    return tuple(plan for plan in priced if plan != course.mean) if isinstance(course, Rounds) else priced


def mean_of_rows(recipe: RidgeRounds) -> MeanSchema:
    """The mean of the rows behind the first plan's transform, whatever their lengths are."""
    return replace(right_mean.__get__(recipe), transform=recipe.first.transform)
