"""Do intervals from averaged persons cover, where pretending that rows are records does not?

    python -m benchmarks.inference.persons --save

Persons have 1 to 8 rows, more of them where a latent value of the person is high, and a person's rows are alike: they
depend on each other, and their number says something. Persons are drawn anew for every release, from a pool whose mean
over persons, before any cut, is the truth. Beside it the same rows are released as if they were records, and held
against *their* truth, the mean over rows. Central model, two parties; per cell the intervals that miss, and their
median half width.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, ndtr

import privstats as ps
from benchmarks.measuring import Row, Tables, command
from privstats.encoding import PersonAverage, flatten
from privstats.encoding.layout import blocks_of
from privstats.inference import head_score, ols, proportions, table_one
from privstats.kinds import kind_of
from privstats.moments import PersonMoments, exact_moments
from privstats.moments.clip_report import ClipTally
from privstats.randomness import seeded
from privstats.schema.public_values import Published

PARTIES, DELTA, ALPHA = 2, 1e-6, 0.05
TERMS: dict[str, Any] = {"model": "central", "adjacency": "add-remove", "delta": DELTA}


def options(parser: argparse.ArgumentParser) -> None:
    """The draws."""
    parser.add_argument("--draws", type=int, default=1000, help="releases per cell")


def tables(chosen: argparse.Namespace) -> Tables:
    """One table per reader."""
    pool, draws, epsilons = (300, 40, (3.0,)) if chosen.quick else (4000, chosen.draws, (30.0, 3.0, 1.0))
    for reader in READERS:
        world = World(reader, pool)
        cells = ((epsilon, averaged) for epsilon in epsilons for averaged in (True, False))
        yield reader.name, [world.cell(1000, epsilon, averaged, draws) for epsilon, averaged in cells]


@dataclass(frozen=True)
class Reader:
    """An interval and the number that it is about.

    Attributes:
        name: of its table.
        schema: what is measured.
        rows: X and y of a person with so many rows and this latent value.
        truth: from the exact sums of a population, in real units.
        read: low and high, from a release.
        published: what the schema reads.
    """

    name: str
    schema: Any
    rows: Callable[[np.random.Generator, int, float], tuple[Any, Any]]
    truth: Callable[[Any], float]
    read: Callable[[ps.Release], tuple[float, float]]
    published: Published | None = None


class World:
    """A pool of persons, each measured once: their averages, and the sums of their rows."""

    def __init__(self, reader: Reader, persons: int) -> None:
        self._reader, schema = reader, reader.schema
        rng = np.random.default_rng(7)
        latent = rng.standard_normal(persons)
        counts = 1 + rng.binomial(7, ndtr(latent))
        rows = [reader.rows(rng, n, u) for n, u in zip(counts.tolist(), latent.tolist(), strict=True)]
        owners = [["one"] * n for n in counts.tolist()]
        said: Any = {"published": reader.published}
        named = ({"persons": ids, "person_clip": PersonAverage(), **said} for ids in owners)
        averages = (exact_moments(schema, *each, **ids) for each, ids in zip(rows, named, strict=True))
        sums = np.array([flatten(exact_moments(schema, *each, **said)) for each in rows])
        self._of = {True: np.array([flatten(each) for each in averages]), False: sums}
        uncut = np.rint((sums / counts[:, None]).sum(axis=0)).astype(np.int64)
        self._exact = {True: uncut, False: sums.sum(axis=0)}
        self._counts = counts

    def cell(self, persons: int, epsilon: float, averaged: bool, draws: int) -> Row:
        """Return how many intervals miss the mean of the pool, and how wide they are."""
        truth = self._reader.truth(ps.encoding.to_real(self._reader.schema, self._exact[averaged]))
        ends = np.array([self._reader.read(self.release(persons, epsilon, averaged, draw)) for draw in range(draws)])
        reported = np.isfinite(ends).all(axis=1)
        missed = reported & ((ends[:, 0] > truth) | (ends[:, 1] < truth))
        return {
            "releases": draws,
            "persons": persons,
            "epsilon": epsilon,
            "unit": "a person's average" if averaged else "rows as records",
            "reported": float(reported.mean()),
            "missed": float(missed.mean()),
            "half width": float(np.median(np.diff(ends[reported], axis=1)) / 2),
            "truth": truth,
        }

    def release(self, persons: int, epsilon: float, averaged: bool, draw: int) -> ps.Release:
        """A release of so many persons of the pool."""
        rng = np.random.default_rng((draw, persons))
        chosen = rng.integers(0, len(self._counts), persons)
        plan, vectors = self._plan(epsilon, averaged), self._of[averaged]
        parts = [self._moments(plan, vectors[mine].sum(axis=0), mine) for mine in np.array_split(chosen, PARTIES)]
        return ps.simulate(plan, parts, rng=seeded(draw))

    def _plan(self, epsilon: float, averaged: bool) -> ps.Plan:
        unit: dict[str, Any] = {"unit": "person", "person_clip": "average"} if averaged else {"unit": "record"}
        promise = ps.Privacy(epsilon=epsilon, **unit, **TERMS)
        cohort, said = ps.Cohort(PARTIES, PARTIES, 20_000), self._reader.published
        return ps.Plan(schema=self._reader.schema, cohort=cohort, privacy=promise, published=said)

    def _moments(self, plan: ps.Plan, vector: NDArray[np.int64], mine: NDArray[np.intp]) -> Any:
        arrays, rows = blocks_of(plan.schema, vector), int(self._counts[mine].sum())
        if plan.person_clip is not None:
            return PersonMoments(plan.schema, arrays, plan.person_clip, rows, len(mine))
        whole = {row.letter: arrays[row.letter] // row.factor for row in plan.schema.sent}
        beside: dict[str, Any] = {}
        if plan.schema.task == "ridge":
            beside["clip_report"] = replace(
                ClipTally(plan.schema.features, plan.schema.grid_steps).report(), records=rows
            )
        return kind_of(plan.schema).exact(whole, **beside)


def _ill(rng: np.random.Generator, n: int, u: float) -> tuple[Any, Any]:
    return {"ill": np.where(rng.uniform(size=n) < expit(2 * u), "yes", "no")}, None


def _groups(rng: np.random.Generator, n: int, u: float) -> tuple[Any, Any]:
    own = rng.uniform() < 0.5
    groups = np.where(rng.uniform(size=n) < 0.9, own, not own)
    X = np.clip(0.4 * u + 0.1 * rng.standard_normal((n, 2)), -1.4, 1.4)
    return X, groups.astype(int)


def _line(rng: np.random.Generator, n: int, u: float) -> tuple[Any, Any]:
    x = np.clip(0.5 * u + 0.15 * rng.standard_normal(n), -1.5, 1.5)
    return x[:, None], 0.5 + x + 0.6 * rng.standard_normal() + 0.15 * rng.standard_normal(n)


def _labelled(rng: np.random.Generator, n: int, u: float) -> tuple[Any, Any]:
    y = np.full(n, rng.integers(0, 2))
    return np.c_[(2 * y - 1) * (0.8 * u + 0.6) + 0.3 * rng.standard_normal(n), rng.standard_normal(n)], y


def _scored() -> ps.Scoring:
    rng = np.random.default_rng(0)
    X, y = _labelled(rng, 1, 0.0)
    rows = [_labelled(rng, 1, u) for u in rng.standard_normal(400)]
    X, y = np.vstack([each for each, _ in rows]), np.concatenate([each for _, each in rows])
    return ps.Scoring(ps.heads.LDA().fit(X, y))


def _share(sums: Any) -> float:
    return float(sums.T[1] / sums.T.sum())


def _slope(sums: Any) -> float:
    return float(np.linalg.solve(np.reshape(sums.G, (2, 2)), np.reshape(sums.h, 2))[0])


def _right(sums: Any) -> float:
    counts = np.reshape(sums.T, (2, 2, -1)).sum(axis=2)
    return float(np.trace(counts) / counts.sum())


SCORING = _scored()
LINE = ps.RidgeSchema(2, clip_norm=2.0, target_bound=4.0, transform=(ps.transforms.ConstantFeature(1.0),))
READERS = (
    Reader(
        "share of a cell",
        ps.CountSchema((ps.Categories("ill", ("no", "yes")),), (("ill",),)),
        _ill,
        _share,
        lambda release: proportions(release, "ill", alpha=ALPHA)["yes"][1:3],
    ),
    Reader(
        "mean of a group",
        ps.ClassSchema(2, 2, "NAD", clip_norm=2.0),
        _groups,
        lambda sums: float(sums.A[0, 0] / sums.N[0]),
        lambda release: _first(table_one(release, alpha=ALPHA)),
    ),
    Reader("slope of a regression", LINE, _line, _slope, lambda release: _of_slope(ols(release))),
    Reader(
        "accuracy of a head",
        SCORING.schema,
        _labelled,
        _right,
        lambda release: head_score(release, alpha=ALPHA).accuracy[1:3],
        SCORING.published,
    ),
)


def _first(found: Any) -> tuple[float, float]:
    return float(found.low[0, 0]), float(found.high[0, 0])


def _of_slope(found: Any) -> tuple[float, float]:
    low, high = found.conf_int(ALPHA)[1]
    return float(low), float(high)


if __name__ == "__main__":
    command("inference.persons", __doc__ or "", tables, options)
