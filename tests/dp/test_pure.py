"""Pure epsilon: sensitivities in L1, the scales that keep them, what a pure promise is in Gaussian DP, and refusals."""

import math
from fractions import Fraction
from itertools import product

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import ndtr, ndtri

import privstats as ps
from privstats.contrib.evidence.table import evidence_page
from privstats.dp.pure import laplace_mu, laplace_sigma, laplace_tail
from privstats.dp.samplers import MAX_SCALE
from privstats.encoding import flatten, layout_of
from privstats.errors import PlanError, ReleaseError
from privstats.inference.counts.table import count_table
from privstats.kinds.classes import longest_row
from privstats.plan.cohort import reach_of
from privstats.randomness import seeded
from privstats.review.certificate import certificate_text
from privstats.review.plan_facts import difference
from privstats.workflows.readers import possible, suggested, unread_statistics
from privstats.workflows.report import Statement, explanations
from tests import made
from tests.made import refused

PURE = {"delta": 0.0}
COHORT = ps.Cohort(3, 3, 200)
TABLES = ps.CountSchema(
    (ps.Categories("sex", ("f", "m")), ps.Categories("ill", ("no", "yes"))), (("sex",), ("sex", "ill"))
)


def norms(schema, vectors):
    """L1 norms by statistic of flat vectors in wire steps."""
    layout = layout_of(schema)
    return {s.statistic: np.abs(vectors[..., at]).sum(-1) for s, at in zip(layout.segments, layout.slices, strict=True)}


@pytest.mark.parametrize("entries", [1, 2, 3, 4])
def test_the_longest_whole_record_in_l1_is_what_trying_all_of_them_finds(entries):
    for radius in range(7):
        every = product(range(radius + 1), repeat=entries)
        longest = max(sum(x) for x in every if sum(v * v for v in x) <= radius**2)
        assert longest_row(radius**2, entries) == longest


@settings(max_examples=40, deadline=None)
@given(
    st.integers(2, 40),
    st.integers(2, 14),
    st.floats(0.0, 3.0),
    st.sampled_from([0.01, 1.0, 30.0]),
    st.booleans(),
    st.integers(0, 2**32 - 1),
)
def test_no_record_moves_a_statistic_further_than_its_l1_sensitivity(d, bits, power, stretch, positive, seed):
    """Records of every shape from one feature to all, up to thirty times beyond the clip, as the library measures."""
    schema = ps.ClassSchema(2, d, "NAD", clip_norm=2.0, grid_bits=bits, nonnegative=positive)
    drawn = np.random.default_rng(seed).standard_normal((2, d))
    rows = np.sign(drawn) * np.abs(drawn) ** power
    rows = stretch * (np.abs(rows) if positive else rows)
    one, same, other = (flatten(ps.measure(schema, rows[i : i + 1], [c])) for i, c in ((0, 0), (1, 0), (1, 1)))
    for adjacency, moves in (("add-remove", (one, other)), ("replace-one", (one - same, one - other))):
        for moved in moves:
            for statistic, norm in norms(schema, moved).items():
                assert norm <= ps.dp.l1_sensitivity(schema, statistic, adjacency)


@pytest.mark.parametrize("adjacency", ["add-remove", "replace-one"])
def test_one_record_or_pair_attains_every_sensitivity_at_once(adjacency):
    schema = ps.ClassSchema(2, 16, "NAD", clip_norm=1.0)
    flat = np.full((1, 16), 0.25)
    one, other = (flatten(ps.measure(schema, flat, [c])) for c in (0, 1))
    moved = norms(schema, one if adjacency == "add-remove" else one - other)
    assert moved == {s: ps.dp.l1_sensitivity(schema, s, adjacency) for s in "NAD"}


def test_a_record_counts_once_in_every_table_and_a_replaced_one_twice():
    yes, no = (
        flatten(ps.measure(TABLES, {"sex": [s], "ill": [i]})).astype(int) for s, i in (("f", "yes"), ("m", "no"))
    )
    assert np.abs(yes).sum() == ps.dp.l1_sensitivity(TABLES, "T", "add-remove") == 2 * 4096
    assert np.abs(yes - no).sum() == ps.dp.l1_sensitivity(TABLES, "T", "replace-one") == 4 * 4096


@settings(max_examples=40, deadline=None)
@given(
    st.integers(2, 500),
    st.floats(0.001, 100.0),
    st.sampled_from(["add-remove", "replace-one", "client"]),
    st.sampled_from(["NA", "NAD", "NAD"]),
)
def test_the_scales_keep_epsilon_as_fractions_and_waste_none_of_it(d, epsilon, between, letters):
    unit = {"unit": "client", "max_records_per_client": 7} if between == "client" else {"adjacency": between}
    schema = ps.ClassSchema(3, d, letters, clip_norm=1.0, grid_bits=8)
    noise = ps.dp.calibrate(schema, made.promise(epsilon=epsilon, **unit, **PURE), honest_shares=1)
    records, adjacency = (7, "add-remove") if between == "client" else (1, between)
    spent = sum(records * ps.dp.l1_sensitivity(schema, s, adjacency) / Fraction(b) for s, b in noise.scales.items())
    assert Fraction(epsilon) * (1 - Fraction(1, 10**11)) < spent <= Fraction(epsilon)
    assert [row.epsilon for row in noise.rows] == pytest.approx([epsilon * row.share for row in noise.rows])
    assert math.fsum(row.share for row in noise.rows) == pytest.approx(1)
    for row in noise.rows:
        assert row.sigma * schema.scale_of(row.statistic) == laplace_sigma(noise.scales[row.statistic])
        moved = records * ps.dp.l1_sensitivity(schema, row.statistic, adjacency)
        assert row.sensitivity * schema.scale_of(row.statistic) == pytest.approx(moved)


def test_default_shares_are_the_roots_of_those_of_mu_squared():
    schema = ps.ClassSchema(2, 3, "NAD", clip_norm=1.0)
    noise = ps.dp.calibrate(schema, made.promise(**PURE), honest_shares=1)
    roots = {s: math.sqrt(share) for s, share in ps.dp.default_shares(schema).items()}
    assert {row.statistic: row.share for row in noise.rows} == pytest.approx(
        {s: r / sum(roots.values()) for s, r in roots.items()}
    )
    given_shares = made.promise(shares={"N": 0.5, "A": 0.25, "D": 0.25}, **PURE)
    assert ps.dp.calibrate(schema, given_shares, honest_shares=1).rows[0].share == 0.5


@pytest.mark.parametrize("epsilon", [1e-3, 0.1, 1.0, 4.0, 30.0])
def test_pure_mu_is_the_least_whose_curve_lies_below_that_of_pure_epsilon(epsilon):
    """Not below it anywhere, and above it at the kink with a millionth less."""
    mu, alpha = ps.dp.pure_mu(epsilon), np.linspace(0, 1, 20_001)
    pure = np.maximum.reduce([0 * alpha, 1 - math.exp(epsilon) * alpha, math.exp(-epsilon) * (1 - alpha)])
    assert (ndtr(ndtri(1 - alpha) - mu) <= pure + 1e-12).all()
    kink = 1 / (1 + math.exp(epsilon))
    assert ndtr(-ndtri(kink) - mu * (1 - 1e-6)) > kink


def test_pure_mu_keeps_its_digits_where_epsilon_is_small():
    """Its slope at 0 is sqrt(pi / 2), and the next term is of third order."""
    for epsilon in (1e-12, 1e-9, 1e-6):
        assert ps.dp.pure_mu(epsilon) / epsilon == pytest.approx(math.sqrt(math.pi / 2), rel=1e-12)
    assert ps.dp.pure_mu(np.nextafter(1.0, 0.0)) == pytest.approx(ps.dp.pure_mu(1.0), rel=1e-13)
    assert ps.dp.pure_mu(0.0) == 0.0
    epsilons = np.geomspace(1e-9, 600, 400)
    assert all(ps.dp.pure_mu(float(e)) <= math.sqrt(math.pi / 2) * e * (1 + 1e-12) for e in epsilons)


@given(st.lists(st.floats(1e-6, 100.0), min_size=2, max_size=6))
def test_the_parts_of_an_epsilon_have_together_at_most_its_mu(parts):
    """docs/proofs/pure_epsilon.md proves it: pure_mu^2 / epsilon never falls."""
    assert math.hypot(*map(ps.dp.pure_mu, parts)) <= ps.dp.pure_mu(math.fsum(parts)) * (1 + 1e-12)


def privacy_loss(moves, scale):
    """Losses in steps of 1 / scale and their probabilities, of entries that move by these integers."""
    p, whole = math.exp(-1 / scale), np.array([1.0])
    for x in map(abs, moves):
        law = np.zeros(2 * x + 1)  # of the loss (|k - x| - |k|) / scale, from -x to x
        for k in range(x + 1):
            law[2 * x - 2 * k] = (1 - p) / (1 + p) * p**k if 0 < k < x else p**k / (1 + p)
        whole = np.convolve(whole, law if x else np.array([1.0]))
    half = sum(map(abs, moves))
    return np.arange(-half, half + 1) / scale, whole


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(-7, 7), min_size=1, max_size=5), st.floats(0.3, 40.0))
def test_entries_that_move_are_together_no_easier_to_tell_than_their_mu_says(moves, scale):
    """Against every delta of the exact law: entry by entry, and by the L2 norm of the moves."""
    losses, law = privacy_loss(moves, scale)
    assert law.sum() == pytest.approx(1)
    entries = math.hypot(*(ps.dp.pure_mu(abs(x) / scale) for x in moves))
    assert entries <= math.sqrt(math.pi / 2) * math.hypot(*moves) / scale * (1 + 1e-12)
    for epsilon in np.linspace(0, losses[-1], 7) if entries else ():
        delta = float(law @ np.maximum(0, -np.expm1(epsilon - losses)))
        assert delta <= ps.dp.gaussian_delta(entries, float(epsilon)) * (1 + 1e-9) + 1e-15


@settings(max_examples=12, deadline=None)
@given(
    st.integers(2, 40),
    st.floats(0.01, 30.0),
    st.sampled_from(["add-remove", "replace-one", "client"]),
    st.sampled_from([{"N": 0.05, "A": 0.9, "D": 0.05}, {"N": 0.6, "A": 0.2, "D": 0.2}, None]),
    st.integers(0, 2**32 - 1),
)
def test_the_mu_of_a_pure_plan_is_that_of_its_rows_and_no_record_shows_more(d, epsilon, between, shares, seed):
    """What measured records move, entry by entry; the promise alone would say more, up to sqrt(d) times as much."""
    unit = {"unit": "client", "max_records_per_client": 3} if between == "client" else {"adjacency": between}
    schema = ps.ClassSchema(2, d, "NAD", clip_norm=1.0, grid_bits=8)
    noise = ps.dp.calibrate(schema, made.promise(epsilon=epsilon, shares=shares, **unit, **PURE), honest_shares=1)
    assert noise.mu == ps.dp.compose(row.mu for row in noise.rows)
    assert noise.mu <= ps.dp.pure_mu(epsilon) * (1 + 1e-9)
    layout, chance = layout_of(schema), np.random.default_rng(seed)
    b = np.concatenate([np.full(s.size, noise.scales[s.statistic]) for s in layout.segments])
    rows = np.vstack([2 * chance.standard_normal((2, d)), np.eye(d)[:1], np.ones((1, d))])
    rows = np.vstack([rows, -rows])
    vectors = [flatten(ps.measure(schema, row[None], [k % 2])) for k, row in enumerate(rows)]
    moved = [3 * v if between == "client" else v for v in vectors]
    if between == "replace-one":
        moved = [one - other for one in vectors for other in vectors]
    for x in moved:
        assert math.hypot(*(ps.dp.pure_mu(float(e)) for e in np.abs(x) / b)) <= noise.mu * (1 + 1e-9)


def test_where_a_record_moves_one_entry_the_mu_of_a_pure_plan_is_that_of_its_epsilon():
    one = ps.CountSchema((ps.Categories("sex", ("f", "m")),), (("sex",),))
    noise = ps.dp.calibrate(one, made.promise(epsilon=0.7, **PURE), honest_shares=1)
    assert noise.mu == pytest.approx(ps.dp.pure_mu(0.7), rel=1e-9)
    two = ps.dp.calibrate(TABLES, made.promise(epsilon=0.7, **PURE), honest_shares=1)
    assert two.mu == pytest.approx(math.sqrt(math.pi / 2) * 0.7 / math.sqrt(2), rel=1e-9)
    assert laplace_mu(TABLES, two.scales, "add-remove", 2)["T"] == pytest.approx(2 * two.mu)


def test_the_scales_of_a_plan_cannot_be_changed():
    noise = ps.dp.calibrate(TABLES, made.promise(**PURE), honest_shares=1)
    noise.scales["T"] = 1e-3
    assert noise.scales["T"] > 1
    assert hash(noise) == hash(ps.dp.calibrate(TABLES, made.promise(**PURE), honest_shares=1))


@pytest.mark.parametrize("zero", [-0.0, 0])
def test_minus_zero_and_the_whole_number_are_the_same_delta(zero):
    plans = [made.plan(TABLES, COHORT, made.promise(delta=each)) for each in (zero, 0.0)]
    assert (plans[0].to_toml(), plans[0].digest) == (plans[1].to_toml(), plans[1].digest)
    assert math.copysign(1, plans[0].privacy.delta) == 1


def test_every_delta_of_a_pure_release_is_below_that_of_its_mu():
    for epsilon in (0.2, 1.0, 3.0):
        for smaller in np.linspace(0, epsilon, 9):
            exact = (math.exp(epsilon) - math.exp(smaller)) / (1 + math.exp(epsilon))  # of randomised response
            assert exact <= ps.dp.gaussian_delta(ps.dp.pure_mu(epsilon), smaller) * (1 + 1e-9)
            assert smaller or math.tanh(epsilon / 2) == pytest.approx(exact)


def test_tails_of_one_entry_and_of_sums_are_rarer_than_the_ring_is_sized_for():
    """One: the law itself. Sums of m: Chernoff's bound with its best exponent, for every number of classes."""
    scale = 50.0
    for reach in (math.sqrt(2 * math.log(2.0**41)), 8.0, 9.5):
        bound = reach * laplace_tail(scale, reach)
        p = math.exp(-1 / scale)
        assert 2 * p ** (math.floor(bound) + 1) / (1 + p) <= 2 * math.exp(-(reach**2) / 2)
        for m in (2, 3, 5, 10, 100, 10_000):
            place = math.sqrt(m) * bound / scale
            u = (math.hypot(m, place) - m) / place
            assert u * place + m * math.log1p(-u * u) >= reach**2 / 2
    assert reach_of(layout_of(TABLES)) ** 2 / 2 > math.log(2.0**41)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"model": "distributed"}, "delta = 0 is supported with model='central' only: with model='distributed' each"),
        ({"model": "local"}, "with model='local' the ring's width needs a tail bound for the sum"),
        ({"model": "panel"}, "with model='panel' encryption hides the exact sum from bounded attackers only"),
        ({"unit": "client", "max_records_per_client": 9, "client_clip": 2.0}, "client_clip clips in the L2"),
    ],
)
def test_what_no_pure_promise_covers_is_refused_by_name(change, sentence):
    with pytest.raises(PlanError) as refusal:
        made.promise(**{**PURE, **change})
    assert sentence in str(refusal.value)


@pytest.mark.parametrize(
    ("schema", "said"),
    [
        (ps.ClassSchema(2, 4, "NAB", clip_norm=1.0), "a ClassSchema sends B: omit it, or give a delta above 0"),
        (ps.ClassSchema(2, 4, "NAS", clip_norm=1.0), "a ClassSchema sends S"),
        (ps.RidgeSchema(4, clip_norm=1.0, target_bound=1.0), "a RidgeSchema sends G"),
    ],
)
def test_statistics_without_pure_noise_are_refused_by_name(schema, said):
    with pytest.raises(PlanError, match="delta = 0 is supported for the class statistics N, A and D") as refusal:
        made.plan(schema, COHORT, made.promise(**PURE))
    assert said in str(refusal.value)


def test_masking_that_may_fail_has_no_place_beside_delta_zero():
    schema, crowd = ps.ClassSchema(2, 2, "NA", clip_norm=1.0), ps.Cohort(400, 300, 100_000)
    refused(PlanError, r"maximum delta / 100 = 0", made.plan, schema, crowd, made.promise(**PURE))
    panel = [ps.secagg.Identity.generate(seeded(k).bytes).public.hex() for k in (1, 2)]
    assert made.plan(schema, crowd, made.promise(**PURE), protocol="split", panel=panel).budget().delta == 0


def test_noise_too_wide_to_draw_is_refused():
    schema = ps.ClassSchema(2, 4096, "NA", clip_norm=1.0, grid_bits=20)
    with pytest.raises(PlanError, match="at most 2\\*\\*35 can be sampled: raise epsilon or lower grid_bits"):
        ps.dp.calibrate(schema, made.promise(epsilon=0.001, **PURE), honest_shares=1)
    shares = {"N": 1e-6, "A": 1 - 1e-6}
    client = made.promise(epsilon=0.001, shares=shares, unit="client", max_records_per_client=10_000, **PURE)
    with pytest.raises(PlanError, match="noise on N .* raise epsilon or the share of N"):
        ps.dp.calibrate(ps.ClassSchema(2, 2, "NA", clip_norm=1.0, grid_bits=2), client, honest_shares=1)
    refused(PlanError, "scale must be above 0 and at most", ps.dp.discrete_laplace, 2 * MAX_SCALE, 1, seeded(1))


@pytest.fixture(scope="module")
def release():
    schema = ps.ClassSchema(2, 3, "NAD", clip_norm=1.0)
    plan = made.plan(schema, COHORT, made.promise(epsilon=20.0, **PURE), min_count=3)
    rng = np.random.default_rng(0)
    shards = [(rng.normal(size=(40, 3)) / 3 + 0.5, rng.integers(0, 2, 40)) for _ in range(3)]
    return ps.simulate(plan, shards, rng=seeded(4)), shards


def test_a_release_of_pure_epsilon_from_end_to_end(release, tmp_path):
    made_release, shards = release
    plan = made_release.plan
    assert ps.Plan.from_toml(plan.to_toml()) == plan
    assert ps.Plan.from_toml(plan.to_toml()).digest == plan.digest
    off = np.abs(made_release.vector - sum(flatten(ps.measure(plan.schema, *shard)) for shard in shards))
    levels = np.concatenate([np.full(s.size, plan.noise.scales[s.statistic]) for s in plan.layout.segments])
    assert (off > 0).all()
    assert (off < 20 * levels).all()
    made_release.save(tmp_path / "release.safetensors")
    again = ps.Release.load(tmp_path / "release.safetensors")
    assert (again.budget.epsilon, again.budget.delta, again.budget.mu) == (20.0, 0.0, plan.noise.mu)
    head = ps.heads.NaiveBayes().fit_release(again)
    assert (head.provenance_.epsilon, head.provenance_.delta) == (20.0, 0.0)
    secret = msgspec.structs.replace(head.provenance_, reproducible=False)
    stated = f"epsilon 20 at delta 0: central Laplace noise, one record, add-remove, while {plan.condition}"
    assert str(secret) == stated
    assert "central Laplace noise, one record" in str(plan.budget())
    assert "epsilon 20 at delta 0" in str(plan.budget())
    assert plan.noise.released_epsilon(3) == 20.0


def test_intervals_rounds_and_streams_refuse_laplace_noise_by_name(release):
    made_release, _ = release
    refused(ReleaseError, "a release with delta = 0 has Laplace noise", ps.inference.table_one, made_release)
    plain = made.plan(ps.ClassSchema(2, 3, "NA", clip_norm=1.0), COHORT, made.promise(**PURE))
    refused(PlanError, "a stream has many: set a delta above 0", ps.Stream, plain, epochs=2)
    refused(PlanError, "rounds compose in mu: give a delta above 0", ps.course.Rounds.within, plain)


def test_a_count_table_under_pure_epsilon_is_measured_and_its_intervals_are_refused():
    plan = made.plan(TABLES, COHORT, made.promise(epsilon=10.0, **PURE))
    records = {"sex": ["f", "m", "f"], "ill": ["no", "yes", "no"]}
    out = ps.simulate(plan, [ps.measure(TABLES, records)] * 3, rng=seeded(2))
    assert np.abs(out.moments.T - np.array([6, 3, 6, 0, 0, 3])).max() < 5
    refused(ReleaseError, "has Laplace noise", count_table, out, "sex")


def test_the_minimum_count_errs_as_laplace_noise_does():
    deviation = 4.0
    low, high = ps.dp.doubtful_counts(50, deviation, laplace=True)
    assert ps.dp.drop_probability(low, 50, deviation, laplace=True) == pytest.approx(0.99)
    assert ps.dp.drop_probability(high, 50, deviation, laplace=True) == pytest.approx(0.01)
    drawn = ps.dp.discrete_laplace(deviation * 1024 / math.sqrt(2), 200_000, seeded(3)) / 1024
    assert np.mean(55 + drawn < 50) == pytest.approx(ps.dp.drop_probability(55, 50, deviation, laplace=True), abs=3e-3)


def test_what_an_officer_reads_of_a_pure_promise():
    plan = made.plan(ps.ClassSchema(2, 3, "NA", clip_norm=1.0), COHORT, made.promise(**PURE))
    said = str(explanations.promised(plan))
    assert "2.72 times as likely (epsilon 1), without exception (delta 0)." in said
    assert not [line for line in explanations.not_promised(plan) if line.startswith("Certainty")]
    one, two = (row[1:] for row in explanations.worth(plan, plan.noise).rows[:2])
    assert float(one[0]) <= math.ceil(10 * math.e) / 10  # of 100, at 1 false alarm: e^epsilon
    assert float(two[0]) <= math.ceil(10 * math.exp(2)) / 10  # epsilons of two records add up
    assert float(one[1]) <= 73.2  # e / (1 + e)
    assert f"At most {one[0]} of 100 records found" in explanations.headline(plan)
    assert "Laplace noise" in evidence_page(Statement(plan))
    refused(PlanError, "a certificate covers Gaussian noise, and delta = 0 has Laplace noise", certificate_text, plan)


def test_a_plan_comparison_puts_the_ceiling_of_epsilon_beside_that_of_mu():
    schema = ps.ClassSchema(2, 3, "NA", clip_norm=1.0)
    plans = (made.plan(schema, COHORT, made.promise(delta=delta)) for delta in (1e-6, 0.0))
    (found,) = [effect for effect in difference(*plans).effects if "found" in effect.of]
    assert found.after <= math.e * (1 + 1e-12)
    assert found.after == pytest.approx(100 * made.plan(schema, COHORT, made.promise(**PURE)).noise.guarantee.tpr(0.01))


def test_tables_with_intervals_are_neither_offered_nor_given_shares_at_delta_zero():
    plain = made.plan(ps.ClassSchema(2, 3, "NAD", clip_norm=1.0), COHORT, made.promise())
    pure = made.plan(plain.schema, COHORT, made.promise(**PURE))
    assert "table-one" in possible(plain)
    assert set(possible(plain)) - set(possible(pure)) == {"table-one"}
    assert possible(made.plan(TABLES, COHORT, made.promise())) == ("proportions", "table-one")
    assert possible(made.plan(TABLES, COHORT, made.promise(**PURE))) == ()
    for plan, reader in ((pure, "table-one"), (made.plan(TABLES, COHORT, made.promise(**PURE)), "km")):
        refused(PlanError, "proved for Gaussian noise, and delta = 0 has Laplace noise", suggested, plan, reader)
    sentences = unread_statistics(made.plan(TABLES, COHORT, made.promise(**PURE))).sentences()
    assert not any("km" in line for line in sentences)


def test_suggested_shares_of_a_pure_plan_are_parts_of_epsilon():
    plan = made.plan(ps.ClassSchema(2, 3, "NAD", clip_norm=1.0), COHORT, made.promise(**PURE))
    assert suggested(plan) == {row.statistic: row.share for row in plan.noise.rows}
