"""The mean predicted probability less the rate: which stage of the recipe it comes from, and what chance explains.

    python -m benchmarks.raw_tables.mean_probability --save --keep

The recipe without pairs, from the columns alone, a tenth of the cells missing, on the splits of ``probabilities``.
Every split is released several times with other noise from known seeds. On the training records five parts add up:

- *rounds*: the mean of the clipped residuals at the last weights, 0 where the rounds have ended at their optimum;
- *clip*: the mean of what the clip cuts off the residuals there;
- *discriminant*: what the step toward the discriminant changes;
- *link*: what the clip's link alone changes, which is to make up for the clip;
- *gradient*: what the link's shift by the last released gradient changes.

*Alone* is the recipe without that shift. Corrections without a price are scored beside it, each a shift of the scores,
with its log loss less that of the link alone; *matched* is the recipe as it comes:

- *newton*: one Newton step of the intercept by the last released gradient;
- *weighted*: the same step times the share of its variance that noise does not explain, a deviation of .01 a priori;
- *held*: the score of the mean row, from the released A, stays as it was before the step toward the discriminant.

A split is stratified, so training and test records have one rate, and a test deviation differs from that on the
training records by the columns of the test records alone.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

import numpy as np
from scipy.special import expit, logit, softmax

import privstats as ps
from benchmarks.measuring import Row, Tables, command, standard_error
from benchmarks.raw_tables.cells import Array, declared
from benchmarks.raw_tables.known import Known
from benchmarks.raw_tables.running import DELTA, lines_of
from benchmarks.raw_tables.sets import TABLES, RawTable, Split, splits
from privstats import heads
from privstats.course.alone import single_party_plan
from privstats.course.read_recipe import recipe_of
from privstats.estimates.clip_link import link_of
from privstats.estimates.softmax import INTERCEPT
from privstats.heads.provenance import behind_counts, present
from privstats.heads.rules import rows_of
from privstats.randomness import seeded

__all__ = ["FRESH", "LINES", "PARTS", "TITLE", "WAYS"]

LINES = (
    *("biopsy", "titanic", "mgus", "attrition", "cells", "rotterdam", "credit", "spam", "monica", "churn", "default"),
    *("hdma", "recid", "loanapp", "fertil2", "thornton", "mlc churn", "lending", "mortgages"),
)
"""The tables of ``probabilities``."""
TITLE = "mean probability less the rate"
PARTS = ("rounds", "clip", "discriminant", "link", "gradient")
_SPLITS, _DRAWS = 10, 2
_SEEDS = 1_000
WAYS = ("newton", "weighted", "held", "matched")
FRESH = (
    *("rossi", "gbsg", "mroz", "anes", "nhefs", "cancer", "cps", "cps, with family income", "fair", "flchain"),
    *("randhie", "health insurance", "remote work"),
)
"""Tables on which no part of the link was chosen."""
_JUDGED = ("tested", "trained", "alone", *(f"{way}, loss" for way in WAYS))
_A_PRIORI, _LEAST_CURVATURE = 0.01, 0.03


def released(known: Known, split: Split, epsilon: float, draw: int) -> list[Any]:
    """The releases of the recipe without pairs, their noise from a seed."""
    cells = declared(known)
    schema = ps.ClassSchema(2, statistics="NAB", clip_norm=1.0, transform=(cells,))
    privacy = ps.Privacy(model="central", unit="record", adjacency="add-remove", epsilon=epsilon, delta=DELTA)
    plan, records = single_party_plan(schema, privacy), len(split.y)
    course: Any
    if cells.open:
        course = ps.Binned.within(plan, "rounds", expected_records=records, pairs=False)
    else:
        course = ps.Rounds.within(plan, expected_records=records, pairs=False)
    rng = seeded(_SEEDS * split.seed + draw)
    return ps.private_releases(course, split.gaps, split.y, ledger="uncharged", rng=rng, allow_reproducible=True)


def parts_of(split: Split, releases: list[Any]) -> Row:
    """Deviations of one head: on the test and on the training records, and the latter's parts."""
    head = heads.RefinedSoftmax().fit_releases(releases)
    have = present(behind_counts(releases)[1])
    recipe: Any = recipe_of(have)
    whitening, states = recipe.states(have)
    rows = whitening.rows(rows_of(head, split.gaps))
    last = softmax(rows @ whitening.published(states[-1].weights).T, axis=1)
    averaged = softmax(rows @ head.weights_.T, axis=1)[:, 1].mean()
    residual = last - np.eye(2)[split.y]
    kept = np.minimum(1.0, recipe.clip / np.maximum(np.linalg.norm(residual, axis=1), 1e-300))
    shares, tested = (head.predict_proba(frame)[:, 1] for frame in (split.gaps, split.gaps_test))
    before = link_of(whitening, recipe.sums(have[0]), whitening.turned(head.weights_), recipe.clip).shifts
    matched = float(np.diff(head.link_[1])[0] - np.diff(before)[0])
    unmoved, alone = _moved(shares, -matched), _moved(tested, -matched)
    return {
        "tested": float(tested.mean() - split.y_test.mean()),
        "trained": float(shares.mean() - split.y.mean()),
        "rounds": float((kept * residual[:, 1]).mean()),
        "clip": float(((1 - kept) * residual[:, 1]).mean()),
        "discriminant": float(averaged - last[:, 1].mean()),
        "link": float(unmoved.mean() - averaged),
        "gradient": float(shares.mean() - unmoved.mean()),
        "alone": float(alone.mean() - split.y_test.mean()),
        "chance": _chance(tested, split.y_test),
        "trained by the rate": float(_moved(tested, _shift(shares, split.y.mean())).mean() - split.y_test.mean()),
        "loss": _loss(tested, split.y_test),
        "best": _loss(_moved(tested, _shift(shares, split.y.mean())), split.y_test),
        "residual norm": recipe.clip,
        "predicted": head.mean_noise_ or 0.0,
        **_corrected(alone, split.y_test, {**_shifts(head, recipe, have), "matched": matched}),
    }


def _shifts(head: Any, recipe: Any, have: Any) -> Mapping[str, float]:
    """The shift of the score by correction, from releases alone."""
    whitening, states = recipe.states(have)
    sums, last = recipe.sums(have[0]), have[-1]
    row = np.append(sums.A.sum(axis=0) @ whitening.vectors * (whitening.scale * whitening.stretch), 0.0) / sums.records
    row[-1] = INTERCEPT
    moved = whitening.turned(head.weights_) - states[-1].weights
    gradient = np.asarray(last.moments.g)[:, -1] / (INTERCEPT * sums.records)
    noise = (float(last.sigma["g"]) / (INTERCEPT * sums.records)) ** 2 / 2
    curvature = min(max(float(last.moments.k) / sums.records / 2, _LEAST_CURVATURE), 1 / 4)
    newton = -(gradient[1] - gradient[0]) / 2 / curvature
    weight = _A_PRIORI**2 / (_A_PRIORI**2 + noise)
    held = -float((moved[1] - moved[0]) @ row) / head.link_[0]
    return {"newton": float(newton), "weighted": float(weight * newton), "held": held}


def _corrected(shares: Array, y: Any, shifts: Mapping[str, float]) -> Row:
    found: dict[str, float] = {}
    for way, shift in shifts.items():
        moved = _moved(shares, shift)
        found |= {f"{way}, gap": float(moved.mean() - y.mean()), f"{way}, loss": _loss(moved, y) - _loss(shares, y)}
    return found


def _chance(shares: Array, y: Any) -> float:
    """Standard error of the mean of ``p - y`` over records of a fixed head, with the number of positives fixed."""
    gaps = shares - y
    each = [gaps[y == label].var(ddof=1) * np.mean(y == label) for label in (0, 1)]
    return float(np.sqrt(sum(each) / len(y)))


def _loss(shares: Array, y: Any) -> float:
    bounded = np.clip(shares, 1e-6, 1 - 1e-6)
    return float(-np.log(np.where(y == 1, bounded, 1 - bounded)).mean())


def _moved(shares: Array, shift: float) -> Array:
    return np.asarray(expit(logit(shares) + shift))


def _shift(shares: Array, rate: float) -> float:
    """The shift of all scores at which their mean probability is the rate."""
    low, high = -5.0, 5.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if _moved(shares, middle).mean() < rate else (low, middle)
    return low


def options(parser: argparse.ArgumentParser) -> None:
    """How much."""
    parser.add_argument("--tables", nargs="+", default=list(LINES))
    parser.add_argument("--epsilons", nargs="+", type=float, default=[1.0, 3.0])
    parser.add_argument("--splits", type=int, default=_SPLITS)
    parser.add_argument("--draws", type=int, default=_DRAWS, help="releases of a split")
    parser.add_argument("--keep", action="store_true", help="keep saved rows that have enough splits and draws")
    parser.add_argument("--minutes", type=float, help="begin no further row after so many")


def tables(chosen: argparse.Namespace) -> Tables:
    """A row per table and epsilon."""
    names, epsilons = (["cancer"], [1.0]) if chosen.quick else (chosen.tables, chosen.epsilons)
    count, draws = (2, 2) if chosen.quick else (chosen.splits, chosen.draws)
    asked = ((epsilon, table) for epsilon in epsilons for table in TABLES if table.name in names)

    def enough(row: Row) -> bool:
        return bool(row["splits"] >= count and row["draws"] >= draws)

    measured = partial(_measured, count=count, draws=draws)
    return lines_of(TITLE, "raw_tables.mean_probability", chosen, asked, measured, enough)


def _measured(table: RawTable, epsilon: float, count: int, draws: int) -> Row:
    columns, y = table.load()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that a count tells little here, or that records are few
        runs = [list(each) for each in _runs(columns, y, epsilon, count, draws)]
    means = {name: [float(np.mean([run[name] for run in each])) for each in runs] for name in runs[0][0]}
    within = [np.var([run["trained"] for run in each], ddof=1) for each in runs]
    return {
        "data": table.name,
        "epsilon": epsilon,
        "records": len(y),
        "rate": float(np.mean(y)),
        "splits": count,
        "draws": draws,
        "residual norm": means.pop("residual norm")[0],
        **{name: float(np.mean(each)) for name, each in means.items()},
        **{f"{name}, se": standard_error(means[name]) for name in _JUDGED},
        "noise": float(np.sqrt(np.mean(within))) if draws > 1 else None,
        "release": float(np.std([run["tested"] for each in runs for run in each], ddof=1)),
        "by split": [round(each, 5) for each in means["tested"]],
    }


def _runs(columns: Any, y: Any, epsilon: float, count: int, draws: int) -> Iterator[Iterator[Mapping[str, Any]]]:
    known = Known.of(columns)
    for split in splits(columns, y, range(count)):
        yield (parts_of(split, released(known, split, epsilon, draw)) for draw in range(draws))


if __name__ == "__main__":
    command("raw_tables.mean_probability", __doc__, tables, options)
