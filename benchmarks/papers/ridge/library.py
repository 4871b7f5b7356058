"""The paper's protocol run by the library: integer sums, one upload, the plain solver with the paper's penalty.

Clip norm and target bound follow from the public law of the data, not from records: no row of section V-A is as long.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import privstats as ps
from benchmarks.papers.ridge.data import Array, Federation
from privstats import heads
from privstats.randomness import Generator
from privstats.transforms import Transform

__all__ = ["PENALTY", "exact_plan", "measured", "one_message", "one_shot", "weights_of"]

PENALTY = 0.01  # sigma of the paper
_TARGETS = 7.0  # targets are normal with variance about 1


def exact_plan(
    federation: Federation, *, transform: Sequence[Transform] = (), features: int | None = None, folds: int = 1
) -> ps.Plan:
    """A plan without differential privacy that shortens no row.

    Args:
        federation: what the plan is for.
        transform: public maps before the sums.
        features: that come out of them.
        folds: each with its own sums.
    """
    longest = 1.2 * math.sqrt(federation.features) + 6  # a row is about as long as the root of d
    schema = ps.RidgeSchema(
        federation.features if features is None else features,
        clip_norm=longest * (2 if transform else 1),
        target_bound=_TARGETS,
        folds=folds,
        transform=tuple(transform),
    )
    cohort = ps.Cohort(federation.clients, federation.clients, len(federation.all_targets))
    return ps.Plan(schema=schema, cohort=cohort, privacy=ps.NoPrivacy())


def one_message(plan: ps.Plan, rng: Generator, fewest: int | None = None) -> ps.Plan:
    """The same plan under the protocol of one message a client, with a leader and a helper that are made up.

    Args:
        plan: the plan.
        rng: for the made-up keys.
        fewest: survivors that it asks for; as many as before when omitted.
    """
    panel = tuple(ps.secagg.Identity.generate(rng.bytes).public.hex() for _ in range(2))
    cohort = replace(plan.cohort, min_survivors=fewest or plan.cohort.min_survivors)
    return replace(plan, cohort=cohort, protocol="split", panel=panel)


def measured(plan: ps.Plan, federation: Federation) -> list[Any]:
    """Every client's exact sums."""
    pairs = zip(federation.rows, federation.targets, strict=True)
    return [ps.measure(plan.schema, X, y) for X, y in pairs]


def weights_of(release: ps.Release) -> Array:
    """The paper's estimate from a release, ``(d,)``."""
    head = heads.Ridge(solver="plain", penalty=PENALTY, fit_intercept=False).fit_release(release)
    weights: Array = head.rule_.coef[0]  # of the columns behind the maps
    return weights


def one_shot(federation: Federation) -> Array:
    """The whole way: plan, sums of every client, their total, weights ``(d,)``.

    In clear: masks cancel in the total, so they would add time and no digit.
    """
    plan = exact_plan(federation)
    return weights_of(ps.session.aggregate_unmasked(plan, measured(plan, federation)))
