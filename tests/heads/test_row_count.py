"""One party's ridge refines without a stated number of records: a noisy count comes first, under the same charge."""

from __future__ import annotations

import math
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import privstats as ps
from privstats.course import alone
from privstats.dp import gaussian_mu
from privstats.errors import LedgerError, RecordError
from privstats.heads import row_count
from privstats.heads.private import FitPromise, OwnRecords
from privstats.heads.provenance import behind_counts, is_row_count
from tests.lengths import sized

N, D = 900, 3
TERMS: dict[str, Any] = {"clip_norm": 1.0, "target_bound": 1.0, "adjacency": "add-remove", "ledger": "uncharged"}
SCHEMA = ps.RidgeSchema(D, clip_norm=1.0, target_bound=1.0)


def records(n: int = N) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.uniform(-0.5, 0.5, (n, D))
    return X, X @ [0.8, -0.4, 0.2]


def promise(epsilon: float = 1.0, delta: float = 1e-6, **changes: Any) -> FitPromise:
    terms = {"clip_norm": 1.0, "columns": None, "transform": (), "grid_bits": 12, "max_records": None}
    rest = {"expected_records": None, "ledger": "uncharged", "dataset": None}
    return FitPromise(epsilon, delta, "add-remove", **{**terms, **rest, **changes})


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 8.0])
def test_count_and_rounds_cost_what_was_promised(epsilon: float) -> None:
    X, y = records()
    head = ps.heads.Ridge().fit_private(X, y, epsilon=epsilon, delta=1e-6, **TERMS)
    count, *rounds = head.releases_
    assert head.solver_ == "rounds"
    assert is_row_count(count)
    total = math.sqrt(sum(each.budget.mu**2 for each in head.releases_ if each is not None))
    most = gaussian_mu(epsilon, 1e-6)
    assert 0.9999 * most <= total <= most * (1 + 1e-9)
    assert count.budget.mu == pytest.approx(most / 8, rel=1e-6)
    assert head.provenance_.epsilon <= epsilon * (1 + 1e-7)
    assert head.provenance_.assumed_public == ()
    assert len(head.provenance_.releases) == len(head.releases_) == 1 + len(rounds) > 24


def test_the_number_in_the_plans_is_the_noisy_one_alone() -> None:
    """Two data sets of one noisy count lead to equal plans, whatever their exact numbers are."""
    X, y = records()
    head = ps.heads.Ridge().fit_private(X, y, epsilon=1.0, delta=1e-6, **TERMS)
    count, first, *rounds = head.releases_
    stated = {each.plan.schema.expected_records for each in rounds if each is not None}
    assert stated == {row_count.rows_of(count)}
    fewer = ps.heads.Ridge().fit_private(
        X[:500],
        y[:500],
        epsilon=first_epsilon(1.0),
        delta=1e-6,
        **TERMS | {"expected_records": row_count.rows_of(count)},
    )
    assert [each.plan.layout for each in fewer.releases_] == [each.plan.layout for each in (first, *rounds)]
    assert fewer.releases_[0].plan == first.plan
    assert fewer.releases_[1].plan.schema == rounds[0].plan.schema


def first_epsilon(epsilon: float) -> float:
    """The epsilon of what is behind the count."""
    found = row_count.counted_first(promise(epsilon), SCHEMA, OwnRecords.of(*records()))
    assert found is not None
    return found[0].epsilon


def test_counts_have_the_noise_that_their_part_of_the_promise_asks_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """An audit: over many counts of two neighbouring tables no threshold tells them apart better than mu / 8 allows.

    Plans follow from public terms, so each is built once for all counts.
    """
    for module, name in ((row_count, "single_party_plan"), (row_count, "part_of"), (alone, "single_party_plan")):
        monkeypatch.setattr(module, name, cache(getattr(module, name)))
    mu, draws = gaussian_mu(4.0, 1e-6) / 8, sized(150, 1_500)
    found = []
    for n in (20, 21):
        own = OwnRecords.of(*records(n))
        counts = [row_count.counted_first(promise(4.0), SCHEMA, own) for _ in range(draws)]
        found.append(np.array([float(each[1].moments.T[1]) for each in counts if each is not None]))
    small, large = found
    error = 4 / math.sqrt(draws)
    assert abs(small.mean() - 20) < error / mu
    assert abs(small.std() * mu - 1) < error / math.sqrt(2)  # a standard deviation of n samples is off by 1 / sqrt(2 n)
    for cut in np.linspace(15, 26, 12):
        told = float((large > cut).mean() - (small > cut).mean())
        assert told <= 2 * 0.3989423 * mu / 2 * (1 + 1e-9) + error  # the total variation of two normals mu apart


def test_a_table_that_noise_hides_has_a_count_of_one_deviation() -> None:
    found = row_count.counted_first(promise(0.1), SCHEMA, OwnRecords.of(*records(1)))
    assert found is not None
    rest, count = found
    assert rest.expected_records is not None
    assert rest.expected_records >= count.sigma["T"] > 100


def test_the_ledger_has_one_entry_of_the_whole_promise_before_any_noise(tmp_path: Path) -> None:
    X, y = records()
    ledger = ps.dp.Ledger.create(tmp_path / "ledger.db")
    ledger.set_cap("loans", unit="record", adjacency="add-remove", epsilon=1.0, delta=1e-6)
    given = {**TERMS, "ledger": ledger, "epsilon": 1.0, "delta": 1e-6}
    with pytest.raises(RecordError):
        ps.heads.Ridge().fit_private(np.where(np.arange(N)[:, None] == 7, np.nan, X), y, **given)
    assert not ledger.account("loans").entries  # a refusal costs nothing
    ps.heads.Ridge().fit_private(X, y, **given)
    (entry,) = ledger.account("loans").entries
    assert ledger.account("loans").mu == pytest.approx(gaussian_mu(1.0, 1e-6), rel=1e-9)
    assert entry.plan
    with pytest.raises(LedgerError):
        ps.heads.Ridge().fit_private(X, y, **given)
    assert len(ledger.account("loans").entries) == 1


def test_its_releases_are_read_again_with_their_count() -> None:
    X, y = records()
    head = ps.heads.Ridge().fit_private(X, y, epsilon=1.0, delta=1e-6, **TERMS)
    again = ps.heads.RefinedRidge().fit_releases(head.releases_)
    np.testing.assert_array_equal(again.coef_, head.coef_)
    assert again.provenance_.epsilon == head.provenance_.epsilon
    before, behind = behind_counts(head.releases_)
    assert before == [head.releases_[0]]
    assert behind == head.releases_[1:]


@pytest.mark.parametrize(
    ("changes", "solver"),
    [
        ({"epsilon": 0.01}, "aggregate"),  # no plan can promise a part of it
        ({"adjacency": "replace-one"}, "rounds"),  # the number of records is public
        ({"adjacency": "replace-one", "max_records": N}, "aggregate"),
        ({"max_records": 4 * N}, "rounds"),
    ],
)
def test_public_terms_decide_whether_a_count_is_released(changes: dict[str, Any], solver: str) -> None:
    X, y = records()
    given = {**TERMS, "epsilon": 1.0, "delta": 1e-6, **changes}
    head = ps.heads.Ridge().fit_private(X, y, **given)
    assert head.solver_ == solver
    counted = solver == "rounds" and given["adjacency"] == "add-remove"
    assert counted == is_row_count(getattr(head, "releases_", [None])[0])


def test_named_solvers_and_two_targets_have_one_release() -> None:
    X, y = records()
    given = {**TERMS, "epsilon": 1.0, "delta": 1e-6}
    for head, targets in ((ps.heads.Ridge(solver="aggregate"), y), (ps.heads.Ridge(), np.c_[y, y])):
        assert head.fit_private(X, targets, **given).solver_ == "aggregate"
        assert not hasattr(head, "releases_")


def test_it_is_ahead_of_one_release_at_the_same_charge() -> None:
    X, y = records(4_000)
    given = {**TERMS, "epsilon": 0.1, "delta": 1e-6}
    counted = ps.heads.Ridge().fit_private(X, y, **given).score(X, y)
    assert counted > ps.heads.Ridge(solver="aggregate").fit_private(X, y, **given).score(X, y)
    assert counted > 0.8
