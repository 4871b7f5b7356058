"""The tests of residuals see what they say they see, and are quiet about noise that is right."""

import numpy as np
import pytest

from privstats.randomness import seeded
from threat_models.audits.residuals import Group, checks, dithered, entries_for, sees, tables

LEVEL = 1e-5


def groups(spoil=lambda z: z, releases=200, seed=1):
    rng = np.random.default_rng(seed)
    return [Group(name, 1.0, spoil(rng.standard_normal((releases, width)))) for name, width in (("A", 40), ("B", 10))]


def smallest(found, test):
    return min(getattr(check, test) for check in found)


def test_right_noise_passes():
    for seed in range(20):
        assert min(check.worst for check in checks(groups(seed=seed), LEVEL)) > LEVEL


@pytest.mark.parametrize(
    ("spoil", "test"),
    [
        (lambda z: 0.9 * z, "spread"),
        (lambda z: 1.1 * z, "spread"),
        (lambda z: np.sign(z), "shape"),
        (lambda z: np.clip(z, -3, 3), "tail"),
        (lambda z: np.repeat(z[:1], len(z), axis=0), "twin"),
        (lambda z: 0 * z, "tail"),
    ],
)
def test_wrong_noise_is_seen_by_its_test(spoil, test):
    assert smallest(checks(groups(spoil), LEVEL), test) < LEVEL


def test_segments_that_share_a_stream_are_seen():
    left, _ = groups()
    (a, b, _) = checks([left, Group("B", 1.0, left.z[:, :10])], LEVEL)
    assert max(a.twin, b.twin) < LEVEL


def test_ten_entries_see_only_a_quarter_of_the_claim():
    assert 0.1 < sees(10, LEVEL) < 0.35


@pytest.mark.ci
@pytest.mark.parametrize("part", [0.5, 0.9])
def test_noise_of_the_size_that_a_row_sees_is_found_nine_times_in_ten(part):
    entries = entries_for(part, LEVEL)
    rng = np.random.default_rng(3)
    found = 0
    for _ in range(300):
        z = sees(entries, LEVEL) * rng.standard_normal((1, entries))
        found += checks([Group("A", 1.0, z)], LEVEL)[0].spread < LEVEL
    assert found >= 0.9 * 300 - 3 * np.sqrt(300 * 0.09)
    assert sees(entries // 2, LEVEL) < part <= sees(entries, LEVEL)


def test_a_row_that_sees_too_little_is_underpowered_and_a_wrong_one_is_violated_all_the_same():
    rows, violated = tables(checks([Group("q", 1.0, np.array([[0.3, -1.2]]))], LEVEL), LEVEL, goal=0.9)
    assert (rows[0][-1], violated) == ("underpowered", False)
    rows, violated = tables(checks([Group("q", 1.0, np.array([[30.0, -40.0]]))], LEVEL), LEVEL, goal=0.9)
    assert (rows[0][-1], violated) == ("violates", True)


def test_dither_spreads_a_whole_number_over_its_cell():
    spread = dithered(np.zeros((2, 5000), np.int64), seeded(1))
    assert (spread.shape, spread.std()) == ((2, 5000), pytest.approx(12**-0.5, rel=0.05))
    assert np.abs(spread).max() < 0.5
