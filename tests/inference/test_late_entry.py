"""Late entry: at risk from the entry on, as statsmodels has it, under noise, and refused where it cannot be read."""

import math
import warnings
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy.integrate import quad
from statsmodels.duration.survfunc import SurvfuncRight, survdiff

import privstats as ps
from benchmarks.inference import late_entry as bench
from privstats import inference as inf
from privstats import session
from privstats.dp import joint_mu
from privstats.errors import ReleaseError
from privstats.inference.counts import survival
from privstats.inference.counts.entries import person_time
from privstats.randomness import seeded
from tests import made
from tests.made import refused

EDGES = tuple(range(26))
WORDS: dict[str, Any] = {"time": "months", "event": "died", "times": "discrete"}
ARM, DIED = ps.Categories("arm", ("a", "b")), ps.Categories("died", (0, 1))
MONTHS, ENTERS = (ps.Bins(name, EDGES, open="above") for name in ("months", "enters"))
TABLES = ("arm", "months", "died"), ("arm", "enters")


def schema_at(times: str) -> ps.CountSchema:
    late_entry = ps.LateEntry("enters", "months", times)
    return ps.CountSchema((ARM, MONTHS, ENTERS, DIED), TABLES, late_entry=late_entry)


SCHEMA = schema_at("discrete")


def persons(n: int = 8_000, seed: int = 0) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    arm = rng.integers(0, 2, n)
    enters = rng.integers(0, 8, n) + rng.integers(0, 4, n) * arm
    died = rng.geometric(np.where(arm, 0.06, 0.05), n)
    seen = died > enters
    arm, enters, died = arm[seen], enters[seen], died[seen]
    left = np.minimum(enters + rng.integers(3, 20, len(died)), 23)  # the last bin is open: not compared
    months = np.minimum(died, left)
    return {"arm": np.where(arm, "b", "a"), "enters": enters, "months": months, "died": (died <= left).astype(int)}


def exact(records: dict[str, Any], schema: ps.CountSchema = SCHEMA) -> ps.Release:
    return ps.Release.exact(schema, ps.measure(schema, records))


def test_curves_of_exact_counts_are_statsmodels() -> None:
    records = persons()
    curves = inf.kaplan_meier(exact(records), **WORDS, by="arm", entry="enters", start=1)
    assert isinstance(curves, inf.SurvivalCurves)
    for arm, curve in curves.items():
        own = records["arm"] == arm
        peer = SurvfuncRight(records["months"][own], records["died"][own], entry=records["enters"][own].astype(float))
        places = np.searchsorted(curve.timeline, peer.surv_times[peer.surv_times <= curve.timeline[-1]])
        known = len(places)
        np.testing.assert_allclose(curve.survival_function_[places], peer.surv_prob[:known], rtol=1e-9)
        np.testing.assert_allclose(curve.at_risk[places], peer.n_risk[:known])
        z = 1.959964
        safe = peer.surv_prob[:known]
        margin = z * peer.surv_prob_se[:known] / (safe * np.log(safe))
        np.testing.assert_allclose(curve.confidence_interval_[places, 0], safe ** np.exp(-margin), rtol=1e-4)
    first = {"time": 1, "n_risk": curves["a"].at_risk[0], "n_event": 0, "survival": 1, "conf_low": 1, "conf_high": 1}
    assert curves["a"].to_rows()[0] == pytest.approx({**first, "n_risk_std_error": 0, "n_event_std_error": 0})
    text = " ".join(str(curves.summary()).split())
    assert "survival is of those alive at 1, and a record is at risk from its entry on" in text
    assert "entry independent of the event among those still alive" in text


def test_a_curve_that_ends_where_it_begins_names_the_missing_start() -> None:
    """At discrete times nobody is at risk in the first bin, and noise hides how few are."""
    plan = ps.Plan(schema=SCHEMA, cohort=ps.Cohort(2, 2, 40_000), privacy=made.promise(epsilon=8.0))
    parts = [ps.measure(SCHEMA, {name: column[k::2] for name, column in persons().items()}) for k in (0, 1)]
    release = session.aggregate_unmasked(plan, parts, seeded(0))
    without = inf.kaplan_meier(release, **WORDS, by="arm", entry="enters")
    assert [len(curve.timeline) for curve in without.values()] == [0, 0]
    text = " ".join(str(without.summary()).split())
    assert all(fact in text for fact in ("The curve of a, b", "at 0: too few", "Pass start"))
    later = inf.kaplan_meier(release, **WORDS, by="arm", entry="enters", start=6)
    assert "Pass start" not in str(later.summary())


@pytest.mark.parametrize(
    ("times", "legend"),
    [
        ("discrete", '"At risk" is the number of records under observation at the time of the row.'),
        ("continuous", '"At risk" is the number of records under observation when the bin of the row begins;'),
    ],
)
def test_the_number_at_risk_has_a_legend(times: str, legend: str) -> None:
    curve = inf.kaplan_meier(exact(persons(), schema_at(times)), **{**WORDS, "times": times}, entry="enters", start=3)
    assert legend in " ".join(str(curve.summary()).split())


def test_the_logrank_test_of_exact_counts_is_statsmodels() -> None:
    records = persons()
    found = inf.logrank_test(exact(records), **WORDS, by="arm", entry="enters", start=1)
    statistic, _ = survdiff(records["months"], records["died"], records["arm"], entry=records["enters"].astype(float))
    assert found.test_statistic == pytest.approx(statistic, rel=1e-6)


def test_everyone_from_the_first_bin_on_is_the_reader_without_entry() -> None:
    rng, n = np.random.default_rng(0), 6_000
    died, left = rng.exponential(20, n), rng.exponential(30, n)
    arm = np.where(rng.random(n) < 0.5, "a", "b")
    records = {"arm": arm, "enters": np.zeros(n), "months": np.minimum(died, left), "died": (died <= left).astype(int)}
    after = {name: column[records["months"] >= 1] for name, column in records.items()}
    for times, seen in (("discrete", after), ("continuous", records)):
        how: dict[str, Any] = {**WORDS, "times": times}
        plain = inf.kaplan_meier(exact(seen, schema_at(times)), **how)
        late = inf.kaplan_meier(exact(seen, schema_at(times)), **how, entry="enters", start=1)
        assert isinstance(plain, inf.SurvivalCurve)
        assert isinstance(late, inf.SurvivalCurve)
        np.testing.assert_allclose(
            late.survival_function_, plain.survival_function_[1:] / plain.survival_function_[0], rtol=1e-9
        )


def ties(seed: int, n: int) -> dict[str, Any]:
    """Visits of any order: entries before, at and after the visit of the exit, and beyond the last edge."""
    rng = np.random.default_rng(seed)
    enters, months = rng.integers(0, rng.integers(2, 28), n), rng.integers(0, rng.integers(2, 28), n)
    arm = rng.choice(["a", "b"], n)
    return {"arm": arm, "enters": enters, "months": months, "died": rng.integers(0, 2, n)}


def left_out(records: dict[str, Any], schema: ps.CountSchema = SCHEMA) -> ps.Release:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ps.errors.UnreadableRecordsWarning)
        return ps.Release.exact(schema, ps.measure(schema, records, unreadable="leave out"))


@given(st.integers(0, 2**32), st.integers(30, 400), st.integers(0, 10))
def test_curves_of_any_visits_are_kaplan_and_meiers_product_over_those_at_risk(seed: int, n: int, start: int) -> None:
    records = ties(seed, n)
    assume((records["enters"] < records["months"]).any())
    curve = inf.kaplan_meier(left_out(records), **WORDS, entry="enters", start=start)
    assert isinstance(curve, inf.SurvivalCurve)
    survival = 1.0
    for place, time in enumerate(range(start, start + len(curve.timeline))):
        at_risk = (records["enters"] < time) & (records["months"] >= time)
        events = int((at_risk & (records["months"] == time) & (records["died"] == 1)).sum())
        survival *= 1 - events / max(at_risk.sum(), 1)
        assert (curve.at_risk[place], curve.events[place]) == (at_risk.sum(), events)
        assert curve.survival_function_[place] == pytest.approx(survival, abs=1e-12)
    beyond = range(start + len(curve.timeline), EDGES[-2])  # the last bin is open
    assert not any(((records["enters"] < time) & (records["months"] >= time)).any() for time in beyond)


@given(st.floats(0.0, 30.0), st.floats(0.0, 30.0), st.sampled_from(["discrete", "continuous"]))
def test_a_record_whose_event_counts_is_at_risk_in_the_bin_of_its_event(
    enters: float, months: float, times: str
) -> None:
    visits = times == "discrete" and math.floor(months) < EDGES[-2]
    assume(enters < months and not (visits and math.floor(enters) == math.floor(months)))
    record = {"arm": ["a"], "enters": [enters], "months": [months], "died": [1]}
    release = left_out(record, schema_at(times))
    (table,) = survival.event_tables(release, "months", "died", None, times, entry="enters").values()  # type: ignore[arg-type]
    held = table.counts[:-1] if times == "discrete" else table.counts  # the last bin is open: never reported
    exposure = survival.exposure_in(table.counts, times, late=True)[: len(held)]  # type: ignore[arg-type]
    assert ((exposure > 0) | (held[:, 1] == 0)).all()
    assert (exposure >= 0).all()


def test_events_right_after_the_entry_do_not_bias_curves_of_continuous_times() -> None:
    """Who enters and leaves in one bin is at risk between both times; leaving such records out would bias the curve."""
    rng, n = np.random.default_rng(3), 400_000
    enters, died = rng.uniform(0, 12, n), rng.exponential(6.0, n)
    left = enters + rng.exponential(6.0, n)
    records = {"arm": np.where(rng.random(n) < 0.5, "a", "b"), "enters": enters, "months": np.minimum(died, left)}
    seen = died > enters
    records = {name: column[seen] for name, column in {**records, "died": (died <= left) * 1}.items()}
    curves = inf.kaplan_meier(
        left_out(records, schema_at("continuous")), **{**WORDS, "times": "continuous"}, entry="enters", start=2
    )
    assert isinstance(curves, inf.SurvivalCurve)
    np.testing.assert_allclose(curves.survival_function_[:12], np.exp(-(curves.timeline[:12] - 2) / 6.0), atol=0.004)


@given(st.floats(0.0, 200.0), st.floats(0.0, 100.0), st.floats(0.001, 2.0))
def test_person_time_solves_its_equation(at_risk: float, entered: float, rate: float) -> None:
    """r' = E - l r, integrated by quadrature; the reader knows r, E and how many left."""
    if at_risk + entered < 1:
        return

    def present(t: float) -> float:
        return entered / rate + (at_risk - entered / rate) * float(np.exp(-rate * t))

    held, _ = quad(present, 0, 1)
    found = person_time(*(np.array([each]) for each in (at_risk, entered, rate * held)))
    if rate * held <= 0.9 * (at_risk + entered):
        assert found[0] == pytest.approx(held, rel=1e-6)


@given(st.lists(st.floats(-50.0, 500.0), min_size=3, max_size=3))
def test_person_time_of_any_noisy_counts_is_a_number_with_a_derivative(cells: list[float]) -> None:
    r, E, d = (np.array([each]) for each in cells)
    value = person_time(r, E, d)
    slope = np.imag(person_time(r + 1e-20j, E + 0j, d + 0j)) / 1e-20
    assert np.isfinite(value).all()
    assert np.isfinite(slope).all()


def test_one_record_is_in_one_cell_of_each_table_and_the_worst_attains_the_bound() -> None:
    """Entries cost a second table: mu grows by sqrt 2 at the same noise, for any record."""
    one = ps.measure(SCHEMA, {"arm": ["a"], "months": [7], "enters": [2], "died": [1]})
    cells = np.asarray(one.T)
    assert (np.square(cells).sum(), cells.sum()) == (2, 2)
    assert joint_mu(SCHEMA, {"T": 1.0}, "add-remove") == pytest.approx(2**0.5)


def test_noisy_curves_hold_the_exact_ones_about_as_often_as_they_say() -> None:
    records = persons(20_000)
    truth = inf.kaplan_meier(exact(records), **WORDS, entry="enters", start=3)
    assert isinstance(truth, inf.SurvivalCurve)
    plan = ps.Plan(schema=SCHEMA, cohort=ps.Cohort(2, 2, 40_000), privacy=made.promise(epsilon=2.0))
    parts = [ps.measure(SCHEMA, {name: column[k::2] for name, column in records.items()}) for k in (0, 1)]
    noisy = inf.kaplan_meier(session.aggregate_unmasked(plan, parts, seeded(0)), **WORDS, entry="enters", start=3)
    assert isinstance(noisy, inf.SurvivalCurve)
    bins = len(noisy.timeline)
    low, high = noisy.confidence_interval_.T
    assert ((low <= truth.survival_function_[:bins]) & (truth.survival_function_[:bins] <= high)).all()
    assert len(noisy.risk_table()[2]) == bins
    assert noisy.median().reported


OTHER = ps.Bins("enters", tuple(range(0, 26, 5)), open="above")
CAUSES = ps.Categories("died", (0, 1, 2))


def _schema(*variables: Any, tables: Any = TABLES, late: ps.LateEntry | None = None) -> ps.Release:
    return exact(persons(), ps.CountSchema(variables, tables, late_entry=late))


WRONG: list[tuple[Any, str]] = [
    (lambda: inf.kaplan_meier(exact(persons()), **WORDS, start=1), "start is for late entry"),
    (lambda: inf.kaplan_meier(exact(persons()), **WORDS, entry="enters", start=0.5), "start must be an edge"),
    (lambda: inf.kaplan_meier(exact(persons()), **WORDS, entry="entered"), "no released table crosses entered"),
    (lambda: inf.kaplan_meier(_schema(ARM, MONTHS, OTHER, DIED), **WORDS, entry="enters"), "with the edges of"),
    (
        lambda: inf.kaplan_meier(
            _schema(ARM, MONTHS, ENTERS, DIED, tables=(("arm", "months", "died"), ("enters",))),
            **WORDS,
            by="arm",
            entry="enters",
        ),
        "no released table crosses arm x enters",
    ),
    (
        lambda: inf.kaplan_meier(exact(persons()), **WORDS, entry="enters", start=1).restricted_mean(12),
        "restricted means need times from 0",
    ),
    (
        lambda: inf.logrank_test(_schema(ARM, MONTHS, ENTERS, CAUSES), **WORDS, by="arm", entry="enters"),
        "exactly two values",
    ),
    (
        lambda: inf.kaplan_meier(_schema(ARM, MONTHS, ENTERS, DIED), **WORDS, entry="enters"),
        r"needs a plan with late_entry=LateEntry\('enters', 'months', times='discrete'\).* This plan has none, as .*: "
        r"count again under a plan with late_entry. Tables that need no entry can be read",
    ),
    (
        lambda: inf.kaplan_meier(exact(persons()), **{**WORDS, "times": "continuous"}, entry="enters"),
        r"by 'enters' and 'months' at discrete times, and .* times 'continuous' were requested: pass entry 'enters', "
        r"time 'months' and times 'discrete'",
    ),
    (
        lambda: inf.logrank_test(_schema(ARM, MONTHS, ENTERS, DIED), **WORDS, by="arm", entry="enters"),
        "may hold events of persons who were never at risk",
    ),
    (
        lambda: inf.kaplan_meier(
            _schema(ARM, MONTHS, ENTERS, ps.Categories("died", (0, 1), missing=True), late=SCHEMA.late_entry),
            **WORDS,
            entry="enters",
        ),
        "needs every record's event, and 'died' has a cell for missing values",
    ),
]


@pytest.mark.parametrize(("call", "words"), WRONG)
def test_what_cannot_be_read_is_one_clear_sentence(call: Any, words: str) -> None:
    refused(ReleaseError, words, call)


def test_counts_with_and_without_records_that_are_never_at_risk_may_be_the_same_tables() -> None:
    """So no reader can tell them apart, and an entry is refused where the plan excludes none."""
    schema = ps.CountSchema((ARM, MONTHS, ENTERS, DIED), TABLES)
    valid = {"arm": ["a", "a"], "enters": [1, 3], "months": [2, 5], "died": [1, 1]}
    never = {**valid, "enters": [3, 1]}  # the first leaves before it enters
    releases = [exact(records, schema) for records in (valid, never)]
    np.testing.assert_array_equal(*(each.moments.T for each in releases))
    for release in releases:
        refused(ReleaseError, "count again", lambda: inf.kaplan_meier(release, **WORDS, entry="enters"))  # noqa: B023
        assert isinstance(inf.kaplan_meier(release, **WORDS), inf.SurvivalCurve)
    assert isinstance(inf.kaplan_meier(exact(valid), **WORDS, entry="enters", start=2), inf.SurvivalCurve)


def test_the_words_of_a_refusal_read_the_table() -> None:
    release = exact(persons(), schema_at("continuous"))
    refused(ReleaseError, "pass entry 'enters', time 'months' and times 'continuous'",
            lambda: inf.kaplan_meier(release, **WORDS, entry="enters"))  # fmt: skip
    stated = {"event": "died", "entry": "enters", "time": "months", "times": "continuous"}
    assert isinstance(inf.kaplan_meier(release, **stated, start=1), inf.SurvivalCurve)


def test_strata_have_entries_of_their_own() -> None:
    records = persons()
    site = np.where(np.arange(len(records["arm"])) % 2, "north", "south")
    where = ps.Categories("site", ("north", "south"))
    tables = ("arm", "site", "months", "died"), ("arm", "site", "enters")
    schema = ps.CountSchema((ARM, where, MONTHS, ENTERS, DIED), tables, late_entry=SCHEMA.late_entry)
    release = exact({**records, "site": site}, schema)
    found = inf.logrank_test(release, **WORDS, by="arm", strata="site", entry="enters", start=4)
    difference, variance = 0.0, 0.0  # statsmodels' test with entry has no strata
    for name in ("north", "south"):
        own = {key: column[site == name] for key, column in records.items()}
        for time in range(4, 24):
            at_risk, events = (own["enters"] < time) & (own["months"] >= time), (own["months"] == time) & own["died"]
            r, d, first = at_risk.sum(), events.sum(), (own["arm"] == "a") & at_risk
            if r > 1:
                share = first.sum() / r
                difference += (events & (own["arm"] == "a")).sum() - d * share
                variance += d * share * (1 - share) * (r - d) / (r - 1)
    assert found.test_statistic == pytest.approx(difference**2 / variance, rel=1e-9)


@pytest.mark.nightly
@pytest.mark.timeout(600)
@pytest.mark.parametrize("times", ["discrete", "continuous"])
def test_curves_and_tests_keep_their_level(times: str) -> None:
    row = bench.measured(times, 4_000, 8.0, 300)
    assert row["reported"] > 0.9
    assert max(row["worst point"], row["rejected"]) <= 0.1  # 30 of 300: with probability 3e-4 at a rate of .05
    assert row["entry ignored misses"] > 0.9
