"""Tables that one may publish from a release: estimates with intervals and p-values that stay true under its noise.

Everything here is post-processing of a :class:`~privstats.Release` and costs no privacy. One claim holds throughout:
**in at most alpha of releases an interval is told and misses**; a parameter whose interval noise makes unbounded is
*not told*: its interval is (-inf, inf) and tables show no estimate.
"""

from privstats.inference.clipping import Saturation
from privstats.inference.counts import Interval
from privstats.inference.figure import plot_survival
from privstats.inference.prediction import HalfWidth, predicted_half_width
from privstats.inference.regression import ContrastTest, Regression, ols
from privstats.inference.score import logit, poisson
from privstats.inference.sites import MixedRegression, fixed_effects, mixed
from privstats.inference.summary import Summary
from privstats.inference.survival import LogRank, SurvivalCurve, kaplan_meier, logrank_test
from privstats.inference.table_one import GroupMeans, table_one
from privstats.inference.tables import (
    Chi2,
    Confusion,
    Histogram,
    chi2_contingency,
    confusion,
    histogram,
    proportions,
    quantile,
)

__all__ = [
    "Chi2",
    "Confusion",
    "ContrastTest",
    "GroupMeans",
    "HalfWidth",
    "Histogram",
    "Interval",
    "LogRank",
    "MixedRegression",
    "Regression",
    "Saturation",
    "Summary",
    "SurvivalCurve",
    "chi2_contingency",
    "confusion",
    "fixed_effects",
    "histogram",
    "kaplan_meier",
    "logit",
    "logrank_test",
    "mixed",
    "ols",
    "plot_survival",
    "poisson",
    "predicted_half_width",
    "proportions",
    "quantile",
    "table_one",
]
