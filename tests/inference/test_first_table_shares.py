"""Table one: columns of 0 and 1 as n (%), intervals of differences of cells, and which columns are shown."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import scipy.stats

import privstats as ps
from privstats import inference as inf
from privstats import session
from privstats.errors import ReleaseError
from privstats.inference.counts.table import z_of
from privstats.inference.groups.category_difference import category_difference
from privstats.randomness import seeded
from privstats.transforms import Centre, Scale
from tests import made
from tests.inference.test_counts import exact, noisy, people

Z = z_of(0.05)
PLAIN: tuple[Any, ...] = ()
CENTRED = (Centre((0.5, 0.0)), Scale((0.5, 1.0)))


def schema(transform: tuple[Any, ...]) -> ps.ClassSchema:
    names: dict[str, Any] = {"class_names": ("old", "new"), "feature_names": ("smokes", "age")}
    return ps.ClassSchema(2, 2, "NAD", 2.0, transform=transform, **names)


def smokers(seed: int, records: int = 2_000) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, records)
    return np.column_stack([rng.random(records) < 0.3 + 0.2 * y, rng.uniform(-1, 1, records)]).astype(float), y


def released(X: Any, y: Any, transform: tuple[Any, ...] = PLAIN, epsilon: float | None = None, seed: int = 0) -> Any:
    whole = schema(transform)
    parts = [ps.measure(whole, X[k::2], np.array(["old", "new"])[y[k::2]]) for k in range(2)]
    if epsilon is None:
        return ps.Release.exact(whole, parts[0] + parts[1])
    plan = made.plan(whole, ps.Cohort(2, 2, 10_000), made.promise("central", epsilon=epsilon, delta=1e-6))
    return session.aggregate_unmasked(plan, parts, seeded(seed))


@pytest.mark.parametrize("transform", [PLAIN, CENTRED])
def test_without_noise_a_column_of_0_and_1_is_that_of_scipy(transform: tuple[Any, ...]) -> None:
    X, y = smokers(0, 400)
    found = inf.table_one(released(X, y, transform), binary=["smokes"])
    for group in (0, 1):
        ones, records = int(X[y == group, 0].sum()), int((y == group).sum())
        wilson = scipy.stats.binomtest(ones, records).proportion_ci(method="wilson")
        assert (found.low[group, 0], found.high[group, 0]) == pytest.approx((wilson.low, wilson.high), rel=1e-9)
        assert found.means[group, 0] == pytest.approx(ones / records)
    p, q = (X[y == group, 0].mean() for group in (0, 1))
    assert found.differences is not None
    assert found.differences[0, 0] == pytest.approx((p - q) / math.sqrt((p * (1 - p) + q * (1 - q)) / 2))
    assert found.differences[0, 1] == found.differences[0, 2] == found.differences[0, 0]
    crossed = [[(X[y == group, 0] == value).sum() for value in (0, 1)] for group in (0, 1)]
    assert found.pvalues is not None
    assert found.pvalues[0] == pytest.approx(scipy.stats.chi2_contingency(crossed, correction=False).pvalue)


def test_a_column_of_0_and_1_is_printed_as_number_and_per_cent() -> None:
    X, y = smokers(1, 300)
    found = inf.table_one(released(X, y), binary=["smokes"], columns=["age", "smokes"])
    first, _, third, fourth = found.summary().rows
    assert [first[0], third[0], fourth[0]] == ["age", "smokes", ""]
    assert found.summary().columns[2] == "mean or n (%)"
    ones, records = int(X[y == 0, 0].sum()), int((y == 0).sum())
    assert third[2] == f"{ones} ({100 * ones / records:.1f})"
    assert third[5] == ""
    rows = [row for row in found.to_rows() if row["variable"] == "smokes"]
    assert [row["level"] for row in rows] == ["1", "1"]
    assert rows[0]["n"] == pytest.approx(ones)
    assert math.isnan(float(str(rows[0]["mean"])))
    assert "chi-squared test" in found.summary().methods
    assert "number of ones" in " ".join(found.summary().foot)


@pytest.mark.parametrize("transform", [PLAIN, CENTRED])
def test_shares_tests_and_differences_of_0_and_1_hold_under_noise(transform: tuple[Any, ...]) -> None:
    X, y = smokers(2)
    truth = inf.table_one(released(X, y, transform), binary=["smokes"])
    assert truth.differences is not None
    share, apart, rejected = [], [], []
    for run in range(120):
        X, y = smokers(run + 10)
        found = inf.table_one(released(X, y, transform, 1.0, run), binary=["smokes"])
        share.append((found.low[:, 0] > [0.3, 0.5]) | (found.high[:, 0] < [0.3, 0.5]))
        own = inf.table_one(released(X, y, transform), binary=["smokes"]).differences
        assert found.differences is not None
        assert own is not None
        apart.append(not found.differences[0, 1] <= own[0, 0] <= found.differences[0, 2])
        mixed = np.random.default_rng(run).permutation(y)
        null = inf.table_one(released(X, mixed, transform, 1.0, run), binary=["smokes"]).pvalues
        assert null is not None
        rejected.append(null[0] < 0.05)
    assert np.mean(share) < 0.09
    assert np.mean(apart) < 0.1
    assert np.mean(rejected) < 0.11


def test_sums_that_are_not_those_of_0_and_1_are_refused_by_name() -> None:
    X, y = smokers(3)
    for release in (released(X, y), released(X, y, CENTRED, 1.0)):
        with pytest.raises(ReleaseError, match="names 'age', whose sum of squares is not that of 0 and 1"):
            inf.table_one(release, binary=["age"])
        assert inf.table_one(release, binary=["smokes"]).levels == ("1", "")


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda of, _: inf.table_one(of, binary=["dose"]), r"has 'dose'; columns of the release are smokes, age"),
        (lambda of, _: inf.table_one(of, columns=[]), "is empty or names one twice"),
        (lambda of, _: inf.table_one(of, columns=["age", "age"]), "is empty or names one twice"),
        (lambda _, of: inf.table_one(of, by="sex", binary=["age"]), "binary serves class sums"),
        (lambda _, of: inf.table_one(of, by="sex", columns=["sex"]), "crossed with sex are age, months, died"),
    ],
)
def test_names_that_are_none_are_refused_in_a_sentence(call: Any, said: str) -> None:
    with pytest.raises(ReleaseError, match=said):
        call(released(*smokers(4, 100)), exact(people(100)))


def test_variables_are_those_that_were_asked_for_in_their_order() -> None:
    release = exact(people(300))
    assert list(inf.table_one(release, by="sex", columns=["died", "age"]).variables) == ["died", "age"]
    assert inf.table_one(release, by="sex", columns=["died"]).summary().rows[0][0] == "died"


def counts(cells: int, apart: bool, seed: int) -> Any:
    rng = np.random.default_rng([cells, seed])
    shares = [rng.dirichlet(np.full(cells, 5.0)) for _ in range(2)]
    return np.stack([rng.multinomial(2_000, shares[group * apart]) for group in range(2)]).astype(float)


def missed(cells: int, apart: bool, sigma: float, draws: int) -> list[bool]:
    """Whether intervals that are told miss the difference of the exact counts."""
    found = []
    for draw in range(draws):
        whole = counts(cells, apart, draw % 20)
        truth = category_difference(whole, 0.0, 0.05, Z).value
        noise = np.random.default_rng([draw, cells]).normal(size=whole.shape) * sigma
        read = category_difference(whole + noise, sigma, 0.05, Z)
        found.append(read.told and not read.low <= truth <= read.high)
    return found


@pytest.mark.parametrize("cells", [2, 6])
def test_the_interval_of_a_difference_of_cells_holds_that_of_the_same_counts(cells: int) -> None:
    assert np.mean(missed(cells, True, 6.0, 200)) < 0.085
    assert np.mean(missed(cells, False, 6.0, 200)) < 0.085


@pytest.mark.nightly
@pytest.mark.parametrize("apart", [True, False])
@pytest.mark.parametrize("sigma", [1.0, 6.0, 20.0])
@pytest.mark.parametrize("cells", [2, 3, 5, 9])
def test_the_interval_holds_in_five_hundred_draws(cells: int, sigma: float, apart: bool) -> None:
    """Three standard errors of 500 draws above .05."""
    assert np.mean(missed(cells, apart, sigma, 500)) < 0.05 + 3 * math.sqrt(0.05 * 0.95 / 500)


def test_the_derivatives_of_the_length_are_those_of_the_difference() -> None:
    """With two cells the length is the size of a signed difference, whose delta method is done by hand."""
    whole, sigma = np.array([[300.0, 200.0], [100.0, 400.0]]), 2.0
    found = category_difference(whole, sigma, 0.05, Z)

    def signed(flat: Any) -> float:
        p, q = (each[1] / each.sum() for each in flat.reshape(2, 2))
        return float((p - q) / math.sqrt((p * (1 - p) + q * (1 - q)) / 2))

    steps = np.eye(4) * 1e-4
    slopes = [(signed(whole.ravel() + step) - signed(whole.ravel() - step)) / 2e-4 for step in steps]
    assert found.high - found.value == pytest.approx(Z * sigma * float(np.linalg.norm(slopes)), rel=1e-6)
    assert found.low == pytest.approx(found.value - Z * sigma * float(np.linalg.norm(slopes)), rel=1e-3)


def test_what_noise_hides_has_no_difference_and_what_is_shown_has_an_interval() -> None:
    hidden = category_difference(np.array([[5.0, 900.0], [4.0, 800.0]]), 3.0, 0.05, Z)
    assert (hidden.told, hidden.low, hidden.high) == (False, 0.0, math.inf)
    table = inf.table_one(noisy(people(3_000), 3.0, 1), by="sex", columns=["died"])
    died = table.variables["died"]
    low, high = died.difference_ends
    assert low < died.difference < high
    assert table.summary().rows[0][-1] == f"{died.difference:.2f} ({low:.2f} to {high:.2f})"
    row = table.to_rows()[0]
    assert (row["smd_low"], row["smd_high"]) == (low, high)
