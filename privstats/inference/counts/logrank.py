"""The log-rank test of two groups, from counts of time against event under noise."""

from __future__ import annotations

import math
from functools import partial
from typing import NamedTuple

import numpy as np
from scipy.special import chdtrc

from privstats.errors import ReleaseError
from privstats.estimates.spectrum import Array
from privstats.inference.counts.survival import at_risk_in, event_tables, told_bins
from privstats.inference.counts.table import gradients
from privstats.release import Release

__all__ = ["LogRank", "logrank_test"]


class LogRank(NamedTuple):
    """A log-rank test, with lifelines' names.

    Attributes:
        test_statistic: U^2 / V; NaN where the test is not told.
        p_value: from the chi-squared law; 1 where the test is not told.
        degrees_freedom: 1.

    Example:
        >>> months, died = ps.Bins("months", (0, 1, 2, 3)), ps.Categories("died", (0, 1))
        >>> schema = ps.CountSchema((months, died, ps.Categories("arm", ("a", "b"))), (("months", "died", "arm"),))
        >>> records = {"months": [0, 1, 2, 2] * 20, "died": [1, 1, 0, 0] * 20, "arm": ["a", "a", "b", "b"] * 20}
        >>> release = ps.Release.exact(schema, ps.measure(schema, records))
        >>> test = ps.inference.logrank_test(release, time="months", event="died", by="arm")
        >>> test.degrees_freedom, test.p_value < 0.001
        (1, True)
    """

    test_statistic: float
    p_value: float
    degrees_freedom: int = 1

    @property
    def told(self) -> bool:
        """Whether there is a test: noise leaves the number at risk to be read in one bin at least."""
        return not math.isnan(self.test_statistic)


def logrank_test(release: Release, *, time: str, event: str, by: str) -> LogRank:
    """Test whether two groups survive alike, over the bins that are told for both.

    U = sum over bins of d0 - d r0 / r, V its hypergeometric variance plus the noise in U by the delta method. Where
    noise hides the number at risk of a group from the first bin on, the test is not told: a statistic of NaN and a
    p-value of 1.

    Raises:
        ReleaseError: not exactly two groups, or as for :func:`kaplan_meier`.

    Example:
        >>> months, died = ps.Bins("months", (0, 1, 2, 3)), ps.Categories("died", (0, 1))
        >>> schema = ps.CountSchema((months, died, ps.Categories("arm", ("a", "b"))), (("months", "died", "arm"),))
        >>> records = {"months": [0, 1, 2, 2] * 20, "died": [1, 1, 0, 0] * 20, "arm": ["a", "a", "b", "b"] * 20}
        >>> release = ps.Release.exact(schema, ps.measure(schema, records))
        >>> ps.inference.logrank_test(release, time="months", event="died", by="arm").p_value < 0.001
        True
    """
    tables = list(event_tables(release, time, event, by, "discrete").values())
    if len(tables) != 2:
        raise ReleaseError(f"{by!r} has {len(tables)} groups, and a log-rank test compares two; release such a table")
    bins = min(told_bins(table) for table in tables)
    if not bins and tables[0].sigma == 0:
        raise ReleaseError(f"a group of {by!r} has no record at risk; leave its cell out of the plan's variable")
    if not bins:
        return LogRank(math.nan, 1.0)
    counts = np.stack([table.counts for table in tables])
    difference = partial(_difference, shape=counts.shape, bins=bins)
    value = float(difference(counts.reshape(-1))[0])
    noise = float(np.square(gradients(difference, counts.reshape(-1))).sum())
    at_risk, died = at_risk_in(counts, "discrete")[:, :bins], counts[:, :bins, 1]
    r, d = at_risk.sum(axis=0), died.sum(axis=0)
    share = at_risk[0] / r
    several = r > 1
    pooled = np.where(several, d * share * (1 - share) * (r - d) / np.where(several, r - 1, 1.0), 0.0)
    variance = max(float(pooled.sum()), 0.0) + tables[0].sigma ** 2 * noise
    if variance <= 0:  # without noise only: it gives U a variance of its own
        raise ReleaseError("there is no event in the bins that are told for both groups; nothing can be compared")
    statistic = value**2 / variance
    return LogRank(statistic, float(chdtrc(1, statistic)))


def _difference(flat: Array, shape: tuple[int, ...], bins: int) -> Array:
    """U of a log-rank test, from all counts of both groups."""
    counts = flat.reshape(*flat.shape[:-1], *shape)
    at_risk, died = at_risk_in(counts, "discrete")[..., :bins], counts[..., :bins, 1]
    r, d = at_risk.sum(axis=-2), died.sum(axis=-2)
    return np.asarray(np.sum(died[..., 0, :] - d * at_risk[..., 0, :] / r, axis=-1, keepdims=True))
