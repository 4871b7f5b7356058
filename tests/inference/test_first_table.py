"""Curves and the first table of a paper: time 0, Student's t, number and share, standardised differences."""

import itertools
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
from privstats.inference.groups.shares import category_difference
from privstats.randomness import seeded
from privstats.transforms import Centre, Scale
from tests import made
from tests.inference.test_counts import exact, noisy, people

CURVE = {"time": "months", "event": "died", "times": "discrete"}
MEANS = ps.ClassSchema(2, 2, "NAD", 3.0, class_names=("old", "new"), feature_names=("a", "b"))
NOISE = ["n_risk_std_error", "n_event_std_error"]
COLUMNS = ["time", "n_risk", NOISE[0], "n_event", NOISE[1], "survival", "conf_low", "conf_high"]
SCHEMA = ps.ClassSchema(2, 2, "NAD", 8.0, grid_bits=16)
Z = z_of(0.05)
PLAIN: tuple[Any, ...] = ()
CENTRED = (Centre((0.5, 0.0)), Scale((0.5, 1.0)))


def test_a_curve_is_printed_from_time_0_where_everybody_is_alive() -> None:
    data = people(400)
    curves = inf.kaplan_meier(exact(data), by="sex", **CURVE)
    for sex, curve in curves.items():
        first, second, *_ = curve.to_rows()
        counts = {"time": 0, "n_risk": (data["sex"] == sex).sum(), "n_event": 0, **dict.fromkeys(NOISE, 0)}
        assert first == counts | dict.fromkeys(COLUMNS[5:], 1)
        assert (second["time"], second["survival"]) == (curve.timeline[0], curve.survival_function_[0])
        assert len(curve.to_rows()) == len(curve.timeline) + 1
    rows = curves.summary().rows
    assert rows[0] == ("f", "0", f"{(data['sex'] == 'f').sum()}", "0", "1.000", "1.000", "1.000")
    assert [row[0] for row in rows] == [row["group"] for row in curves.to_rows()]
    hidden = inf.kaplan_meier(noisy(people(20), 0.1, 1), **CURVE)
    assert [row[1:6] for row in hidden.summary().rows] == [("0", "-", "-", "0", "1.000")]
    whole = inf.kaplan_meier(exact(people(200) | {"died": np.zeros(200, bool)}), **CURVE)
    assert whole.summary().head[-1] == ("median", "not reached (12 to not reached)")


def test_curves_and_first_tables_are_frames_and_show_themselves() -> None:
    pytest.importorskip("pandas")
    release = noisy(people(3_000), 3.0, 1)
    curves, table = inf.kaplan_meier(release, by="sex", **CURVE), inf.table_one(release, by="sex")
    assert curves["f"].to_frame().columns.tolist() == COLUMNS
    assert curves.to_frame().columns.tolist() == ["group", *COLUMNS]
    assert len(table.to_frame()) == len(table.to_rows()) > 10
    for shown in (curves["f"], curves, table, inf.table_one(released(*groups()))):
        assert shown._repr_html_() == shown.summary().as_html()
        assert release.plan.digest[:16] in shown.summary().as_text() or shown.release is not release
        assert "TEST NOISE" not in shown.summary().as_text() or release.reproducible


def test_numbers_and_shares_are_those_of_the_records_and_their_difference_is_yang_and_dalton_s() -> None:
    data = people(600)
    table = inf.table_one(exact(data), by="sex")
    assert (table.by, table.groups, list(table.variables)) == ("sex", ("f", "m"), ["age", "months", "died"])
    women, men = data["sex"] == "f", data["sex"] == "m"
    died = table.variables["died"]
    assert died.counts.tolist() == [[(of & ~data["died"]).sum(), (of & data["died"]).sum()] for of in (women, men)]
    p, q = data["died"][women].mean(), data["died"][men].mean()
    assert died.shares[0][1].value == pytest.approx(p)
    wilson = scipy.stats.binomtest(int(data["died"][women].sum()), int(women.sum())).proportion_ci(method="wilson")
    assert died.shares[0][1][1:3] == pytest.approx((wilson.low, wilson.high), rel=1e-9)
    assert died.difference == pytest.approx(abs(p - q) / math.sqrt((p * (1 - p) + q * (1 - q)) / 2))
    months = table.variables["months"]
    shares = months.counts / months.counts.sum(axis=1, keepdims=True)
    covariance = sum((np.diag(each) - np.outer(each, each))[1:, 1:] for each in shares) / 2
    apart = (shares[0] - shares[1])[1:]
    kept = covariance.diagonal() > 0
    theirs = math.sqrt(apart[kept] @ np.linalg.solve(covariance[np.ix_(kept, kept)], apart[kept]))
    assert months.difference == pytest.approx(theirs)
    cells = table.summary().rows
    assert cells[[row[0] for row in cells].index("died") + 2][1].startswith(f"{(women & data['died']).sum()} (")


def test_shares_cover_under_noise_and_a_hidden_group_has_none() -> None:
    truth, missed = inf.table_one(exact(people(200_000, 9)), by="sex").variables["died"], []
    for run in range(60):
        found = inf.table_one(noisy(people(2_000, run), 1.0, run), by="sex").variables["died"]
        pairs = zip(
            (each for row in found.shares for each in row), (e for row in truth.shares for e in row), strict=True
        )
        missed.append([not share.low <= true.value <= share.high for share, true in pairs])
    assert np.mean(missed) < 0.08
    few = inf.table_one(noisy(people(30), 0.1, 2), by="sex")
    assert not few.reported
    assert all(math.isnan(float(str(row[name]))) for row in few.to_rows() for name in ("proportion", "smd"))
    assert {cell for row in few.summary().rows if row[0].startswith(" ") for cell in row[1:]} <= {"", "-"}


def groups(seed: int = 0, records: int = 3_000) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, records)
    return rng.normal(size=(records, 2)) * [0.4, 0.6] + np.outer(y, [0.2, 0.0]), y


def released(X: Any, y: Any, epsilon: float | None = None, seed: int = 0, whole: ps.ClassSchema = MEANS) -> ps.Release:
    parts = [ps.measure(whole, X[k::2], np.array(["old", "new"])[y[k::2]]) for k in range(2)]
    if epsilon is None:
        return ps.Release.exact(whole, parts[0] + parts[1])
    plan = made.plan(whole, ps.Cohort(2, 2, 10_000), made.promise("central", epsilon=epsilon, delta=1e-6))
    return session.aggregate_unmasked(plan, parts, seeded(seed))


def test_standardised_differences_are_austin_s_and_hold_these_records_under_noise() -> None:
    X, y = groups()
    old, new = X[y == 0], X[y == 1]
    truth = (old.mean(axis=0) - new.mean(axis=0)) / np.sqrt((old.var(axis=0) + new.var(axis=0)) / 2)
    plain = inf.table_one(released(X, y))
    assert isinstance(plain, inf.GroupMeans)
    assert plain.differences[:, 0] == pytest.approx(truth, abs=2e-3)  # of the grid
    assert (plain.differences == plain.differences[:, :1]).all()  # of these records, and without noise
    missed, reported = [], []
    for run in range(100):
        found = inf.table_one(released(X, y, 8.0, run))
        assert isinstance(found, inf.GroupMeans)
        if found.differences is None:
            continue
        value, low, high = found.differences.T
        reported.append(~np.isnan(value))
        missed.append((low > plain.differences[:, 0]) | (high < plain.differences[:, 0]))
    assert np.mean(reported) > 0.9
    assert np.mean(missed) < 0.1
    assert "SMD" in plain.summary().columns
    assert plain.summary().rows[0][-1] == f"{plain.differences[0, 0]:.2f}"
    assert any("Austin 2009" in sentence for sentence in plain.summary().foot)


def test_what_no_first_table_can_be_made_of_is_a_sentence() -> None:
    with pytest.raises(ReleaseError, match=r"by=.*--by\): sex, age"):
        inf.table_one(exact(people(50)))
    with pytest.raises(ReleaseError, match="no released table crosses 'ward'"):
        inf.table_one(exact(people(50)), by="ward")
    with pytest.raises(ReleaseError, match="groups of class sums"):
        inf.table_one(released(*groups()), by="sex")


def two_groups(*groups):
    """A release without noise of one column in two groups, and a column of 0."""
    X = np.concatenate(groups)[:, None] * [1.0, 0.0]
    y = np.repeat([0, 1], [len(group) for group in groups])
    return ps.Release.exact(SCHEMA, ps.measure(SCHEMA, X, y))


@pytest.mark.ci
@pytest.mark.parametrize("records", [2, 3, 5, 10])
def test_means_of_few_records_are_missed_in_one_of_twenty(records):
    rng, missed = np.random.default_rng(records), []
    for _ in range(600):
        found = inf.table_one(two_groups(rng.normal(size=records), rng.normal(size=40)))
        missed.append((found.low > 0)[:, 0] | (found.high < 0)[:, 0])
    assert np.mean(missed, axis=0).tolist() == pytest.approx([0.05, 0.05], abs=0.028)


def test_without_noise_the_interval_is_student_s():
    rng = np.random.default_rng(1)
    groups = [np.round(rng.normal(size=n) * 256) / 256 for n in (4, 9)]
    for alpha in (0.2, 0.05, 0.01):
        found = inf.table_one(two_groups(*groups), alpha=alpha)
        for group, low, high in zip(groups, found.low, found.high, strict=True):
            theirs = scipy.stats.ttest_1samp(group, 0.0).confidence_interval(1 - alpha)
            assert (low[0], high[0]) == pytest.approx((theirs.low, theirs.high), rel=1e-9)


def test_noise_of_a_mean_takes_no_degrees_of_freedom_and_that_of_its_variance_does():
    """Welch and Satterthwaite: the level of the one is known, and the other one blurs the estimate of the spread."""
    rng = np.random.default_rng(2)
    X, y = rng.normal(size=(60, 2)), np.repeat([0, 1], [20, 40])
    plan = made.plan(SCHEMA, ps.Cohort(2, 2, 200), made.promise("central", epsilon=30.0, delta=1e-6))
    release = session.aggregate_unmasked(plan, [ps.measure(SCHEMA, X[k::2], y[k::2]) for k in range(2)], seeded(1))
    found, sigma = inf.table_one(release), release.sigma
    n, mean = float(found.counts[0]), float(found.means[0, 0])
    variance = float(found.deviations[0, 0]) ** 2 * (n - 1) / n
    by_count = (mean**2 - variance) * sigma["N"]
    tau = (sigma["D"] ** 2 + (2 * mean * sigma["A"]) ** 2 + by_count**2) ** 0.5 / n
    sampling = max(variance, tau) / (n - 1)
    noise = (sigma["A"] ** 2 + mean**2 * sigma["N"] ** 2) / n**2
    degrees = (sampling + noise) ** 2 / (sampling**2 / (n - 1) + (tau / (n - 1)) ** 2 / 2)
    margin = float((found.high - found.low)[0, 0]) / 2
    assert margin == pytest.approx(scipy.stats.t.isf(0.025, degrees) * (sampling + noise) ** 0.5, rel=1e-9)
    assert degrees < n - 1


def test_columns_that_are_constant_and_exact_have_p_values():
    same, other = np.full(5, 0.5), np.full(3, 0.25)
    assert inf.table_one(two_groups(same, same)).pvalues.tolist() == [1.0, 1.0]
    found = inf.table_one(two_groups(same, other))
    assert found.pvalues.tolist() == [0.0, 1.0]
    assert found.low.tolist() == found.high.tolist() == [[0.5, 0.0], [0.25, 0.0]]


def schema(transform: tuple[Any, ...]) -> ps.ClassSchema:
    names: dict[str, Any] = {"class_names": ("old", "new"), "feature_names": ("smokes", "age")}
    return ps.ClassSchema(2, 2, "NAD", 2.0, transform=transform, **names)


def smokers(seed: int, records: int = 2_000) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, records)
    return np.column_stack([rng.random(records) < 0.3 + 0.2 * y, rng.uniform(-1, 1, records)]).astype(float), y


def released_smokers(X: Any, y: Any, transform: tuple[Any, ...] = PLAIN, epsilon: Any = None, seed: int = 0) -> Any:
    return released(X, y, epsilon, seed, schema(transform))


@pytest.mark.parametrize("transform", [PLAIN, CENTRED])
def test_without_noise_a_column_of_0_and_1_is_that_of_scipy(transform: tuple[Any, ...]) -> None:
    X, y = smokers(0, 400)
    found = inf.table_one(released_smokers(X, y, transform), binary=["smokes"])
    for group in (0, 1):
        ones, records = int(X[y == group, 0].sum()), int((y == group).sum())
        wilson = scipy.stats.binomtest(ones, records).proportion_ci(method="wilson")
        assert (found.low[group, 0], found.high[group, 0]) == pytest.approx((wilson.low, wilson.high), rel=1e-9)
        assert found.means[group, 0] == pytest.approx(ones / records)
    p, q = (X[y == group, 0].mean() for group in (0, 1))
    assert found.differences[0, 0] == pytest.approx((p - q) / math.sqrt((p * (1 - p) + q * (1 - q)) / 2))
    assert found.differences[0, 1] == found.differences[0, 2] == found.differences[0, 0]
    crossed = [[(X[y == group, 0] == value).sum() for value in (0, 1)] for group in (0, 1)]
    assert found.pvalues[0] == pytest.approx(scipy.stats.chi2_contingency(crossed, correction=False).pvalue)


def test_a_column_of_0_and_1_is_printed_as_number_and_per_cent() -> None:
    X, y = smokers(1, 300)
    found = inf.table_one(released_smokers(X, y), binary=["smokes"], columns=["age", "smokes"])
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
    assert "chi-squared test" not in found.summary().methods
    tested = inf.table_one(released_smokers(X, y), binary=["smokes"], tests=True)
    assert "chi-squared test" in tested.summary().methods
    assert "number of ones" in " ".join(found.summary().foot)


@pytest.mark.ci
@pytest.mark.parametrize("transform", [PLAIN, CENTRED])
def test_shares_tests_and_differences_of_0_and_1_hold_under_noise(transform: tuple[Any, ...]) -> None:
    X, y = smokers(2)
    truth = inf.table_one(released_smokers(X, y, transform), binary=["smokes"])
    assert truth.differences is not None
    share, apart, rejected = [], [], []
    for run in range(120):
        X, y = smokers(run + 10)
        found = inf.table_one(released_smokers(X, y, transform, 1.0, run), binary=["smokes"])
        share.append((found.low[:, 0] > [0.3, 0.5]) | (found.high[:, 0] < [0.3, 0.5]))
        own = inf.table_one(released_smokers(X, y, transform), binary=["smokes"]).differences
        apart.append(not found.differences[0, 1] <= own[0, 0] <= found.differences[0, 2])
        mixed = np.random.default_rng(run).permutation(y)
        null = inf.table_one(released_smokers(X, mixed, transform, 1.0, run), binary=["smokes"]).pvalues
        rejected.append(null[0] < 0.05)
    assert np.mean(share) < 0.09
    assert np.mean(apart) < 0.1
    assert np.mean(rejected) < 0.11


def test_sums_that_are_not_those_of_0_and_1_are_refused_by_name() -> None:
    X, y = smokers(3)
    for release in (released_smokers(X, y), released_smokers(X, y, CENTRED, 1.0)):
        with pytest.raises(ReleaseError, match="'age', which is no column"):
            inf.table_one(release, binary=["age"])
        assert inf.table_one(release, binary=["smokes"]).levels == ("1", "")


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda of, _: inf.table_one(of, binary=["dose"]), r"has 'dose'; columns of the release are smokes, age"),
        (lambda of, _: inf.table_one(of, columns=[]), "is empty or names one twice"),
        (lambda of, _: inf.table_one(of, columns=["age", "age"]), "is empty or names one twice"),
        (lambda _, of: inf.table_one(of, by="sex", binary=["age"]), "binary is for class sums"),
        (lambda _, of: inf.table_one(of, by="sex", columns=["sex"]), "crossed with sex are age, months, died"),
    ],
)
def test_names_that_are_none_are_refused_in_a_sentence(call: Any, said: str) -> None:
    with pytest.raises(ReleaseError, match=said):
        call(released_smokers(*smokers(4, 100)), exact(people(100)))


def test_variables_are_those_that_were_asked_for_in_their_order() -> None:
    release = exact(people(300))
    assert list(inf.table_one(release, by="sex", columns=["died", "age"]).variables) == ["died", "age"]
    assert inf.table_one(release, by="sex", columns=["died"]).summary().rows[0][0] == "died"


def counts(cells: int, apart: bool, seed: int) -> Any:
    rng = np.random.default_rng([cells, seed])
    shares = [rng.dirichlet(np.full(cells, 5.0)) for _ in range(2)]
    return np.stack([rng.multinomial(2_000, shares[group * apart]) for group in range(2)]).astype(float)


def missed(cells: int, apart: bool, sigma: float, draws: int) -> list[bool]:
    """Whether reported intervals miss the difference of the exact counts."""
    found = []
    for draw in range(draws):
        whole = counts(cells, apart, draw % 20)
        truth = category_difference(whole, 0.0, 0.05, Z).value
        noise = np.random.default_rng([draw, cells]).normal(size=whole.shape) * sigma
        read = category_difference(whole + noise, sigma, 0.05, Z)
        found.append(read.reported and not read.low <= truth <= read.high)
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
    margin = Z * sigma * float(np.linalg.norm(slopes))
    assert found.high == pytest.approx(found.value + margin * (1 + margin / found.value / 2), rel=1e-6)
    assert found.low == pytest.approx(found.value - margin, rel=1e-3)


@pytest.mark.parametrize("order", list(itertools.permutations(range(3))))
@pytest.mark.parametrize(
    ("groups", "value"),
    [
        (([100, 0, 0], [0, 49, 51]), math.inf),  # no common cell
        (([0, 100, 0], [0, 0, 100]), math.inf),  # and one that nobody has
        (([100, 0, 0], [50, 50, 0]), math.sqrt(2)),  # .5 over sqrt(.25 / 2)
        (([100, 0, 0], [100, 0, 0]), 0.0),
    ],
)
def test_the_difference_of_groups_at_an_edge_is_right_in_every_order(order: Any, groups: Any, value: float) -> None:
    numbers = np.array(groups, float)[:, list(order)]
    found = category_difference(numbers, 0.0, 0.05, Z)
    assert (found.value, found.low, found.high) == pytest.approx((value, value, value))


@pytest.mark.parametrize("cells", [2, 4])
def test_groups_that_only_noise_brings_together_have_no_difference(cells: int) -> None:
    """Before, 52.5 was printed where it is infinite."""
    numbers = np.zeros((2, cells))
    numbers[0, 0], numbers[1, 1:] = 2_000, 2_000 / (cells - 1)
    noise = np.random.default_rng(0)
    for _ in range(50):
        read = category_difference(numbers + noise.normal(size=numbers.shape) * 6.0, 6.0, 0.05, Z)
        assert (read.reported, read.high) == (False, math.inf)


def test_groups_whose_noisy_shares_are_equal_have_a_difference_of_0_with_an_end() -> None:
    found = category_difference(np.array([[60.0, 40.0], [90.0, 60.0]]), 1.0, 0.05, Z)
    assert (found.value, found.low) == (0.0, 0.0)
    assert 0.0 < found.high < 0.2


@pytest.mark.parametrize("shared", [5, 20])
def test_the_difference_of_groups_with_few_common_records_is_missed_as_often_as_is_claimed(shared: int) -> None:
    """By the first order of the noise alone 6 % of these intervals ended below the exact difference."""
    exact = np.array([[1_000.0 - shared, shared, 0.0], [0.0, 490.0, 510.0]])
    rng, draws, sigma, missed = np.random.default_rng(0), 4_000, shared / 6.5, 0
    truth = category_difference(exact, 0.0, 0.05, 1.96).value
    for noise in rng.normal(size=(draws, 2, 3)) * sigma:
        found = category_difference(exact + noise, sigma, 0.05, 1.96)
        missed += found.reported and not found.low <= truth <= found.high
    assert missed < 0.055 * draws


def test_the_number_missing_is_shown_by_group_and_out_of_all_records() -> None:
    sex, lab = ps.Categories("sex", ("f", "m")), ps.Categories("lab", ("low", "high"), missing=True)
    schema = ps.CountSchema((sex, lab), (("sex", "lab"),))
    records = {"sex": ["f"] * 80 + ["m"] * 120, "lab": ["low"] * 40 + [""] * 40 + ["high"] * 90 + ["NA"] * 30}
    table = inf.table_one(ps.Release.exact(schema, ps.measure(schema, records)), by="sex")
    shown = table.variables["lab"]
    assert shown.missing_counts is not None
    assert shown.missing_counts.tolist() == [40, 30]
    assert [share.value for share in shown.missing] == [0.5, 0.25]
    assert [row[:2] for row in table.summary().rows][-1] == ("  missing", "40 (50.0; 39.3 to 60.7)")
    rows = [row for row in table.to_rows() if row["level"] == "missing"]
    assert [(row["group"], row["n"], row["proportion"]) for row in rows] == [("f", 40.0, 0.5), ("m", 30.0, 0.25)]


def test_what_noise_hides_has_no_difference_and_what_is_shown_has_an_interval() -> None:
    hidden = category_difference(np.array([[5.0, 900.0], [4.0, 800.0]]), 3.0, 0.05, Z)
    assert (hidden.reported, hidden.low, hidden.high) == (False, 0.0, math.inf)
    table = inf.table_one(noisy(people(3_000), 3.0, 1), by="sex", columns=["died"])
    died = table.variables["died"]
    low, high = died.difference_ends
    assert low < died.difference < high
    assert table.summary().rows[0][-1] == f"{died.difference:.2f} ({low:.2f} to {high:.2f})"
    row = table.to_rows()[0]
    assert (row["smd_low"], row["smd_high"]) == (low, high)


@pytest.mark.parametrize("missing", [False, True])
def test_a_variable_of_bins_has_its_median_and_quartiles_by_group(missing: bool) -> None:
    """Ages of whole years in bins of one: the quartiles of the records, whether or not some are missing."""
    rng = np.random.default_rng(0)
    arm = rng.integers(0, 2, 4_000)
    age = rng.normal(50 + 6 * arm, 8, 4_000).clip(20, 89)
    lost = np.where(rng.random(4_000) < 0.2 * missing, np.nan, age)
    bins = ps.Bins("age", tuple(range(20, 91)), missing=missing)
    schema = ps.CountSchema((bins, ps.Categories("arm", (0, 1))), (("arm", "age"),))
    table = inf.table_one(ps.Release.exact(schema, ps.measure(schema, {"age": lost, "arm": arm})), by="arm")
    for group in (0, 1):
        expected = np.nanquantile(lost[arm == group], (0.25, 0.5, 0.75))
        assert [each.value for each in table.variables["age"].quartiles[group]] == pytest.approx(expected, abs=0.2)
    (row,) = (row for row in table.summary().rows if "median" in row[0])
    assert row[1].startswith(f"{table.variables['age'].quartiles[0][1].ends} [")
