"""Who resamples says how many rows one record may be in: noise, promise and charge are then the record's."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.ensemble import BaggingClassifier

import privstats as ps
from privstats.dp import gaussian_epsilon, gaussian_mu
from privstats.dp.sensitivities import group_mu
from privstats.heads.provenance import Provenance
from tests import made
from tests.made import refused

RNG = np.random.default_rng(0)
Y = np.arange(300) % 2
X = RNG.normal(size=(300, 3)) + np.c_[4.0 * Y, Y, Y]
TERMS = {"delta": 1e-5, "adjacency": "add-remove", "clip_norm": 4.0, "ledger": "uncharged"}


def private(head: Any = None, **changes: Any) -> Any:
    return ps.heads.Private(head or ps.heads.LDA(), **{**TERMS, "epsilon": 8.0, "classes": (0, 1)} | changes)


def account(folder: Path, adjacency: Any = "add-remove") -> ps.dp.Ledger:
    return made.ledger(folder / "spent.db", epsilon=100.0, adjacency=adjacency)


@pytest.mark.parametrize("adjacency", ["add-remove", "replace-one"])
@given(times=st.integers(1, 40), epsilon=st.floats(0.5, 20.0))
def test_a_record_in_all_of_its_rows_has_the_promise(adjacency: Any, times: int, epsilon: float) -> None:
    """k rows are k steps of one row: their mu, from the released noise alone, is at most that of the promise."""
    head = private(epsilon=epsilon, adjacency=adjacency, multiplicity=times).fit(X[:40], Y[:40]).head_
    spent = group_mu(head.release_.plan.schema, head.release_.sigma, adjacency, times)
    assert 0.999 * gaussian_mu(epsilon, 1e-5) < spent <= gaussian_mu(epsilon, 1e-5) * (1 + 1e-9)
    assert gaussian_epsilon(spent, 1e-5) <= head.provenance_.epsilon * (1 + 1e-9)
    assert head.provenance_.epsilon <= epsilon * (1 + 1e-7)


@given(times=st.integers(1, 9))
def test_a_repeated_record_moves_the_integers_by_so_many_of_its_own(times: int) -> None:
    schema = ps.ClassSchema(2, 3, "NAB", 4.0)
    without = ps.encoding.flatten(ps.measure(schema, X[1:], Y[1:]))
    one = ps.encoding.flatten(ps.measure(schema, X[:1], Y[:1]))
    repeated = ps.encoding.flatten(
        ps.measure(schema, np.repeat(X, np.r_[times, [1] * 299], axis=0), np.repeat(Y, [times] + [1] * 299))
    )
    np.testing.assert_array_equal(repeated - without, times * one)


@given(st.lists(st.lists(st.integers(0, 4), min_size=6, max_size=6), min_size=1, max_size=12))
def test_attack_the_record_that_was_drawn_most_costs_no_more_than_the_ledger_says(bags: list[list[int]]) -> None:
    """Rows of six records in every bag, at most 4 of one: mu of the worst record against that of the account."""
    row, charged = gaussian_mu(1.0, 1e-5) / 4, math.sqrt(len(bags)) * gaussian_mu(1.0, 1e-5)
    worst = math.sqrt(max(sum(bag[record] ** 2 for bag in bags) for record in range(6))) * row
    assert worst <= charged * (1 + 1e-9)


def test_attack_bagging_breaks_the_ledgers_total_and_a_multiplicity_keeps_it(tmp_path: Path) -> None:
    def bagged(place: Path, **changes: Any) -> tuple[float, float, int]:
        place.mkdir()
        ledger = account(place, "replace-one")
        one = private(epsilon=0.4, adjacency="replace-one", ledger=ledger, **changes)
        forest = BaggingClassifier(one, n_estimators=10, random_state=0).fit(X, Y)
        drawn = np.stack([np.bincount(rows, minlength=300) for rows in forest.estimators_samples_])
        mu = forest.estimators_[0].head_.release_.plan.noise.mu
        return ledger.account("ward").mu, math.sqrt((drawn**2).sum(axis=0).max()) * mu, int(drawn.max())

    said, worst, most = bagged(tmp_path / "rows")
    assert worst > 2 * said
    said, worst, _ = bagged(tmp_path / "records", multiplicity=most)
    assert worst <= said


@pytest.mark.parametrize(
    ("head", "terms"),
    [
        (ps.heads.LDA(), {}),
        (ps.heads.Ridge(), {"classes": None, "target_bound": 3.0}),
        (ps.heads.RefinedSoftmax(rounds=1), {"clip_norm": 1.0, "expected_records": 300}),
        (ps.heads.RefinedRidge(rounds=1), {"classes": None, "target_bound": 3.0, "expected_records": 300}),
        (ps.heads.LDA(), {"centred": True, "clip_norm": 1.0, "expected_records": 300}),
    ],
    ids=["classes", "ridge", "rounds", "ridge rounds", "centred"],
)
def test_every_fit_is_charged_for_the_record(head: Any, terms: dict[str, Any], tmp_path: Path) -> None:
    ledger = account(tmp_path)
    estimator = private(head, ledger=ledger, dataset="ward", multiplicity=3, **terms)
    estimator.fit(X, Y)
    once = gaussian_mu(8.0, 1e-5)
    assert ledger.account("ward").mu == pytest.approx(once, rel=1e-6)
    clone(estimator).set_params(ledger=ps.session.Charge(ledger, "ward"), dataset=None).fit(X, Y)
    assert ledger.account("ward").mu == pytest.approx(math.sqrt(2) * once, rel=1e-6)
    found = estimator.head_.provenance_
    assert (found.multiplicity, found.epsilon) == (3, pytest.approx(8.0, rel=1e-6))
    assert "one record in at most 3 rows, add-remove" in str(found)
    estimator.save(tmp_path / "head")
    assert ps.heads.load(tmp_path / "head").provenance_ == found


def test_one_row_a_record_is_as_it_was(tmp_path: Path) -> None:
    ledger = account(tmp_path)
    plain, one = (private(ledger=ledger, **given).fit(X, Y).head_ for given in ({}, {"multiplicity": 1}))
    assert plain.release_.plan == one.release_.plan
    stated = (
        "epsilon 8 at delta 1e-05: central noise, one record, add-remove, while the server adds its noise and keeps"
    )
    assert str(plain.provenance_).startswith(stated)


def test_a_pure_promise_is_divided_by_the_rows() -> None:
    head = private(ps.heads.NaiveBayes(), delta=0.0, multiplicity=4).fit(X, Y).head_
    assert head.release_.budget.epsilon == pytest.approx(2.0, rel=1e-6)
    assert head.provenance_.epsilon == pytest.approx(8.0, rel=1e-6)


def test_a_release_is_charged_alike_without_a_head(tmp_path: Path) -> None:
    ledger, schema = account(tmp_path), ps.ClassSchema(2, 3, "NAB", 4.0)
    promise = ps.Privacy(model="central", unit="record", adjacency="add-remove", epsilon=1.0, delta=1e-5)
    ps.private_release(schema, promise, X, Y, ledger=ps.session.Charge(ledger, "ward", multiplicity=5))
    assert ledger.account("ward").mu == pytest.approx(5 * gaussian_mu(1.0, 1e-5), rel=1e-6)
    stream = ps.Stream(ps.Plan(schema=schema, cohort=ps.Cohort(2, 2, 999), privacy=promise), epochs=2)
    with pytest.raises(ps.LedgerError, match="a stream takes every record once"):
        ps.course.spend(stream, ledger, "ward", b"run", multiplicity=2)


def test_what_is_no_number_of_rows_or_leaves_nothing_of_the_promise_is_refused() -> None:
    for times in (0, -1, 2.0, "3"):
        refused(ps.LedgerError, "multiplicity must be an integer from 1", private(multiplicity=times).fit, X, Y)
    with pytest.raises(ps.errors.HeadError, match=r"leaves one row epsilon .*, and a plan takes 0\.001 or more"):
        private(multiplicity=10**6).fit(X, Y)
    refused(ValueError, "multiplicity", Provenance, exact=True, multiplicity=2)
