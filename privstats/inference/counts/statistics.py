"""Compute statistics of count tables: histograms, shares, quantiles, independence, confusion."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.special import chdtrc

from privstats.errors import ReleaseError
from privstats.estimates.denoise import Array
from privstats.inference.counts.table import CountTable, Interval, count_table, mean_of, ratio, z_of
from privstats.inference.reporting import listed
from privstats.release import Release
from privstats.schema import Bins

_CLEAR = 4.0  # times sigma sqrt(cells) that a chi2 test wants in records
_SKEWED = 1.0
"""Skewness of a cell from which a chi2 test's p-value is simulated: without noise, an expected count of 1."""
_SIMULATED, _AT_ONCE = 1_999, 100
"""Tables of independent variables from which such a p-value is counted, and how many are read at once."""
_LARGE = 64
"""Number of cells above which a simulated table has the released one's covariance, which is conservative."""
_ROUNDING = 1e-9


@dataclass(frozen=True, eq=False)
class Histogram:
    """Counts of one table.

    Attributes:
        cells: names per variable.
        counts: as released, possibly negative.
        low, high: intervals for exact counts, from noise alone.
        shown: nearest nonnegative table of equal total, for pictures only.

    Example:
        >>> schema = ps.CountSchema((ps.Categories("blood", ("0", "A", "B", "AB")),), (("blood",),))
        >>> release = ps.Release.exact(schema, ps.measure(schema, {"blood": ["A", "0", "A"]}))
        >>> histogram = ps.inference.histogram(release, "blood")
        >>> histogram.cells[0], histogram.counts.tolist(), histogram.low.tolist()
        (('0', 'A', 'B', 'AB'), [1.0, 2.0, 0.0, 0.0], [1.0, 2.0, 0.0, 0.0])
    """

    cells: tuple[tuple[str, ...], ...]
    counts: Array
    low: Array
    high: Array
    shown: Array


class Quantile(NamedTuple):
    """A quantile of a binned variable.

    Attributes:
        value: the estimate of ``even``.
        low, high: edges of the bins that the quantile may be in, whatever values are inside a bin; infinite where an
            outer bin is open, or where not reported.
        even: estimate and interval if values are even inside each bin. Other values move the quantile by up to a bin,
            and this interval may then miss it in nearly all releases.

    Example:
        >>> schema = ps.CountSchema((ps.Bins("age", (0, 20, 40, 60, 80)),), (("age",),))
        >>> release = ps.Release.exact(schema, ps.measure(schema, {"age": list(range(80)) * 10}))
        >>> third = ps.inference.quantile(release, "age", 0.35)
        >>> third.low, third.high, round(third.even.value, 1)
        (20.0, 40.0, 28.0)
    """

    value: float
    low: float
    high: float
    reported: bool
    even: Interval

    @property
    def ends(self) -> str:
        """The bins' ends as text."""
        match math.isinf(self.low), math.isinf(self.high):
            case False, False:
                return f"{self.low:g} to {self.high:g}"
            case True, False:
                return f"below {self.high:g}"
            case False, True:
                return f"{self.low:g} or more"
            case _:
                return "any value"

    def __str__(self) -> str:
        """Return the bins' ends, and the estimate with its assumption."""
        if not self.reported:
            return "not reported: noise hides it"
        value, low, high = (f"{each:.3g}" for each in self.even[:3])
        return f"{self.ends} (if values are even inside each bin: {value}, {low} to {high})"


class Chi2(NamedTuple):
    """A test of independence, with scipy's names.

    Attributes:
        statistic: noise-aware Pearson statistic; NaN where not reported.
        pvalue: chi-squared; from simulated tables where expected counts are below 1; 1 where not reported.

    Example:
        >>> sex, ill = ps.Categories("sex", ("f", "m")), ps.Categories("ill", ("no", "yes"))
        >>> schema = ps.CountSchema((sex, ill), (("sex", "ill"),))
        >>> records = {"sex": ["f", "m"] * 50, "ill": ["no", "no", "no", "yes"] * 25}
        >>> release = ps.Release.exact(schema, ps.measure(schema, records))
        >>> test = ps.inference.chi2_contingency(release, "sex", "ill")
        >>> test.dof, round(test.statistic, 2), test.pvalue < 0.001
        (1, 33.33, True)
    """

    statistic: float
    pvalue: float
    dof: int

    @property
    def reported(self) -> bool:
        """Whether the table holds enough records for its noise."""
        return not math.isnan(self.statistic)


@dataclass(frozen=True)
class Confusion:
    """Agreement of predictions with labels; ``balanced_accuracy`` is the mean recall.

    Example:
        >>> labels = ("no", "yes")
        >>> schema = ps.CountSchema((ps.Categories("ill", labels), ps.Categories("guess", labels)), (("ill", "guess"),))
        >>> records = {"ill": ["no"] * 60 + ["yes"] * 40, "guess": ["no"] * 55 + ["yes"] * 45}
        >>> confusion = ps.inference.confusion(ps.Release.exact(schema, ps.measure(schema, records)), "ill", "guess")
        >>> round(confusion.accuracy.value, 2), {name: round(each.value, 2) for name, each in confusion.recall.items()}
        (0.95, {'no': 0.92, 'yes': 1.0})
    """

    accuracy: Interval
    recall: Mapping[str, Interval]
    balanced_accuracy: Interval


def histogram(release: Release, *names: str, alpha: float = 0.05) -> Histogram:
    """Count one variable, or several crossed, with intervals for the exact counts.

    Raises:
        ReleaseError: no released table holds these variables, or alpha is out of (0, .5].

    Example:
        >>> schema = ps.CountSchema((ps.Categories("blood", ("0", "A", "B", "AB")),), (("blood",),))
        >>> release = ps.Release.exact(schema, ps.measure(schema, {"blood": ["A", "0", "A"]}))
        >>> ps.inference.histogram(release, "blood").counts.tolist()
        [1.0, 2.0, 0.0, 0.0]
    """
    table, z = count_table(release, *names), z_of(alpha)
    margin = z * table.sigma
    return Histogram(
        tuple(variable.cells for variable in table.variables),
        table.counts,
        np.maximum(table.counts - margin, 0.0),
        np.maximum(table.counts + margin, 0.0),
        _nonnegative(table.counts),
    )


def proportions(release: Release, name: str, *, alpha: float = 0.05) -> dict[str, Interval]:
    """Return each cell's share with population intervals; Wilson's without noise.

    Example:
        >>> schema = ps.CountSchema((ps.Categories("sex", ("f", "m")),), (("sex",),))
        >>> release = ps.Release.exact(schema, ps.measure(schema, {"sex": ["f"] * 60 + ["m"] * 40}))
        >>> women = ps.inference.proportions(release, "sex")["f"]
        >>> women.value, round(women.low, 2), round(women.high, 2)
        (0.6, 0.5, 0.69)
    """
    table, z = count_table(release, name), z_of(alpha)
    cells = table.variables[0].cells
    others = len(cells) - 1
    return {
        cell: ratio(float(count), table.total, (1, others), table.sigma, z)
        for cell, count in zip(cells, table.counts, strict=True)
    }


def quantile(release: Release, name: str, q: float, *, alpha: float = 0.05) -> Quantile:
    """Return a quantile of a binned variable, without missing values.

    ``low`` and ``high`` are bin edges: a bin is inside where the shares below its two edges leave room for q. They
    assume nothing about values inside a bin. An end in an outer bin that is open is infinite. ``even`` is an estimate
    and an interval that hold only if values are even inside each bin.

    Raises:
        ReleaseError: no bins, q is not between 0 and 1, or as for :func:`histogram`.

    Example:
        >>> schema = ps.CountSchema((ps.Bins("age", (0, 20, 40, 60, 80)),), (("age",),))
        >>> release = ps.Release.exact(schema, ps.measure(schema, {"age": list(range(80)) * 10}))
        >>> print(ps.inference.quantile(release, "age", 0.35))
        20 to 40 (if values are even inside each bin: 28, 25.4 to 30.5)
    """
    if not 0 < q < 1:
        raise ReleaseError(f"q must be between 0 and 1, got {q!r}; 0.5 is the median")
    table, z = count_table(release, name), z_of(alpha)
    if not isinstance(table.variables[0], Bins):
        raise ReleaseError(f"{name!r} has categories, and a quantile needs Bins; measure it with edges")
    return quantile_in(table, q, z)


def quantile_in(table: CountTable, q: float, z: float) -> Quantile:
    """Return a binned variable's quantile at normal quantile z, with the ends of its bins."""
    variable = table.variables[0]
    assert isinstance(variable, Bins)  # noqa: S101  refused before
    shares, even = _shares_below(table, z), quantile_of(table, q, z)
    if not even.reported:
        return Quantile(even.value, -math.inf, math.inf, False, even)
    edges = np.array(variable.edges)
    edges[0] = -math.inf if variable.open in ("below", "both") else edges[0]
    edges[-1] = math.inf if variable.open in ("above", "both") else edges[-1]
    first = _bin_of(np.array([0.0, *(share.high for share in shares), 1.0]), q)
    last = _bin_of(np.array([0.0, *(share.low for share in shares), 1.0]), q, last=True)
    return Quantile(even.value, float(edges[first]), float(edges[last + 1]), True, even)


def quantile_of(table: CountTable, q: float, z: float) -> Interval:
    """Return a binned variable's quantile at normal quantile z, if values are even inside each bin."""
    variable, shares = table.variables[0], _shares_below(table, z)
    assert isinstance(variable, Bins)  # noqa: S101  refused before
    edges = np.array(variable.edges)
    value = _crossing(edges, np.array([0.0, *(share.value for share in shares), 1.0]), q)
    low = _crossing(edges, np.array([0.0, *(share.high for share in shares), 1.0]), q)
    high = _crossing(edges, np.array([0.0, *(share.low for share in shares), 1.0]), q, last=True)
    reported = all(share.reported for share in shares)
    return Interval(value, low if reported else -math.inf, high if reported else math.inf, reported)


def _shares_below(table: CountTable, z: float) -> list[Interval]:
    """Return the share below each inner edge."""
    known = table.known()
    k, below = len(known.counts), np.cumsum(known.counts)
    return [ratio(float(below[i]), known.total, (i + 1, k - i - 1), table.sigma, z) for i in range(k - 1)]


def chi2_contingency(release: Release, row: str, column: str) -> Chi2:
    """Test whether two variables are independent, without missing values.

    ``u = O - E`` has covariance ``S = P diag(max(E, 0) + sigma^2) P'`` with P the projection off both margins; the
    statistic is ``u' S^+ u`` on (r - 1)(c - 1) directions, Pearson's without noise. It is hidden if the table holds too
    few records for its noise. Where a cell's expected count is below 1 and its noise is smaller, the chi-squared law
    rejects too often: the p-value is then that among 1,999 tables of independent variables with these margins and this
    noise, drawn with a fixed seed.

    Raises:
        ReleaseError: no such table, or without noise no record or an empty row or column.

    Example:
        >>> sex, ill = ps.Categories("sex", ("f", "m")), ps.Categories("ill", ("no", "yes"))
        >>> schema = ps.CountSchema((sex, ill), (("sex", "ill"),))
        >>> records = {"sex": ["f", "m"] * 50, "ill": ["no", "no", "no", "yes"] * 25}
        >>> release = ps.Release.exact(schema, ps.measure(schema, records))
        >>> ps.inference.chi2_contingency(release, "sex", "ill").pvalue < 0.001
        True
    """
    table = count_table(release, row, column).known()
    counts, n = table.counts, table.total
    dof = (counts.shape[0] - 1) * (counts.shape[1] - 1)
    if table.sigma > 0 and n < _CLEAR * table.sigma * math.sqrt(counts.size):
        return Chi2(math.nan, 1.0, dof)
    if n <= 0:
        raise ReleaseError(f"the table of {row!r} and {column!r} holds no record; there is nothing to test")
    r, c = counts.sum(axis=1) / n, counts.sum(axis=0) / n
    if table.sigma == 0 and not (r.all() and c.all()):
        names = [
            f"{each.name}: {cell}"
            for each, own in zip(table.variables, (r, c), strict=True)
            for cell in each.cells[: len(own)]
        ]
        empty = [name for name, share in zip(names, (*r, *c), strict=True) if not share]
        raise ReleaseError(f"no record is in {listed(empty)}; omit these cells from the plan's variables")
    (statistic,) = _pearson(counts[None], table.sigma)
    expected = np.maximum(_expected(counts[None])[0], 0.0)
    if (expected < _SKEWED * (expected + table.sigma**2) ** 1.5).all() or not expected.any():
        return Chi2(float(statistic), float(chdtrc(dof, statistic)), dof)
    margins = counts[None] if counts.size > _LARGE else None
    tables = _independent_tables(expected, table.sigma)
    parts = (tables[start : start + _AT_ONCE] for start in range(0, _SIMULATED, _AT_ONCE))
    simulated = np.concatenate([_pearson(part, table.sigma, margins) for part in parts])
    exceeding = int((simulated >= statistic * (1 - _ROUNDING)).sum())
    return Chi2(float(statistic), (1 + exceeding) / (1 + len(simulated)), dof)


def _pearson(counts: Array, sigma: float, margins: Array | None = None) -> Array:
    """Return the statistics of tables ``(n, r, c)``; ``margins`` is one table ``(1, r, c)`` that gives S for all."""
    # The deviations span the tables with margins 0, Z u. Of S = P D P' therefore Z'SZ = W'DW is needed, W = P'Z.
    several, rows, columns = counts.shape
    apart = np.einsum("ra,nrc,cb->nab", _contrasts(rows), counts - _expected(counts), _contrasts(columns))
    apart = apart.reshape(several, -1)
    known = counts if margins is None else margins
    total = known.sum(axis=(1, 2), keepdims=True)[:, 0]
    sides = [_free(known.sum(axis=axis) / total) for axis in (2, 1)]
    w = np.einsum("nra,ncb->nrcab", *sides).reshape(len(known), rows * columns, -1)
    held = np.maximum(_expected(known), _ROUNDING).reshape(len(known), -1, 1) + sigma**2
    matrices = w.swapaxes(1, 2) @ (held * w)
    if margins is not None:
        return np.asarray((apart * np.linalg.solve(matrices[0], apart.T).T).sum(axis=1))
    return np.asarray((apart * np.linalg.solve(matrices, apart[..., None])[..., 0]).sum(axis=1))


def _expected(counts: Array) -> Array:
    """Return the counts of independent variables with the margins of tables ``(n, r, c)``."""
    rows, columns = counts.sum(axis=2, keepdims=True), counts.sum(axis=1, keepdims=True)
    return np.asarray(rows * columns / counts.sum(axis=(1, 2), keepdims=True))


def _contrasts(cells: int) -> Array:
    """Return an orthonormal basis of vectors with sum 0, ``(cells, cells - 1)``."""
    basis, _ = np.linalg.qr(np.eye(cells)[:, 1:] - 1 / cells)
    return np.asarray(basis)


def _free(shares: Array) -> Array:
    """Return ``(I - 1 s')Z`` for each row s of shares, ``(n, cells, cells - 1)``."""
    contrasts = _contrasts(shares.shape[1])
    return np.asarray(contrasts - (shares @ contrasts)[:, None])


def _independent_tables(expected: Array, sigma: float) -> Array:
    """Return noisy tables of independent variables, ``(n, r, c)``."""
    rng, records = np.random.default_rng(0), round(float(expected.sum()))
    counts = rng.multinomial(records, expected.reshape(-1) / expected.sum(), _SIMULATED).astype(np.float64)
    return (counts + sigma * rng.standard_normal(counts.shape)).reshape(_SIMULATED, *expected.shape)


def confusion(release: Release, label: str, predicted: str, *, alpha: float = 0.05) -> Confusion:
    """Return accuracy and recalls from labels against predictions.

    Raises:
        ReleaseError: the two variables have other cells, or no table crosses them.

    Example:
        >>> labels = ("no", "yes")
        >>> schema = ps.CountSchema((ps.Categories("ill", labels), ps.Categories("guess", labels)), (("ill", "guess"),))
        >>> records = {"ill": ["no"] * 60 + ["yes"] * 40, "guess": ["no"] * 55 + ["yes"] * 45}
        >>> confusion = ps.inference.confusion(ps.Release.exact(schema, ps.measure(schema, records)), "ill", "guess")
        >>> round(confusion.accuracy.value, 2), round(confusion.balanced_accuracy.value, 3)
        (0.95, 0.958)
    """
    table = count_table(release, label, predicted).known()
    rows, columns = table.variables
    if rows.cells != columns.cells:
        raise ReleaseError(f"{label!r} and {predicted!r} have different cells; give both variables the same values")
    return confusion_of(table, rows.cells, z_of(alpha))


def confusion_of(table: CountTable, labels: tuple[str, ...], z: float) -> Confusion:
    """Return labels' confusion with predictions, ``(C, C)``."""
    k = len(table.counts)
    right = np.diagonal(table.counts)
    recall = {
        cell: ratio(float(right[i]), float(table.counts[i].sum()), (1, k - 1), table.sigma, z)
        for i, cell in enumerate(labels[:k])
    }
    return Confusion(
        accuracy=ratio(float(right.sum()), table.total, (k, k * k - k), table.sigma, z),
        recall=recall,
        balanced_accuracy=mean_of(tuple(recall.values())),
    )


def _bin_of(shares: Array, q: float, *, last: bool = False) -> int:
    """Return the first, or the last, bin in which shares below the edges cross q."""
    return int(np.flatnonzero(shares <= q)[-1]) if last else int(np.flatnonzero(shares >= q)[0]) - 1


def _crossing(edges: Array, shares: Array, q: float, *, last: bool = False) -> float:
    below = _bin_of(shares, q, last=last)
    rise = shares[below + 1] - shares[below]
    inside = (q - shares[below]) / rise if rise else 0.0
    return float(edges[below] + inside * (edges[below + 1] - edges[below]))


def _nonnegative(counts: Array) -> Array:
    """Project on counts >= 0 of equal total (Duchi et al. 2008)."""
    flat, total = counts.reshape(-1), max(float(counts.sum()), 0.0)
    ordered = -np.sort(-flat)
    excess = (np.cumsum(ordered) - total) / np.arange(1, len(flat) + 1)
    last = int(np.flatnonzero(ordered > excess)[-1]) if total > 0 else 0
    return np.asarray(np.maximum(flat - excess[last], 0.0) if total > 0 else np.zeros(len(flat))).reshape(counts.shape)
