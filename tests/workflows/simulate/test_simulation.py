"""The whole way of the data: exact under any partition, order and dropout schedule, or a named abort and no sum."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import privstats as ps
from privstats.workflows.simulate import dirichlet_partition, run
from tests import made
from tests.made import refused

STEPS = ("advertise", "share", "mask", "agree", "unmask")
RNG = np.random.default_rng(5)
X, Y = RNG.normal(size=(90, 3)), RNG.integers(0, 4, 90)
TARGETS = RNG.normal(size=(90, 2))


def plan(schema, clients=6, survivors=4, privacy=None, **changes):
    return made.plan(schema, ps.Cohort(clients, survivors, max_records=100), privacy or ps.NoPrivacy(), **changes)


SCHEMAS = st.one_of(
    st.builds(
        lambda statistics, bits: ps.ClassSchema(4, 3, statistics, 1.5, bits),
        st.sampled_from(["NA", "NAB", "NAD", "NAS", "NABD"]),
        st.integers(6, 14),
    ),
    st.builds(
        lambda bits, folds: ps.RidgeSchema(3, 2, clip_norm=1.5, target_bound=2.0, grid_bits=bits, folds=folds),
        st.integers(6, 14),
        st.integers(1, 3),
    ),
)


@pytest.mark.ci
@given(schema=SCHEMAS, owner=st.lists(st.integers(0, 5), min_size=90, max_size=90), data=st.data())
def test_the_unmasked_integers_equal_the_centralised_ones_over_the_survivors(schema, owner, data):
    order = data.draw(st.permutations(range(6)), label="which client holds which part")
    gone = data.draw(st.sets(st.integers(0, 5), max_size=2), label="dropouts")
    when = {client: data.draw(st.sampled_from(STEPS), label=f"step of {client}") for client in sorted(gone)}
    dropouts = {step: {c for c, s in when.items() if s == step} for step in STEPS}
    targets = Y if isinstance(schema, ps.ClassSchema) else TARGETS
    parts = [np.flatnonzero(np.asarray(owner) == order[k]) for k in range(6)]
    moments = [ps.measure(schema, X[rows], targets[rows]) for rows in parts]

    done = run(plan(schema), moments, dropouts)

    survivors = tuple(k for k in range(6) if when.get(k) not in ("advertise", "share", "mask"))
    assert done.release.survivors == survivors
    assert done.exact
    total = sum((ps.encoding.flatten(moments[k]) for k in survivors), np.zeros(plan(schema).layout.size, np.int64))
    np.testing.assert_array_equal(done.release.vector, total)


@given(step=st.sampled_from(STEPS), model=st.sampled_from(["central", "distributed", "local"]))
def test_with_too_few_survivors_there_is_a_named_error_and_no_sum(step, model):
    privacy = made.promise(model)
    subject = plan(ps.ClassSchema(4, 3, "NA", 1.5), privacy=privacy)
    with pytest.raises(ps.AggregationError) as caught:
        ps.simulate(subject, [(X[k::6], Y[k::6]) for k in range(6)], dropouts={step: {0, 2, 5}})
    assert caught.value.step == step
    assert caught.value.code.startswith("too_few")


@pytest.mark.ci
@pytest.mark.parametrize("model", ["central", "distributed", pytest.param("local", marks=pytest.mark.nightly)])
def test_the_noise_in_the_release_is_as_wide_as_it_says(model):
    """Each statistic's residual from the exact sum has the declared standard deviation (chi-square, 5 sigma)."""
    schema = ps.ClassSchema(4, 3, "NABD", 1.5)
    subject = plan(schema, privacy=made.promise(model))
    shards = [ps.measure(schema, X[k::6], Y[k::6]) for k in range(6)]
    gone = {"mask": {4}}
    exact = sum(ps.encoding.flatten(shards[k]) for k in range(6) if k != 4)
    residuals: dict[str, list[float]] = {}
    for seed in range(40):
        release = ps.simulate(subject, shards, gone, ps.randomness.seeded(seed))
        for segment, place in zip(subject.layout.segments, subject.layout.slices, strict=True):
            width = release.sigma[segment.statistic] * segment.scale * segment.noise_factor
            residuals.setdefault(segment.statistic, []).extend((release.vector - exact)[place] / width)
    for statistic, values in residuals.items():
        squares = np.square(values)
        assert abs(squares.mean() - 1) < 5 * np.sqrt(2 / len(squares)), statistic


def test_rare_classes_are_suppressed_by_their_noisy_count():
    schema = ps.ClassSchema(4, 3, "NABS", 1.5)
    labels = np.where(np.arange(90) < 3, 3, Y % 3)
    shards = [(X[k::6], labels[k::6]) for k in range(6)]
    release = ps.simulate(plan(schema, min_count=5), shards)
    assert (release.suppressed, release.moments.N[3]) == ((3,), 0)
    assert not release.moments.A[3].any()
    assert not release.moments.S[3].any()
    assert release.moments.N[:3].sum() == 87


def test_rare_classes_can_be_merged_into_their_parent():
    schema = ps.ClassSchema(4, 3, "NAD", 1.5)
    labels = np.where(np.arange(90) < 3, 3, Y % 3)
    shards = [(X[k::6], labels[k::6]) for k in range(6)]
    merged = ps.simulate(plan(schema, min_count=5, merge={3: 1}), shards)
    direct = ps.simulate(plan(schema), [(x, np.where(y == 3, 1, y)) for x, y in shards])
    assert merged.suppressed == (3,)
    np.testing.assert_array_equal(merged.moments.A, direct.moments.A)
    np.testing.assert_array_equal(merged.moments.N, direct.moments.N)


def test_ridge_moments_of_unknown_size_are_refused():
    from privstats.encoding import unflatten

    schema = ps.RidgeSchema(3, 2, clip_norm=1.5, target_bound=2.0)
    anonymous = unflatten(schema, ps.encoding.flatten(ps.measure(schema, X[:9], TARGETS[:9])))
    refused(ps.DataError, "have no number of records", ps.session.contribution, plan(schema), anonymous)


def test_a_cohort_that_hides_its_size_is_refused_by_the_noisy_counts():
    """Each client alone is within the plan; only the total is not, and the server sees it in the counts."""
    subject = plan(ps.ClassSchema(4, 3, "NA", 1.5))
    each = ps.measure(subject.schema, X[:20], Y[:20])
    refused(ps.AggregationError, "max_records=100", ps.session.aggregate_unmasked, subject, [each] * 6)


@pytest.mark.parametrize("epsilon", [None, 0.3, 3.0])
def test_honest_clients_that_together_hold_too_much_never_give_a_wrong_sum(epsilon):
    """Refused, or right up to the noise: each client alone is within the plan, and simulate's own check is left out."""
    privacy = None
    if epsilon:
        privacy = made.promise(epsilon=epsilon)
    schema = ps.ClassSchema(4, 3, "NAB", 1.0)
    for clients, each in ((10, 30), (10, 90), (40, 90)):
        subject = plan(schema, clients, clients - 1, privacy)
        one = ps.measure(schema, np.tile([1.0, 0.0, 0.0], (each, 1)), np.zeros(each, int))
        try:
            release = ps.session.aggregate_unmasked(subject, [one] * clients)
        except ps.AggregationError:
            continue
        assert abs(release.moments.B[0, 0] - clients * each) < 0.01 * clients * each + 8 * release.sigma["B"]


def test_ridge_clients_at_their_limit_fit_together():
    schema = ps.RidgeSchema(3, clip_norm=1.0, target_bound=1.0)
    subject = plan(schema, 6, 5)
    one = ps.measure(schema, np.tile([1.0, 0.0, 0.0], (100, 1)), np.ones(100))
    assert ps.session.aggregate_unmasked(subject, [one] * 6).moments.q == pytest.approx(600)


def test_a_client_with_more_records_than_it_may_hold_is_refused():
    privacy = ps.Privacy(
        model="central", unit="client", adjacency="add-remove", epsilon=5.0, delta=1e-5, max_records_per_client=10
    )
    subject = plan(ps.ClassSchema(4, 3, "NA", 1.5), privacy=privacy)
    with pytest.raises(ps.DataError, match="max_records_per_client=10"):
        ps.session.contribution(subject, ps.measure(subject.schema, X[:11], Y[:11]))


def test_moments_of_another_schema_are_refused():
    subject = plan(ps.ClassSchema(4, 3, "NA", 1.5))
    other = ps.measure(ps.ClassSchema(4, 3, "NA", 2.5), X[:11], Y[:11])
    refused(ps.DataError, "another schema", ps.session.contribution, subject, other)


@given(clients=st.integers(1, 12), alpha=st.sampled_from([0.01, 0.05, 1.0, 100.0]), seed=st.integers(0, 2**32))
def test_a_partition_gives_every_row_to_one_client(clients, alpha, seed):
    parts = dirichlet_partition(Y, clients, alpha, ps.randomness.seeded(seed))
    assert len(parts) == clients
    np.testing.assert_array_equal(np.sort(np.concatenate(parts)), np.arange(len(Y)))


def test_a_partition_follows_its_seed_and_its_skew():
    first, again, other = (dirichlet_partition(Y, 5, 0.05, ps.randomness.seeded(s)) for s in (1, 1, 2))
    assert all(np.array_equal(a, b) for a, b in zip(first, again, strict=True))
    assert any(not np.array_equal(a, b) for a, b in zip(first, other, strict=True))
    even = dirichlet_partition(np.zeros(10_000), 5, 1e4, ps.randomness.seeded(1))
    skewed = dirichlet_partition(np.zeros(10_000), 5, 0.05, ps.randomness.seeded(1))
    assert max(map(len, even)) < 2_300 < 5_000 < max(map(len, skewed))
