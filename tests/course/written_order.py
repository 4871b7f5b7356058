"""The order and the prices of four kinds of courses, written by hand as they were before courses were steps."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import privstats as ps
from privstats.course import Releases, history
from privstats.course.base import mu_of
from privstats.course.effect import propensity_schema, published_values
from privstats.course.hazard import check_values, first_values, hazard_weights
from privstats.course.newton import weights_after
from privstats.course.pair_rounds import JOINT_ROUNDS
from privstats.schema.public_values import Published


class Written(NamedTuple):
    """What a course must do: its plans by place, and the next one after the first."""

    priced: tuple[ps.Plan, ...]
    next: Callable[[Releases], ps.Plan | None]


def _at(plan: ps.Plan, values: Any, releases: Releases) -> ps.Plan:
    return replace(plan, published=Published.of(values, history(releases)))


def _newton(course: ps.Newton) -> Written:
    most = course.rounds + course.retries

    def following(releases: Releases) -> ps.Plan | None:
        have = [each for each in releases if each is not None]
        if len(have) >= course.rounds or len(releases) >= most:
            return None
        return _at(course.first, {"w": weights_after(course.schema, have)[-1]}, releases)

    return Written((course.first,) * most, following)


def _hazard(course: ps.Hazard) -> Written:
    check = [each for each in [course.check] if each]
    priced = (course.first, *[course.plan] * (course.rounds + course.retries), *check)

    def following(releases: Releases) -> ps.Plan | None:
        counts, rest = releases[0], releases[1:]
        have = [each for each in rest if each is not None]
        if len(releases) >= len(priced) or len(have) > course.rounds or (len(have) == course.rounds and not check):
            return None
        if len(have) == course.rounds:
            return _at(check[0], check_values(course.schema, course.early_bins, counts, have), releases)
        weights = hazard_weights(course.schema, counts, have)[-1]
        return _at(course.plan, {**first_values(course.schema, counts), "w": weights}, releases)

    return Written(priced, following)


def _effect(course: ps.Effect) -> Written:
    propensity, outcome = course.propensity, course.outcome
    rounds = [] if propensity is None else [propensity] * course.before
    lines = [] if outcome is None else [outcome]

    def following(releases: Releases) -> ps.Plan | None:
        have = [each for each in releases if each is not None]
        lost = len(releases) - len(have)
        if lost > course.retries or len(have) > len(rounds) + len(lines):
            return None
        if propensity is not None and len(have) < len(rounds):
            return _at(propensity, {"w": weights_after(propensity_schema(course.schema), have)[-1]}, releases)
        if outcome is not None and len(have) == len(rounds):
            return outcome
        return _at(course.plan, published_values(course.schema, have), releases)

    return Written((*rounds, *lines, *[course.plan] * (1 + course.retries)), following)


def _rounds(course: ps.Rounds) -> Written:
    recipe: Any = course.recipe
    if course.mean is not None:
        return _rounds_behind_a_mean(course, course.mean)
    last = [each for each in [course.calibration] if each]
    tries, before = course.rounds + course.retries, course.rounds - JOINT_ROUNDS
    most = 1 + tries + len(last) + (course.search is not None)
    rounds = [course.template] * tries
    if course.search is not None and course.joint is not None:
        longer = max(course.template, course.joint, key=lambda plan: plan.layout.size)
        rounds = [*[course.template] * before, course.search, *[longer] * (tries - before)]

    def following(releases: Releases) -> ps.Plan | None:
        have, rest = [each for each in releases if each is not None], list(releases[1:])
        if releases[0] is None:
            return None
        if course.search is not None:
            if len(rest) == before:
                return _at(course.search, recipe.search_values(have), releases)
            rest = rest[:before] + rest[before + 1 :]
        had = [sum(each is not None for each in rest[:place]) for place in range(len(rest) + 1)]
        ended = [place for place, sums in enumerate(had) if sums == course.rounds or place == tries]
        if ended:
            open_ = last and not any(rest[ended[0] :]) and len(releases) < most
            return _at(last[0], recipe.values(have), releases) if open_ else None
        values = recipe.values(have)
        return _at(course.joint if course.joint and "w" in values else course.template, values, releases)

    return Written((course.first, *rounds, *last), following)


def _rounds_behind_a_mean(course: ps.Rounds, mean: ps.Plan) -> Written:
    recipe: Any = course.recipe
    tries = course.rounds + course.retries
    cheap = mu_of(mean) <= mu_of(course.template)

    def following(releases: Releases) -> ps.Plan | None:
        have = [each for each in releases if each is not None]
        if releases[0] is None or len(releases) >= 2 + tries:
            return None
        measured = [each for each in have if each.plan.schema == mean.schema]
        if not measured and len(releases) < (2 + course.retries if cheap else 2):
            return mean
        if len(have) - 1 - len(measured) == course.rounds:
            return None
        return _at(course.template, recipe.values(have), releases)

    return Written((course.first, mean, *[course.template] * tries), following)


BY_HAND: dict[str, Callable[[Any], Written]] = {
    "newton": _newton,
    "hazard": _hazard,
    "effect": _effect,
    "rounds": _rounds,
}
