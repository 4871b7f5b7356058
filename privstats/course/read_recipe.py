"""Read a course's recipe from its releases."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import dropwhile
from typing import Any

from privstats.course.base import Releases, history
from privstats.course.pair_codes import SEARCH_SHARE, codes_in
from privstats.course.pair_rounds import PairRounds
from privstats.course.positions import in_places
from privstats.course.promise import record_mu
from privstats.course.recipes import AnyRecipe, SoftmaxRounds, is_mean, recipe_for, total_mu
from privstats.errors import PlanError, ReleaseError
from privstats.estimates import recipes
from privstats.estimates.recipes import MEAN_SHARE
from privstats.kinds import CalibrationSchema, GradientSchema
from privstats.plan import Plan
from privstats.release import Release
from privstats.schema import Schema

_SAME_SHARE = 1e-5  # promises have nine digits; of T <= 128 rounds, (1 - a / (63 / 64)) T is 5e-5 T off an integer


def recipe_of(releases: Releases) -> AnyRecipe:
    """Return the recipe of a course's releases, read from their plans.

    Args:
        releases: from the first release on, in order; None for a session without a sum.

    Raises:
        ReleaseError: not the releases of one course with rounds, or not in order.
    """
    placed = list(dropwhile(lambda each: each is None, in_places(releases)))
    first, *rest = [each for each in placed if each is not None]
    kinds = GradientSchema | CalibrationSchema
    text = next((each.plan.schema for each in rest if isinstance(each.plan.schema, kinds)), None)
    records = text.expected_records if text else first.plan.cohort.max_records
    mean = rest.pop(0) if rest and is_mean(rest[0]) else None
    norm: Any = getattr(text, "residual_norm", None)  # a course of an older version has another than today's advice
    clip = norm if norm in recipes.CELL_CLIPS.values() else recipes.GRADIENT_CLIP
    try:
        mu = text.course_mu if text else _alone_mu(first.plan, records)
        module = None if codes_in(text) else getattr(text, "module", None)
        recipe = _divided(first.plan, records, mu, rest, module, clip)
        recipe, schemas = _with_pairs(recipe, rest)
    except PlanError as error:
        raise ReleaseError(f"no rounds follow on this first release: {error}") from None
    if rest and isinstance(recipe, SoftmaxRounds) and rest[-1].plan.schema == recipe.calibration:
        rest.pop()
    if any(each.plan.schema not in schemas for each in rest) or (mean and mean.plan.schema != recipe.mean):
        raise ReleaseError("after the first release only those of rounds of its course can follow; give those of one")
    behind = rest and (mean or recipe.mean_share)
    if behind and not (_pays(recipe, first.plan, rest[0].plan) and _follows(rest[0], placed)):
        raise ReleaseError(
            "the rounds were not measured behind this first release and mean: give all releases of one course, in "
            "order, and None for one without a sum; a course of an older version is read by that version"
        )
    return recipe


def _with_pairs(recipe: AnyRecipe, rest: Sequence[Release]) -> tuple[AnyRecipe, list[Schema]]:
    """Return the recipe, of pairs if a session searched for them, and the schemas of its rounds."""
    if not isinstance(recipe, SoftmaxRounds) or not any(codes_in(each.plan.schema) for each in rest):
        return recipe, [recipe.schema] if rest else []
    other = PairRounds.after(recipe)
    return other, [other.schema, other.schema_of(other.searching), other.schema_of(other.joint)]


def _follows(release: Release, placed: Releases) -> bool:
    """Return whether a release's published values follow from all sessions before it."""
    place = next(index for index, each in enumerate(placed) if each is release)
    text = release.plan.published
    return text is not None and text.after == history(placed[:place]).hex()


def _pays(recipe: AnyRecipe, first: Plan, later: Plan) -> bool:
    """Return whether a round has this recipe's noise; older versions left nothing for a mean."""
    remaining = recipe.mu**2 * (1 - recipe.mean_share) - record_mu(first) ** 2
    return math.isclose(remaining, recipe.rounds * record_mu(later) ** 2, rel_tol=_SAME_SHARE)


def _divided(
    first: Plan, records: int, mu: float, rest: Sequence[Release], module: str | None, clip: float
) -> AnyRecipe:
    codes = [codes_in(release.plan.schema) for release in rest]
    own = [release for release, code in zip(rest, codes, strict=True) if code is None or not code.searches]
    if not own:
        return recipe_for(first, records, mu, 1, module, clip)
    searched = SEARCH_SHARE if len(own) < len(rest) else 0.0
    remaining, price = (mu**2 - record_mu(first) ** 2) * (1 - searched), record_mu(own[0].plan) ** 2
    for share in (MEAN_SHARE, 0.0):
        recipe = recipe_for(first, records, mu, max(1, round((remaining - share * mu**2) / price)), module, clip)
        if recipe.mean_share == share:
            break
    return recipe


def _alone_mu(first: Plan, records: int) -> float:
    """Return the mu to read a lone first release; exact sums count as infinite budget."""
    return math.inf if first.noise is None else total_mu(first, records, 1)
