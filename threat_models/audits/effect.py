"""A search over records, arms and every line and propensity that a lying server may publish, against an effect's bound.

A random climb from lines that are clipped everywhere. It measures by the library's own map, because what is searched is
that map; no formula is shared.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from itertools import product

import numpy as np
from numpy.typing import NDArray

from privstats.dp import joint_mu
from privstats.dp.privacy import Adjacency
from privstats.encoding import flatten
from privstats.errors import PlanError
from privstats.kinds import EffectSchema
from privstats.moments import Moments
from privstats.progress import track
from privstats.randomness import Generator
from privstats.schema import narrowed
from privstats.schema.public_values import VALUE_BITS, Published, Values
from threat_models.audits.climb import Search, most_apart
from threat_models.audits.sensitivity import Finding, report_of
from threat_models.audits.target import Target
from threat_models.audits.verdict import Report
from threat_models.made_up import sums_of

_ADJACENCIES: tuple[Adjacency, ...] = ("add-remove", "replace-one")
_CORNERS = 100
_MOST = (1 << (VALUE_BITS - 1)) - 1


@dataclass(frozen=True, eq=False)
class Attempt:
    """The published values and the records: one under add-remove, two under replace-one.

    Attributes:
        values: published integers by name, in their exponents.
        x: rows ``(n, d)`` behind no transform, without the arm.
        arm: 0 or 1, ``(n,)``.
        y: outcomes, ``(n, T)``.
        block: the subgroup of each, whatever its columns say, ``(n,)``.
        unread: 0, or 1 where a column cannot be read, and 2 where the outcome cannot, ``(n,)``.
    """

    values: Mapping[str, Values]
    x: NDArray[np.float64]
    arm: NDArray[np.intp]
    y: NDArray[np.float64]
    block: NDArray[np.intp]
    unread: NDArray[np.intp]


def audit_effects(target: Target, rng: Generator, *, moves: int = 300, starts: int = 6) -> Report:
    """Search the worst records and published values, under both adjacencies, against the claimed mu.

    Raises:
        PlanError: not a plan of a treatment effect.
    """
    refusal = PlanError("this search is for influence values: give the last plan of an Effect course")
    schema = narrowed(target.schema, EffectSchema, refusal)
    questions = {**{s: {s: 1.0} for s in schema.statistics}, "joint": dict(target.sigma)}
    results = [
        Finding(
            name,
            adjacency,
            joint_mu(schema, noise, adjacency),
            max(worst_attempt(schema, noise, adjacency, rng, moves)[0] for _ in range(starts)),
        )
        for (name, noise), adjacency in track("searching", [*product(questions.items(), _ADJACENCIES)])
    ]
    notes = (
        f"{starts} starts of {moves} moves over records, with every published {' and '.join(schema.needs)}, by the "
        "library's own map",
    )
    return report_of("effects", results, notes)


def _start(letters: str, schema: EffectSchema, adjacency: Adjacency, chance: np.random.Generator) -> Attempt:
    """The best of some corners for these letters, with two records in one subgroup or in two."""
    apart = int(chance.integers(2)) if schema.blocks > 1 else 0
    corners = [_corner(schema, adjacency, chance, apart) for _ in range(_CORNERS)]
    return max(corners, key=lambda corner: _distance(schema, dict.fromkeys(letters, 1.0), corner))


def _corner(schema: EffectSchema, adjacency: Adjacency, chance: np.random.Generator, apart: int) -> Attempt:
    """Rows with a part in common and an opposed one, along which lines are cut and propensities lie at the trim."""
    records = 1 if adjacency == "add-remove" else 2
    common, opposed = np.linalg.qr(chance.normal(size=(schema.width, 2)))[0].T * schema.clip_norm * math.sqrt(0.49)
    x = np.stack([common + opposed, common - opposed])[:records]
    along, signs = (common, opposed)[int(chance.integers(2))], chance.choice([-1.0, 1.0], 3)
    slope = np.rint(along / np.abs(along).max() * _MOST)
    integers = np.concatenate([signs[0] * slope, signs[1] * slope, [_guess(schema, chance)]])
    values = dict.fromkeys(schema.lines, _line(schema, integers))
    if "w" in schema.needs:
        along = (common, opposed)[int(chance.integers(2))]
        reach = 0.9999 * math.log((1 - (schema.trim or 0.5)) / (schema.trim or 0.5))
        w = signs[2] * reach * along / (along @ along)
        values["w"] = Values.rounded(np.concatenate([w, w]) if schema.missing else w)
    y = np.repeat(chance.choice(_ends(schema), (records, 1)), schema.outcomes, axis=1)
    unread = chance.integers(0, 3, records) if schema.left_out else np.zeros(records, np.intp)
    return Attempt(values, x, chance.integers(0, 2, records), y, np.arange(records) * apart, unread)


def _ends(schema: EffectSchema) -> tuple[float, ...]:
    """Outcomes at either end of their range, and missing ones where they may be."""
    return (*schema.outcome, math.nan) if schema.missing else schema.outcome


def _guess(schema: EffectSchema, chance: np.random.Generator) -> float:
    """The guess in a corner, in steps of its exponent: 0, or of a ratio one of those that make the cap largest."""
    return math.ldexp(float(chance.choice([0.25, 1.0, 4.0])), _exponent(schema)) if schema.measure else 0.0


def _exponent(schema: EffectSchema) -> int:
    return 10 - math.frexp(schema.half)[1]


def _line(schema: EffectSchema, values: NDArray[np.float64]) -> Values:
    """Lines of an exponent by which they are far beyond the range of outcomes."""
    return Values(np.asarray(np.clip(values, -_MOST, _MOST), np.int64), _exponent(schema))


def _moved(schema: EffectSchema, here: Attempt, chance: np.random.Generator) -> Attempt:
    """One of records, arms, outcomes or values moved a little or a lot, or arms and ends drawn anew."""
    which, size, many = int(chance.integers(3 + len(here.values))), 10.0 ** chance.uniform(-4, 1), len(here.y)
    if which == 0:
        return replace(here, x=here.x + size * schema.clip_norm * chance.normal(size=here.x.shape))
    if which == 1:
        return replace(here, arm=chance.integers(0, 2, many), y=chance.choice(_ends(schema), here.y.shape))
    if which == 2:
        return replace(here, y=here.y + size * schema.half * chance.normal(size=here.y.shape))
    name = sorted(here.values)[which - 3]
    old = here.values[name]
    change = np.rint(
        size * chance.normal(size=old.integers.shape) * max(1.0, float(np.abs(old.integers).max(initial=0)))
    )
    integers = np.asarray(np.clip(old.integers + change, -_MOST, _MOST), np.int64)
    return replace(here, values={**here.values, name: Values(integers, old.exponent)})


def _distance(schema: EffectSchema, sigmas: Mapping[str, float], attempt: Attempt) -> float:
    """sqrt of the sum over statistics of (what the record, or the exchange of two, moves)^2 / sigma^2; the most over
    places of the roster, where they differ in the probability of treatment."""
    values = Published.of(attempt.values)
    treated = attempt.arm[:, None] == 1
    rows = np.hstack([attempt.x * treated, attempt.x * ~treated])
    bare = replace(schema, transform=(), feature_names=None, subgroups=None, groups=None)
    rows[attempt.unread == 1], y = math.nan, np.where(attempt.unread[:, None] == 2, math.inf, attempt.y)
    results = [
        sums_of(bare, rows[i : i + 1], y[i : i + 1], published=values, unreadable="leave out") for i in range(len(rows))
    ]
    moved = [
        [_apart(schema, each, block) for each in getattr(one, "variants", ()) or (one,)]
        for one, block in zip(results, attempt.block, strict=True)
    ]
    return max(most_apart(schema, sigmas, one) for one in product(*moved))


def _apart(schema: EffectSchema, moments: Moments, block: np.intp) -> NDArray[np.int64]:
    """Return the sent vector for a record in this subgroup, from its sums over all."""
    sums = {}
    for row in schema.sent:
        one = moments.sums(row)
        sums[row.letter] = np.zeros(row.shape(schema.sizes), np.int64)
        sums[row.letter][block if schema.blocks > 1 and row.partition == "block" else ...] = one
    return flatten(type(moments).of_sums(schema, sums))


def worst_attempt(
    schema: EffectSchema, sigmas: Mapping[str, float], adjacency: Adjacency, rng: Generator, moves: int
) -> tuple[float, Attempt]:
    """One climb of this search, see :meth:`Search.worst`; where records left out are counted, one for each of: two in
    the sums, two left out, one of each."""
    starts = (partial(_start, letters) for letters in (("e", "O", "NO") if schema.left_out else ("e",)))
    climbs = (Search(start, _moved, _distance).worst(schema, sigmas, adjacency, rng, moves) for start in starts)
    return max(climbs, key=lambda climb: climb[0])
