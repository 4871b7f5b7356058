"""Set numbers of trials and registries next to those of R, statsmodels and lifelines on the same pooled records.

    python -m benchmarks.inference.references --save

Both sides have the same records and no noise: the sums of two parties are exact, as are the sums at the weights that
each round publishes. What remains is the grid of the sums and, for hazards, the bins of time, where the references have
continuous times. Rows of a package that is not installed are excluded.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import importlib.util
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import reduce
from operator import add
from typing import Any

import numpy as np
import pandas as pd

import privstats as ps
from benchmarks.inference import clusters, subdistribution
from benchmarks.inference.in_r import in_r, r_version
from benchmarks.inference.runs import stored
from benchmarks.measuring import Row, Tables, command
from privstats import course as courses
from privstats import inference as inf
from privstats.course import Analysis, Margin
from privstats.encoding import flatten
from privstats.estimates.boundaries import boundaries, shaped, spent
from privstats.moments import exact_moments
from privstats.transforms import Centre, ConstantFeature, Interactions, Scale

__all__ = ["NAME", "PARTS", "TITLE", "Compared", "stored", "tables"]

NAME = "inference.references"
TITLE = "the same pooled records, without noise"
EPSILON = 100.0  # the most that a plan states: readers count its noise, which the sums do not have
NAMES = ("arm", "sex", "age")
EDGES = tuple(range(31))


@dataclass(frozen=True)
class Compared:
    """One number of ours, and a reference's.

    Attributes:
        part: what it belongs to, as the table prints it.
        error: the reference's standard error, where the number is an estimate in another's time or model.
    """

    part: str
    number: str
    ours: float
    theirs: float
    reference: str
    error: float | None = None

    @property
    def row(self) -> Row:
        """The row of the table; differences of estimates are also in standard errors."""
        apart = self.ours - self.theirs
        errors = None if self.error is None else abs(apart) / self.error
        return {**vars(self), "difference": apart, "in standard errors": errors}


def tables(options: argparse.Namespace) -> Tables:
    """Return all parts, or with ``--quick`` those without rounds."""
    parts = PARTS[:3] if options.quick else PARTS
    yield TITLE, [each.row for part in parts for each in part()]


# --- exact sums


def released(course: Any, X: Any, y: Any) -> list[ps.Release | None]:
    """Return the releases of a course over records of two parties, with the exact sums in place of noisy ones."""

    def release(node: courses.Round) -> ps.Release:
        plan = node.plan
        parts = [(_half(X, k), None if y is None else y[k::2]) for k in (0, 1)]
        moments = [exact_moments(plan.schema, *each, published=plan.published) for each in parts]
        return ps.Release(plan, flatten(reduce(add, moments)), (0, 1))

    return courses.run(course, release)


def _half(X: Any, k: int) -> Any:
    return {name: column[k::2] for name, column in X.items()} if isinstance(X, dict) else X[k::2]


def terms(records: int) -> tuple[ps.Cohort, ps.Privacy]:
    """Return the cohort and promise of a course."""
    privacy = ps.Privacy(model="central", unit="record", adjacency="add-remove", epsilon=EPSILON, delta=1e-6)
    return ps.Cohort(2, 2, 2 * records), privacy


def counted(schema: ps.CountSchema, records: dict[str, Any]) -> ps.Release:
    """Return exact counts."""
    return ps.Release.exact(schema, ps.measure(schema, records))


def _sampling(error: float, noise: float) -> float:
    """Return a standard error without the part that a reader adds for noise."""
    return math.sqrt(max(float(error) ** 2 - float(noise) ** 2, 0.0))


def python(package: str) -> str:
    """Return a Python package with its version; empty where it is not installed."""
    return f"{package} {importlib.metadata.version(package)}" if importlib.util.find_spec(package) else ""


def r(package: str) -> str:
    """Return an R package with its version; empty where it is not installed."""
    version = r_version(package)
    return f"R {package} {version}" if version else ""


# --- records


def trial(n: int = 4_000, seed: int = 3) -> pd.DataFrame:
    """Draw a trial: two binary columns, age, an outcome, a gain, and months until death or leaving."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame({"arm": rng.integers(0, 2, n), "sex": rng.integers(0, 2, n), "age": rng.uniform(20, 90, n)})
    score = 0.5 * frame.arm + 0.3 * frame.sex - 0.6 * frame.arm * frame.sex + 0.01 * (frame.age - 55) - 0.5
    frame["better"] = (rng.random(n) < 1 / (1 + np.exp(-score))).astype(int)
    died, left = rng.exponential(30 / np.exp(score)), rng.uniform(6, 30, n)
    frame["months"], frame["died"] = np.minimum(died, left), (died <= left).astype(int)
    return frame


def visits(n: int = 4_000) -> dict[str, Any]:
    """Draw persons who enter late, at discrete times."""
    rng = np.random.default_rng(5)
    arm = rng.integers(0, 2, n)
    enters = rng.integers(0, 8, n) + rng.integers(0, 4, n) * arm
    died = rng.geometric(np.where(arm, 0.06, 0.05), n)
    seen = died > enters
    arm, enters, died = arm[seen], enters[seen], died[seen]
    left = np.minimum(enters + rng.integers(3, 20, len(died)), 23)
    months = np.minimum(died, left)
    return {"arm": np.where(arm, "b", "a"), "enters": enters, "months": months, "died": (died <= left).astype(int)}


# --- the eight parts

_SURVIVAL = """
library(survival)
records <- records[records$months > 0, ]
fit <- survfit(Surv(enters, months, died) ~ 1, data = records, subset = arm == "a", conf.type = "log-log")
at <- summary(fit, times = 12)
say(c("survival", "low", "high"), c(at$surv, at$lower, at$upper))
"""


def late_curves() -> Iterator[Compared]:
    """Compare curves and the log-rank test with late entry, at discrete times."""
    part, records = "1 late entry", visits()
    names = ("arm", "months", "enters", "died")
    clocks = [ps.Bins(name, EDGES, open="above") for name in names[1:3]]
    arm, died = ps.Categories("arm", ("a", "b")), ps.Categories("died", (0, 1))
    tables = ("arm", "months", "died"), ("arm", "enters")
    late_entry = ps.LateEntry("enters", "months", times="discrete")
    release = counted(ps.CountSchema((arm, *clocks, died), tables, late_entry=late_entry), records)
    late: dict[str, Any] = {"time": "months", "event": "died", "by": "arm", "times": "discrete", "entry": "enters"}
    curves = inf.kaplan_meier(release, **late, start=1)
    assert isinstance(curves, inf.SurvivalCurves)
    curve = curves["a"]
    place = int(np.searchsorted(curve.timeline, 12))
    low, high = curve.confidence_interval_[place]
    ours = {"survival": curve.survival_function_[place], "low": low, "high": high}
    ours["logrank"] = inf.logrank_test(release, **late, start=1).test_statistic
    labels = {
        "survival": "survival at 12",
        "low": "lower end of its interval",
        "high": "upper end",
        "logrank": "log-rank statistic",
    }
    if reference := r("survival"):
        theirs = in_r(_SURVIVAL, records=records)
        for name in ("survival", "low", "high"):
            yield Compared(part, labels[name], float(ours[name]), theirs[name], f"{reference}, survfit")
    if reference := python("lifelines"):
        from lifelines import KaplanMeierFitter

        own = records["arm"] == "a"
        fitted = KaplanMeierFitter().fit(records["months"][own], records["died"][own], entry=records["enters"][own])
        yield Compared(part, labels["survival"], ours["survival"], float(fitted.predict(12)), f"{reference}")
    if reference := python("statsmodels"):
        from statsmodels.duration.survfunc import survdiff

        entry = records["enters"].astype(float)
        statistic, _ = survdiff(records["months"], records["died"], records["arm"], entry=entry)
        yield Compared(part, labels["logrank"], ours["logrank"], float(statistic), f"{reference}, survdiff")


_RESTRICTED = """
library(survival)
fit <- survfit(Surv(months, died) ~ arm, data = records)
means <- summary(fit, rmean = 12)$table[, "rmean"]
say(c("difference", "ratio"), c(means[2] - means[1], means[2] / means[1]))
say("follow-up", quantile(survfit(Surv(months, 1 - died) ~ 1, data = records), 0.5)$quantile)
"""


def restricted() -> Iterator[Compared]:
    """Compare restricted means, follow-up and E-values, at discrete times."""
    part, frame = "2 margins", trial()
    records = {"arm": frame.arm.to_numpy(), "months": np.floor(frame.months.to_numpy()), "died": frame.died.to_numpy()}
    variables = (ps.Categories("arm", (0, 1)), ps.Bins("months", EDGES), ps.Categories("died", (0, 1)))
    schema = ps.CountSchema((*variables,), (("arm", "months", "died"),))
    how: dict[str, Any] = {"time": "months", "event": "died", "times": "discrete"}
    release = counted(schema, records)
    means = inf.restricted_means(inf.kaplan_meier(release, by="arm", **how), 12.0)
    followed = inf.follow_up(release, **how).medians[""].value
    ours = {"difference": means.difference.value, "ratio": means.ratio.value, "follow-up": followed}
    labels = {"difference": "difference of restricted means to 12", "ratio": "their ratio"}
    labels["follow-up"] = "median follow-up"
    if reference := r("survival"):
        theirs = in_r(_RESTRICTED, records=records)
        yield from (Compared(part, labels[each], ours[each], theirs[each], f"{reference}, survfit") for each in ours)
    if reference := python("lifelines"):
        from lifelines import KaplanMeierFitter
        from lifelines.utils import restricted_mean_survival_time

        fits = [
            KaplanMeierFitter().fit(records["months"][records["arm"] == arm], records["died"][records["arm"] == arm])
            for arm in (0, 1)
        ]
        first, second = (restricted_mean_survival_time(each, 12.0) for each in fits)
        yield Compared(part, labels["difference"], ours["difference"], float(second - first), reference)
        median = KaplanMeierFitter().fit(records["months"], 1 - records["died"]).median_survival_time_
        yield Compared(part, labels["follow-up"], followed, float(median), reference)
    found = inf.e_value(3.9, 1.8, 8.7, measure="risk ratio")
    published = "VanderWeele and Ding 2017, to two digits"
    yield Compared(part, "E-value of a risk ratio of 3.9", round(found.estimate, 2), 7.26, published)
    yield Compared(part, "E-value of its limit, 1.8", round(found.limit, 2), 3.0, published)


_MISSING = """
part <- records[records$arm == "b", ]
test <- prop.test(sum(is.na(part$bmi)), nrow(part), correct = FALSE)
say(c("share", "low", "high"), c(test$estimate, test$conf.int))
"""


def missing() -> Iterator[Compared]:
    """Compare the share of missing values in an arm, with Wilson's interval."""
    rng, n = np.random.default_rng(6), 4_000
    arm = np.where(rng.random(n) < 0.5, "b", "a")
    bmi = np.where(rng.random(n) < np.where(arm == "b", 0.15, 0.1), np.nan, rng.uniform(15, 45, n))
    records = {"arm": arm, "bmi": bmi}
    variables = (ps.Categories("arm", ("a", "b")), ps.Bins("bmi", (15, 25, 45), missing=True))
    table = inf.missing_values(counted(ps.CountSchema(variables, (("arm", "bmi"),)), records), by="arm")
    (own,) = (each.share for each in table if each.group == "b")
    ours = {"share": own.value, "low": own.low, "high": own.high}
    labels = {"share": "share missing in an arm", "low": "lower end of its interval", "high": "upper end"}
    if r("survival"):  # base R alone
        theirs = in_r(_MISSING, records=records)
        yield from (
            Compared("8 missing values", labels[each], ours[each], theirs[each], "R prop.test") for each in ours
        )
    if reference := python("statsmodels"):
        from statsmodels.stats.proportion import proportion_confint

        gone, there = int(np.isnan(bmi[arm == "b"]).sum()), int((arm == "b").sum())
        low, _ = proportion_confint(gone, there, method="wilson")
        yield Compared("8 missing values", labels["low"], own.low, float(low), f"{reference}, Wilson")


_COX_LATE = """
library(survival)
records <- records[records$months > records$enters, ]
fit <- coxph(Surv(enters, pmin(months, 24), died * (months <= 24)) ~ arm + age, data = records, subset = enters < 24)
say(c("arm", "age"), coef(fit))
say(c("arm error", "age error"), sqrt(diag(vcov(fit))))
"""


def late_ratios() -> Iterator[Compared]:
    """Compare hazard ratios with late entry, at continuous times."""
    reference = r("survival")
    if not reference:
        return
    records = _late_registry()
    schema = ps.HazardSchema(
        3,
        3**0.5,
        bins=ps.Bins("months", tuple(range(0, 25, 2))),
        event="died",
        entry="enters",
        feature_names=("arm", "age"),
        transform=(ConstantFeature(1.0),),
        times="continuous",
    )
    table = inf.hazards(released(ps.Hazard.start(schema, *terms(len(records["arm"])), rounds=8), records, None))
    theirs = in_r(_COX_LATE, records=records)
    for name, value in zip(table.names, table.params, strict=True):
        error = theirs[f"{name} error"]
        yield Compared(
            "1 late entry", f"log hazard ratio of {name}", float(value), theirs[name], f"{reference}, coxph", error
        )


def _late_registry(n: int = 12_000) -> dict[str, Any]:
    rng = np.random.default_rng(9)
    arm, age, enters = rng.integers(0, 2, n), rng.uniform(-1, 1, n), rng.uniform(0, 10, n)
    died, left = rng.exponential(60 / np.exp(0.4 * arm + 0.3 * age)), enters + rng.exponential(20, n)
    seen = died > enters
    columns = {"arm": arm, "age": age, "enters": enters, "months": np.minimum(died, left), "died": (died <= left) * 1}
    return {name: column[seen] for name, column in columns.items()}


_TRIAL_R = """
library(sandwich)
records$middle <- records$age - mean(records$age)
fit <- lm(better ~ arm * middle, data = records)
say("effect", coef(fit)["arm"])
say("effect error", sqrt(vcovHC(fit, type = "HC0")["arm", "arm"]))
plain <- lm(better ~ arm * sex, data = records)
say("apart", coef(plain)["arm:sex"])
z <- coef(plain)["arm:sex"] / sqrt(vcovHC(plain, type = "HC0")["arm:sex", "arm:sex"])
say("p", 2 * pnorm(-abs(z)))
say("margin", pnorm(-(coef(fit)["arm"] + 0.02) / sqrt(vcovHC(fit, type = "HC0")["arm", "arm"])))
"""


def effects() -> Iterator[Compared]:
    """Compare a trial's effect, the verdict on a margin, and the test of an interaction."""
    frame = trial(1_500)
    maps: dict[str, Any] = {"treatment": "arm", "probability": 0.5}
    columns, y = frame[["age", "arm"]], frame[["better"]].to_numpy()
    declared = Analysis(primary=("better",), margins=(Margin("better", low=-0.02),))
    schema = ps.EffectSchema.of({"age": (20, 90)}, outcome={"better": (0, 1)}, **maps)
    course = ps.Effect.start(schema, *terms(len(frame)), analysis=declared)
    rows = inf.effects(released(course, columns.to_numpy(), y), course)
    by_sex = ps.EffectSchema.of(
        {"sex": (0, 1)}, outcome={"better": (0, 1)}, subgroups=(ps.Categories("sex", (0, 1)),), **maps
    )
    split = ps.Effect.start(by_sex, *terms(len(frame)))
    apart = inf.effects(released(split, frame[["sex", "arm"]].to_numpy(), y))
    (test,) = apart.interactions()
    assert test.p_value is not None
    first, second = (apart["better", f"sex: {each}"].estimate for each in (0, 1))
    (verdict,) = rows.verdicts()
    (only,) = rows.tables
    ours = {"effect": only.estimate, "effect error": _sampling(only.bse, only.noise_bse), "margin": verdict.p_value}
    ours |= {"apart": second - first, "p": test.p_value}
    labels = {
        "effect": ("2 margins", "adjusted difference of risks"),
        "effect error": ("2 margins", "its standard error"),
        "margin": ("2 margins", "P of non-inferiority"),
        "apart": ("3 interactions", "difference of effects by sex"),
        "p": ("3 interactions", "its P"),
    }
    records = {name: frame[name].to_numpy() for name in ("arm", "sex", "age", "better")}
    if reference := r("sandwich"):
        theirs = in_r(_TRIAL_R, records=records)
        for name, (part, label) in labels.items():
            error = theirs["effect error"] if name == "effect" else None
            how = f"R lm with interactions (Lin 2013), {reference.removeprefix('R ')} HC0"
            yield Compared(part, label, float(ours[name]), theirs[name], how, error)
    if reference := python("statsmodels"):
        import statsmodels.formula.api as smf

        middle = frame.assign(middle=frame.age - frame.age.mean())
        fit = smf.ols("better ~ arm * middle", middle).fit(cov_type="HC0")
        how, error = f"{reference}, OLS with interactions, HC0", float(fit.bse["arm"])
        yield Compared("2 margins", labels["effect"][1], only.estimate, float(fit.params["arm"]), how, error)


_LOGIT = """
fit <- glm(better ~ arm * sex + age, family = binomial, data = records)
say(names(coef(fit)), coef(fit))
library(survival)
cox <- coxph(Surv(pmin(months, 24), died * (months <= 24)) ~ arm * sex + age, data = records)
say(paste("cox", names(coef(cox))), coef(cox))
say(paste("error", names(coef(cox))), sqrt(diag(vcov(cox))))
"""


def interactions() -> Iterator[Compared]:
    """Compare interactions in logistic regression and hazards."""
    frame = trial(20_000)
    products = Interactions.between(NAMES, [("arm", "sex")])
    maps = (Centre((0.5, 0.5, 55.0)), Scale((0.5, 0.5, 35.0)), products, ConstantFeature(1.0))
    score = ps.ScoreSchema(5, math.sqrt(5), transform=maps, feature_names=NAMES, grid_bits=16)
    course = ps.Newton.start(score, *terms(len(frame)), rounds=8)
    logit = inf.logit(released(course, frame[[*NAMES]].to_numpy(), frame["better"].to_numpy()))
    hazard = ps.HazardSchema(
        5,
        math.sqrt(5),
        bins=ps.Bins("months", tuple(range(0, 25, 2))),
        event="died",
        feature_names=NAMES,
        transform=maps,
        times="continuous",
    )
    columns = {name: frame[name].to_numpy() for name in (*NAMES, "months", "died")}
    ratios = inf.hazards(released(ps.Hazard.start(hazard, *terms(len(frame)), rounds=8), columns, None))
    part = "3 interactions"
    product = float(logit.params[logit.names.index("arm x sex")])
    if reference := r("survival"):
        theirs = in_r(_LOGIT, records={**columns, "better": frame["better"].to_numpy()})
        yield Compared(part, "log odds ratio of arm x sex", product, theirs["arm:sex"], "R glm, binomial")
        for ours, name in (("arm", "arm"), ("arm x sex", "arm:sex")):
            value, error = ratios.params[ratios.names.index(ours)], theirs[f"error {name}"]
            yield Compared(
                part, f"log hazard ratio of {ours}", float(value), theirs[f"cox {name}"], f"{reference}, coxph", error
            )
    if reference := python("statsmodels"):
        import statsmodels.formula.api as smf

        fit = smf.logit("better ~ arm * sex + age", frame).fit(disp=0)
        yield Compared(
            part, "log odds ratio of arm x sex", product, float(fit.params["arm:sex"]), f"{reference}, logit"
        )


_RATES = """
fit <- glm(falls ~ treated + age + offset(log(years)), family = quasipoisson, data = records)
say(names(coef(fit)), coef(fit))
say(paste("error", names(coef(fit))), sqrt(diag(vcov(fit))))
library(sandwich)
plain <- glm(falls ~ treated + age + offset(log(years)), family = poisson, data = records)
say(paste("robust", names(coef(plain))), sqrt(diag(vcovHC(plain, type = "HC0"))))
library(MASS)
other <- glm.nb(falls ~ treated + age + offset(log(years)), data = records)
say(paste("nb", names(coef(other))), coef(other))
say("alpha", 1 / other$theta)
weighed <- glm(falls ~ treated + age + offset(log(years)), family = negative.binomial(1 / 1.0), data = records)
say(paste("fixed", names(coef(weighed))), coef(weighed))
say(paste("fixed robust", names(coef(weighed))), sqrt(diag(vcovHC(weighed, type = "HC0"))))
"""


def rates() -> Iterator[Compared]:
    """Compare rate ratios per exposure with robust and quasi-Poisson errors, and with negative binomial ratios."""
    rng, n = np.random.default_rng(7), 60_000
    X = np.c_[rng.integers(0, 2, n), rng.uniform(-1, 1, n)] * 1.0
    years = rng.uniform(0.1, 4, n) * np.where(X[:, 0] == 1, 0.5, 1)
    falls = np.minimum(rng.poisson(years * np.exp(-0.9 - 0.5 * X[:, 0] + 0.3 * X[:, 1]) * rng.gamma(1, 1, n)), 8)
    schema = ps.ScoreSchema(
        3,
        3**0.5,
        family="poisson",
        target_bound=8.0,
        exposure="years",
        exposure_bound=4.0,
        rate=0.4,
        grid_bits=18,
        transform=(ConstantFeature(1.0),),
        feature_names=("treated", "age"),
    )
    releases = released(ps.Newton.start(schema, *terms(n), rounds=9), X, np.c_[falls, years])
    robust, quasi = inf.poisson(releases), inf.poisson(releases, quasi_poisson=True)
    declaring = ps.Newton.start(replace(schema, negative_binomial=1.0), *terms(n), rounds=9)
    weighed = inf.poisson(released(declaring, X, np.c_[falls, years]))
    estimating = ps.Newton.start(replace(schema, overdispersion="estimated"), *terms(n), rounds=9)
    found = inf.poisson(released(estimating, X, np.c_[falls, years])).overdispersion
    assert found is not None
    part, place = "4 counts", robust.names.index("treated")
    label = "log rate ratio of treated"
    value = float(robust.params[place])
    if reference := r("sandwich"):
        theirs = in_r(_RATES, records={"treated": X[:, 0], "age": X[:, 1], "falls": falls, "years": years})
        error = theirs["robust treated"]
        yield Compared(part, label, value, theirs["treated"], "R glm, Poisson with offset", error)
        yield Compared(
            part, "its robust error", _sampling(robust.bse[place], robust.noise_bse[place]), error, f"{reference}, HC0"
        )
        how = "R glm, quasi-Poisson (Pearson's mean)"
        yield Compared(
            part,
            "its quasi-Poisson error",
            _sampling(quasi.bse[place], quasi.noise_bse[place]),
            theirs["error treated"],
            how,
        )
        if negative := r("MASS"):
            how = f"{negative}, glm.nb: another model's ratio"
            yield Compared(part, label, value, theirs["nb treated"], how, error)
            how = f"{negative}, glm.nb: by likelihood"
            yield Compared(part, "dispersion alpha of counts cut at 8", found.value, theirs["alpha"], how)
            how, error = f"{negative}, dispersion 1", theirs["fixed robust treated"]
            yield Compared(
                part, f"{label}, dispersion 1", float(weighed.params[place]), theirs["fixed treated"], how, error
            )
            ours = _sampling(weighed.bse[place], weighed.noise_bse[place])
            yield Compared(part, "its robust error", ours, error, f"{reference}, HC0")
    if reference := python("statsmodels"):
        import statsmodels.api as sm

        fit = sm.GLM(falls, sm.add_constant(X), sm.families.Poisson(), exposure=years).fit(cov_type="HC0")
        moments = float((np.square(falls - fit.mu) - falls).sum() / np.square(fit.mu).sum())
        label = "dispersion alpha, by moments"
        yield Compared(part, label, found.value, moments, f"{reference}, from GLM's means")
        other = sm.NegativeBinomial(falls, sm.add_constant(X), exposure=years).fit(disp=0)
        how = f"{reference}, NegativeBinomial: by likelihood"
        yield Compared(part, "dispersion alpha of counts cut at 8", found.value, float(other.params[-1]), how)
        label = "log rate ratio of treated"
        yield Compared(part, label, value, float(fit.params[1]), f"{reference}, GLM", float(fit.bse[1]))
        yield Compared(
            part,
            "its robust error",
            _sampling(robust.bse[place], robust.noise_bse[place]),
            float(fit.bse[1]),
            f"{reference}, HC0",
        )


_CLUSTERS = """
library(sandwich)
records$middle <- records$region - mean(records$region)
fit <- lm(share ~ arm * middle, data = records)
say("effect", coef(fit)["arm"])
say("error", sqrt(vcovHC(fit, type = "HC0")["arm", "arm"]))
people$weight <- 1 / ave(people$improved, people$clinic, FUN = length)
people$middle <- people$region - mean(records$region)
own <- lm(improved ~ arm * middle, data = people, weights = weight)
say("people", coef(own)["arm"])
say("people error", sqrt(vcovCL(own, cluster = people$clinic, type = "HC0", cadjust = FALSE)["arm", "arm"]))
"""


def cluster_trial() -> Iterator[Compared]:
    """Compare the effect over clusters with a regression of cluster means, and of patients with errors by cluster."""
    world = clusters.World(400, EPSILON, 0.15)
    region, arm, size, improved = world.drawn(np.random.default_rng(1))
    course, part = clusters.course_of(world, clusters.RANGE, 400), "5 clusters"
    share = np.clip(improved / size, *clusters.RANGE)
    found = inf.effect(released(course, np.c_[region, arm], share))
    records = {"region": region, "arm": arm, "share": share}
    clinic = np.repeat(np.arange(len(size)), size)
    people = {
        "clinic": clinic,
        "arm": arm[clinic],
        "region": region[clinic],
        "improved": np.concatenate([np.arange(n) < k for n, k in zip(size, improved, strict=True)]) * 1,
    }
    if reference := r("sandwich"):
        theirs = in_r(_CLUSTERS, records=records, people=people)
        error, how = theirs["error"], f"R lm of cluster means, {reference.removeprefix('R ')} HC0"
        yield Compared(part, "adjusted effect over clusters", found.estimate, theirs["effect"], how, error)
        yield Compared(part, "its standard error", _sampling(found.bse, found.noise_bse), error, how)
        how = f"R lm of patients weighted by cluster, {reference.removeprefix('R ')} vcovCL"
        yield Compared(part, "adjusted effect over clusters", found.estimate, theirs["people"], how, error)
        yield Compared(part, "its standard error", _sampling(found.bse, found.noise_bse), theirs["people error"], how)
    if reference := python("statsmodels"):
        import statsmodels.formula.api as smf

        frame = pd.DataFrame(records).assign(middle=region - region.mean())
        fit = smf.ols("share ~ arm * middle", frame).fit(cov_type="HC0")
        yield Compared(
            part,
            "adjusted effect over clusters",
            found.estimate,
            float(fit.params["arm"]),
            f"{reference}, OLS",
            float(fit.bse["arm"]),
        )
    yield from crossover()


_CROSSOVER = """
test <- t.test(difference ~ sequence, data = records)
say("effect", -diff(test$estimate) / 2)
say("low", test$conf.int[1] / 2)
say("high", test$conf.int[2] / 2)
"""


def crossover() -> Iterator[Compared]:
    """Compare the effect of a crossover trial with two periods, from each person's difference between them."""
    rng, n = np.random.default_rng(4), 2_000
    sequence = rng.integers(0, 2, n)  # 1: the drug first
    person, slope = rng.normal(50, 8, n), rng.normal(0, 3, (2, n))
    first = person + 4.0 * (sequence == 1) + slope[0]
    second = person + 2.0 + 4.0 * (sequence == 0) + slope[1]
    difference = np.clip(first - second, -40, 40)
    schema = ps.EffectSchema.of(
        {"age": (20, 90)}, treatment="sequence", outcome={"difference": (-40, 40)}, probability=0.5
    )
    X = np.c_[rng.uniform(20, 90, n), sequence]
    found = inf.effect(released(ps.Effect.start(schema, *terms(n)), X, difference))
    low, high = found.conf_int() / 2
    ours = {"effect": found.estimate / 2, "low": low, "high": high}
    labels = {"effect": "effect of a crossover", "low": "lower end of its interval", "high": "upper end"}
    if r("survival"):  # base R alone
        words = np.where(sequence == 1, "AB", "BA")
        theirs = in_r(_CROSSOVER, records={"sequence": words, "difference": difference})
        error = (theirs["high"] - theirs["low"]) / 3.92
        how = "R t.test of differences, halved"
        yield from (Compared("5 clusters", labels[each], float(ours[each]), theirs[each], how, error) for each in ours)
    if reference := python("statsmodels"):
        from statsmodels.stats.weightstats import CompareMeans, DescrStatsW

        compared = CompareMeans(*(DescrStatsW(difference[sequence == each]) for each in (1, 0)))
        low, high = (each / 2 for each in compared.tconfint_diff(usevar="unequal"))
        theirs = {"effect": (low + high) / 2, "low": low, "high": high}
        how, error = f"{reference}, Welch's t of differences, halved", (high - low) / 3.92
        yield from (Compared("5 clusters", labels[each], float(ours[each]), theirs[each], how, error) for each in ours)


_LOOKS = """
library(rpact)
for (kind in c("asOF", "asP", "OF", "P")) {
  design <- getDesignGroupSequential(kMax = 5, alpha = 0.025, sided = 1, typeOfDesign = kind)
  say(paste(kind, 1:5), design$criticalValues)
}
"""
_PUBLISHED = {
    "OF": ([4.562, 3.226, 2.634, 2.281, 2.040], "O'Brien and Fleming 1979"),
    "P": ([2.413] * 5, "Pocock 1977"),
}


def looks() -> Iterator[Compared]:
    """Compare boundaries of five looks without noise."""
    times, part = [look / 5 for look in range(1, 6)], "6 interim looks"
    kinds = {"asOF": "obrien-fleming", "asP": "pocock", "OF": "obrien-fleming", "P": "pocock"}
    theirs, reference = ({}, r("rpact"))
    if reference:
        theirs = in_r(_LOOKS)
    for name, kind in kinds.items():
        spending = name.startswith("as")
        alphas = np.diff(spent(kind, times, 0.05), prepend=0).tolist()
        ours = boundaries(times, [0.0] * 5, alphas) if spending else shaped(kind, times, 0.05)
        what = f"{kind}{', by spending' if spending else ''}, look"
        for look in (1, 3, 5):
            if reference:
                other = theirs[f"{name} {look}"]
                yield Compared(part, f"{what} {look} of 5", float(ours[look - 1]), other, reference)
            if name in _PUBLISHED and look in (1, 5):
                values, source = _PUBLISHED[name]
                yield Compared(
                    part, f"{what} {look} of 5", round(float(ours[look - 1]), 3), values[look - 1], f"{source}, printed"
                )


_GRAY = """
library(survival)
library(cmprsk)
ended <- match(records$ended, c("no", "relapse", "death")) - 1
fit <- crr(records$months, ended, cbind(records$arm, records$age))
say(c("arm", "age"), fit$coef)
say(c("arm error", "age error"), sqrt(diag(fit$var)))
records$status <- factor(records$ended, c("no", "relapse", "death"))
long <- finegray(Surv(months, status) ~ arm + age, data = records, etype = "relapse")
cox <- coxph(Surv(fgstart, fgstop, fgstatus) ~ arm + age, weights = fgwt, data = long)
say(c("finegray arm", "finegray age"), coef(cox))
own <- coxph(Surv(months, ended == "relapse") ~ arm + age, data = records)
say(c("cause arm", "cause age"), coef(own))
say(c("cause arm error", "cause age error"), sqrt(diag(vcov(own))))
"""


def fine_and_gray() -> Iterator[Compared]:
    """Compare subdistribution and cause-specific ratios."""
    if not (reference := r("cmprsk")):
        return
    n, part = 4_000, "7 Fine and Gray"
    records = subdistribution.persons(n, 40.0, np.random.default_rng(2))
    schema = subdistribution.schema_of()
    schema = replace(schema, bins=ps.Bins("months", tuple(range(0, 25, 2))))
    tables = {
        name: inf.hazards(released(ps.Hazard.start(replace(schema, ratios=name), *terms(n), rounds=8), records, None))
        for name in ("subdistribution", None)
    }
    theirs = in_r(_GRAY, records=records)
    for name, value in zip(tables["subdistribution"].names, tables["subdistribution"].params, strict=True):
        error, label = theirs[f"{name} error"], f"log subdistribution ratio of {name}"
        yield Compared(part, label, float(value), theirs[name], f"{reference}, crr", error)
        yield Compared(part, label, float(value), theirs[f"finegray {name}"], f"{r('survival')}, finegray", error)
    for name, value in zip(tables[None].names, tables[None].params, strict=True):
        error, label = theirs[f"cause {name} error"], f"log cause-specific ratio of {name}"
        yield Compared(part, label, float(value), theirs[f"cause {name}"], f"{r('survival')}, coxph", error)


PARTS: tuple[Callable[[], Iterator[Compared]], ...] = (
    late_curves,
    restricted,
    missing,
    looks,
    late_ratios,
    effects,
    interactions,
    rates,
    cluster_trial,
    fine_and_gray,
)
"""The eight parts of the table; the first three have no rounds."""


if __name__ == "__main__":
    command(NAME, __doc__, tables)
