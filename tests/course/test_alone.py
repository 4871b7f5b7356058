"""One party alone: its release is what a session's would be, is paid for, and says nothing beyond its sums."""

import math
import warnings
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np
import pytest

import privstats as ps
from privstats.course import alone as module
from privstats.course.alone import private_release, private_releases, single_party_plan
from privstats.course.records_engines import ENGINES
from tests.made import refused

SCHEMA = ps.ClassSchema(3, 4, "NAB", 4.0)
PRIVACY = ps.Privacy(model="central", unit="record", adjacency="add-remove", epsilon=2.0, delta=1e-5)
X = np.random.default_rng(0).normal(size=(90, 4))
Y = np.arange(90) % 3


def released(X=X, y=Y, **changes):
    right = {"ledger": "uncharged", "rng": ps.randomness.seeded(1), "allow_reproducible": True}
    return private_release(SCHEMA, PRIVACY, X, y, **right | changes)


def ledger_with(path, *datasets, epsilon=3.0):
    ledger = ps.dp.Ledger.create(path)
    for dataset in datasets:
        ledger.set_cap(dataset, unit="record", adjacency="add-remove", epsilon=epsilon, delta=1e-5)
    return ledger


def test_the_promise_is_the_one_that_was_asked_for():
    budget = released().budget
    assert (budget.epsilon, budget.delta) == (2.0, 1e-5)
    assert budget.promise.startswith("central noise, one record, add-remove")


def test_a_delta_that_lets_records_out_is_told_to_their_holder():
    loose = replace(PRIVACY, delta=0.05)
    with pytest.warns(
        UserWarning, match="delta 0.05 lets 5 of 90 records be exposed outright; choose less than 1 / 90"
    ):
        private_release(SCHEMA, loose, X, Y, ledger="uncharged")
    with warnings.catch_warnings(action="error", category=UserWarning):
        private_release(SCHEMA, replace(PRIVACY, delta=1 / 91), X, Y, ledger="uncharged")


@pytest.mark.slow
def test_what_is_released_is_the_exact_sums_under_the_noise_of_the_plan():
    exact = ps.measure(SCHEMA, X, Y).real()
    draws = [released(rng=ps.randomness.seeded(seed)) for seed in range(120)]
    for name, entries in (("N", 3), ("A", 12)):
        errors = np.stack([getattr(draw.moments, name) - getattr(exact, name) for draw in draws])
        sigma = draws[0].sigma[name]
        assert abs(errors.mean()) < 5 * sigma / math.sqrt(120 * entries)
        assert 0.85 < errors.std() / sigma < 1.15


def test_records_come_as_they_come_to_measure(tmp_path):
    np.save(tmp_path / "X.npy", X)
    np.save(tmp_path / "y.npy", Y)
    batches = ((X[start : start + 7], Y[start : start + 7]) for start in range(0, 90, 7))
    assert released() == released(tmp_path / "X.npy", tmp_path / "y.npy") == released(batches, None)


@pytest.mark.parametrize("bits", [8, 12, 16, 20])
@pytest.mark.parametrize("epsilon", [0.2, 2.0])
def test_the_public_bound_leaves_room_for_noise_on_every_grid(bits, epsilon):
    ridge = ps.RidgeSchema(4, clip_norm=4.0, target_bound=2.0, grid_bits=bits, folds=2)
    for schema in (ridge, replace(SCHEMA, grid_bits=bits)):
        assert single_party_plan(schema, replace(PRIVACY, epsilon=epsilon)).cohort.max_records >= 1 << 19


def test_ridge_sums_are_released_too():
    schema = ps.RidgeSchema(4, clip_norm=4.0, target_bound=2.0)
    assert private_release(schema, PRIVACY, X, X[:, 0], ledger="uncharged").moments.G.shape == (4, 4)


def test_rare_classes_are_dropped_by_their_noisy_count():
    assert released(min_count=1000).suppressed == (0, 1, 2)


def plan_with_the_count(schema, privacy, X):
    """A weaker library: the plan, which everybody reads, is sized by the records."""
    return single_party_plan(schema, privacy, max_records=len(X))


def test_attack_the_number_of_records_cannot_be_read_off_the_plan():
    assert plan_with_the_count(SCHEMA, PRIVACY, X).digest != plan_with_the_count(SCHEMA, PRIVACY, X[1:]).digest
    assert released().plan.digest == released(X[1:], Y[1:]).plan.digest


def test_more_records_than_the_public_bound_are_refused_before_anything_is_spent(tmp_path):
    ledger = ledger_with(tmp_path / "spent.db", "ward")
    refused(ps.DataError, "max_records=80", released, ledger=ledger, max_records=80)
    assert not ledger.account("ward").entries


def test_the_ledger_is_charged_once_per_run_and_refuses_beyond_its_cap(tmp_path):
    ledger = ledger_with(tmp_path / "spent.db", "ward")
    released(ledger=ps.session.Charge(ledger, "ward"), run=b"may")
    refused(ps.LedgerError, "run", released, ledger=ps.session.Charge(ledger, "ward"), run=b"may")
    assert len(ledger.account("ward").entries) == 1
    released(ledger=ledger, dataset="ward")
    with pytest.raises(ps.LedgerError, match="cap"):
        released(ledger=ledger)  # its only account
    assert len(ledger.account("ward").entries) == 2


def test_a_ledger_of_several_accounts_is_asked_which(tmp_path):
    with pytest.raises(ps.LedgerError, match="has 2 accounts; say which"):
        released(ledger=ledger_with(tmp_path / "spent.db", "ward", "lab"))
    refused(ps.LedgerError, "has 0 accounts", released, ledger=ledger_with(tmp_path / "empty.db"))


def test_known_noise_is_refused_unless_a_test_allows_it():
    refused(ps.RandomnessError, "", released, allow_reproducible=False)
    assert released().reproducible
    assert not released(rng=None).reproducible


@dataclass(frozen=True)
class Two:
    """A course of two plans."""

    first: ps.Plan
    second: ps.Plan
    most: int = 2
    digest: str = "c0" * 32

    @property
    def priced(self):
        return (self.first, self.second)

    @property
    def mu(self):
        return math.hypot(self.first.noise.mu, self.second.noise.mu)

    def next(self, releases):
        return self.second if len(releases) == 1 else None

    def epsilon(self, delta):
        return ps.dp.gaussian_epsilon(self.mu, delta)


COURSE = Two(single_party_plan(SCHEMA, PRIVACY), single_party_plan(replace(SCHEMA, statistics="NA"), PRIVACY))


def test_a_course_is_one_spend_and_every_node_a_release(tmp_path):
    ledger = ledger_with(tmp_path / "spent.db", "ward", epsilon=5.0)
    ticks = []
    first, second = private_releases(COURSE, X, Y, ledger=ledger, run=b"may", tick=lambda: ticks.append(1))
    assert ((first.plan, second.plan), len(ticks)) == (COURSE.priced, 2)
    (entry,) = ledger.account("ward").entries
    assert entry.mu == pytest.approx(COURSE.mu)
    refused(ps.LedgerError, "begun", private_releases, COURSE, X, Y, ledger=ledger, run=b"may")


def test_a_course_that_would_pass_the_cap_is_refused_before_its_first_node(tmp_path):
    ledger = ledger_with(tmp_path / "spent.db", "ward", epsilon=2.5)
    refused(ps.LedgerError, "cap", private_releases, COURSE, X, Y, ledger=ledger)
    assert not ledger.account("ward").entries


def test_a_node_that_aborts_is_none_and_the_course_goes_on(monkeypatch):
    calls = []

    def release(plan, *rest, **how):
        calls.append(plan)
        if len(calls) == 1:
            raise ps.AggregationError("unmask", "implausible", "made up")
        return genuine(plan, *rest, **how)

    genuine = module.session.release
    monkeypatch.setattr(module.session, "release", release)
    first, second = private_releases(
        COURSE, X, Y, ledger="uncharged", rng=ps.randomness.seeded(0), allow_reproducible=True
    )
    assert first is None
    assert second.plan == COURSE.second


@pytest.mark.parametrize("mechanism", ["increments", "tree", "square-root"])
def test_a_stream_is_not_released_over_the_same_records(mechanism, tmp_path):
    """Every epoch would hold all of them, at the price of one: eight times the mu that was charged over 64 epochs."""
    ledger = ledger_with(tmp_path / "spent.db", "ward")
    stream = ps.Stream(single_party_plan(SCHEMA, PRIVACY, max_records=1000), 4, mechanism)
    with pytest.raises(ps.PlanError, match="every round of this course takes separate records"):
        private_releases(stream, X, Y, ledger=ledger, dataset="ward")
    assert not ledger.account("ward").entries


def test_every_node_of_one_party_has_noise_of_its_own():
    """The correlation of two nodes' residuals, at 99.9 %, with the machine's own randomness as in a test's."""
    schema = ps.ClassSchema(3, 12, "NAB", 1.0, transform=(ps.transforms.UnitNorm(),))
    rows = np.random.default_rng(2).normal(size=(90, 12))
    course = Again(single_party_plan(schema, PRIVACY), 3)
    exact = ps.encoding.flatten(ps.measure(schema, rows, Y))
    for how in ({}, {"rng": ps.randomness.seeded(3), "allow_reproducible": True}):
        released = private_releases(course, rows, Y, ledger="uncharged", **how)
        residuals = [each.vector - exact for each in released]
        levels = [np.full(each.size, course.plan.noise.grid_sigma(each)) for each in course.plan.layout.segments]
        z = np.stack(residuals) / np.concatenate(levels)
        for one, two in combinations(z, 2):
            assert abs(one @ two) / math.sqrt((one @ one) * (two @ two)) < 3.8 / math.sqrt(z.shape[1])


@dataclass(frozen=True)
class Again:
    """One plan several times over, each at its full price."""

    plan: ps.Plan
    most: int

    @property
    def first(self):
        return self.plan

    @property
    def mu(self):
        return self.plan.noise.mu * math.sqrt(self.most)

    @property
    def priced(self):
        return (self.plan,) * self.most

    @property
    def digest(self):
        return "c0" * 32

    def next(self, releases):
        return self.plan if len(releases) < self.most else None

    def epsilon(self, delta):
        return ps.dp.gaussian_epsilon(self.mu, delta)


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("container", ["file", "folder", *(["Dask frame"] if "parts" in ENGINES else [])])
def test_records_in_parts_are_released_like_records_in_this_process(container, tmp_path):
    pandas, frames = pytest.importorskip("pandas"), pytest.importorskip("dask.dataframe")
    schema = replace(SCHEMA, feature_names=("a", "b", "c", "d"))
    table = pandas.DataFrame(X, columns=list("abcd")).assign(ill=Y)
    table.to_parquet(tmp_path / "all.parquet", index=False)
    (tmp_path / "parts").mkdir()
    for part in range(3):
        table[part::3].to_parquet(tmp_path / "parts" / f"{part}.parquet", index=False)
    given = {
        "file": tmp_path / "all.parquet",
        "folder": str(tmp_path / "parts"),
        "Dask frame": frames.from_pandas(table, npartitions=3),
    }[container]

    def release(records):
        rng = ps.randomness.seeded(1)
        return private_release(
            schema, PRIVACY, records, "ill", ledger="uncharged", rng=rng, allow_reproducible=True
        ).vector

    np.testing.assert_array_equal(release(given), release(table))
    plan = single_party_plan(replace(schema, transform=(ps.transforms.UnitNorm(),), clip_norm=1.0), PRIVACY)
    course = ps.Rounds.within(plan, rounds=1, expected_records=90)
    assert len(private_releases(course, given, "ill", ledger="uncharged")) == 2


@pytest.mark.parametrize("unit", ["record", "person"])
def test_moments_are_released_like_their_records(unit):
    ids, privacy = np.arange(90) // 2, PRIVACY
    if unit == "person":
        privacy = replace(PRIVACY, unit="person", max_records_per_person=2, person_clip=2.0)
    plan = single_party_plan(SCHEMA, privacy)
    given = {} if unit == "record" else {"persons": ids}
    moments = ps.measure(SCHEMA, X, Y, **given, person_clip=plan.person_clip)

    def release(*records, **more):
        rng = ps.randomness.seeded(1)
        return private_release(SCHEMA, privacy, *records, **more, ledger="uncharged", rng=rng, allow_reproducible=True)

    np.testing.assert_array_equal(release(moments).vector, release(X, Y, **given).vector)
    with pytest.raises(ps.errors.DataError, match="omit y and persons"):
        release(moments, Y)
    with pytest.raises(ps.errors.DataError, match="omit y and persons"):
        release(moments, persons=ids)
    others = ps.measure(ps.ClassSchema(3, 4, "NA", 4.0), X, Y)
    with pytest.raises(ps.errors.PrivstatsError, match="schema|plan"):
        release(others)
    if unit == "person":
        with pytest.raises(ps.errors.PrivstatsError, match="person"):
            release(ps.measure(SCHEMA, X, Y))


def test_a_course_measures_its_records_anew():
    plan = single_party_plan(ps.ClassSchema(3, 4, "NAB", 1.0, transform=(ps.transforms.UnitNorm(),)), PRIVACY)
    course = ps.Rounds.within(plan, rounds=1, expected_records=90)
    with pytest.raises(ps.errors.DataError, match="pass the records, not moments"):
        private_releases(course, ps.measure(plan.schema, X, Y), ledger="uncharged")
