"""Tables that one may publish from a release: estimates with intervals and p-values that stay true under its noise.

Everything here is post-processing of a :class:`~privstats.Release` and costs no privacy. One claim holds throughout:
**in at most alpha of releases an interval is told and misses**; an interval that noise makes unbounded is *not told*.
"""

from privstats.inference.prediction import HalfWidth, predicted_half_width
from privstats.inference.regression import ContrastTest, Regression, Saturation, ols
from privstats.inference.summary import Summary

__all__ = ["ContrastTest", "HalfWidth", "Regression", "Saturation", "Summary", "ols", "predicted_half_width"]
