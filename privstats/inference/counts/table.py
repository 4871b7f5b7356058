"""Read released count tables as arrays.

Negative counts stay, because clipping at 0 would bias every sum.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from privstats.errors import ReleaseError
from privstats.estimates.denoise import Array
from privstats.inference.inversion import quantile as t_quantile
from privstats.inference.releases import reckoned_sigma, require_gaussian, require_level, require_records
from privstats.kinds import CountSchema
from privstats.plan import Plan
from privstats.release import Release
from privstats.schema import Variable, narrowed

_STEP = 1e-20  # of the complex step: derivatives are exact to rounding
WIDE = 0.5
"""Share of the scale of a share or the range of a number: an interval this wide is of little use."""


class Interval(NamedTuple):
    """An estimate and its interval.

    Attributes:
        low, high: the full range where not reported.

    Example:
        >>> schema = ps.CountSchema((ps.Categories("sex", ("f", "m")),), (("sex",),))
        >>> release = ps.Release.exact(schema, ps.measure(schema, {"sex": ["f"] * 60 + ["m"] * 40}))
        >>> share = ps.inference.proportions(release, "sex")["f"]
        >>> share.value, round(share.low, 2), round(share.high, 2), share.reported
        (0.6, 0.5, 0.69, True)
    """

    value: float
    low: float
    high: float
    reported: bool


@dataclass(frozen=True)
class CountTable:
    """Noisy counts, one axis per variable; ``sigma`` is each cell's noise.

    ``late``: the last axis ends in one entry more, minus those who enter in the bin.
    """

    variables: tuple[Variable, ...]
    counts: Array
    sigma: float
    late: bool = False

    @property
    def total(self) -> float:
        """Sum of all counts."""
        return float(self.counts.sum())

    def known(self) -> CountTable:
        """Return the table without missing values."""
        counts = self.counts
        for axis, variable in enumerate(self.variables):
            if variable.missing:
                counts = np.delete(counts, -1, axis=axis)
        return CountTable(self.variables, counts, self.sigma)


def count_table(release: Release, *names: str) -> CountTable:
    """Return counts from the smallest table with these variables."""
    kind = type(require_records(release).plan.schema).__name__
    refusal = f"this reader takes count tables, and the release measures a {kind}; measure a CountSchema"
    schema = narrowed(release.plan.schema, CountSchema, ReleaseError(refusal))
    require_gaussian(release)
    holding = [table for table in schema.tables if set(names) <= set(table)]
    if not names or len(set(names)) < len(names) or not holding:
        tables = "; ".join(" x ".join(table) for table in schema.tables)
        raise ReleaseError(f"no released table crosses {' x '.join(names) or 'nothing'}; the release holds {tables}")
    table = min(holding, key=lambda each: math.prod(schema.shape(each)))
    cells = np.asarray(release.moments.T[schema.place(table)]).reshape(schema.shape(table))
    summed = tuple(axis for axis, name in enumerate(table) if name not in names)
    merged = math.prod(cells.shape[axis] for axis in summed)
    chosen = [name for name in table if name in names]
    counts = cells.sum(axis=summed).transpose([chosen.index(name) for name in names])
    sigma = reckoned_sigma(release)["T"] * math.sqrt(merged)
    return CountTable(tuple(schema.variable(name) for name in names), counts, sigma)


def wide_sentences(plan: Plan) -> list[str]:
    """Return warnings for shares with intervals half the scale wide at full attendance."""
    schema, noise, records = plan.schema, plan.noise, plan.cohort.max_records
    if not isinstance(schema, CountSchema) or (noise is not None and noise.pure):
        return []
    sigma = 0.0 if noise is None else noise.released_sigma(plan.cohort.clients)["T"]
    out = []
    for table in schema.tables[: len(schema.tables) - len(schema.numbers or ())]:
        shape = schema.shape(table)
        groups = [(f", in one of {many} groups of {name},", many) for name, many in zip(table, shape, strict=True)]
        for among, many in [("", 1), *(groups if len(table) > 1 else [])]:
            of = records / many
            share = ratio(of / 2, of, (1, math.prod(shape) // many - 1), sigma, z_of(0.05))
            if (width := share.high - share.low) >= WIDE:
                out.append(
                    f"WARNING: even if all {records:,} records come, a share in the table {' x '.join(table)}{among} "
                    f"will have an interval {100 * width:.0f} % wide: ask more people, raise epsilon, or have fewer "
                    "tables and cells"
                )
                break
    return out


def z_of(alpha: float) -> float:
    """Return the two-sided normal quantile of a checked level."""
    require_level(alpha)
    return t_quantile(alpha, math.inf)


def ratio(part: float, whole: float, cells: tuple[int, int], sigma: float, z: float) -> Interval:
    """Return a share p = part / whole by test inversion: Wilson's interval without noise.

    p is accepted where ``|C - p N| <= z sqrt(N p (1 - p) + sigma^2 (a (1 - p)^2 + b p^2))``. Where N is not
    distinguished from 0, the share is unreported, with interval (0, 1).

    Args:
        part, whole: noisy counts C and N.
        cells: numbers a of cells summed in C and b of further cells in N.
    """
    a, b = cells
    noise = (z * sigma) ** 2
    square = whole**2 + z**2 * whole - noise * (a + b)
    if whole <= 0 or square <= 0:
        return Interval(float(np.clip(part / whole, 0, 1)) if whole else 0.0, 0.0, 1.0, False)
    middle = (part * whole + z**2 * whole / 2 - noise * a) / square
    root = math.sqrt(max(middle**2 - (part**2 - noise * a) / square, 0.0))
    low, high = np.clip([middle - root, middle + root], 0.0, 1.0)
    return Interval(float(np.clip(part / whole, 0, 1)), float(low), float(high), True)


def mean_of(shares: Sequence[Interval]) -> Interval:
    """Return the mean of independent shares, with the ends of their intervals (Zou and Donner 2008).

    A share near 0 or 1 of few records has a lopsided interval, which its standard error does not show.
    """
    many = len(shares)
    value = math.fsum(each.value for each in shares) / many
    if not all(each.reported for each in shares):
        return Interval(value, 0.0, 1.0, False)
    below, above = (math.hypot(*(getattr(each, end) - each.value for each in shares)) / many for end in ("low", "high"))
    return Interval(value, max(value - below, 0.0), min(value + above, 1.0), True)


def spread(function: Callable[[Array], Array], counts: Array, sigma: float) -> tuple[Array, Array]:
    """Return an analytic function of counts and its standard errors, by the delta method.

    Cov(counts) = diag(max(counts, 0)) + sigma^2 I. Absolute values, maxima and clipping are not analytic. The function
    maps ``(..., k)``, real or complex, to ``(..., m)``.
    """
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        variance = np.square(gradients(function, counts)).T @ (np.maximum(counts, 0.0) + sigma**2)
        return function(counts), np.sqrt(variance)


def gradients(function: Callable[[Array], Array], counts: Array) -> Array:
    """Return exact derivatives, ``(k, m)``, by complex step (Squire and Trapp 1998)."""
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        return np.imag(function(counts + 1j * _STEP * np.eye(len(counts)))) / _STEP
