"""Measure how often intervals of an estimated dispersion of counts, and of coefficients next to it, miss.

    python -m benchmarks.inference.dispersion --save --runs 1000

Counts of mean m have the variance ``m + alpha m^2``, as a gamma frailty of variance alpha gives them. The treated are
followed for half as long. A column takes eleven values and exposures take six, so records are drawn as the numbers of
those with equal columns, exposure and count. Each distinct record is measured once and its integers are multiplied by
its number, which gives the same sums as measuring all records.

"Estimated alpha" is read from rounds that sum squared differences and squared means. Both errors of the coefficients
are read from the same releases. "Rounds that declare alpha" declare it right, too small or not at all, and have robust
errors: without alpha records weigh as in a Poisson model.
"""

from __future__ import annotations

import argparse
import copy
import math
import zlib
from dataclasses import dataclass, fields
from functools import cache, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats

import privstats as ps
from benchmarks.inference.runs import add_options, add_row, ends, others_of, table_of
from benchmarks.measuring import Row, Tables, command
from privstats import session
from privstats.course.newton import weights_after
from privstats.encoding import flatten
from privstats.errors import ReleaseError
from privstats.kinds.score import ScoreMoments
from privstats.kinds.score_sums import _mapped, own_scores
from privstats.moments import Moments
from privstats.plan import Plan
from privstats.randomness import Generator, seeded
from privstats.schema.public_values import Published
from privstats.transforms import ConstantFeature

NAME = "inference.dispersion"
BOUND = 5.0
SLOPES = (0.5, 0.4)
STATED = 100.0
"""Epsilon of the plan of exact sums: readers count its noise, which the sums do not have."""

_AGES = np.linspace(-1, 1, 11)
_YEARS = np.geomspace(0.1, BOUND, 6)


@dataclass(frozen=True)
class World:
    """Counts of a negative binomial model, and the plan of their rounds.

    Attributes:
        epsilon: None for exact sums.
        rate: events per year where both columns are 0.
        cut: the largest count, ``target_bound``.
        declared: alpha of the plan's weights; None: unit weights.
        bits: ``grid_bits`` of the plan.
    """

    name: str
    alpha: float
    records: int
    epsilon: float | None
    rate: float = 0.2
    cut: float = 20.0
    declared: float | None = None
    bits: int = 16

    @property
    def truth(self) -> NDArray[np.float64]:
        """Parameters, the log rate first."""
        return np.array([math.log(self.rate), *SLOPES])


_USUAL: tuple[tuple[int, float | None], ...] = ((20_000, None), (60_000, 8.0), (120_000, 3.0), (400_000, 1.0))
_FEW: tuple[tuple[int, float | None], ...] = ((6_000, None), (20_000, 8.0), (50_000, 3.0), (150_000, 1.0))
_WEIGHED: tuple[tuple[int, float | None], ...] = (
    (20_000, None),
    (20_000, 8.0),
    (60_000, 3.0),
    (200_000, 1.0),
    (100_000, 100.0),
)
ESTIMATED = (
    *(World("usual", alpha, records, epsilon) for alpha in (0.0, 0.05, 0.2, 1.0, 3.0) for records, epsilon in _USUAL),
    *(World("few records", alpha, records, epsilon) for alpha in (0.05, 3.0) for records, epsilon in _FEW),
    *(World("rare events", 1.0, 2 * records, epsilon, rate=0.05, cut=8.0) for records, epsilon in _USUAL),
    *(World("a grid of 12 bits", 1.0, records, epsilon, bits=12) for records, epsilon in _USUAL),
    *(World("counts cut at 20", 10.0, records, epsilon) for records, epsilon in _USUAL),
    *(
        World(f"counts cut at {cut:g}", 1.0, records, epsilon, cut=cut)
        for cut in (6.0, 4.0, 2.0)
        for records, epsilon in _USUAL
    ),
)
DECLARED = tuple(
    World("usual", alpha, records, epsilon, declared=declared)
    for records, epsilon in _WEIGHED
    for alpha in (1.0, 3.0)
    for declared in (None, 0.3, alpha)
)


@dataclass(frozen=True, eq=False)
class Distinct:
    """Distinct records, and the number of records equal to each.

    Attributes:
        columns: treated and age, ``(n, 2)``.
        goals: counts and years, ``(n, 2)``.
        number: ``(n,)``.
    """

    columns: NDArray[np.float64]
    goals: NDArray[np.float64]
    number: NDArray[np.int64]

    @classmethod
    def drawn(cls, world: World, chance: np.random.Generator) -> Distinct:
        """Draw the records of a world."""
        columns, goals, shares = _population(world)
        number = chance.multinomial(world.records, shares)
        return cls(columns[number > 0], goals[number > 0], number[number > 0])

    def measured(self, plan: Plan) -> Moments:
        """Return the exact sums of a round."""
        schema, held = plan.schema, plan.published
        assert isinstance(schema, ps.ScoreSchema)
        assert held is not None
        assert held.values is not None
        (unit, residuals, roots, fits), finite = _mapped(schema, self.columns, self.goals, held.values["w"])
        assert finite.all()
        scores, times = own_scores(unit, residuals, schema.grid_steps), self.number.astype(np.float64)
        sums = {"g": unit.T @ (residuals * times)}
        sums |= {letter: (each * times[:, None]).T @ each for letter, each in (("H", roots), ("J", scores))}
        if schema.overdispersion is not None:
            sums |= {letter: np.asarray(each * times @ each) for letter, each in zip("QV", fits.T, strict=True)}
        records = int(self.number.sum())
        # Integers below 2**53, which float64 products hold exactly.
        assert records * schema.grid_steps**2 < 1 << 53
        sent = {row.letter: sums[row.letter].astype(np.int64) for row in schema.sent}
        return ScoreMoments.of_sums(schema, sent, records=records, published=held.sha256)


def _means() -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Return treated, age and years of all combinations, each ``(k,)``."""
    treated, age, years = (each.ravel() for each in np.meshgrid([0.0, 1.0], _AGES, _YEARS, indexing="ij"))
    return treated, age, years * np.where(treated == 1, 0.5, 1.0)


def _law(world: World) -> Any:
    """Return the law of counts before the cut, ``(k, 1)``."""
    treated, age, years = _means()
    mean = (world.rate * years * np.exp(SLOPES[0] * treated + SLOPES[1] * age))[:, None]
    return stats.nbinom(1 / world.alpha, 1 / (1 + world.alpha * mean)) if world.alpha else stats.poisson(mean)


@cache
def _population(world: World) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Return columns, counts up to the cut with years, and the share of records with these values."""
    treated, age, years = _means()
    counts, law = np.arange(int(world.cut) + 1), _law(world)
    shares = law.pmf(counts)
    shares[:, -1] = law.sf(counts[-1] - 1)[:, 0]
    place = np.repeat(np.arange(len(age)), len(counts))
    columns = np.c_[treated, age][place]
    return columns, np.c_[np.tile(counts, len(age)), years[place]], shares.ravel() / shares.sum()


def _cut_share(world: World) -> float:
    """Return the share of records whose count is above the cut."""
    return float(_law(world).sf(world.cut).mean())


def options(parser: argparse.ArgumentParser) -> None:
    """``--runs``, ``--only`` and ``--row``."""
    add_options(parser)
    add_row(parser)


def tables(options: argparse.Namespace) -> Tables:
    """Estimated alpha, and rounds that declare it."""
    runs, few = (2, 1) if options.quick else (options.runs, None)
    for title, worlds, measure in (
        ("estimated alpha", ESTIMATED, estimated),
        ("rounds that declare alpha", DECLARED, declared),
    ):
        if options.only in title:
            cells = [(world,) for world in worlds[:few]]
            yield from table_of(NAME, title, cells, partial(measure, runs=runs), options.row)


def course_of(world: World, *, estimated: bool) -> ps.Newton:
    """Return a course with the dispersion that its plan declares or estimates."""
    schema = ps.ScoreSchema(
        3,
        math.sqrt(3),
        family="poisson",
        target_bound=world.cut,
        grid_bits=world.bits,
        rate=world.rate,
        transform=(ConstantFeature(1.0),),
        exposure="years",
        exposure_bound=BOUND,
        negative_binomial=world.declared,
        overdispersion="estimated" if estimated else None,
    )
    privacy = ps.Privacy(
        model="central", unit="record", adjacency="add-remove", epsilon=world.epsilon or STATED, delta=1e-6
    )
    return ps.Newton.start(schema, ps.Cohort(2, 2, 2 * world.records), privacy)


def played(world: World, course: ps.Newton, records: Distinct, rng: Generator) -> list[ps.Release | None]:
    """Return the releases of a course over these records, exact where the world has no epsilon."""
    releases: list[ps.Release] = []
    for place in range(course.rounds):
        plan = _published(course.first, Published.of({"w": weights_after(course.schema, releases)[-1]}))
        sums = records.measured(plan)
        if world.epsilon is None:
            releases.append(ps.Release(plan, flatten(sums), (0, 1)).at(_position(course, place)))
            continue
        none = type(sums).of_sums(sums.schema, {row.letter: 0 * sums.sums(row) for row in sums.schema.sent}, records=0)
        releases.append(session.aggregate_unmasked(plan, [sums, none], rng).at(_position(course, place)))
    return [*releases]


@cache
def _position(course: ps.Newton, place: int) -> ps.release.Position:
    """Return the place of a round; those of a course share a digest, and the same price."""
    first = course.position([])
    assert first is not None
    mu = course.mu / math.sqrt(course.rounds)
    return ps.release.Position(first.course, first.phase, place, mu * math.sqrt(place + 1), first.mu)


_NOISE = ("noise", "ring", "masking", "layout")


def _published(plan: Plan, values: Published) -> Plan:
    """Return a plan with these values, and with the noise that ``plan`` has: computing it anew takes most of a run."""
    made = copy.copy(plan)
    for name in set(vars(made)) - {*(each.name for each in fields(plan)), *_NOISE}:
        del vars(made)[name]
    object.__setattr__(made, "published", values)
    return made


class Coefficients:
    """Counts of intervals of the three parameters that are reported, and that miss."""

    def __init__(self, truth: NDArray[np.float64]) -> None:
        self.truth = truth
        self.reported, self.missed = np.zeros(3), np.zeros(3)
        self.widths: list[float] = []

    def add(self, table: ps.inference.Regression | None) -> None:
        """Count a table; None where it was refused."""
        if table is None:
            self.widths.append(math.inf)
            return
        low, high = table.conf_int().T
        self.reported += table.reported
        self.missed += (low > self.truth) | (high < self.truth)
        self.widths.append(float(high[1] - low[1]) / 2)

    def row(self, runs: int) -> Row:
        """Return the shares, and the median half width of the first slope."""
        worst = float(self.missed.max())
        return {
            "reported": float(self.reported.mean()) / runs,
            "reported and missed": float(self.missed.mean()) / runs,
            "worst row": worst / runs,
            **ends(worst, runs),
            "half width": _finite(float(np.median(self.widths))),
        }


def _about(world: World, runs: int) -> Row:
    return {
        "world": world.name,
        "alpha": world.alpha,
        "records": world.records,
        "epsilon": world.epsilon,
        "cut": _cut_share(world),
        "runs": runs,
    }


def _generators(world: World) -> tuple[np.random.Generator, Generator]:
    """Return the generators of the records and of the noise; worlds that declare another alpha have equal records."""
    seed = zlib.crc32(repr((world.name, world.alpha, world.records, world.epsilon)).encode())
    return np.random.default_rng(seed), seeded(seed)


def estimated(world: World, runs: int) -> Row:
    """Count intervals of alpha that miss, and of the coefficients with both errors."""
    course = course_of(world, estimated=True)
    chance, rng = _generators(world)
    values, found_ends, missed = [], [], 0
    robust, quasi = Coefficients(world.truth), Coefficients(world.truth)
    for _ in range(runs):
        releases = played(world, course, Distinct.drawn(world, chance), rng)
        table = ps.inference.poisson(releases)
        robust.add(table)
        quasi.add(_quasi(releases))
        if (found := table.overdispersion) and found.reported:
            values.append(found.value)
            found_ends.append((found.low, found.high))
            missed += not found.low <= world.alpha <= found.high
    low, high = np.median(found_ends, axis=0) if found_ends else (math.nan, math.nan)
    return {
        **_about(world, runs),
        "reported": len(values) / runs,
        "missed": missed / runs,
        **ends(missed, runs),
        "median": _finite(float(np.median(values))) if values else None,
        "median low": _finite(float(low)),
        "median high": _finite(float(high)),
        **{f"robust: {name}": value for name, value in robust.row(runs).items()},
        **{f"quasi-Poisson: {name}": value for name, value in quasi.row(runs).items()},
    }


def _quasi(releases: list[ps.Release | None]) -> ps.inference.Regression | None:
    try:
        return ps.inference.poisson(releases, quasi_poisson=True)
    except ReleaseError:  # noise hides the variance over the mean
        return None


def declared(world: World, runs: int) -> Row:
    """Count robust intervals that miss, of rounds whose plan declares a dispersion."""
    course = course_of(world, estimated=False)
    chance, rng = _generators(world)
    found = Coefficients(world.truth)
    for _ in range(runs):
        found.add(ps.inference.poisson(played(world, course, Distinct.drawn(world, chance), rng)))
    return {**_about(world, runs), "declared": world.declared, **found.row(runs)}


def _finite(width: float) -> float | None:
    return float(width) if math.isfinite(width) else None


if __name__ == "__main__":
    command(NAME, __doc__, tables, options, others_of(NAME))
