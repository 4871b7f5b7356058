"""Cut points found in noisy counts: where records are, how cells are cut anew, and what becomes of odd columns."""

import math
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from privstats.estimates.cut_points import (
    Occupied,
    cut_points,
    first_edges,
    public_cuts,
    ranks,
    refined,
    scanned,
    updated,
)

grids = st.sampled_from([1, 2]).map(first_edges)
noises = st.floats(0, 1e6)
any_counts = st.lists(st.integers(-(10**6), 10**6) | st.integers(-20, 20), min_size=63, max_size=63)


def counted(edges, values):
    """Of each cell, closed on the left, the outer ones open."""
    places = np.searchsorted(edges[1:-1], values, side="right")
    return [int(count) for count in np.bincount(places, minlength=len(edges) - 1)]


def played(values, sigma, sessions=4, step=2, cells=32, signs=7, rng=None):
    """Cut points of a column after some sessions of its own noise."""
    rng, edges, found = rng or np.random.default_rng(0), first_edges(step), None
    for _ in range(sessions):
        noise = np.rint(rng.normal(0, sigma, len(edges) - 1)).astype(int).tolist()
        counts = [count + z for count, z in zip(counted(edges, values), noise, strict=True)]
        found = updated(found, edges, counts, sigma)
        if found is not None:
            edges = refined(found, cells)
    return cut_points(found, signs)


def farthest(values, cuts):
    """How far the part of values below each k-th cut is from k / (K + 1), at most."""
    return max(abs(np.mean(values < cut) - k / (len(cuts) + 1)) for k, cut in enumerate(cuts, 1))


@given(any_counts, noises, st.sampled_from([2, 3, 16, 64]), st.integers(1, 12))
def test_any_counts_give_a_fixed_number_of_cells_and_few_cuts_that_increase_at_15_digits(counts, sigma, cells, signs):
    found = scanned(first_edges(2), counts, sigma)
    if found is not None:
        for _ in range(4):  # cells ever narrower
            edges = refined(found, cells)
            assert len(edges) == cells + 1
            assert all(float(f"{low:.15g}") < float(f"{high:.15g}") for low, high in pairwise(edges))
            found = scanned(edges, [0] * (cells - 1) + [9], 1.0)
    cuts = cut_points(found, signs)
    assert 1 <= len(cuts) <= signs
    assert all(low < high for low, high in pairwise(cuts))
    assert all(math.isfinite(cut) for cut in cuts)


@given(st.lists(st.integers(-9, 9), min_size=1, max_size=12))
def test_the_run_is_the_one_that_stands_out_most_of_all_the_shorter_and_left_one_of_equals(counts):
    """From the definition, over all runs; so wide a noise lets nothing grow or stand out."""
    runs = [(low, high) for low in range(len(counts)) for high in range(low + 1, len(counts) + 1)]

    def merit(run):
        total, length = sum(counts[slice(*run)]), run[1] - run[0]
        return Fraction(total * abs(total), length), -length, -run[0]

    low, high = max(runs, key=merit)
    found = scanned(range(len(counts) + 1), counts, 1e6)
    if sum(counts[low:high]) <= 0:
        assert found is None
    else:
        assert found.cells[0][0] >= low
        assert found.cells[-1][1] <= high
        assert sum(found.mass) == sum(counts[low:high])


@given(any_counts, noises)
def test_kept_counts_are_projected_onto_those_of_the_same_sum_that_are_not_negative(counts, sigma):
    """By the conditions of an optimum: one number is taken from what stays, and is at least what is gone."""
    edges = first_edges(2)
    found = scanned(edges, counts, sigma)
    if found is None:
        return
    given_counts = {Fraction(low): count for low, count in zip(edges, counts, strict=False)}
    kept = [given_counts[low] for low, _ in found.cells]
    taken = {count - mass for count, mass in zip(kept, found.mass, strict=True)}
    assert len(taken) == 1
    assert min(found.mass) > 0
    assert taken.pop() >= 0


@given(any_counts, noises, st.integers(-30, 30))
def test_another_unit_of_a_power_of_two_gives_the_same_cuts_in_that_unit(counts, sigma, power):
    edges = first_edges(2)
    there = [edge * 2.0**power for edge in edges]
    here, moved = scanned(edges, counts, sigma), scanned(there, counts, sigma)
    assert [cut * 2.0**power for cut in cut_points(here, 7)] == list(cut_points(moved, 7)) or here is None
    if here is not None:
        assert [edge * 2.0**power for edge in refined(here, 16)] == list(refined(moved, 16))


@given(any_counts, st.floats(0, 1e4))
def test_noise_counts_as_a_multiple_of_a_small_step_so_its_last_digits_decide_nothing(counts, sigma):
    rounded = round(sigma * 2**16) / 2**16
    assert scanned(first_edges(2), counts, sigma) == scanned(first_edges(2), counts, rounded)


@given(st.floats(-1e9, 1e9).filter(lambda value: abs(value) > 1e-5), st.sampled_from([0.0, 3.0]))
def test_a_column_of_one_value_has_a_cut_on_either_side_of_it_and_near(value, sigma):
    cuts = played(np.full(1_000, value), sigma)
    below, above = [cut for cut in cuts if cut <= value], [cut for cut in cuts if cut > value]
    assert below
    assert above
    assert above[0] - below[-1] <= abs(value) / 1_000


def test_without_noise_a_single_record_beside_many_is_kept():
    found = scanned((0, 1, 2, 3, 4), (50, 0, 0, 1), sigma=0.0)
    assert [(int(low), int(high)) for low, high in found.cells] == [(0, 1), (3, 4)]


@given(st.sampled_from([0.0, 1e300, -1e300, 5e-324, 2.0**40, -(2.0**-20)]))
def test_values_beyond_the_grid_or_about_zero_are_no_more_than_unresolved(value):
    assert 1 <= len(played(np.full(500, value), 2.0)) <= 7


@pytest.mark.parametrize("at", [0.0, 3.0, 1_000.0])
def test_a_spike_among_spread_values_has_a_cut_on_either_side_and_the_rest_is_cut_too(at):
    rng = np.random.default_rng(5)
    values = np.concatenate([np.full(6_000, at), rng.lognormal(5, 1, 4_000)])
    cuts = np.array(played(values, 10.0, rng=rng))
    inner = values[(values > at - 0.5) & (values < at + 0.5)]
    assert np.searchsorted(cuts, at + 0.5) - np.searchsorted(cuts, at - 0.5) in (1, 2)
    assert len(inner) >= 6_000
    assert (np.diff([np.mean(values < cut) for cut in cuts]) > 0.01).any()


def test_whole_numbers_are_cut_between_all_of_them_that_are_frequent():
    cuts = played(np.repeat([0.0, 1.0, 2.0, 3.0], [400, 300, 200, 100]), 4.0)
    assert len(np.unique(np.searchsorted(cuts, [0, 1, 2, 3], side="right"))) >= 3


@pytest.mark.parametrize("centre", [1_000.0, -1_000.0, 20_000.0])
def test_columns_inside_one_octave_are_resolved_by_later_sessions_alone(centre):
    """As far as the first grid knows, every record of it lies in one cell."""
    rng = np.random.default_rng(1)
    values = centre + centre / 1_000 * rng.uniform(-1, 1, 4_000)
    assert len(set(np.searchsorted(first_edges(1), values))) <= 2
    cuts = played(values, 30.0, rng=rng)
    assert len(cuts) >= 5
    assert farthest(values, cuts) < 0.12
    assert farthest(values, played(values, 30.0, sessions=1, rng=rng)) > 0.3


def test_cuts_are_the_quantiles_where_there_is_little_noise():
    values = np.random.default_rng(3).normal(50, 10, 20_000)
    assert farthest(values, played(values, 1.0)) < 0.01


@given(st.integers(0, 10**6))
def test_columns_of_noise_alone_have_cuts_too_and_a_session_without_any_records_no_harm(seed):
    assert 1 <= len(played(np.array([]), 100.0, rng=np.random.default_rng(seed))) <= 7


def test_a_column_that_no_count_shows_has_public_cuts_for_it():
    assert scanned(first_edges(2), [0] * 63, 1.0) is None
    assert scanned(first_edges(2), [-5] * 63, 1.0) is None
    assert cut_points(None, 7) == public_cuts(7) == (-4096.0, -64.0, -1.0, 0.0, 1.0, 64.0, 4096.0)
    assert [len(public_cuts(signs)) for signs in range(1, 20)] == list(range(1, 20))
    assert all(low < high for signs in range(2, 20) for low, high in pairwise(public_cuts(signs)))


def test_cuts_have_no_more_digits_than_tell_them_from_their_neighbours():
    """Each by its own distance: a spike beside wide cells does not print the wide ones to its last digit."""
    cells = tuple((Fraction(low), Fraction(high)) for low, high in ((3, 4), (1_000, 1_700), (1_700, 2_400)))
    cuts = cut_points(Occupied(cells, (Fraction(100), Fraction(37), Fraction(38))), 7)
    assert cuts[:2] == (3.0, 4.0)
    assert all(cut % 8 == 0 for cut in cuts[2:])


def test_a_second_mode_is_kept_beside_the_run_and_what_lies_between_is_one_cell():
    counts = (300, 2, -3, 1, 0, -2, 3, -1, 90, 0)
    found = scanned(range(11), counts, 5.0)
    assert [(int(low), int(high)) for low, high in found.cells] == [(0, 1), (8, 9)]
    again = refined(found, 8)
    assert (len(again), [edge for edge in again if 1 <= edge <= 8]) == (9, [1.0, 8.0])
    assert sum(edge < 1 for edge in again) == 5  # of seven parts, the more where the more records are


def test_cells_with_the_fewest_records_are_given_up_where_a_grid_is_too_small():
    cells = tuple((Fraction(2 * k), Fraction(2 * k + 1)) for k in range(6))
    found = Occupied(cells, tuple(Fraction(mass) for mass in (5, 50, 1, 40, 2, 3)))
    assert refined(found, 4) == (2.0, 2.5, 3.0, 6.0, 7.0)


@given(any_counts, st.lists(st.integers(-(10**4), 10**4), min_size=16, max_size=16), st.floats(0.01, 1e6))
def test_counts_move_what_was_known_to_records_of_no_cell_below_0_and_of_a_sum_that_they_or_it_gave(
    first, later, sigma
):
    found = scanned(first_edges(2), first, sigma)
    if found is None:
        return
    edges = refined(found, 16)
    after = updated(found, edges, later, sigma)
    assert all(mass > 0 for mass in after.mass)
    assert all(low in map(Fraction, edges) for low, _ in after.cells) or after == found
    sums = [float(sum(found.mass)), float(sum(later)), float(sum(mass for mass in after.mass))]
    kept = [float(count) for count in later]
    assert min(sums[:2]) - 1 <= sums[2] <= max(*sums[:2], sum(max(count, 0) for count in kept)) + 1


@given(st.integers(0, 10**6), st.floats(1, 100))
def test_counts_of_noise_alone_leave_what_was_known_even(seed, sigma):
    """In nearly all draws; where they do not, most of the noise is held back."""
    before = Occupied(((Fraction(0), Fraction(32)),), (Fraction(32 * 50),))
    edges = refined(before, 32)
    noise = np.random.default_rng(seed).normal(0, sigma, 32)
    after = updated(before, edges, [50 + round(each) for each in noise.tolist()], sigma)
    assert np.linalg.norm([float(mass) - 50 for mass in after.mass]) < 0.75 * np.linalg.norm(noise)


def test_clear_counts_replace_what_was_known_and_one_full_cell_of_many_is_found_as_before():
    before = Occupied(((Fraction(0), Fraction(4)),), (Fraction(400),))
    counts = [10, 180, 190, 20]
    after = updated(before, (0, 1, 2, 3, 4), counts, 1.0)
    np.testing.assert_allclose([float(mass) for mass in after.mass], counts, atol=0.1)
    edges = tuple(range(33))
    spike = [400 if place == 20 else 30 * (-1) ** place for place in range(32)]
    wide = Occupied(((Fraction(0), Fraction(32)),), (Fraction(400),))
    assert updated(wide, edges, spike, 40.0) == scanned(edges, spike, 40.0)


def test_nothing_known_is_a_scan_and_counts_without_records_change_nothing():
    assert updated(None, (0, 1, 2), (5, 90), 1.0) == scanned((0, 1, 2), (5, 90), 1.0)
    before = Occupied(((Fraction(0), Fraction(2)),), (Fraction(10),))
    assert updated(before, (0, 1, 2), (-9_000, -8_000), 1.0) == before


def test_few_records_over_many_cells_are_cut_better_than_by_their_counts_alone():
    """Normal values under noise of a tenth of all records: how far cuts are from the quantiles, against scans."""
    rng, missed = np.random.default_rng(0), {updated: [], scanned: []}
    for draw in range(20):
        values = rng.normal(60, 15, 500)
        missed[updated].append(farthest(values, played(values, 50.0, rng=np.random.default_rng(draw))))
        edges, found = first_edges(2), None
        chance = np.random.default_rng(draw)
        for _ in range(4):
            noise = np.rint(chance.normal(0, 50.0, len(edges) - 1)).astype(int).tolist()
            last = scanned(edges, [a + b for a, b in zip(counted(edges, values), noise, strict=True)], 50.0)
            found = last or found
            edges = refined(found, 32)
        missed[scanned].append(farthest(values, cut_points(found, 7)))
    assert np.mean(missed[updated]) < 0.8 * np.mean(missed[scanned])


def test_finer_ends_divide_the_outer_parts_twice() -> None:
    for signs in range(1, 65):
        assert ranks(signs) == tuple(Fraction(k, signs + 1) for k in range(1, signs + 1))
    assert [float(32 * rank) for rank in ranks(11, finer_ends=True)] == [1, 2, 4, 8, 12, 16, 20, 24, 28, 30, 31]
    for signs in range(5, 65):
        there = ranks(signs, finer_ends=True)
        assert len(there) == signs
        assert sorted(set(there)) == list(there)
        assert [1 - rank for rank in reversed(there)] == list(there)
    even = Occupied(tuple((Fraction(k), Fraction(k + 1)) for k in range(32)), (Fraction(10),) * 32)
    assert cut_points(even, 11, finer_ends=True) == tuple(float(32 * rank) for rank in ranks(11, finer_ends=True))
    assert cut_points(None, 11, finer_ends=True) == cut_points(None, 11) == public_cuts(11)
