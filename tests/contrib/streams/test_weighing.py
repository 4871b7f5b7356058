"""The correlated release: weighed in the ring, with noise that is bound to the sums, fresh in every epoch and whole."""

import math
from itertools import combinations
from typing import Any

import numpy as np
import pytest

import privstats as ps
from privstats.contrib.streams import stream as weighing
from privstats.contrib.streams.mechanisms import FIXED_BITS, coefficients
from privstats.contrib.streams.stream import Summed, weighed_release
from tests.contrib.streams.streams import CLIENTS, COHORT, World, levels_of, plan_of, stream_of
from tests.made import refused

EVERYBODY = tuple(range(CLIENTS))
SEED = b"k" * 32
ONCE_IN_A_THOUSAND = 3.29
"""Deviations that a normal number exceeds, on either side, once in a thousand times."""


def square_root(epochs: int = 4, **changes: Any) -> ps.Stream:
    return stream_of(epochs, "square-root", plan=plan_of(**changes))


def sums_of(stream: ps.Stream, epochs: int, seed: int = 0, survivors: tuple[int, ...] = EVERYBODY) -> list[Summed]:
    world = World(seed=seed)
    ring = stream.first.ring
    return [(ring.encode(ps.encoding.flatten(world.change(world.born(0, 30)))), survivors) for _ in range(epochs)]


def quiet(monkeypatch: pytest.MonkeyPatch) -> None:
    """Weighing without noise."""
    monkeypatch.setattr(weighing, "_noise", lambda plan, seed, sums: np.zeros(plan.ring.size, np.int64))


def noise_of(stream: ps.Stream, seed: bytes = SEED) -> np.ndarray:
    """Releases of epochs in which nobody sent anything, in declared deviations, ``(epochs, entries)``."""
    sums = [(stream.first.ring.zeros(), EVERYBODY)] * stream.epochs
    drawn = [weighed_release(stream, seed, sums[: epoch + 1]).vector for epoch in range(stream.epochs)]
    return np.asarray(np.stack(drawn) / levels_of(stream))


def test_the_same_sums_twice_are_the_same_bytes_and_any_others_are_not() -> None:
    """After a crash an epoch is the same release; the noise of every other one is unrelated to it."""
    stream = square_root()
    sums = sums_of(stream, 3)
    first = weighed_release(stream, SEED, sums)
    assert weighed_release(stream, SEED, sums) == weighed_release(stream, SEED, sums_of(stream, 3)) == first
    assert weighed_release(stream, b"l" * 32, sums) != first
    assert weighed_release(stream, SEED, sums[:2]) != first


@pytest.mark.parametrize("where", [0, 1, 2])
def test_attack_a_copy_of_the_seed_beside_other_sums(where: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """One party more or less, in this epoch or an earlier one: the difference of the releases is as noisy as two."""
    stream, world = square_root(), World(seed=9)
    sums, party = sums_of(stream, 3), ps.encoding.flatten(world.change(world.born(1, 30)))
    other = list(sums)
    total = stream.first.ring.encode(party)
    total.add(sums[where][0])
    other[where] = (total, EVERYBODY)
    exact = coefficients(4)[2 - where] * party / 2**FIXED_BITS

    def difference() -> np.ndarray:
        one, two = (weighed_release(stream, SEED, each).vector for each in (sums, other))
        return np.asarray(two - one - exact)

    assert 1.2 < (difference() / levels_of(stream)).std() < 1.6  # sqrt 2
    monkeypatch.setattr(weighing, "bytes_of_sums", lambda sums: b"")  # the double: noise of the epoch's number alone
    assert np.abs(difference()).max() <= 1


def test_the_same_sum_over_other_clients_is_another_draw() -> None:
    stream = square_root()
    one, two = (weighed_release(stream, SEED, sums_of(stream, 2, survivors=who)) for who in (EVERYBODY, (0, 1, 2)))
    assert (one.vector != two.vector).any()


def test_the_noise_of_every_epoch_is_fresh() -> None:
    """Were it the same in every epoch, it would be gone from their differences; no two epochs are alike."""
    z = noise_of(square_root(16))
    pairs = list(combinations(range(len(z)), 2))
    found = [abs(float(z[s] @ z[t])) / math.sqrt(float((z[s] @ z[s]) * (z[t] @ z[t]))) for s, t in pairs]
    assert max(found) * math.sqrt(z.shape[1]) < 4.7  # once in a thousand times among 120 pairs
    steps = np.diff(z, axis=0)
    assert steps.std() / math.sqrt(2) == pytest.approx(1, abs=ONCE_IN_A_THOUSAND / math.sqrt(steps.size))


def test_the_noise_of_every_epoch_is_as_large_as_it_says() -> None:
    z = np.concatenate([noise_of(square_root(16), bytes([place]) * 32) for place in range(8)])
    assert z.size > 3000
    assert z.std() == pytest.approx(1, abs=ONCE_IN_A_THOUSAND / math.sqrt(2 * z.size))


def test_weighing_is_done_in_whole_numbers_in_the_ring(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without its noise a release is E x, on the grid."""
    quiet(monkeypatch)
    stream = square_root()
    sums = sums_of(stream, 3)
    seen = weighed_release(stream, SEED, sums).vector
    weights = coefficients(4)
    expected = sum(weights[2 - t] * sums[t][0].lift() for t in range(3))
    assert np.abs(seen - expected / 2**FIXED_BITS).max() <= 0.5


def test_one_client_at_the_wrap_does_not_turn_a_record_into_a_wrap() -> None:
    """Were the sum lifted before it is weighed, one more grid step would move the release by 2**b."""
    stream = square_root()
    ring = stream.first.ring
    edge = (1 << (ring.segments[0][1] - 1)) - 1
    below, above = (np.zeros(ring.size, np.int64) for _ in range(2))
    below[0], above[0] = edge, edge + 1
    difference = ring.encode(above)
    difference.subtract(ring.encode(below))
    weighed = ring.zeros()
    for _ in range(coefficients(4)[0]):
        weighed.add(difference)
    assert abs(int(weighed.lift()[0])) == coefficients(4)[0]
    with pytest.raises(ps.AggregationError, match="beyond what honest"):
        weighed_release(stream, SEED, [(ring.encode(below // 2**12), EVERYBODY)])


def test_a_cohort_that_holds_too_much_is_refused_by_its_noisy_counts() -> None:
    stream = square_root()
    counts = np.zeros(stream.first.ring.size, np.int64)
    counts[:3] = 4096 * COHORT.max_records
    with pytest.raises(ps.AggregationError, match="more than cohort.max_records"):
        weighed_release(stream, SEED, [(stream.first.ring.encode(counts), EVERYBODY)])


def test_only_correlated_streams_weigh_and_only_with_a_sum() -> None:
    stream = square_root()
    sums = sums_of(stream, 1)
    for wrong in ([], [None], sums * 5):
        refused(ps.PlanError, "sum of every epoch", weighed_release, stream, SEED, wrong)
    refused(ps.PlanError, "only the square-root", weighed_release, stream_of(4), SEED, sums)
    refused(ps.ReleaseError, "survivors", weighed_release, stream, SEED, sums_of(stream, 1, survivors=(0,)))
