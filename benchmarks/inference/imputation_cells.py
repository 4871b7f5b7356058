"""Measure how often intervals of imputed odds ratios and risks hold, beside complete cases and R's ``mice``.

    python -m benchmarks.inference.imputation_cells --save --runs 1000
    python -m benchmarks.inference.imputation_cells --save --runs 200 --only mice

Counts are sampled from the exact probabilities of observed cells, and read by the functions that
``contrib.imputation.logit`` and ``risks`` call. "Complete cases" are the records without a gap, without noise.
``mice`` (van Buuren and Groothuis-Oudshoorn 2011) imputes the pooled records 20 times by its default methods for
factors, ``logreg`` and ``polyreg``. It needs ``Rscript`` with that package; without it the stored rows stay.
"""

from __future__ import annotations

import argparse
import math
import tempfile
import zlib
from collections.abc import Container, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from scipy.optimize import brentq
from scipy.special import expit, ndtri

from benchmarks.inference.imputation_runs import tables_of
from benchmarks.inference.runs import add_options, ends, others_of
from benchmarks.measuring import Row, Tables, child, command
from privstats.contrib.imputation.log_linear import Layout, fitted, fitted_odds, group_odds
from privstats.contrib.imputation.odds_table import coefficients
from privstats.contrib.imputation.risk_table import compared, risk_errors
from privstats.dp import gaussian_mu

NAME = "inference.imputation_cells"
EPSILONS = (1.0, 3.0, 8.0, math.inf)
_DELTA, _Z = 1e-6, float(ndtri(0.975))
_MICE = Path(__file__).with_name("imputation_cells_mice.R")
Array: TypeAlias = Any


@dataclass(frozen=True)
class World:
    """A population of crossed variables; the outcome is the last, and the first is the group whose risks are compared.

    Args:
        levels: number of values by variable.
        pairs: the log odds per step of two variables' values, from middle to middle.
        rate: share of the outcome's second value.
        gaps: for each incomplete variable, the steps of variables by which the log odds of its gap move.
        triple: log odds of the product of the first two variables' and the outcome's steps.
        declared: whether the model has that product.
        last: share of the first variable's last value; None: what the pairs give.
    """

    levels: tuple[int, ...]
    pairs: dict[tuple[int, int], float]
    gaps: dict[int, dict[int, float]]
    rate: float = 0.3
    triple: float = 0.0
    declared: bool = False
    last: float | None = None

    @property
    def interactions(self) -> tuple[tuple[int, int], ...]:
        """Pairs of variables whose product is in the regression."""
        return ((0, 1),) if self.declared else ()

    def layout(self, gaps: Container[int]) -> Layout:
        """Return the cells and the model of a table in which these variables have gaps."""
        last = len(self.levels) - 1
        products = tuple((*pair, last) for pair in self.interactions)
        return Layout(self.levels, tuple(j in gaps for j in range(last + 1)), products)

    @cached_property
    def steps(self) -> Array:
        """Each variable's value in complete cells, with mean 0 over its values, ``(variables, cells)``."""
        codes = np.indices(self.levels).reshape(len(self.levels), -1)
        return codes - (np.array(self.levels)[:, None] - 1) / 2

    @cached_property
    def p(self) -> Array:
        """Probabilities of complete cells."""
        logs = sum(value * self.steps[a] * self.steps[b] for (a, b), value in self.pairs.items())
        logs = logs + self.triple * self.steps[0] * self.steps[1] * self.steps[-1]
        if self.last is not None:
            logs = _levelled(logs, self.steps[0] == self.steps[0].max(), self.last)
        return _normal(_levelled(logs, self.steps[-1] > 0, self.rate))

    def seen(self, missing: float) -> Array:
        """Probabilities of observed cells where each incomplete variable is missing in this share."""
        codes = np.indices(self.levels).reshape(len(self.levels), -1)
        whole = np.zeros([k + (j in self.gaps) for j, k in enumerate(self.levels)])
        chances = {j: self._chance(j, missing) for j in self.gaps}
        for pattern in range(2 ** len(self.gaps)):
            gone = {j for bit, j in enumerate(self.gaps) if pattern >> bit & 1}
            chance = np.prod([each if j in gone else 1 - each for j, each in chances.items()], axis=0)
            at = tuple(np.full_like(codes[j], k) if j in gone else codes[j] for j, k in enumerate(self.levels))
            np.add.at(whole, at, self.p * chance)
        return whole.reshape(-1)

    def _chance(self, variable: int, missing: float) -> Array:
        score = sum(slope * self.steps[j] for j, slope in self.gaps[variable].items())
        return expit(score + brentq(lambda a: float(self.p @ expit(score + a)) - missing, -30, 30))


def _normal(logs: Array) -> Array:
    weights = np.exp(logs - logs.max())
    return weights / weights.sum()


def _levelled(logs: Array, where: Array, share: float) -> Array:
    """Return log probabilities with a share of those cells, by one constant."""
    of = float(_normal(logs)[where].sum())
    return logs + where * (math.log(share / (1 - share)) - math.log(of / (1 - of)))


_COVARIATE = {(0, 1): 0.6, (0, 2): 0.5, (1, 2): -0.5}
_THREE = {(0, 1): 0.5, (0, 2): 0.4, (1, 2): 0.3, (0, 3): 0.5, (1, 3): -0.4, (2, 3): 0.3}
WORLDS = {
    "a covariate": World((3, 2, 2), _COVARIATE, {0: {2: 1.5, 1: -0.5}}),
    "two covariates": World((3, 2, 2, 2), _THREE, {0: {3: 1.2}, 1: {3: -1.0, 2: 0.5}}),
    "the outcome": World((2, 3, 2, 2), _THREE | {(2, 3): 1.5}, {3: {0: 1.0, 2: 1.2}}),
    "an outcome in 5 %": World((3, 2, 2), _COVARIATE, {0: {2: 1.5, 1: -0.5}}, rate=0.05),
    "an outcome in 1 %": World((3, 2, 2), _COVARIATE, {0: {2: 1.5, 1: -0.5}}, rate=0.01),
    "a covariate of 8 values": World((8, 2, 2), {(0, 1): 0.2, (0, 2): 0.2, (1, 2): -0.5}, {0: {2: 1.5, 1: -0.5}}),
    "a value in 1 %": World((3, 2, 2), _COVARIATE, {0: {2: 1.5, 1: -0.5}}, last=0.01),
    "a value in .3 %": World((3, 2, 2), _COVARIATE, {0: {2: 1.5, 1: -0.5}}, last=0.003),
    "five columns": World(
        (2, 3, 2, 3, 2, 2),
        {(0, 1): 0.4, (1, 2): 0.4, (2, 3): -0.3, (3, 4): 0.5, (0, 5): 0.5, (1, 5): 0.3, (2, 5): -0.4, (3, 5): 0.3},
        {1: {5: 1.2}, 3: {5: -1.0, 0: 0.5}},
    ),
    "a product of three": World((3, 2, 2), _COVARIATE, {0: {2: 1.5, 1: -0.5}}, triple=0.6),
    "a declared product": World((3, 2, 2), _COVARIATE, {0: {2: 1.5, 1: -0.5}}, triple=0.6, declared=True),
    "by its own value": World((3, 2, 2), _COVARIATE, {0: {0: 1.2}}),
}
TITLES = {
    "gaps in covariates": ("a covariate", "two covariates"),
    "gaps in the outcome": ("the outcome",),
    "edges: rare": ("an outcome in 5 %", "an outcome in 1 %", "a value in 1 %", "a value in .3 %"),
    "a declared product": ("a declared product",),
    "edges: many": ("a covariate of 8 values", "five columns"),
    "outside the model": ("a product of three", "by its own value"),
}


def tables(options: argparse.Namespace) -> Tables:
    """Worlds in which what the tables assume holds, its edges, others, and three beside mice."""
    return tables_of(NAME, options, TITLES, measured, beside_mice)


def measured(world: str, records: int, missing: float, runs: int) -> Iterator[Row]:
    """Count intervals that miss a coefficient, a risk or a difference of risks, at every epsilon."""
    rng = np.random.default_rng(zlib.crc32(repr((world, records, missing)).encode()))
    counts = rng.multinomial(records, WORLDS[world].seen(missing), size=runs).astype(np.float64)
    for epsilon in EPSILONS:
        about = {"world": world, "records": records, "missing": missing, "runs": runs}
        yield {**about, **_measured(WORLDS[world], counts, epsilon, rng)}


PARTS = ("odds", "risks", "differences")
"""What is judged: coefficients, log odds of risks by group, and differences of risks from the first group's."""


def _measured(world: World, counts: Array, epsilon: float, rng: np.random.Generator) -> Row:
    sigma = 1 / gaussian_mu(epsilon, _DELTA) if math.isfinite(epsilon) else 0.0
    noisy = counts + sigma * rng.standard_normal(counts.shape)
    truths = _truth(world)
    row: dict[str, Any] = {"epsilon": epsilon if math.isfinite(epsilon) else None}
    for part, truth, found in zip(PARTS, truths, _read(world, world.layout(world.gaps), noisy, sigma), strict=True):
        row |= {f"{part}: {name}": value for name, value in _judged(truth, found).items()}
    if not sigma:
        for part, truth, found in zip(PARTS, truths, _complete_cases(world, counts), strict=True):
            judged = _judged(truth, found)
            row |= {f"{part}: complete cases {name}": judged[name] for name in ("bias", "worst")}
    return row


def _complete_cases(world: World, counts: Array) -> tuple[Array, ...]:
    inner = (slice(None), *map(slice, world.levels))
    kept = counts.reshape(-1, *_shape(world))[inner].reshape(len(counts), -1)
    return _read(world, world.layout(()), kept, 0.0)


def _shape(world: World) -> tuple[int, ...]:
    return tuple(k + (j in world.gaps) for j, k in enumerate(world.levels))


def _design(world: World) -> tuple[Array, Array]:
    """Return the regression's columns over complete cells, and the model's parameter of each with the outcome."""
    layout, last = world.layout(world.gaps), len(world.levels) - 1
    terms = [*((j,) for j in range(last)), *world.interactions]
    X = np.hstack([np.ones((layout.codes.shape[1], 1)), *map(layout.product, terms)])
    return X, np.concatenate([layout.places((last,)), *(layout.places((*term, last)) for term in terms)])


def _truth(world: World) -> tuple[Array, ...]:
    """Return what each of ``PARTS`` estimates."""
    layout = world.layout(world.gaps)
    b, _ = fitted_odds(_design(world)[0], world.p, layout.codes[-1] == 1)
    log_odds = group_odds(np.log(world.p), layout, 0)
    return b, log_odds, expit(log_odds[1:]) - expit(log_odds[0])


def _read(world: World, layout: Layout, counts: Array, sigma: float) -> tuple[Array, ...]:
    """Return estimates and errors of each of ``PARTS``, infinite where not reported, ``(2, runs, entries)``."""
    X, own = _design(world)
    found: list[list[Array]] = [[], [], []]
    groups = [str(place) for place in range(layout.levels[0])]
    for each in counts:
        fit = fitted(layout, each, sigma)
        odds, risks = coefficients(fit, X, own, whole=True), risk_errors(fit, 0)
        differences = compared("difference", groups, risks, _Z)
        found[0].append(np.stack([odds.estimate, odds.error]))
        found[1].append(np.stack([risks.estimate, risks.error]))
        found[2].append(np.array([(each.estimate, each.error) for each in differences]).T)
    return tuple(np.moveaxis(np.array(part), 1, 0) for part in found)


def _judged(truth: Array, found: Array) -> Row:
    estimate, error = found
    runs, reported = len(estimate), np.isfinite(error)
    missed = (np.abs(np.nan_to_num(estimate) - truth) > _Z * error) & reported
    worst = float(missed.sum(axis=0).max())
    shown = np.where(reported, estimate - truth, np.nan)
    some = reported.any(axis=0)
    return {
        "reported": float(reported.mean()),
        "worst": worst / runs,
        **ends(worst, runs),
        "bias": float(np.abs(np.nanmean(shown[:, some], axis=0)).max()) if some.any() else None,
        "half width": float(_Z * np.median(error[reported])) if reported.any() else None,
    }


def beside_mice(world: str, records: int, missing: float, runs: int) -> Iterator[Row]:
    """Count intervals of odds ratios that miss, and those of mice on the same records, pooled."""
    about, rng = WORLDS[world], np.random.default_rng(zlib.crc32(repr(("mice", world, missing)).encode()))
    counts = rng.multinomial(records, about.seen(missing), size=runs)
    codes = np.stack([each.reshape(-1) for each in np.indices(_shape(about))], axis=1).astype(np.float64)
    codes[codes == np.array(about.levels)] = np.nan
    with tempfile.NamedTemporaryFile() as file:
        np.concatenate([np.repeat(codes, each, axis=0) for each in counts]).tofile(file.name)
        words = ["Rscript", "--vanilla", str(_MICE), file.name, *map(str, (runs, records, codes.shape[1]))]
        printed = np.array(child(words).split(), float).reshape(runs, 3, -1)[:, :, 1:]
    truth = _truth(about)[0][1:]
    shared = {"world": world, "missing": missing, "runs": runs}
    theirs = _judged(truth, np.stack([printed[:, 0], (printed[:, 2] - printed[:, 1]) / (2 * _Z)]))
    yield {**shared, "way": "mice, pooled records", "epsilon": None, **theirs}
    for epsilon in reversed(EPSILONS):
        sigma = 1 / gaussian_mu(epsilon, _DELTA) if math.isfinite(epsilon) else 0.0
        noisy = counts + sigma * rng.standard_normal(counts.shape)
        ours = _judged(truth, _read(about, about.layout(about.gaps), noisy, sigma)[0][:, :, 1:])
        yield {**shared, "way": "imputed on counts", "epsilon": epsilon if sigma else None, **ours}


if __name__ == "__main__":
    command(NAME, __doc__, tables, add_options, others_of(NAME))
