"""The noise keeps the promise exactly, under each model, and refuses a grid that is too coarse."""

import math
from dataclasses import replace

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import norm

import privstats as ps
from privstats.dp import calibrate, client_mu, default_shares, gaussian_delta, gaussian_mu, joint_mu
from tests import made

MODELS = ["central", "distributed", "local"]
MEMBERS = {"panel": {"members": 3}}


def promise(**change):
    return made.promise(**{"delta": 1e-6, **change})


SCHEMAS = st.one_of(
    st.builds(
        ps.ClassSchema, st.integers(2, 5), st.integers(2, 20), st.sampled_from(["NA", "NAB", "NAS", "NAD", "NABD"]),
        st.floats(0.1, 30), st.integers(11, 16), nonnegative=st.booleans(),
    ),
    st.builds(
        ps.RidgeSchema, st.integers(2, 20), st.integers(1, 3), clip_norm=st.floats(0.1, 30),
        target_bound=st.floats(0.1, 30), grid_bits=st.integers(11, 16), folds=st.integers(1, 4),
    ),
)  # fmt: skip


@settings(deadline=None)
@given(
    schema=SCHEMAS, model=st.sampled_from([*MODELS, "panel"]), adjacency=st.sampled_from(["add-remove", "replace-one"]),
    epsilon=st.floats(0.01, 8), delta=st.floats(-12, -2).map(lambda p: 10**p), honest=st.integers(1, 50),
)  # fmt: skip
def test_the_joint_mu_of_the_noise_is_the_promise_and_not_a_hair_more(schema, model, adjacency, epsilon, delta, honest):
    privacy = promise(model=model, adjacency=adjacency, epsilon=epsilon, delta=delta)
    noise = calibrate(schema, privacy, honest_shares=honest, **MEMBERS.get(model, {}))
    mu = joint_mu(schema, noise.sigma, adjacency)
    assert mu == pytest.approx(noise.mu, rel=1e-12)
    assert mu == pytest.approx(gaussian_mu(epsilon, delta), rel=1e-10)
    assert gaussian_delta(mu, epsilon) <= delta * (1 + 1e-9)
    assert math.fsum(row.share for row in noise.rows) == pytest.approx(1)
    assert [row.statistic for row in noise.rows] == list(schema.statistics)
    if adjacency == "add-remove":
        for row in noise.rows:
            assert row.mu**2 == pytest.approx(row.share * mu**2, rel=1e-9)


@pytest.mark.parametrize("client_clip", [None, 12.5])
def test_the_client_unit_multiplies_the_noise(client_clip):
    schema = ps.ClassSchema(3, 8, "NAB", 1.0)
    privacy = promise(unit="client", max_records_per_client=100, client_clip=client_clip)
    noise = calibrate(schema, privacy, honest_shares=1)
    record = calibrate(schema, promise(), honest_shares=1)
    worth = client_clip or 100
    for statistic in "NAB":
        assert noise.sigma[statistic] == pytest.approx(worth * record.sigma[statistic])
    assert client_mu(schema, noise.sigma, "add-remove", worth) == pytest.approx(noise.mu)
    alone = 100 if client_clip is None else min(100, 12.5 / math.sqrt(0.85))
    assert noise.rows[1].sensitivity == pytest.approx(alone)


def test_shares_of_the_fewest_honest_survivors_sum_to_the_guarantee():
    schema = ps.ClassSchema(3, 8, "NAB", 1.0)
    noise = calibrate(schema, promise(model="distributed"), honest_shares=7)
    for segment in ps.encoding.layout_of(schema).segments:
        assert 7 * noise.share_sigma(segment) ** 2 - 4 == pytest.approx(noise.grid_sigma(segment) ** 2, rel=1e-9)


def test_more_survivors_than_the_fewest_only_strengthen_the_release():
    schema = ps.ClassSchema(3, 8, "NAB", 1.0)
    noise = calibrate(schema, promise(model="distributed"), honest_shares=7)
    epsilons = [noise.released_epsilon(survivors) for survivors in (7, 8, 9, 10)]
    assert (epsilons[0], epsilons) == (pytest.approx(1.0, rel=1e-9), sorted(epsilons, reverse=True))
    assert noise.released_sigma(28)["A"] == pytest.approx(2 * noise.sigma["A"])
    central = calibrate(schema, promise(), honest_shares=7)
    assert central.released_sigma(3) == dict(central.sigma)
    assert central.released_epsilon(3) == pytest.approx(1.0)
    local = calibrate(schema, promise(model="local"), honest_shares=7)
    assert local.released_sigma(9)["A"] == pytest.approx(3 * local.sigma["A"])


def test_every_member_of_a_panel_draws_all_of_the_noise():
    """What one member adds keeps the promise whatever the others know; a reader faces the noise of all of them."""
    schema = ps.ClassSchema(3, 8, "NAB", 1.0)
    central = calibrate(schema, promise(), honest_shares=7)
    for members in (2, 3, 256):
        noise = calibrate(schema, promise(model="panel"), honest_shares=7, members=members)
        assert (noise.mu, noise.rows) == (central.mu, central.rows)
        for segment in ps.encoding.layout_of(schema).segments:
            assert noise.share_sigma(segment) == central.share_sigma(segment)
            assert noise.tail_sigma(segment, 9, 1.0) == math.sqrt(members) * central.tail_sigma(segment, 9, 1.0)
        for survivors in (2, 20):
            assert noise.released_sigma(survivors)["A"] == pytest.approx(math.sqrt(members) * noise.sigma["A"])
            assert noise.released_epsilon(survivors) < 1.0


@pytest.mark.parametrize(
    ("model", "members", "told"),
    [
        ("panel", 1, "by a leader and at least one helper, got members=1"),
        ("central", 2, "no panel samples the noise of the central model"),
        ("distributed", 3, "leave it at 1"),
    ],
)
def test_only_a_panel_has_members_and_it_has_two(model, members, told):
    with pytest.raises(ps.PlanError, match=told):
        calibrate(ps.ClassSchema(3, 8, "NAB", 1.0), promise(model=model), honest_shares=7, members=members)


@pytest.mark.parametrize("model", MODELS)
def test_the_tail_bound_covers_the_exact_tail_of_all_noise(model):
    schema = ps.ClassSchema(2, 2, "NA", 1.0)
    noise = calibrate(schema, promise(model=model), honest_shares=3)
    segment = ps.encoding.layout_of(schema).segments[1]
    clients = 5
    tail = noise.tail_sigma(segment, clients, 1.0)
    one = noise.share_sigma(segment)
    std = one if model == "central" else math.sqrt(clients) * one
    reach = 0.5 * (1 if model == "central" else clients if model == "local" else 0)
    assert std <= tail
    for z in (1, 4, 8, 10):  # beyond the tail only what the continuous noise plus all rounding can reach
        assert 2 * norm.sf((z * tail - min(reach, z * 0.5 * math.sqrt(clients))) / std) <= 2 * math.exp(-z * z / 2)


def test_the_slack_of_summing_discrete_shares_is_below_the_margin():
    """The two max-divergences in docs/proofs/noise.md, evaluated: both far below what the margin of 2**-40 pays for."""
    with mpmath.workdps(120):
        summed = 10 * sum(mpmath.exp(-2 * mpmath.pi**2 * 16 * mpmath.mpf(k) / (k + 1)) for k in range(1, 200))
        assert summed < 1e-66
        theta = 2 * sum(mpmath.exp(-2 * mpmath.pi**2 * 4 * j * j) for j in range(1, 5))
        assert mpmath.log((1 + theta) / (1 - theta)) < 2.1e-34
    noise = calibrate(ps.ClassSchema(10, 512, "NAS", 1.0), promise(model="distributed"), honest_shares=100)
    assert 0 < 2 * noise.slack < noise.epsilon * 2.0**-40


def test_a_discrete_gaussian_is_a_resampled_continuous_one_up_to_the_stated_slack():
    """Peikert's convolution: N(0, s^2 - 4) then a discrete Gaussian of sigma 2 around it is N_Z(0, s^2) pointwise."""
    s, inner = 9, 2
    with mpmath.workdps(50):
        outer = mpmath.sqrt(s**2 - inner**2)
        step = mpmath.mpf(1) / 3  # the trapezoid rule is exact beyond 40 digits on this smooth integrand
        near = [bell_sum(i * step, inner, 40) for i in range(3)]
        middles = [(i * step, mpmath.npdf(i * step, 0, outer) / near[i % 3]) for i in range(-270, 271)]
        total = bell_sum(0, s, 200)
        for x in (0, 3, 17):
            mixed = step * mpmath.fsum(weight * bell(y - x, inner) for y, weight in middles)
            assert abs(mpmath.log(mixed * total / bell(x, s))) < 2.1e-34


def bell(x, s):
    return mpmath.exp(-(mpmath.mpf(x) ** 2) / (2 * s**2))


def bell_sum(y, s, reach):
    return mpmath.fsum(bell(y - j, s) for j in range(-reach, reach + 1))


@pytest.mark.parametrize(
    ("schema", "change", "honest", "words"),
    [
        (ps.ClassSchema(2, 2, "NA", 1.0, 2), {}, 1, ["A is", "at least 64", "grid_bits"]),
        (ps.ClassSchema(2, 2, "NAB", 1.0, 6), {"model": "distributed"}, 6000,
         ["a noise share on A", "at least 4", "grid_bits"]),
        (ps.ClassSchema(2, 2, "NA", 1.0),
         {"epsilon": 100.0, "shares": {"N": 0.9999, "A": 0.0001}, "model": "distributed"}, 30000,
         ["share on N", "share of N"]),
        (ps.ClassSchema(2, 2, "NA", 1.0), {"model": "distributed"}, 0, ["min_survivors"]),
        (ps.ClassSchema(2, 2, "NAB", 1.0), {"shares": {"N": 0.5, "A": 0.5}}, 1, ["lack B"]),
        (ps.ClassSchema(2, 2, "NA", 1.0), {"shares": {"N": 0.5, "A": 0.4, "D": 0.1}}, 1, ["name D"]),
    ],
)  # fmt: skip
def test_a_promise_that_does_not_fit_the_schema_is_refused(schema, change, honest, words):
    with pytest.raises(ps.PlanError) as refused:
        calibrate(schema, promise(**change), honest_shares=honest)
    for word in words:
        assert word in str(refused.value)


WARDS = ps.CountSchema((ps.Categories("ward", ("a", "b")),), (("ward",),))
HOURS = ps.CountSchema((ps.Categories("ward", ("a", "b")),), (), numbers=(ps.Number("hours", 0, 80, by=("ward",)),))
SCORES = ps.ScoringSchema("3" * 64, 1, classes=2, features=2, score_bins=4)
FINE, FEW = {"model": "distributed", "epsilon": 100.0}, {"T": 1e-6, "x": 0.9, "q": 0.1 - 1e-6}


def wide(records, **change):
    return {"unit": "client", "max_records_per_client": records, "epsilon": 0.001, **change}


@pytest.mark.parametrize(
    ("schema", "change", "where", "remedies"),
    [
        (WARDS, FINE, "share on T", "lower epsilon"),
        (SCORES, FINE, "share on T", "lower epsilon"),
        (HOURS, FINE, "share on T", "lower epsilon or the share of T"),
        (HOURS, {**FINE, "shares": FEW}, "share on x", "lower epsilon or the share of x"),
        (ps.ClassSchema(2, 2, "NA", 1.0), FINE, "share on A", "lower epsilon or raise grid_bits"),
        (ps.ClassSchema(2, 2, "NA", 1.0, 4), {"epsilon": 100.0}, "on A", "lower epsilon or raise grid_bits"),
        (WARDS, wide(10**9), "noise on T", "raise epsilon"),
        (SCORES, wide(10**9), "noise on T", "raise epsilon"),
        (HOURS, wide(10**6, shares=FEW), "noise on T", "raise epsilon or the share of T"),
        (ps.ClassSchema(2, 2, "NA", 1.0, 20), wide(10**6), "noise on A", "raise epsilon or lower grid_bits"),
        (WARDS, wide(10**7, delta=0.0), "noise on T", "raise epsilon"),
        (ps.ClassSchema(2, 2, "NA", 1.0), wide(100, delta=0.0, shares={"N": 1e-6, "A": 1 - 1e-6}), "noise on N",
         "raise epsilon or the share of N"),
    ],
)  # fmt: skip
def test_each_printed_remedy_for_a_grid_removes_the_problem(schema, change, where, remedies):
    """Apply each remedy alone, in steps, until the statistic is no longer refused."""
    message = refusal(schema, **change)
    assert where in message
    assert message.endswith(f": {remedies}")
    for remedy in remedies.split(" or "):
        up, setting = (remedies if "share" in remedy else remedy).startswith("raise"), remedy.split()[-1]
        tried, grid = {"shares": default_shares(schema), **change}, schema
        for _ in range(40):
            if setting == "grid_bits":
                grid = replace(grid, grid_bits=grid.grid_bits + (1 if up else -1))
            elif setting == "epsilon":
                tried["epsilon"] = min(max(0.001, tried["epsilon"] * (2 if up else 0.5)), 100.0)
            else:
                odds = {s: share * ((2 if up else 0.5) if s == setting else 1) for s, share in tried["shares"].items()}
                tried["shares"] = {s: each / sum(odds.values()) for s, each in odds.items()}
            if where not in refusal(grid, **tried):
                break
        else:
            pytest.fail(f"{remedy} does not help: {message}")


def refusal(schema, **change):
    try:
        calibrate(schema, promise(**change), honest_shares=60_000 if "model" in change else 1)
    except ps.PlanError as error:
        return str(error)
    return ""


def test_explicit_shares_are_kept():
    schema = ps.ClassSchema(2, 2, "NAB", 1.0)
    noise = calibrate(schema, promise(shares={"B": 0.5, "A": 0.25, "N": 0.25}), honest_shares=1)
    assert [(row.statistic, row.share) for row in noise.rows] == [("N", 0.25), ("A", 0.25), ("B", 0.5)]


@given(schema=SCHEMAS)
def test_default_shares_cover_the_schema_and_sum_to_one(schema):
    shares = default_shares(schema)
    assert (list(shares), sum(shares.values())) == (list(schema.statistics), pytest.approx(1))
    assert np.all(np.array(list(shares.values())) > 0)
