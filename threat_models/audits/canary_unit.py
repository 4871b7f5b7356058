"""The shift of one canary: the worst unit that a search finds, fed to the real path with and without it.

The same seed gives both contributions the same noise, so their difference is the exact shift of everything in front of
the sum: measuring, record clip, folds, record limits and client clip. ``canary`` looks for it in releases.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privstats.moments import Moments
from privstats.randomness import Generator
from privstats.schema import bare
from threat_models.audits.gradients import worst_attempt
from threat_models.audits.kinds import row_part
from threat_models.audits.records import copies_of, known_records
from threat_models.audits.sensitivity import WorstPair, worst_pair
from threat_models.audits.target import Target, moments_of, upload

_BYSTANDERS = 12
_STRETCHES = (1.0, 4.0)
_STARTS = 4
_COPIES = 50
_MOST_ROWS = 400
_MOVES = 20  # of a search for a party: its direction is about as long wherever the search begins


def canary_shift(target: Target, sigmas: Mapping[str, float], rng: Generator) -> NDArray[np.int64]:
    """The shift of the flat vector by one unit's presence, int64 ``(size,)``: the largest of several attempts.

    The record comes from the adversarial search, not from the closed form that is under audit. It is tried at the
    schema's bounds and four times beyond them, where a clip has to act. Under the record unit it stands in front of
    bystanders, who must not move, and under the person unit so do four times the rows that count in full. Under the
    client unit a whole client is copies of it, more of them than the plan admits if no check refuses. A party of a
    ``PartySchema`` comes from its own search: one record, and many equal ones.

    Raises:
        SchemaError: no canary is written for schemas of this kind.
    """
    worlds: Iterator[tuple[Moments, Moments]] = row_part("canary", target.schema, "canary")(target, sigmas, rng)
    attempts = [_difference(target, *each, rng) for each in worlds]
    levels = target.levels()
    return max(attempts, key=lambda shift: float(np.linalg.norm(np.where(_named(target, sigmas), shift / levels, 0))))


def of_records(target: Target, sigmas: Mapping[str, float], rng: Generator) -> Iterator[tuple[Moments, Moments]]:
    """One client's moments with the worst record or client of records, and without it."""
    pair = worst_pair(target.schema, sigmas, target.privacy.adjacency, rng, starts=_STARTS)
    for turned in _turned(target, pair):
        for stretch in _STRETCHES:
            yield _worlds(target, turned, stretch, rng)


def of_parties(target: Target, _: Mapping[str, float], rng: Generator) -> Iterator[tuple[Moments, Moments]]:
    """A party of one record, or of many equal ones, against none, or against the one that it is exchanged for."""
    schema: Any = target.schema  # a party schema, by its row
    result = worst_attempt(bare(schema), target.sigma, target.privacy.adjacency, rng, _MOVES)[1]
    for stretch, copies in product(_STRETCHES, (1, _COPIES)):
        one, *other = (
            moments_of(schema, np.repeat(stretch * row, copies, axis=0), np.repeat(label.astype(np.int64), copies))
            for row, label in zip(np.split(result.X, len(result.X)), np.split(result.y, len(result.y)), strict=True)
        )
        yield _all_of_client(target, one, rng), other[0] if other else target.empty


def _named(target: Target, sigmas: Mapping[str, float]) -> NDArray[np.bool_]:
    return np.concatenate([np.full(s.size, s.statistic in sigmas) for s in target.layout.segments])


def _difference(target: Target, present: Moments, absent: Moments, rng: Generator) -> NDArray[np.int64]:
    """The two contributions under one seed, subtracted in the ring: the noise cancels exactly."""
    seed = rng.bytes(32)
    moved = upload(target.plan, present, Generator(seed))
    moved.subtract(upload(target.plan, absent, Generator(seed)))
    return moved.lift()


def _turned(target: Target, pair: WorstPair) -> Iterator[WorstPair]:
    """A pair that should fall into two folds, turned around until it does: which fold is a hash of the record."""
    yield pair
    if pair.apart and "fold" in target.schema.sizes and not target.schema.nonnegative:
        for sign in ((1.0, -1.0), (-1.0, 1.0), (-1.0, -1.0)):
            x, b = (np.array([[1.0], [s]]) for s in sign)
            yield WorstPair(pair.mu, pair.features * x, pair.targets * b, True)


def _worlds(target: Target, pair: WorstPair, stretch: float, rng: Generator) -> tuple[Moments, Moments]:
    """One client's moments with the unit and without it."""
    if target.privacy.unit == "client":
        return _all_of_client(target, _measured(target, pair, 0, stretch, None), rng), target.empty
    most = min(_BYSTANDERS, target.plan.cohort.max_records - 1)
    others = known_records(target, most, rng)
    present = _measured(target, pair, 0, stretch, others)
    if len(pair.features) == 2:
        return present, _measured(target, pair, 1, stretch, others)
    return present, moments_of(target.schema, *others)


def _rows_of_one(target: Target, beside: int) -> int:
    """Return the number of rows of the worst record in one unit: more than count in full where a person is bounded."""
    if target.plan.person_clip is None:
        return 1
    room = target.plan.cohort.max_records - beside
    return min(room, _MOST_ROWS, 4 * (target.privacy.max_records_per_person or _COPIES))


def _all_of_client(target: Target, one: Moments, rng: Generator) -> Moments:
    most = target.privacy.max_records_per_client or 1
    if target.privacy.client_clip is not None:
        most = min(most, math.ceil(4 * target.privacy.client_clip))
    greedy = copies_of(one, 2 * (target.privacy.max_records_per_client or 1))
    return copies_of(one, most) if target.refuses(greedy, rng) else greedy


def _measured(
    target: Target,
    pair: WorstPair,
    which: int,
    stretch: float,
    others: tuple[NDArray[np.float64], NDArray[np.generic]] | None,
) -> Moments:
    """The moments of one record of the pair in front of the others."""
    x = stretch * pair.features[which : which + 1]
    if "class" in target.schema.sizes:
        y: NDArray[np.generic] = np.array([which if pair.apart else 0])
    else:
        y = stretch * pair.targets[which : which + 1]
    if others is None:
        return moments_of(target.schema, x, y)
    mine, clip = _rows_of_one(target, len(others[0])), target.plan.person_clip
    x, y = np.vstack([np.repeat(x, mine, axis=0), others[0]]), np.concatenate([np.repeat(y, mine, axis=0), others[1]])
    ids = np.maximum(np.arange(len(x)) - mine + 1, 0)  # all rows of the canary are of person 0
    return moments_of(target.schema, x, y, **({} if clip is None else {"persons": ids, "person_clip": clip}))
