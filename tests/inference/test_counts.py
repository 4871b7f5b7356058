"""Count tables: what is measured, what is read, against scipy and lifelines without noise, and coverage with it."""

import math
import re
from dataclasses import replace

import numpy as np
import pytest
import scipy.stats

import privstats as ps
from privstats import inference as inf
from privstats import session
from privstats.dp import joint_mu
from privstats.errors import DataError, ReleaseError, SchemaError
from privstats.inference.counts.averages import wide_means
from privstats.inference.counts.statistics import confusion_of
from privstats.inference.counts.table import CountTable, wide_sentences
from privstats.printable import at_most
from privstats.randomness import seeded
from tests import made

SEX = ps.Categories("sex", ("f", "m"))
AGE = ps.Bins("age", (0, 20, 40, 60, 120))
DIED = ps.Categories("died", (0, 1))
MONTHS = ps.Bins("months", tuple(range(14)))
SCHEMA = ps.CountSchema((SEX, AGE, DIED, MONTHS), (("sex", "age"), ("sex", "months", "died")))


def people(n=500, seed=0):
    rng = np.random.default_rng(seed)
    sex = rng.choice(["f", "m"], n, p=[0.4, 0.6])
    age = rng.gamma(6.0, 7.0, n)
    hazard = np.where(sex == "m", 0.12, 0.07)
    months, censored = rng.geometric(hazard) - 1, rng.integers(0, 13, n)
    died = (months <= censored) & (months < 12)
    return {"sex": sex, "age": age, "died": died, "months": np.minimum(np.minimum(months, censored), 11)}


def exact(data, schema=SCHEMA):
    return ps.Release.exact(schema, ps.measure(schema, data))


def noisy(data, epsilon, seed, schema=SCHEMA):
    plan = made.plan(schema, ps.Cohort(2, 2, 50_000), made.promise(epsilon=epsilon, delta=1e-6))
    half = {name: column[::2] for name, column in data.items()}, {name: column[1::2] for name, column in data.items()}
    return session.aggregate_unmasked(plan, [ps.measure(schema, part) for part in half], seeded(seed))


def test_a_plan_of_counts_is_the_same_from_its_file():
    schema = ps.CountSchema(
        (ps.Categories("ort", ("Köln", "東京"), other=True, missing=True), ps.Bins("x", (-1, 0, 1), "right", True)),
        (("ort", "x"), ("x",)),
    )
    plan = made.plan(schema, ps.Cohort(2, 2, 10))
    again = ps.Plan.from_toml(plan.to_toml())
    assert again == plan
    assert again.digest == plan.digest


def test_every_record_counts_once_in_every_table():
    data = people()
    moments = ps.measure(SCHEMA, data)
    assert moments.records == 500
    for table in SCHEMA.tables:
        assert moments.T[SCHEMA.place(table)].sum() == 500
    halves = [ps.measure(SCHEMA, {name: column[k::2] for name, column in data.items()}) for k in range(2)]
    assert halves[0] + halves[1] == moments


def test_a_masked_session_gives_the_exact_counts():
    data = people(300)
    plan = made.plan(SCHEMA, ps.Cohort(3, 2, 1_000))
    parts = [ps.measure(SCHEMA, {name: column[k::3] for name, column in data.items()}) for k in range(3)]
    assert (ps.simulate(plan, parts).moments.T == ps.measure(SCHEMA, data).T).all()
    late = ps.simulate(plan, parts, dropouts={"mask": {1}})
    assert (late.moments.T == (parts[0] + parts[2]).T).all()


@pytest.mark.parametrize(("closed", "expected"), [("left", [0, 0, 1, 1, 2, 2]), ("right", [0, 0, 0, 1, 1, 2])])
def test_edges_belong_to_the_closed_end_and_outliers_to_the_outer_bins(closed, expected):
    schema = ps.CountSchema((ps.Bins("x", (0.0, 1.0, 2.0, 3.0), closed),), (("x",),))
    values = [-0.0, -5.0, 1.0, 1.5, 2.0, 99.0]
    cells = [int(ps.measure(schema, {"x": [value]}).T.argmax()) for value in values]
    assert cells == expected


def test_frames_arrays_and_mappings_are_one():
    pandas = pytest.importorskip("pandas", reason="reads a DataFrame, and pandas is not installed")
    data = people(50)
    frame = pandas.DataFrame(data)[["months", "died", "age", "sex"]]
    rows = np.array([data[name] for name in ("sex", "age", "died", "months")], dtype=object).T
    assert ps.measure(SCHEMA, frame) == ps.measure(SCHEMA, data) == ps.measure(SCHEMA, rows)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"sex": ["f", "x"]}, "not among the plan's"),
        ({"age": [1.0, math.nan]}, "missing values"),
        ({"age": ["old", "young"]}, "must hold numbers"),
        ({"died": [0, 2]}, "not among the plan's '0', '1'"),
        ({"died": [0, 0.5]}, "not among the plan's"),
        ({"months": [1]}, "different lengths"),
        ({"sex": None}, "lacks the column"),
    ],
)
def test_values_that_belong_to_no_cell_are_refused_without_showing_them(change, words):
    data = {"sex": ["f", "m"], "age": [1.0, 2.0], "died": [0, 1], "months": [1, 2]} | change
    with pytest.raises(DataError, match=words):
        ps.measure(SCHEMA, {name: column for name, column in data.items() if column is not None})


def test_other_and_missing_have_cells_of_their_own():
    schema = ps.CountSchema((ps.Categories("c", ("a", "b"), other=True, missing=True),), (("c",),))
    assert ps.measure(schema, {"c": ["a", "z", None, "b", "y"]}).T.tolist() == [1, 1, 2, 1]


def test_a_nullable_column_has_missing_values_and_not_an_error():
    """pandas' NA is neither equal to itself nor unequal."""
    pandas = pytest.importorskip("pandas", reason="reads a DataFrame, and pandas is not installed")
    columns = {"c": pandas.array(["a", None, "b"], dtype="string"), "n": pandas.array([1, 1, None], dtype="Int64")}
    frame = pandas.DataFrame(columns)
    variables = (ps.Categories("c", ("a", "b"), missing=True), ps.Categories("n", (0, 1), missing=True))
    schema = ps.CountSchema(variables, (("c",), ("n",)))
    assert ps.measure(schema, frame).T.tolist() == [1, 1, 1, 0, 2, 1]
    with pytest.raises(DataError, match="column 'c' has missing values"):
        ps.measure(ps.CountSchema((ps.Categories("c", ("a", "b")),), (("c",),)), frame[["c"]])


@pytest.mark.parametrize(
    ("build", "words"),
    [
        (lambda: ps.Categories("c", ("a",)), "at least two"),
        (lambda: ps.Categories("c", ("a", 1)), "texts"),
        (lambda: ps.Categories("c", (1, 1)), "at least two"),
        (lambda: ps.Categories("c", (False, True)), "at least two different texts, or integers"),
        (lambda: ps.Bins("b", (0, 1)), "at least three"),
        (lambda: ps.Bins("b", (0, 1, 1)), "must increase"),
        (lambda: ps.Bins("b", (0, 1, 2), "both"), "'left' or 'right'"),
        (lambda: ps.CountSchema((SEX,), (("age",),)), "no variable"),
        (lambda: ps.CountSchema((SEX,), (("sex", "sex"),)), "twice"),
        (lambda: ps.CountSchema((SEX, AGE), (("sex", "age"), ("age", "sex"))), "a table twice"),
        (lambda: ps.CountSchema((SEX, SEX), (("sex",),)), "twice"),
        (lambda: ps.CountSchema((), (("sex",),)), "at least one"),
        (lambda: ps.CountSchema((ps.Bins("b", tuple(range(70_000))),), (("b",),)), "at most 65536"),
        (lambda: ps.CountSchema(({"name": "s", "value": ["f", "m"]},), (("s",),)), "name and values"),
        (lambda: ps.CountSchema((SEX,), (("sex",),), (ps.transforms.UnitNorm(),)), "transform must be empty"),
    ],
)
def test_tables_that_cannot_be_measured_are_refused(build, words):
    with pytest.raises(SchemaError, match=words):
        build()


def test_two_records_that_differ_everywhere_are_the_sensitivity():
    one = {"sex": ["f"], "age": [10.0], "died": [0], "months": [1]}
    other = {"sex": ["m"], "age": [90.0], "died": [1], "months": [5]}
    there, gone = ps.measure(SCHEMA, one).T, ps.measure(SCHEMA, other).T
    assert np.linalg.norm(there) == joint_mu(SCHEMA, {"T": 1.0}, "add-remove") == math.sqrt(2)
    assert np.linalg.norm(there - gone) == joint_mu(SCHEMA, {"T": 1.0}, "replace-one") == 2.0


def test_margins_of_a_table_are_the_table_of_the_margin():
    release = exact(people())
    sexes = inf.histogram(release, "sex")
    assert sexes.counts.tolist() == inf.histogram(release, "sex", "age").counts.sum(axis=1).tolist()
    assert (
        inf.histogram(release, "age", "sex").counts.tolist() == inf.histogram(release, "sex", "age").counts.T.tolist()
    )
    with pytest.raises(ReleaseError, match="age x died"):
        inf.histogram(release, "age", "died")


def test_shown_counts_are_never_negative_and_keep_the_total():
    found = inf.histogram(noisy(people(400), 0.3, 1), "sex", "months", "died")
    assert (found.counts < 0).any()
    assert found.shown.min() >= 0
    assert found.shown.sum() == pytest.approx(found.counts.sum())


def test_without_noise_shares_are_wilson_s():
    for share in inf.proportions(exact(people()), "sex").values():
        theirs = scipy.stats.binomtest(round(share.value * 500), 500).proportion_ci(method="wilson")
        assert (share.low, share.high) == pytest.approx((theirs.low, theirs.high), rel=1e-9)


def test_without_noise_independence_is_pearson_s():
    release = exact(people())
    counts = inf.histogram(release, "sex", "age").counts
    theirs = scipy.stats.chi2_contingency(counts, correction=False)
    ours = inf.chi2_contingency(release, "sex", "age")
    assert ours == pytest.approx((theirs.statistic, theirs.pvalue, theirs.dof), rel=1e-9)


def test_a_quantile_is_read_off_the_bins():
    uniform = {"age": np.linspace(0, 120, 12_001)[:-1]}
    schema = ps.CountSchema((ps.Bins("age", tuple(range(0, 121, 10))),), (("age",),))
    found = inf.quantile(exact(uniform, schema), "age", 0.25)
    assert found.value == found.even.value == pytest.approx(30.0, abs=0.05)
    assert (found.low, found.high) == (20, 40), "the share below 30 is not distinguished from .25"
    even = found.even
    assert even.low < 30 < even.high
    assert even.high - even.low == pytest.approx(2 * 1.96 * math.sqrt(0.25 * 0.75 / 12_000) * 120, rel=0.05)
    inside = inf.quantile(exact(uniform, schema), "age", 0.3)
    assert (inside.low, inside.high) == (30, 40)
    assert re.match(r"30 to 40 \(.*: 36, ", str(inside))
    with pytest.raises(ReleaseError, match="categories"):
        inf.quantile(exact(people()), "sex", 0.5)


@pytest.mark.parametrize(
    ("open_", "first", "last"),
    [
        ("both", "below 10", "40 or more"),
        ("above", "0 to 10", "40 or more"),
        ("below", "below 10", "40 to 50"),
        ("none", "0 to 10", "40 to 50"),
    ],
)
def test_a_quantile_in_an_open_bin_has_no_end_there(open_, first, last):
    schema = ps.CountSchema((ps.Bins("age", (0, 10, 20, 30, 40, 50), open=open_),), (("age",),))
    release = exact({"age": np.repeat([5.0, 15.0, 25.0, 35.0, 45.0], 1_000)}, schema)
    ends = [str(inf.quantile(release, "age", q)).split(" (")[0] for q in (0.1, 0.9)]
    assert ends == [first, last]


def test_a_hidden_quantile_is_not_printed():
    hidden = inf.quantile(noisy(people(20), 0.1, 1), "age", 0.5)
    assert (hidden.reported, hidden.low, hidden.high) == (False, -math.inf, math.inf)
    assert str(hidden) == "not reported: noise hides it"


@pytest.mark.parametrize("q", [0.25, 0.5, 0.75])
def test_the_ends_of_a_quantile_s_bins_hold_it_where_values_are_not_even(q):
    edges, law, missed, even = tuple(range(0, 101, 10)), scipy.stats.expon(scale=20), 0, 0
    schema = ps.CountSchema((ps.Bins("age", edges),), (("age",),))
    for run in range(60):
        ages = np.minimum(law.rvs(5_000, random_state=np.random.default_rng(run)), 99.9)
        found = inf.quantile(noisy({"age": ages}, 8.0, run, schema), "age", q)
        missed += not found.low <= law.ppf(q) <= found.high
        even += not found.even.low <= law.ppf(q) <= found.even.high
    assert missed <= 6
    assert q != 0.25 or even > 30, "values that are not even move the estimate"


def test_confusion_is_accuracy_and_recall():
    schema = ps.CountSchema((ps.Categories("y", (0, 1, 2)), ps.Categories("guess", (0, 1, 2))), (("y", "guess"),))
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 900)
    guess = np.where(rng.random(900) < 0.8, y, rng.integers(0, 3, 900))
    found = inf.confusion(exact({"y": y, "guess": guess}, schema), "y", "guess")
    assert found.accuracy.value == np.mean(y == guess)
    recalls = [np.mean(guess[y == c] == c) for c in range(3)]
    assert [each.value for each in found.recall.values()] == pytest.approx(recalls)
    assert found.balanced_accuracy.value == pytest.approx(np.mean(recalls))
    ends = [scipy.stats.binomtest(int((guess[y == c] == c).sum()), int((y == c).sum())) for c in range(3)]
    above = [test.proportion_ci(method="wilson").high - recall for test, recall in zip(ends, recalls, strict=True)]
    assert found.balanced_accuracy.high - found.balanced_accuracy.value == pytest.approx(math.hypot(*above) / 3)


@pytest.mark.parametrize("recall", [0.7, 0.85, 0.95])
def test_the_balanced_accuracy_of_a_score_of_few_events_covers(recall):
    """24 events, each number of right ones with its probability, and 976 others of which .85 are right."""
    labels, middle = ps.Categories("y", (0, 1)), scipy.stats.binom(976, 0.85)
    missed = 0.0
    for right in range(25):
        for well in middle.ppf((np.arange(40) + 0.5) / 40):
            counts = np.array([[well, 976 - well], [24 - right, right]])
            share = confusion_of(CountTable((labels, labels), counts, 0.0), ("0", "1"), 1.959964).balanced_accuracy
            beside = not share.low <= (recall + 0.85) / 2 <= share.high
            missed += beside * scipy.stats.binom.pmf(right, 24, recall) / 40
    assert missed < 0.065


def test_a_p_value_of_nearly_empty_cells_is_simulated():
    """The one record of the second row has a rare value, by a chance of 1 %; the chi-squared law says 2e-23."""
    rows, columns = ps.Categories("r", ("a", "b")), ps.Categories("c", ("x", "y"))
    schema = ps.CountSchema((rows, columns), (("r", "c"),))
    data = {"r": ["a"] * 999 + ["b"], "c": ["x"] * 990 + ["y"] * 10}
    test = inf.chi2_contingency(exact(data, schema), "r", "c")
    assert test.statistic == pytest.approx(99, rel=0.01)
    assert 5e-4 < test.pvalue < 0.02
    assert test == inf.chi2_contingency(exact(data, schema), "r", "c"), "by a fixed seed"
    wide = ps.CountSchema((rows, ps.Categories("c", tuple(range(40)))), (("r", "c"),))
    sparse = {"r": data["r"], "c": [k % 40 for k in range(1_000)]}
    assert inf.chi2_contingency(exact(sparse, wide), "r", "c").pvalue > 0.1, "more than 64 cells share a covariance"
    assert inf.chi2_contingency(noisy(data, 30.0, 1, schema), "r", "c").pvalue > 1e-4


@pytest.mark.parametrize(
    "runs", [pytest.param(100, marks=pytest.mark.ci), pytest.param(1_000, marks=pytest.mark.nightly)]
)
def test_independence_of_sparse_tables_is_rejected_at_its_level(runs):
    rows, columns = ps.Categories("r", ("a", "b")), ps.Categories("c", tuple("abcdefghij"))
    schema, rejected = ps.CountSchema((rows, columns), (("r", "c"),)), 0
    for run in range(runs):
        rng = np.random.default_rng(run)
        data = {
            "r": rng.choice(["a", "b"], 1_000, p=[0.99, 0.01]),
            "c": rng.choice(list("abcdefghij"), 1_000, p=[0.5, *[0.5 / 9] * 9]),
        }
        rejected += inf.chi2_contingency(noisy(data, 30.0, run, schema), "r", "c").pvalue < 0.05
    assert rejected <= scipy.stats.binom(runs, 0.055).ppf(0.999)


@pytest.mark.parametrize(
    ("n", "epsilon"),
    [pytest.param(400, 1.0, marks=pytest.mark.ci), pytest.param(4_000, 0.5, marks=pytest.mark.nightly)],
)
def test_shares_quantiles_and_independence_hold_under_noise(n, epsilon):
    missed, rejected, runs = {"sex": 0, "median": 0}, 0, 120
    median = 7.0 * scipy.stats.gamma(6.0).median()
    fine = ps.CountSchema((SEX, ps.Bins("age", tuple(range(0, 125, 5)))), (("sex",), ("age",)))
    for run in range(runs):
        data = people(n, 1_000 + run)
        share = inf.proportions(noisy(data, epsilon, run), "sex")["m"]
        missed["sex"] += share.reported and not share.low <= 0.6 <= share.high
        middle = inf.quantile(noisy(data, epsilon, run, fine), "age", 0.5)
        missed["median"] += middle.reported and not middle.even.low <= median <= middle.even.high
        rejected += inf.chi2_contingency(noisy(data, epsilon, run), "sex", "age").pvalue < 0.05 if n > 400 else 0
    assert all(count <= 0.1 * runs for count in missed.values())
    assert rejected <= 0.1 * runs
    assert n == 400 or rejected > 0


def test_a_test_that_noise_hides_is_not_told_and_one_without_records_is_refused():
    hidden = inf.chi2_contingency(noisy(people(20), 0.3, 1), "sex", "age")
    assert (hidden.reported, hidden.pvalue, hidden.dof) == (False, 1.0, 3)
    assert inf.chi2_contingency(exact(people(200)), "sex", "age").reported
    gaps = ps.CountSchema((SEX, ps.Bins("age", (0, 40, 80), missing=True)), (("sex", "age"),))
    unknown = ps.Release.exact(gaps, ps.measure(gaps, {"sex": ["f", "m"], "age": [math.nan, math.nan]}))
    with pytest.raises(ReleaseError, match="holds no record"):
        inf.chi2_contingency(unknown, "sex", "age")
    few = {"sex": ["f", "f"], "age": [1.0, 50.0], "died": [0, 0], "months": [1, 1]}
    with pytest.raises(ReleaseError, match="sex: m, .* 40.* 60"):
        inf.chi2_contingency(exact(few), "sex", "age")


def test_class_moments_are_no_count_tables():
    schema = ps.ClassSchema(2, 2, "NA", 1.0)
    release = ps.Release.exact(schema, ps.measure(schema, np.eye(2), [0, 1]))
    with pytest.raises(ReleaseError, match="takes count tables"):
        inf.proportions(release, "sex")


def test_table_one_is_welch_s():
    rng = np.random.default_rng(0)
    X = np.round(rng.normal(size=(300, 2)) * 200) / 1024
    y = (rng.random(300) < 0.4).astype(int)
    schema = ps.ClassSchema(2, 2, "NAD", 2.0, class_names=("old", "new"), feature_names=("a", "b"))
    found = inf.table_one(ps.Release.exact(schema, ps.measure(schema, X, np.array(["old", "new"])[y])))
    assert found.groups == ("old", "new")
    assert np.allclose(found.means, [X[y == 0].mean(axis=0), X[y == 1].mean(axis=0)])
    assert np.allclose(found.deviations, [X[y == 0].std(axis=0, ddof=1), X[y == 1].std(axis=0, ddof=1)])
    theirs = scipy.stats.ttest_ind(X[y == 0], X[y == 1], equal_var=False)
    assert np.allclose(found.pvalues, theirs.pvalue, rtol=1e-9)
    plain = ps.ClassSchema(2, 2, "NA", 2.0)
    with pytest.raises(ReleaseError, match="has no D"):
        inf.table_one(ps.Release.exact(plain, ps.measure(plain, X, y)))


def test_a_group_that_is_not_told_has_no_numbers():
    """Two values over a made-up count of 2 were printed for a group that noise hides, here one of a single record."""
    schema = ps.ClassSchema(2, 2, "NAD", 2.0, class_names=("old", "new"))
    X, y = np.full((21, 2), 0.5), ["old"] * 20 + ["new"]
    found = inf.table_one(ps.Release.exact(schema, ps.measure(schema, X, y)))
    assert found.reported.tolist() == [True, False]
    for numbers in (found.means, found.deviations):
        assert np.isfinite(numbers[0]).all()
        assert np.isnan(numbers[1]).all()
    assert np.isinf(found.low[1]).all()


def test_table_one_covers_under_noise():
    truth, missed, reported = np.array([[0.1, -0.2], [0.3, 0.1]]), [], []
    schema = ps.ClassSchema(2, 2, "NAD", 2.0)
    for run in range(60):
        rng = np.random.default_rng(run)
        y = rng.integers(0, 2, 3_000)
        X = truth[y] + rng.normal(size=(3_000, 2)) * 0.3
        plan = made.plan(schema, ps.Cohort(2, 2, 10_000), made.promise("distributed", delta=1e-6))
        found = inf.table_one(
            session.aggregate_unmasked(plan, [ps.measure(schema, X[k::2], y[k::2]) for k in range(2)], seeded(run))
        )
        missed.append((found.low > truth) | (found.high < truth))
        reported.append(found.reported)
    assert np.mean(missed) < 0.1
    assert np.mean(reported) > 0.9


@pytest.mark.parametrize(("records", "epsilon", "warned"), [(12, 1.0, True), (200, 0.1, True), (400, 1.0, False)])
def test_a_plan_warns_where_shares_will_be_half_the_scale_wide(records: int, epsilon: float, warned: bool) -> None:
    """What is foretold is the interval of a release of so many records, as far as their noise goes."""
    smokes = ps.Categories("smokes", ("yes", "no", "never"))
    schema = ps.CountSchema((smokes,), (("smokes",),))
    plan = made.plan(schema, ps.Cohort(2, 2, records), made.promise(epsilon=epsilon))
    told = wide_sentences(plan)
    numbers = replace(schema, numbers=(ps.Number("hours", 0, 80),))
    said = wide_means(made.plan(numbers, ps.Cohort(2, 2, records), made.promise(epsilon=epsilon)))
    assert any("the mean of hours" in line for line in said) is warned
    half = {"smokes": ["yes"] * (records // 4) + ["no"] * (records // 4)}
    widths = []
    for _ in range(30):
        share = ps.inference.proportions(ps.simulate(plan, [(half, None)] * 2), "smokes")["yes"]
        widths.append(100 * (share.high - share.low))
    assert bool(told) is warned
    assert (float(np.median(widths)) >= 50) is warned
    if told:
        (width,) = re.findall(r"interval (\d+) % wide", told[0])
        assert float(np.median(widths)) == pytest.approx(float(width), abs=12)
    crossed = ps.CountSchema((smokes, ps.Bins("age", (18, 40, 60))), (("age", "smokes"),))
    of_groups = wide_sentences(made.plan(crossed, ps.Cohort(2, 2, 60), made.promise()))
    assert all(fact in " ".join(of_groups) for fact in ("age x smokes", "one of 2 groups"))


def test_a_table_of_one_session_states_what_its_course_costs() -> None:
    alone = noisy(people(500), 1.0, 0)
    mu, delta = alone.plan.noise.mu, alone.plan.privacy.delta
    part = alone.at(ps.release.Position("c0" * 32, "counts", 0, spent=mu, mu=2 * mu))
    curve = {"by": "sex", "time": "months", "event": "died", "times": "discrete"}
    summary = inf.kaplan_meier(part, **curve).summary()
    whole = (
        f"all its sessions together cost epsilon {at_most(ps.dp.gaussian_epsilon(2 * mu, delta))} at delta {delta:g}"
    )
    assert "This is one session of a course that asks the same records again" in summary.methods
    assert whole in summary.methods
    assert whole in summary.promise
    assert "of a course" not in inf.kaplan_meier(alone, **curve).summary().promise
