"""Build a paper's first table: number, mean, spread and tests by group."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtr, stdtrit

from privstats.errors import ReleaseError
from privstats.estimates.denoise import Array
from privstats.inference.description import Description, counts_of_groups, degrees_text
from privstats.inference.groups.binary_columns import BinaryColumn
from privstats.inference.groups.shares import GroupShares, chosen_names, group_shares
from privstats.inference.inversion import quantile
from privstats.inference.releases import map_columns, reckoned_sigma, require_gaussian, require_level, require_records
from privstats.inference.reporting import HIDDEN, Source, listed
from privstats.inference.summary import RowTable, Summary, chance_of, ends_of, number_of
from privstats.inference.treatment_effects.balance import standardised_differences
from privstats.kinds import ClassSchema, CountSchema
from privstats.release import Release
from privstats.schema import narrowed

_SURE = 10.0  # a group is reported where its count exceeds this many standard deviations of its noise
_CLEAR = 3.0  # likewise the variance of a column in a group, for a standardised difference
_LEAST = 1e-4  # share of clip_norm squared below which a variance is noise
_SMD = (
    "SMD: the first group's mean less the second's, over the root of the mean of both variances (Austin 2009); its "
    "interval is about these records, under the noise alone."
)
_ONES = "Numbers of ones are noisy, with standard errors of {}."
_SHARES = "n (%): number of ones and their share of the group, with the interval of the %."
_METHODS = (
    "Means of groups have Student's t intervals, with the noise of counts, sums and sums of squares in their errors. "
    "Standardised differences are differences of means over the root "
    "of the mean of both variances (Austin 2009), with intervals under the noise alone."
)
_METHODS_OF_SHARES = "Columns of 0 and 1 are given as number and share, with Wilson's intervals widened by the noise."
_TESTED = (
    "Two groups are compared by Welch's test, and shares by the chi-squared test, with the noise in their variances."
)
_TESTS = "P: Welch's t with df degrees of freedom; of shares the chi-squared test with 1."


@dataclass(frozen=True, eq=False)
class GroupMeans(RowTable):
    """Means of columns by group; arrays are ``(groups, columns)`` in original units.

    Attributes:
        counts: records, possibly noisy, ``(groups,)``.
        means: NaN where a group is not reported.
        low, high: infinite where not reported; 0 and 1 for shares.
        deviations: standard deviations; NaN likewise, and for columns of 0 and 1.
        reported: ``(groups,)``.
        pvalues: Welch's, ``(columns,)``; None unless two groups are reported.
        differences: standardised, first minus second, with ends, ``(columns, 3)``; NaN where not reported, None as
            ``pvalues``.
        levels: meaning of 1 in columns of 0 and 1, whose ``means`` are shares of ones; else empty.
        degrees: of freedom of the means' intervals; NaN for shares.
        test_degrees: of Welch's test, ``(columns,)``; None as ``pvalues``.
        counts_sigma: standard error of the noise in ``counts``.
        ones_sigma: likewise in the number of ones, ``(columns,)``; NaN for other columns.
        tests: whether rows have P values of differences between groups.

    Example:
        >>> names = {"class_names": ("ill", "well"), "feature_names": ("dose", "age")}
        >>> schema = ps.ClassSchema(2, 2, "NAD", clip_norm=4.0, **names)
        >>> X = [[1.0, 0.5], [2.0, 0.7], [1.5, 0.6], [0.2, 0.4], [0.1, 0.5], [0.3, 0.3]]
        >>> release = ps.Release.exact(schema, ps.measure(schema, X, ["ill"] * 3 + ["well"] * 3))
        >>> table = ps.inference.table_one(release)
        >>> table.counts.tolist(), table.means.round(2).tolist()
        ([3.0, 3.0], [[1.5, 0.6], [0.2, 0.4]])
    """

    groups: tuple[str, ...]
    columns: tuple[str, ...]
    counts: Array
    means: Array
    low: Array
    high: Array
    deviations: Array
    reported: NDArray[np.bool_]
    pvalues: Array | None
    differences: Array | None = field(repr=False)
    release: Release = field(repr=False)
    alpha: float
    levels: tuple[str, ...]
    degrees: Array | None = field(default=None, repr=False)
    test_degrees: Array | None = field(default=None, repr=False)
    counts_sigma: float = 0.0
    ones_sigma: Array | None = field(default=None, repr=False)
    tests: bool = False

    def to_rows(self) -> list[dict[str, object]]:
        """Return rows by column and group, tests in the first."""
        return rows_of(self)

    def summary(self) -> Summary:
        """Return the table."""
        return means_summary(self)


@overload
def table_one(
    release: Release,
    *,
    by: None = None,
    columns: Sequence[str] | None = None,
    binary: Sequence[str] = (),
    alpha: float = 0.05,
    tests: bool = False,
) -> GroupMeans: ...
@overload
def table_one(
    release: Release,
    *,
    by: str,
    columns: Sequence[str] | None = None,
    binary: Sequence[str] = (),
    alpha: float = 0.05,
    tests: bool = False,
) -> GroupShares: ...
@overload
def table_one(
    release: Release,
    *,
    by: str | None,
    columns: Sequence[str] | None = None,
    binary: Sequence[str] = (),
    alpha: float = 0.05,
    tests: bool = False,
) -> GroupMeans | GroupShares: ...
def table_one(
    release: Release,
    *,
    by: str | None = None,
    columns: Sequence[str] | None = None,
    binary: Sequence[str] = (),
    alpha: float = 0.05,
    tests: bool = False,
) -> GroupMeans | GroupShares:
    """Describe a release's columns by group: means of class sums, or numbers and shares of count tables.

    For count tables see :func:`~privstats.inference.groups.shares.group_shares`. With class sums a group is a class;
    suppressed ones are excluded by name, and two are compared by Welch's test.

    var(mean) = v / (N - 1) + (sigma_A^2 + mean^2 sigma_N^2) / N^2 with v = D / N - mean^2, at least its noise tau.
    Student's t has Satterthwaite's degrees of freedom, (var(mean) (N - 1))^2 / (v^2 / (N - 1) + tau^2 / 2): N - 1
    without noise.

    The standardised difference of two groups is (m1 - m2) / sqrt((v1 + v2) / 2) (Austin, Statistics in Medicine 28
    (2009) 3083). Its interval is about *these* records, from noise alone by the delta method; it is hidden where noise
    hides a group or its spread.

    A column of 0 and 1 has n (%), with Wilson's interval and the chi-squared test, widened by the noise
    (:mod:`privstats.inference.groups.binary_columns`).

    Args:
        release: of a ``ClassSchema`` with statistics ``"NAD"`` and at most ``Centre`` and ``Scale``, or of a
            ``CountSchema`` that crosses ``by``.
        by: for count tables the variable of the groups; else None.
        columns: columns, or crossed variables, in order; None: all.
        binary: class sums' columns declared to hold 0 and 1 alone; contradicting sums are refused.
        tests: whether to print P values of differences between the groups. A trial's baseline should have none:
            differences there are by chance (CONSORT 2010, item 15).

    Raises:
        ReleaseError: another kind of release, no D, no or uncrossed ``by``, or an unknown column.

    Example:
        >>> names = {"class_names": ("ill", "well"), "feature_names": ("dose", "smokes")}
        >>> schema = ps.ClassSchema(2, 2, "NAD", clip_norm=4.0, **names)
        >>> X = [[1.0, 1], [2.0, 1], [1.5, 0], [0.2, 0], [0.1, 0], [0.3, 1]]
        >>> release = ps.Release.exact(schema, ps.measure(schema, X, ["ill"] * 3 + ["well"] * 3))
        >>> table = ps.inference.table_one(release, binary=["smokes"])
        >>> table.groups, table.columns, table.means.round(2).tolist()
        (('ill', 'well'), ('dose', 'smokes'), [[1.5, 0.67], [0.2, 0.33]])
    """
    require_level(alpha)
    if isinstance(require_records(release).plan.schema, CountSchema):
        if binary:
            raise ReleaseError("binary is for class sums: count tables have the cells of each variable; omit it")
        return group_shares(release, by, columns=columns, alpha=alpha, tests=tests)
    if by is not None:
        raise ReleaseError("the groups of class sums are the classes; omit by, or pass a release of count tables")
    schema = _class_schema(release)
    require_gaussian(release)
    if release.moments.D is None:
        raise ReleaseError("the release has no D, sums of squares per class; measure statistics='NAD'")
    known = schema.feature_names or tuple(f"x{j}" for j in range(schema.features))
    of_two = chosen_names(known, binary, "columns of the release") if binary else []
    means = replace(_means(release, schema, known, alpha), levels=tuple("1" * (name in of_two) for name in known))
    means = replace(means, tests=tests)
    means = _with_shares(means, schema)
    return _chosen(means, [known.index(name) for name in chosen_names(known, columns, "columns of the release")])


def _means(release: Release, schema: ClassSchema, columns: tuple[str, ...], alpha: float) -> GroupMeans:
    names = schema.class_names or tuple(map(str, range(schema.classes)))
    released = _released_classes(release, schema)
    N, A, D = (np.asarray(getattr(release.moments, letter))[released] for letter in "NAD")
    sigma = reckoned_sigma(release)
    reported = np.maximum(_SURE * sigma["N"], 1.0) < N
    safe = np.where(reported, N, 2.0)[:, None]
    means = A / safe
    variances = np.clip(D / safe - means**2, _LEAST * schema.clip_norm**2 if sigma["D"] else 0.0, None)
    sampling, unsure = _sampling(variances, means, safe, sigma)
    noise = (sigma["A"] ** 2 + means**2 * sigma["N"] ** 2) / safe**2
    scale, shift = map_columns(schema.transform, schema.features)
    degrees = _degrees(sampling, noise, safe - 1, unsure)
    reach = stdtrit(degrees, 1 - alpha / 2)
    margin = np.where(reported[:, None], reach * np.sqrt(sampling + noise), np.inf)
    raw, two = (means - shift) / scale, reported.sum() == len(reported) == 2
    welch = _welch(means, sampling, noise, safe, unsure) if two else None
    return GroupMeans(
        groups=tuple(names[place] for place in released),
        columns=columns,
        counts=N,
        means=np.where(reported[:, None], raw, np.nan),
        low=raw - margin / scale,
        high=raw + margin / scale,
        deviations=np.where(reported[:, None], np.sqrt(variances * safe / (safe - 1)) / scale, np.nan),
        reported=reported,
        pvalues=None if welch is None else welch[0],
        differences=_differences(N, A, D, release, alpha) if two else None,
        release=release,
        alpha=alpha,
        levels=("",) * len(columns),
        degrees=np.where(reported[:, None], degrees, np.nan),
        test_degrees=None if welch is None else welch[1],
        counts_sigma=sigma["N"],
        ones_sigma=np.full(len(columns), np.nan),
    )


def _released_classes(release: Release, schema: ClassSchema) -> list[int]:
    return [place for place in range(schema.classes) if place not in release.suppressed]


def _with_shares(table: GroupMeans, schema: ClassSchema) -> GroupMeans:
    release, released = table.release, _released_classes(table.release, schema)
    scale, shift = map_columns(schema.transform, schema.features)
    means, low, high, deviations = (each.copy() for each in (table.means, table.low, table.high, table.deviations))
    tested = (table.pvalues, table.differences, table.test_degrees)
    pvalues, differences, welch = (None if each is None else each.copy() for each in tested)
    assert table.degrees is not None  # noqa: S101  _means() has set them
    degrees, ones = table.degrees.copy(), np.full(len(table.columns), np.nan)
    for j in (j for j, level in enumerate(table.levels) if level):
        A, D = (np.asarray(getattr(release.moments, letter))[released, j] for letter in "AD")
        column = BinaryColumn(table.counts, A, D, reckoned_sigma(release), float(scale[j]), float(shift[j]))
        column.require_zeros_and_ones(table.columns[j], table.reported)
        seen = np.where(table.reported, column.shares, np.nan)
        ends = [
            np.where(table.reported, end, no) for end, no in zip(column.intervals(table.alpha), (0, 1), strict=True)
        ]
        means[:, j], low[:, j], high[:, j], deviations[:, j] = np.clip(seen, 0.0, 1.0), *ends, np.nan
        degrees[:, j], ones[j] = np.nan, column.ones_sigma
        if pvalues is not None and differences is not None and welch is not None:
            pvalues[j], differences[j], welch[j] = column.pvalue(), column.difference(table.alpha), 1.0
    shown: dict[str, Any] = {"means": means, "low": low, "high": high, "deviations": deviations}
    shown |= {"degrees": degrees, "test_degrees": welch, "ones_sigma": ones}
    return replace(table, **shown, pvalues=pvalues, differences=differences)


def _chosen(table: GroupMeans, places: list[int]) -> GroupMeans:
    every = ("means", "low", "high", "deviations", "degrees")
    shown: dict[str, Any] = {name: getattr(table, name)[:, places] for name in every}
    shown |= {name: tuple(getattr(table, name)[place] for place in places) for name in ("columns", "levels")}
    tested = {name: getattr(table, name) for name in ("pvalues", "differences", "test_degrees", "ones_sigma")}
    shown |= {name: None if each is None else each[places] for name, each in tested.items()}
    return replace(table, **shown)


def _class_schema(release: Release) -> ClassSchema:
    schema = require_records(release).plan.schema
    refusal = ReleaseError(f"table_one reads class sums or counts, and the release measures a {type(schema).__name__}")
    return narrowed(schema, ClassSchema, refusal)


def _differences(N: Array, A: Array, D: Array, release: Release, alpha: float) -> Array:
    columns = A.shape[1]
    entries = np.stack([np.broadcast_to(N[:, None], A.shape), A, D]).transpose(2, 0, 1).reshape(columns, 6)
    sigma = reckoned_sigma(release)
    deviations = np.repeat([sigma[letter] for letter in "NAD"], 2)
    spreads = D / N[:, None] - (A / N[:, None]) ** 2
    reported = np.asarray((spreads > _CLEAR * sigma["D"] / N[:, None]).all(axis=0))
    values, errors = standardised_differences(entries, deviations, reported)
    reach = quantile(alpha, np.inf) * errors
    return np.stack([values, values - reach, values + reach], axis=1)


def _sampling(variances: Array, means: Array, safe: Array, sigma: Mapping[str, float]) -> tuple[Array, Array]:
    """Return v / (N - 1) and (tau / (N - 1))^2 / 2, v at least its noise tau."""
    square = sigma["D"] ** 2 + (2 * means * sigma["A"]) ** 2 + np.square((means**2 - variances) * sigma["N"])
    tau = np.sqrt(square) / safe
    return np.maximum(variances, tau) / (safe - 1), np.square(tau / (safe - 1)) / 2


def _degrees(sampling: Array, noise: Array, left: Array, unsure: Array) -> Array:
    """Return Satterthwaite's degrees of freedom; the means' noise, of known level, has infinitely many."""
    variance = sampling + noise
    share = np.divide(sampling**2 / left + unsure, variance**2, out=1 / left + 0 * variance, where=variance > 0)
    return np.asarray(1 / np.maximum(share, 1e-12))


def _welch(means: Array, sampling: Array, noise: Array, counts: Array, unsure: Array) -> tuple[Array, Array]:
    """Return Welch's P values and degrees of freedom, ``(columns,)``."""
    variance, apart = (sampling + noise).sum(axis=0), np.abs(means[0] - means[1])
    with np.errstate(divide="ignore", invalid="ignore"):
        degrees = variance**2 / (sampling**2 / (counts - 1) + unsure).sum(axis=0)
        pvalues = 2 * stdtr(degrees, -apart / np.sqrt(variance))
    constant = (apart == 0) * 1.0  # in both groups, exactly
    return np.where(variance > 0, pvalues, constant), np.where(variance > 0, degrees, np.nan)


def rows_of(means: GroupMeans) -> list[dict[str, Any]]:
    """Return rows by column and group."""
    return [_row(means, j, i) for j in range(len(means.columns)) for i in range(len(means.groups))]


def _row(means: GroupMeans, j: int, i: int) -> dict[str, Any]:
    level, records, mean = means.levels[j], float(means.counts[i]), float(means.means[i, j])
    row: dict[str, Any] = {"variable": means.columns[j], "level": level, "group": means.groups[i]}
    row |= {"n": records * mean, "proportion": mean} if level else {"n": records, "proportion": math.nan}
    ones = means.ones_sigma if level else None
    row["n_std_error"] = means.counts_sigma if ones is None else float(ones[j])
    row["df"] = math.nan if means.degrees is None else float(means.degrees[i, j])
    row |= {"mean": math.nan if level else mean, "conf_low": float(means.low[i, j])}
    row |= {"conf_high": float(means.high[i, j]), "std_dev": float(means.deviations[i, j])}
    if means.tests:
        for name, values in (("p_value", means.pvalues), ("test_df", means.test_degrees)):
            row[name] = math.nan if i or values is None else float(values[j])
    apart = [math.nan] * 3 if i or means.differences is None else map(float, means.differences[j])
    row |= dict(zip(("smd", "smd_low", "smd_high"), apart, strict=True))
    return {**row, "reported": bool(means.reported[i])}


def means_summary(means: GroupMeans) -> Summary:
    """Return means by group for publication."""
    rows = []
    for row in rows_of(means):
        first, compared = row["group"] == means.groups[0], [""] * (2 * means.tests + 1)
        if first and means.pvalues is not None:
            tested = [chance_of(row["p_value"]), degrees_text(row["test_df"])] if means.tests else []
            compared = [*tested, _difference(row["smd"], row["smd_low"], row["smd_high"])]
        rows.append((row["variable"] if first else "", row["group"], *_numbers(row), *compared))
    assumed = "independent records, means near normal, negligible clipping, honest clients"
    source = Source(means.release, means.alpha, assumed)
    shares, tests = any(means.levels), ("P", "df") if means.tests else ()
    named = _noisy_ones(means)
    return source.summary(
        "Means by group",
        ("", "group", "mean or n (%)" if shares else "mean", *ends_of(means.alpha), "std", *tests, "SMD"),
        rows,
        about=Description(
            counts=counts_of_groups(means.groups, means.counts, means.counts_sigma),
            notes=(_ONES.format(listed(named)),) if named else (),
        ),
        notes=(
            *(() if means.differences is None else (_SMD,)),
            *((_SHARES,) if shares else ()),
            *((_TESTS,) if means.tests else ()),
        ),
        methods=" ".join(filter(None, (_METHODS, _METHODS_OF_SHARES * shares, _TESTED * means.tests))),
    )


def _noisy_ones(means: GroupMeans) -> list[str]:
    """Return the standard error of the noise in the number of ones, of each column that has one."""
    if not means.counts_sigma or means.ones_sigma is None:
        return []
    rows = zip(means.ones_sigma, means.columns, means.levels, strict=True)
    return [f"{sigma:,.1f} ({column})" for sigma, column, level in rows if level]


def _numbers(row: Mapping[str, Any]) -> tuple[str, ...]:
    if not row["reported"]:
        return (HIDDEN, *(("0.0", "100.0", "") if row["level"] else ("-inf", "inf", HIDDEN)))
    if not row["level"]:
        return tuple(number_of(row[name]) for name in ("mean", "conf_low", "conf_high", "std_dev"))
    share, low, high = (100 * row[name] for name in ("proportion", "conf_low", "conf_high"))
    return f"{max(round(row['n']), 0):,} ({share:.1f})", f"{low:.1f}", f"{high:.1f}", ""


def _difference(value: float, low: float, high: float) -> str:
    if math.isnan(value):
        return HIDDEN
    value, low, high = (round(each, 2) + 0.0 for each in (value, low, high))  # no -0.00
    return f"{value:.2f}" if low == high else f"{value:.2f} ({low:.2f} to {high:.2f})"
