"""One record and the within-client moments: no client and no record beat the closed form, and some reach it.

And the mistake that was nearly made: under replace-one mu^2 is four times that of add-remove, not twice.
"""

import math
from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import privstats as ps
from privstats.kinds.within import within_moments
from tests.dp import test_site_sensitivity as sites

C, D, R, BITS = 3, 4, sites.R, sites.BITS
unit, rows = partial(sites.unit, columns=D), partial(sites.rows, columns=D)
PLAIN = ps.ClassSchema(C, D, "NAB", R, BITS)
WEIGHTS = {"N": 1.0, "L": 1.3, "A": 0.6, "B": 0.9}


def schema(pull, n_max):
    return ps.WithinSchema(C, D, R, pull=pull, n_max=n_max, grid_bits=BITS)


def client(*groups):
    """Class moments of copies: (how many, label, integer row) each."""
    N, A, B = np.zeros(C, np.int64), np.zeros((C, D), np.int64), np.zeros((D, D), np.int64)
    for count, label, row in groups:
        N[label] += count
        A[label] += count * row
        B += count * np.outer(row, row)
    return ps.ClassMoments(PLAIN, N, A, B)


def summed(kind, clients, name):
    """A statistic's sum over clients in real units, from the integers that they would send."""
    return sum(getattr(within_moments(kind, each).real(), name) for each in clients)


def reached(kind, before, after, weights):
    found = {name: np.square(summed(kind, before, name) - summed(kind, after, name)).sum() for name in weights}
    return math.sqrt(sum(weight * found[name] for name, weight in weights.items()))


def claim(kind, adjacency, weights=WEIGHTS):
    return ps.dp.joint_mu(kind, {name: weight**-0.5 for name, weight in weights.items()}, adjacency)


@pytest.mark.parametrize("names", ["N", "L", "A", "B", "NLAB"])
@pytest.mark.parametrize(("pull", "n_max"), [(0.0, 50), (10.0, 40), (100.0, 1000), (1e9, 50)])
def test_some_newcomer_reaches_the_closed_form(names, pull, n_max):
    """A large client of another class at -R e_1, and a newcomer at R e_1: the worst in every block at once."""
    kind, weights = schema(pull, n_max), {name: WEIGHTS[name] for name in names}
    crowd = (max(10**6, 1000 * n_max), 1, unit(0, -1))
    if names == "N" or pull == 1e9:
        crowd = (n_max, 1, unit(0, -1))
    found = reached(kind, [client(crowd)], [client(crowd, (1, 0, unit(0)))], weights)
    bound = claim(kind, "add-remove", weights)
    assert 0.995 * bound <= found <= bound


@given(
    seed=st.integers(0, 2**32 - 1),
    pull=st.sampled_from([0.0, 0.5, 10.0, 300.0]),
    n_max=st.sampled_from([1, 5, 100, 10_000]),
    crowds=st.lists(st.integers(0, 400), max_size=3),
    replaced=st.sampled_from([None, "here", "elsewhere"]),
)
@settings(deadline=None, max_examples=250)
def test_no_client_and_no_record_beat_it(seed, pull, n_max, crowds, replaced):
    """Also where the replaced record was at another client, whose sums are truncated too."""
    rng = np.random.default_rng(seed)
    kind = schema(pull, n_max)
    groups = [(count, int(rng.integers(C)), row) for count, row in zip(crowds, rows(rng, len(crowds)), strict=True)]
    new, old = rows(rng, 2)
    with_new, with_old = (client(*groups, (1, int(rng.integers(C)), row)) for row in (new, old))
    before, after = {
        None: ([client(*groups)], [with_new]),
        "here": ([with_old], [with_new]),
        "elsewhere": ([with_old, client(*groups)], [client(*groups), with_new]),
    }[replaced]
    adjacency = "replace-one" if replaced else "add-remove"
    for weights in (WEIGHTS, *({name: 1.0} for name in WEIGHTS)):
        assert reached(kind, before, after, weights) <= claim(kind, adjacency, weights) * (1 + 1e-12)


def test_at_the_border_of_n_max_nothing_jumps():
    """The newcomer that takes a client from n_max to n_max + 1 changes the rule by which it is measured."""
    for pull in (0.5, 10.0, 1000.0):
        kind = schema(pull, 30)
        for count in (29, 30, 31):
            crowd = (count, 1, unit(0, -1))
            found = reached(kind, [client(crowd)], [client(crowd, (1, 0, unit(0)))], WEIGHTS)
            assert found <= claim(kind, "add-remove")


@pytest.mark.parametrize(
    ("pull", "n_max", "ratio"), [(1e6, 50, 3.99), (1000.0, 50, 3.5), (100.0, 20, 2.5), (50.0, 3, 3.0)]
)
def test_attack_twice_the_square_is_too_little_under_replace_one(pull, n_max, ratio):
    """The weakened double doubles mu^2, as class sums allow where labels differ; a record turned round passes it."""
    kind, weights = schema(pull, n_max), {"A": 1.0}
    found = max(
        reached(
            kind,
            [client((n_max, 1, crowd), (1, 0, unit(0)))],
            [client((n_max, 1, crowd), (1, 0, unit(0, -1)))],
            weights,
        )
        for crowd in (unit(0), unit(1), 0 * unit(0))
    )
    double = math.sqrt(2) * claim(kind, "add-remove", weights)
    assert found > double
    assert found**2 >= ratio * claim(kind, "add-remove", weights) ** 2
    assert found <= claim(kind, "replace-one", weights)


def test_four_times_is_never_passed_and_a_client_is_its_records():
    """Of what is truncated it is four times exactly: a replaced record may have been at another client."""
    for pull in (0.0, 10.0, 1e4):
        kind = schema(pull, 50)
        assert claim(kind, "replace-one") <= 2 * claim(kind, "add-remove")
        for name in "LAB":
            twice = 2 * claim(kind, "add-remove", {name: 1.0})
            assert claim(kind, "replace-one", {name: 1.0}) == pytest.approx(twice, rel=1e-14)
        sigmas = {name: weight**-0.5 for name, weight in WEIGHTS.items()}
        assert ps.dp.client_mu(kind, sigmas, "add-remove", 7) == pytest.approx(7 * claim(kind, "add-remove"))


def test_a_plan_with_noise_holds_and_costs_what_the_docs_say():
    """About four times the sensitivity of B for a free offset; a plan under DP is an ordinary plan."""
    free = ps.dp.joint_mu(schema(0.0, 50), {"B": 1.0}, "add-remove")
    assert free == pytest.approx(4 * ps.dp.joint_mu(PLAIN, {"B": 1.0}, "add-remove"), rel=1e-5)
    privacy = ps.Privacy(model="central", unit="record", adjacency="replace-one", epsilon=2.0, delta=1e-5)
    plan = ps.Plan(schema=schema(10.0, 50), cohort=ps.Cohort(3, 3, 400), privacy=privacy)
    assert plan.budget().mu == pytest.approx(ps.dp.joint_mu(plan.schema, plan.noise.sigma, "replace-one"))
    rng = np.random.default_rng(0)
    release = ps.simulate(plan, [(rng.normal(size=(100, D)), rng.integers(0, C, 100)) for _ in range(3)])
    assert abs(release.moments.N.sum() - 300) < 6 * math.sqrt(C) * release.sigma["N"]
