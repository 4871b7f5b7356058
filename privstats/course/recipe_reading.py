"""What plans tell of a course: the recipe of its rounds, and the whole that a first plan is a part of.

Releases carry no course. What tells one recipe from another is the noise of a round, and whether a mean belongs to the
rounds is told by the digest of earlier releases that every round's plan holds.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from privstats.course.base import Releases, history
from privstats.course.promise import record_mu, rounded_down
from privstats.course.recipes import AnyRecipe, ModuleRounds, RidgeRounds, SoftmaxRounds, is_mean
from privstats.errors import PlanError, ReleaseError
from privstats.estimates import softmax_recipe
from privstats.estimates.ridge_recipe import MEAN_SHARE
from privstats.plan import Plan
from privstats.release import Release
from privstats.schema import CalibrationSchema, GradientSchema, Schema

__all__ = ["advised_rounds", "recipe_for", "recipe_of", "whole_mu"]

_MOST_LOST = 127  # of 64 rounds and 64 retries
_SAME_SHARE = 1e-5  # promises have nine digits; of T <= 128 rounds, (1 - a / (63 / 64)) T is 5e-5 T off a whole number


def _of_classes(first: Plan, records: int, mu: float, rounds: int, module: str | None) -> AnyRecipe:
    schema: Any = first.schema
    if schema.statistics != "NAB" or schema.clip_norm != 1.0:
        raise PlanError(
            "rounds refine a release of N, A and B of rows of norm 1: give its schema statistics='NAB', "
            "clip_norm=1.0 and, where rows do not have that norm already, a transform that ends in UnitNorm()"
        )
    if module is not None:
        return ModuleRounds(schema, records, mu, rounds, module)
    return SoftmaxRounds(schema, records, mu, rounds)


def _of_regression(first: Plan, records: int, mu: float, rounds: int, module: str | None) -> AnyRecipe:
    schema: Any = first.schema
    if module is not None:
        raise PlanError("a module tells classes apart, and this release has none: leave module out")
    if (schema.targets, schema.folds) != (1, 1):
        raise PlanError("rounds refine a regression of one target without folds: give targets=1 and folds=1")
    return RidgeRounds(schema, records, mu, rounds, proved=first.validity is not None)


class _Refined(NamedTuple):
    """How a first release is refined: its recipe, and T where nobody names one, from mu of the course."""

    recipe: Callable[[Plan, int, float, int, str | None], AnyRecipe]
    advised: Callable[[float], int]


_REFINED: Mapping[str, _Refined] = {
    "classes": _Refined(_of_classes, softmax_recipe.advised_rounds),
    "ridge": _Refined(_of_regression, lambda _: 4),
}
"""By the task of the first release's schema."""


def recipe_for(first: Plan, records: int, mu: float, rounds: int, module: str | None = None) -> AnyRecipe:
    """The recipe after a first release of this plan's schema, for a module where one is named.

    Args:
        first: the plan of the first release; no matter how much it spends.
        records, mu, rounds: as for :class:`~privstats.course.recipes.Recipe`.
        module: the module's word; None for a linear model.

    Raises:
        PlanError: no recipe refines such a release.
        SchemaError: no module has that name.
    """
    return _refined(first.schema).recipe(first, records, mu, rounds, module)


def advised_rounds(schema: Schema, mu: float) -> int:
    """The default of T: 4, and 6 for a softmax with a budget so large that four rounds do not use it up.

    Raises:
        PlanError: no recipe refines such a release.
    """
    return _refined(schema).advised(mu)


def _refined(schema: Schema) -> _Refined:
    found = _REFINED.get(schema.task)
    if found is None:
        raise PlanError(f"no recipe refines a {type(schema).__name__}; start with a ClassSchema or RidgeSchema")
    return found


def recipe_of(releases: Sequence[Release]) -> AnyRecipe:
    """The recipe by which these releases were made, read from their plans.

    Args:
        releases: the first one and those of rounds after it, in order; at least the first.

    Raises:
        ReleaseError: not releases of one course, or a first one that no recipe refines.
    """
    first, *rest = releases
    kinds = GradientSchema | CalibrationSchema
    said = next((each.plan.schema for each in rest if isinstance(each.plan.schema, kinds)), None)
    records = said.expected_records if said else first.plan.cohort.max_records
    mean = rest.pop(0) if rest and is_mean(rest[0]) else None
    try:
        mu = said.course_mu if said else _alone_mu(first.plan, records)
        recipe = _divided(first.plan, records, mu, rest, getattr(said, "module", None))
    except PlanError as error:
        raise ReleaseError(f"no rounds follow on this first release: {error}") from None
    if rest and isinstance(recipe, SoftmaxRounds) and rest[-1].plan.schema == recipe.calibration:
        rest.pop()
    if any(each.plan.schema != recipe.schema for each in rest) or (mean and mean.plan.schema != recipe.mean):
        raise ReleaseError("after the first release only those of rounds of its course can follow; give those of one")
    behind = rest and (mean or recipe.mean_share)
    if behind and not (_pays(recipe, first.plan, rest[0].plan) and _follows(rest[0], [first, mean])):
        raise ReleaseError(
            "the rounds were not measured behind this first release and mean: give all releases of one course, in "
            "order, and None for one without a sum; a course of an older version is read by that version"
        )
    return recipe


def _follows(release: Release, before: Releases) -> bool:
    """Whether the values that a release was measured at were chosen after these, and rounds without a sum."""
    said = release.plan.published
    lost = range(_MOST_LOST + 1)
    return said is not None and any(said.after == history([*before, *[None] * k]).hex() for k in lost)


def _pays(recipe: AnyRecipe, first: Plan, each: Plan) -> bool:
    """Whether a round has the noise of this recipe's: a course of an older version left no part for a mean."""
    left = recipe.mu**2 * (1 - recipe.mean_share) - record_mu(first) ** 2
    return math.isclose(left, recipe.rounds * record_mu(each) ** 2, rel_tol=_SAME_SHARE)


def _divided(first: Plan, records: int, mu: float, rest: Sequence[Release], module: str | None) -> AnyRecipe:
    """The recipe of as many rounds as share what the first release leaves, by the noise of one; of one, where none is.

    With a mean before them there are fewer rounds of that noise than without, and one recipe alone says the same.
    """
    if not rest:
        return recipe_for(first, records, mu, 1, module)
    left, each = mu**2 - record_mu(first) ** 2, record_mu(rest[0].plan) ** 2
    for share in (MEAN_SHARE, 0.0):
        recipe = recipe_for(first, records, mu, max(1, round((left - share * mu**2) / each)), module)
        if recipe.mean_share == share:
            break
    return recipe


def _alone_mu(first: Plan, records: int) -> float:
    """mu by which a first release alone is read; exact sums are read as those of an infinite budget."""
    return math.inf if first.noise is None else whole_mu(first, records, 1)


def whole_mu(first: Plan, records: int, rounds: int) -> float:
    """mu of one record over a whole course whose first release has this plan and the share that the recipe gives it.

    Solves mu sqrt(share(mu)) = mu of the first release. Where the share falls in a jump there may be two solutions, and
    the smaller is taken; where it rises in a jump (a regression, where G tells more than a mean) there may be none, and
    the jump is taken: the first release then has another share than the recipe gives it.
    """

    def share(mu: float) -> float:
        return recipe_for(first, records, mu, rounds).constants.release_share

    own = mu = record_mu(first)
    for _ in range(2):
        assumed = share(mu)
        mu = own / math.sqrt(assumed)
        if share(mu) == assumed:
            return rounded_down(mu)
    low, high = own, 8 * own  # no share is below 1/64
    for _ in range(80):
        middle = (low + high) / 2
        low, high = (middle, high) if middle * math.sqrt(share(middle)) < own else (low, middle)
    return rounded_down(high)
