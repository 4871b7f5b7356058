"""Estimate means and variances of bounded numbers released with count tables."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from privstats.errors import ReleaseError
from privstats.inference.counts.table import WIDE, Interval, count_table, z_of
from privstats.inference.description import Count, Description
from privstats.inference.releases import reckoned_sigma
from privstats.inference.reporting import HIDDEN, Source
from privstats.inference.summary import Summary, ends_of
from privstats.kinds.numbers import groups_of
from privstats.plan import Plan
from privstats.release import Release

_COLUMNS = ("mean", "mean_low", "mean_high", "variance", "variance_low", "variance_high")


@dataclass(frozen=True)
class Average:
    """A number in one group; ``variance`` is in squared units.

    Attributes:
        records_sigma: standard error of the noise in ``records``.

    Example:
        >>> from privstats.inference.counts.table import Interval
        >>> hours = ps.inference.Average(49.0, Interval(35.0, 33.1, 36.9, True), Interval(25.0, 20.2, 29.8, True))
        >>> hours.mean.low
        33.1
    """

    records: float
    mean: Interval
    variance: Interval
    records_sigma: float = 0.0


def averages(release: Release, name: str, *, alpha: float = 0.05) -> dict[tuple[str, ...], Average]:
    """Return mean and variance of a number, by group (``()`` without ``by``).

    With z = (value - middle) / half and noisy n, x = sum z, q = sum z^2, a mean m is accepted where ``|x - m n|`` is at
    most ``c sqrt(n v + sigma_x^2 + m^2 sigma_n^2)`` (Fieller 1954), v the variance that noise leaves possible. The
    variance q / n - m^2 has a delta-method interval: the variance of (z - m)^2 is at most ``v ((1 + |m|)^2 - v)``.
    Both intervals also hold those of the most skewed law with these moments: two values, of which one is an end of the
    range. Its mean has Wilson's interval, so rare values at an end are covered. Where n is not distinguished from 0, an
    interval is the full range.

    Raises:
        ReleaseError: no such number, or as for :func:`histogram`.

    Example:
        >>> sex, hours = ps.Categories("sex", ("f", "m")), ps.Number("hours", 0, 80, by=("sex",))
        >>> schema = ps.CountSchema((sex,), (), numbers=(hours,))
        >>> records = {"sex": ["f", "m"] * 50, "hours": [40, 20, 30, 30] * 25}
        >>> found = ps.inference.averages(ps.Release.exact(schema, ps.measure(schema, records)), "hours")
        >>> round(found["f",].mean.value, 2), round(found["m",].variance.value, 1)
        (35.0, 25.0)
    """
    schema: Any = release.plan.schema
    known = {number.name: number for number in getattr(schema, "numbers", None) or ()}
    if name not in known:
        listed = f"it has {', '.join(known)}" if known else "it has none: add [[schema.numbers]] to the plan"
        raise ReleaseError(f"{name!r} is no number of the release; {listed}")
    number, z = known[name], z_of(alpha)
    table = count_table(release, *number.by, name)
    counts = table.counts[..., 0].reshape(-1)
    places, sigma = groups_of(schema, number), reckoned_sigma(release)
    x, q = (np.asarray(getattr(release.moments, letter))[places] for letter in "xq")
    cells = list(np.ndindex(*schema.shape(number.by)))
    names = [tuple(schema.variable(of).cells[i] for of, i in zip(number.by, cell, strict=True)) for cell in cells]
    noise = (table.sigma, sigma["x"], sigma["q"])
    return {
        group: _scaled(_average(float(n), float(a), float(b), noise, z), number.middle, number.half)
        for group, n, a, b in zip(names, counts, x, q, strict=True)
    }


def average_rows(by_name: Mapping[str, Mapping[tuple[str, ...], Average]]) -> list[dict[str, object]]:
    """Return plain values."""
    rows: list[dict[str, object]] = []
    for name, groups in by_name.items():
        for group, each in groups.items():
            reported = each.mean.reported
            numbers = {"records": each.records, "records_std_error": each.records_sigma}
            rows.append({"number": name, "group": ", ".join(group), **numbers, "reported": reported})
            for what, value in (("mean", each.mean), ("variance", each.variance)):
                rows[-1] |= {what: value.value, f"{what}_low": value.low, f"{what}_high": value.high}
    return rows


def averages_summary(rows: list[dict[str, object]], release: Release, alpha: float) -> Summary:
    """Return means and variances for publication."""
    texts = [
        (
            f"{row['number']}" + (f" ({row['group']})" if row["group"] else ""),
            Count("records", float(str(row["records"])), float(str(row["records_std_error"]))).short,
            *(f"{row[key]:.5g}" if row["reported"] else HIDDEN for key in _COLUMNS),
        )
        for row in rows
    ]
    low, high = ends_of(alpha)
    words = "Means have Fieller's intervals and variances those of the delta method, with the noise of all sums; both "
    words += "are at least those of rare values at an end of the range, by Wilson's."
    known = tuple((name,) for name in dict.fromkeys(str(row["number"]) for row in rows))
    source = Source(release, alpha, "independent records, means near normal, honest clients", known=known)
    columns = ("", "records", "mean", low, high, "variance", low, high)
    about = Description(noisy_rows=any(row["records_std_error"] for row in rows))
    return source.summary("Averages", columns, texts, methods=words, about=about)


def wide_means(plan: Plan) -> list[str]:
    """Return warnings for means with wide intervals.

    They assume full attendance, equal groups and even values.
    """
    schema: Any = plan.schema
    records, z, out = plan.cohort.max_records, z_of(0.05), []
    sigma = dict.fromkeys("Txq", 0.0) if plan.noise is None else plan.noise.released_sigma(plan.cohort.clients)
    for number in schema.numbers or ():
        n = records / math.prod(schema.shape(number.by))
        mean = _average(n, 0.0, n / 3, (sigma["T"], sigma["x"], sigma["q"]), z).mean
        if (width := (mean.high - mean.low) / 2) >= WIDE:
            out.append(
                f"WARNING: even if all {records:,} records come, the mean of {number.name} will have an interval as "
                f"wide as {width:.0%} of its range: ask more people, raise epsilon, or have fewer groups"
            )
    return out


def _average(n: float, x: float, q: float, sigma: tuple[float, float, float], z: float) -> Average:
    of_n, of_x, of_q = sigma
    square = n**2 - (z * of_n) ** 2
    if n <= 0 or square <= 0:
        return Average(n, Interval(0.0, -1.0, 1.0, False), Interval(0.0, 0.0, 1.0, False), of_n)
    mean = float(np.clip(x / n, -1, 1))
    most = 1 - mean**2
    variance = float(np.clip(q / n - mean**2, 0, most))
    of_noise = math.sqrt(of_q**2 + (2 * mean * of_x) ** 2 + ((2 * mean**2 - q / n) * of_n) ** 2) / n
    held = min(variance + z * of_noise, most)
    middle = n * x / square
    root = math.sqrt(max(middle**2 - (x**2 - z**2 * (n * held + of_x**2)) / square, 0.0))
    low, high = np.clip([middle - root, middle + root], -1, 1)
    spread = held * max((1 + abs(mean)) ** 2 - held, 0.0)
    margin = z * math.sqrt(of_noise**2 + spread / n)
    up, down = (_rare_values(n, sign * x, held, sigma, z) for sign in (1, -1))
    low, high = min(low, -down.mean), max(high, up.mean)
    both = (*up.variances, *down.variances)
    ends = np.clip([min(variance - margin, *both), max(variance + margin, *both)], 0, 1)
    return Average(
        n,
        Interval(mean, float(low), float(high), True),
        Interval(variance, float(ends[0]), float(ends[1]), True),
        of_n,
    )


class _RareValues(NamedTuple):
    """Upper end of a mean, and both ends of a variance, for a law with two values of which one is 1."""

    mean: float
    variances: tuple[float, float]


def _rare_values(n: float, x: float, variance: float, sigma: tuple[float, float, float], z: float) -> _RareValues:
    """Return the ends for the law of two values, 1 and b, with the mean x / n and this variance.

    By Cauchy and Schwarz no law on [-1, 1] with this mean and variance has a larger third moment. A mean m has the
    variance (m - b)(1 - m), so the interval is Wilson's, with noise.
    """
    of_n, of_x, _ = sigma
    mean = float(np.clip(x / n, -1, 1))
    base = max(mean - variance / (1 - mean), -1.0) if mean < 1 else 1.0
    square = n**2 + z**2 * (n - of_n**2)
    middle = (x * n + z**2 * n * (1 + base) / 2) / square
    root = math.sqrt(max(middle**2 - (x**2 + z**2 * (n * base - of_x**2)) / square, 0.0))
    low, high = np.clip([middle - root, middle + root], base, 1)
    at_low, at_high = ((m - base) * (1 - m) for m in (float(low), float(high)))
    return _RareValues(float(high), (at_low, at_high))


def _scaled(average: Average, middle: float, half: float) -> Average:
    def in_unit(interval: Interval, offset: float, factor: float) -> Interval:
        value, low, high = (offset + factor * end for end in (interval.value, interval.low, interval.high))
        return Interval(value, low, high, interval.reported)

    return Average(
        average.records,
        in_unit(average.mean, middle, half),
        in_unit(average.variance, 0.0, half**2),
        average.records_sigma,
    )
