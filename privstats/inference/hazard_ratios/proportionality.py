"""Does a hazard ratio change with time? A test from counts of time, event and group alone."""

from __future__ import annotations

import math
from functools import partial
from typing import NamedTuple

import numpy as np
from scipy.special import chdtrc

from privstats.errors import ReleaseError
from privstats.estimates.spectrum import Array
from privstats.inference.counts.survival import at_risk_in, event_tables, told_bins
from privstats.inference.counts.table import spread
from privstats.release import Release

__all__ = ["Proportionality", "proportionality_test"]

_SURE = 4.0  # standard deviations of noise that a group's events must stand out by
_MOST_SHARE = 0.95  # of who is at risk that may have the event in a bin, for its logarithm to be smooth
_FEWEST_BINS = 2


class Proportionality(NamedTuple):
    """A test of "the hazard ratio is the same at all times".

    Not rejecting is no evidence that it is: a table says so beside every ratio.

    Attributes:
        test_statistic: U^2 / V; NaN where the test is not told.
        p_value: from the chi-squared law; 1 where the test is not told.
        rises: whether the later hazards of the second group are larger than one ratio would have them.
        bins: how many bins are compared.
        degrees_freedom: 1.

    Example:
        >>> months, died = ps.Bins("months", (0, 1, 2, 3)), ps.Categories("died", (0, 1))
        >>> schema = ps.CountSchema((months, died, ps.Categories("arm", (0, 1))), (("months", "died", "arm"),))
        >>> records = {"months": [0, 1, 2, 2] * 40, "died": [1, 0, 1, 0] * 40, "arm": [0, 1] * 80}
        >>> release = ps.Release.exact(schema, ps.measure(schema, records))
        >>> found = ps.inference.proportionality_test(release, time="months", event="died", by="arm")
        >>> found.told, found.degrees_freedom
        (False, 1)
    """

    test_statistic: float
    p_value: float
    rises: bool
    bins: int
    degrees_freedom: int = 1

    @property
    def told(self) -> bool:
        """Whether there is a test: noise leaves events of both groups to be read in two bins at least."""
        return not math.isnan(self.test_statistic)


def proportionality_test(
    release: Release, *, time: str, event: str, by: str, bins: int | None = None
) -> Proportionality:
    """Test whether the hazard ratio of two groups changes with time, from counts.

    U = sum_j t_j w_j (L1_j - c L0_j): t_j the bins' places from -1 to 1, L = -log(1 - d / r) the hazard of a bin in
    each group, w_j = r0 r1 / (r0 + r1), and c the one ratio for which the sum without t_j is 0. Its variance by the
    delta method holds chance and noise. The ratio of cumulative hazards of a bin is that of the continuous model,
    whatever the bins.

    Args:
        release: of a ``CountSchema`` with a table that crosses these variables.
        time: a variable of ``Bins``.
        event: a variable of two ``Categories``, the second of which is the event.
        by: a variable of two groups, the second of which is compared with the first.
        bins: how many bins to compare, from the first on; None for all that are told.

    Raises:
        ReleaseError: not exactly two groups, or as for :func:`kaplan_meier`.

    Example:
        >>> months, died = ps.Bins("months", (0, 1, 2, 3)), ps.Categories("died", (0, 1))
        >>> schema = ps.CountSchema((months, died, ps.Categories("arm", (0, 1))), (("months", "died", "arm"),))
        >>> months, died = [0] * 30 + [1] * 80 + [2] * 90, [1] * 30 + [0] * 60 + [1] * 20 + [0] * 90
        >>> later = [0] * 40 + [1] * 60 + [2] * 100, [1] * 5 + [0] * 35 + [1] * 30 + [0] * 30 + [1] * 50 + [0] * 50
        >>> records = {"months": months + later[0], "died": died + later[1], "arm": [0] * 200 + [1] * 200}
        >>> release = ps.Release.exact(schema, ps.measure(schema, records))
        >>> found = ps.inference.proportionality_test(release, time="months", event="died", by="arm", bins=2)
        >>> found.rises, found.p_value < 0.001
        (True, True)
    """
    tables = list(event_tables(release, time, event, by, "discrete").values())
    if len(tables) != 2:
        raise ReleaseError(f"{by!r} has {len(tables)} groups, and a hazard ratio compares two; release such a table")
    counts, sigma = np.stack([table.counts for table in tables]), tables[0].sigma
    told = min(min(told_bins(table) for table in tables), bins or counts.shape[1])
    at_risk, died = at_risk_in(counts, "discrete")[:, :told], counts[:, :told, 1]
    crowded = (died > _MOST_SHARE * at_risk).any(axis=0)
    told = int(np.argmax(crowded)) if crowded.any() else told
    least = max(_SURE * sigma * math.sqrt(max(told, 1)), 1.0)
    if told < _FEWEST_BINS or (died[:, :told].sum(axis=1) < least).any():
        return Proportionality(math.nan, 1.0, False, told)
    (value,), (error,) = spread(partial(_trend, shape=counts.shape, bins=told), counts.reshape(-1), sigma)
    statistic = float(value / error) ** 2 if error > 0 else math.nan
    if math.isnan(statistic):
        return Proportionality(math.nan, 1.0, False, told)
    return Proportionality(statistic, float(chdtrc(1, statistic)), bool(value > 0), told)


def _trend(flat: Array, shape: tuple[int, ...], bins: int) -> Array:
    """U, from all counts of both groups."""
    counts = flat.reshape(*flat.shape[:-1], *shape)
    at_risk, died = at_risk_in(counts, "discrete")[..., :bins], counts[..., :bins, 1]
    hazards = -np.log(1 - died / at_risk)
    weights = at_risk[..., 0, :] * at_risk[..., 1, :] / at_risk.sum(axis=-2)
    first, second = weights * hazards[..., 0, :], weights * hazards[..., 1, :]
    ratio = second.sum(axis=-1, keepdims=True) / first.sum(axis=-1, keepdims=True)
    places = np.linspace(-1, 1, bins)
    return np.asarray(np.sum(places * (second - ratio * first), axis=-1, keepdims=True))
