"""Shares and survival curves: ours, the textbook's on our noise, statsmodels on the records, OpenDP's counts."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from importlib import import_module
from typing import Any, TypeAlias

import numpy as np

import privstats as ps
from benchmarks.inference.coverings import Answer, Array, Peer, ends_at, plan_of, ran
from privstats import inference as inf
from privstats.randomness import Generator

__all__ = ["Followed", "curve_peers", "followed", "share_peers", "shares"]

CLIENTS = 4
SHARES = np.array([0.6, 0.25, 0.1, 0.05])
CELLS = ps.CountSchema((ps.Categories("cell", (0, 1, 2, 3)),), (("cell",),))
POINTS = 23  # the last of 24 bins is open
CURVE = ps.CountSchema((ps.Bins("t", tuple(range(25))), ps.Categories("e", (0, 1))), (("t", "e"),))
HAZARD = 0.04
SURVIVAL: Array = ((1 - HAZARD) ** np.arange(1, POINTS + 1)).astype(np.float64)
_SUM = "the sum over all parties"
_NOISY = "the noisy sum over all parties"

Followed: TypeAlias = tuple[Array, Array]
"""Months, and whether the event happened then."""


def shares(records: int, chance: np.random.Generator) -> Array:
    """Records of four kinds."""
    return chance.choice(4, records, p=SHARES).astype(np.float64)


def followed(records: int, chance: np.random.Generator) -> Followed:
    """A constant monthly hazard, and follow-up of 6 to 39 months."""
    months, until = chance.geometric(HAZARD, records) - 1, chance.integers(6, 40, records)
    return np.minimum(months, until), (months <= until).astype(int)


def share_peers(records: int, epsilon: float) -> list[Peer[Array]]:
    """95 % intervals of four shares."""
    plan = plan_of(CELLS, CLIENTS, records, epsilon, "distributed")
    up, raw = plan.masking.upload_bytes, records // CLIENTS
    return [
        Peer("statsmodels, Wilson", "statsmodels", None, raw, "every record", _wilson),
        Peer("`proportions`", "privstats", epsilon, up, _NOISY, partial(_ours_of_shares, plan)),
        Peer(
            "Wilson's formula on the same noisy counts", "privstats", epsilon, up, _NOISY, partial(_naive_shares, plan)
        ),
        Peer(
            "OpenDP counts with Laplace noise, pure epsilon, and its accuracy as error bars (dp-wizard draws these)",
            "opendp",
            epsilon,
            raw,
            "every record, to one curator",
            partial(_opendp, epsilon),
        ),
    ]


def curve_peers(records: int, epsilons: Sequence[float]) -> list[Peer[Followed]]:
    """95 % intervals of 23 points of a survival curve."""
    exact = plan_of(CURVE, CLIENTS, records, None)
    noisy = [(epsilon, plan_of(CURVE, CLIENTS, records, epsilon, "distributed")) for epsilon in epsilons]
    up, raw = exact.masking.upload_bytes, records // CLIENTS * 2
    return [
        Peer("statsmodels SurvfuncRight", "statsmodels", None, raw, "every record", _survfunc),
        Peer("`kaplan_meier`, no noise", "privstats", None, up, _SUM, partial(_ours_of_curve, exact)),
        *(
            peer
            for epsilon, plan in noisy
            for peer in (
                Peer(
                    "`kaplan_meier`",
                    "privstats",
                    epsilon,
                    plan.masking.upload_bytes,
                    _NOISY,
                    partial(_ours_of_curve, plan),
                ),
                Peer(
                    "Greenwood's formula on the same noisy counts",
                    "privstats",
                    epsilon,
                    plan.masking.upload_bytes,
                    _NOISY,
                    partial(_greenwood, plan),
                ),
            )
        ),
    ]


def _wilson(world: Array, _: Generator) -> Answer:
    proportion = import_module("statsmodels.stats.proportion")
    counts = np.bincount(world.astype(int), minlength=4)
    low, high = proportion.proportion_confint(counts, len(world), method="wilson")
    return Answer(counts / len(world), np.asarray(low), np.asarray(high), SHARES)


def _ours_of_shares(plan: ps.Plan, world: Array, rng: Generator) -> Answer:
    found = list(inf.proportions(_counted(plan, {"cell": world.astype(int)}, rng), "cell").values())
    reported = np.array([each.reported for each in found])
    value, low, high = (np.array([getattr(each, name) for each in found]) for name in ("value", "low", "high"))
    return Answer(
        np.where(reported, value, np.nan), np.where(reported, low, -np.inf), np.where(reported, high, np.inf), SHARES
    )


def _naive_shares(plan: ps.Plan, world: Array, rng: Generator) -> Answer:
    counts = np.maximum(inf.histogram(_counted(plan, {"cell": world.astype(int)}, rng), "cell").counts, 0.0)
    n, z2 = counts.sum(), 1.959963984540054**2
    share = counts / n
    middle = (share + z2 / (2 * n)) / (1 + z2 / n)
    margin = np.sqrt(z2 * (share * (1 - share) / n + z2 / (4 * n * n))) / (1 + z2 / n)
    return Answer(share, middle - margin, middle + margin, SHARES)


def _opendp(epsilon: float, world: Array, _: Generator) -> Answer:
    """Noise from the operating system; the accuracy is of a count, the number of records is given."""
    prelude: Any = import_module("opendp.prelude")
    prelude.enable_features("contrib")
    space = prelude.vector_domain(prelude.atom_domain(T=int)), prelude.symmetric_distance()
    count = space >> prelude.t.then_count_by_categories(categories=[0, 1, 2, 3], null_category=False)
    counts = np.array((count >> prelude.m.then_laplace(1 / epsilon))(world.astype(int).tolist()), np.float64)
    accuracy = prelude.laplacian_scale_to_accuracy(1 / epsilon, 0.05)
    n = len(world)
    return Answer(counts / n, (counts - accuracy) / n, (counts + accuracy) / n, SHARES)


def _survfunc(world: Followed, _: Generator) -> Answer:
    found = import_module("statsmodels.duration.survfunc").SurvfuncRight(*world)
    at = np.searchsorted(found.surv_times, np.arange(POINTS), side="right") - 1
    value = np.where(at < 0, 1.0, found.surv_prob[at])
    return ends_at(value, np.where(at < 0, 0.0, found.surv_prob_se[at]).astype(np.float64), SURVIVAL)


def _ours_of_curve(plan: ps.Plan, world: Followed, rng: Generator) -> Answer:
    curve = _curve(plan, world, rng)
    return _padded(curve.survival_function_, *curve.confidence_interval_.T)


def _greenwood(plan: ps.Plan, world: Followed, rng: Generator) -> Answer:
    curve = _curve(plan, world, rng)
    r, d = curve.at_risk, np.clip(curve.events, 0.0, None)
    value: Array = np.cumprod(1 - d / r).astype(np.float64)
    margin = 1.959963984540054 * value * np.sqrt(np.cumsum(d / (r * (r - d))))
    return _padded(value, value - margin, value + margin)


def _padded(value: Array, low: Array, high: Array) -> Answer:
    """Points beyond the reported part of the curve are not reported."""
    missing = max(POINTS - len(value), 0)
    value, low, high = (
        np.append(part[:POINTS], np.full(missing, rest))
        for part, rest in ((value, np.nan), (low, -np.inf), (high, np.inf))
    )
    return Answer(value, low, high, SURVIVAL)


def _curve(plan: ps.Plan, world: Followed, rng: Generator) -> inf.SurvivalCurve:
    curve = inf.kaplan_meier(
        _counted(plan, {"t": world[0], "e": world[1]}, rng),
        time="t",
        event="e",
        times="discrete",
    )
    assert isinstance(curve, inf.SurvivalCurve)
    return curve


def _counted(plan: ps.Plan, columns: dict[str, Array], rng: Generator) -> ps.Release:
    parts = [({name: column[k::CLIENTS] for name, column in columns.items()},) for k in range(CLIENTS)]
    return ran(plan, parts, rng)
