"""Build a paper's first table for categories: number and share of every cell by group."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from scipy.special import chdtr, chndtrinc

from privstats.errors import ReleaseError
from privstats.estimates.denoise import Array
from privstats.inference.counts.statistics import Quantile, chi2_contingency, quantile_in
from privstats.inference.counts.table import CountTable, Interval, count_table, ratio, z_of
from privstats.inference.description import Count, Description, counts_of_groups
from privstats.inference.reporting import HIDDEN, Source, listed
from privstats.inference.summary import RowTable, Summary, chance_of
from privstats.intake.declared.categories import MISSING_CELL
from privstats.records.variables import Variable
from privstats.release import Release
from privstats.schema import Bins, Schema

_METHODS = (
    "Cells of variables are given as number and share of each group, shares with Wilson's intervals widened by the "
    "noise of the counts; two groups are compared by the standardised difference of Yang and Dalton (2012), with an "
    "interval under the noise alone."
)
_TESTED = "Groups are compared by the chi-squared test with the noise in its covariance."
_TESTS = "P: chi-squared test with (groups - 1) (cells - 1) degrees of freedom, with the noise in its covariance."
_FOOT = (
    "Cells: number (% of the group's known values; interval of the %). The row of a variable's name has those "
    "known values, the denominator. Missing: number (% of the group's records). SMD (Yang and Dalton 2012): noise "
    "enlarges it; its interval is about these records, under the noise alone."
)
_MEDIANS = (
    "Median [first quartile; third quartile]: the edges of the bins that may hold each, whatever values are inside a "
    "bin."
)
_CELLS = (
    "Numbers of cells are noisy, with standard errors of {}, so those of a variable need not add up to the group's "
    "records."
)
_CLEAR_CELL = 5.0
"""Standard deviations of its noise that a cell of both groups must exceed: below, S and its inverse are lost."""


@dataclass(frozen=True, eq=False)
class Shares:
    """Numbers and shares of one variable's cells, by group.

    Attributes:
        counts: noisy, ``(groups, cells)``.
        shares: within its group.
        pvalue: chi-squared; NaN where not reported.
        difference: standardised, of two groups; NaN where not reported.
        difference_ends: from noise alone; 0 to infinity where not reported.
        quartiles: by group, for ``Bins``, with the edges of the bins that may hold each.
        missing_counts: noisy numbers of records without a value, ``(groups,)``; None where the variable counts none.
        missing: their shares of all records of the group.
        sigma: standard error of the noise in a cell's number.
        degrees: of freedom of the chi-squared test.
    """

    cells: tuple[str, ...]
    counts: Array
    shares: tuple[tuple[Interval, ...], ...]
    pvalue: float
    difference: float
    difference_ends: tuple[float, float]
    quartiles: tuple[tuple[Quantile, ...], ...] = ()
    missing_counts: Array | None = None
    missing: tuple[Interval, ...] = ()
    sigma: float = 0.0
    degrees: int = 0

    @property
    def known(self) -> list[Count]:
        """Each group's records with a known value: the denominator of its shares."""
        sigma = self.sigma * math.sqrt(self.counts.shape[1])
        return [Count("known", float(group.sum()), sigma) for group in self.counts]

    def denominators(self, cell: str) -> list[Count]:
        """Return the denominator of a cell's share in each group: of missing values it is all records."""
        if cell != MISSING_CELL or self.missing_counts is None:
            return self.known
        sigma = self.sigma * math.sqrt(self.counts.shape[1] + 1)
        rows = zip(self.known, self.missing_counts, strict=True)
        return [Count("records", (known.value or 0.0) + float(gone), sigma) for known, gone in rows]

    @property
    def rows(self) -> Iterator[tuple[str, Array, tuple[Interval, ...]]]:
        """Each cell's name, numbers and shares by group; last the records without a value."""
        for place, cell in enumerate(self.cells):
            yield cell, self.counts[:, place], tuple(group[place] for group in self.shares)
        if self.missing_counts is not None:
            yield MISSING_CELL, self.missing_counts, self.missing


@dataclass(frozen=True, eq=False)
class GroupShares(RowTable):
    """Numbers and shares of cells by group.

    Attributes:
        sigma: standard error of the noise in ``records``.
        tests: whether rows have P values of differences between groups.

    Example:
        >>> sex, arm = ps.Categories("sex", ("f", "m")), ps.Categories("arm", ("a", "b"))
        >>> schema = ps.CountSchema((sex, arm), (("arm", "sex"),))
        >>> records = {"sex": ["f", "m", "m", "m"] * 20, "arm": ["a", "a", "b", "b"] * 20}
        >>> release = ps.Release.exact(schema, ps.measure(schema, records))
        >>> print(ps.inference.table_one(release, by="arm").summary().rows[1])
        ('  f', '20 (50.0; 35.2 to 64.8)', '0 (0.0; 0.0 to 8.8)', '')
    """

    by: str
    groups: tuple[str, ...]
    records: Array
    variables: Mapping[str, Shares]
    release: Release = field(repr=False)
    alpha: float
    sigma: float = 0.0
    tests: bool = False

    @property
    def reported(self) -> bool:
        """Whether any share is reported."""
        return any(share.reported for each in self.variables.values() for group in each.shares for share in group)

    def to_rows(self) -> list[dict[str, object]]:
        """Return rows by variable, cell, group; then a variable's quartiles, with the edges of their bins."""
        return [row for name, each in self.variables.items() for row in (*self._cells(name, each), *self._bins(name))]

    def _cells(self, name: str, variable: Shares) -> Iterator[dict[str, object]]:
        tested = {"p_value": variable.pvalue, "test_df": variable.degrees} if self.tests else {}
        ends = (variable.difference, *variable.difference_ends)
        apart = dict(zip(("smd", "smd_low", "smd_high"), ends, strict=True))
        for cell, numbers, shares in variable.rows:
            for i, (group, whole) in enumerate(zip(self.groups, variable.denominators(cell), strict=True)):
                row = {"variable": name, "level": cell, "group": group, "n": float(numbers[i])}
                row |= {"n_std_error": variable.sigma, "n_group": whole.value, "n_group_std_error": whole.sigma}
                yield {**row, **proportion_row(shares[i]), **tested, **apart}

    def _bins(self, name: str) -> Iterator[dict[str, object]]:
        each = self.variables[name]
        for known, group, quartiles in zip(each.known, self.groups, each.quartiles, strict=False):
            for level, found in zip(("first quartile", "median", "third quartile"), quartiles, strict=True):
                row = {"variable": name, "level": level, "group": group, "n": known.value, "n_std_error": known.sigma}
                row |= {"proportion": math.nan, "conf_low": found.low, "conf_high": found.high}
                yield {**row, "reported": found.reported, "smd": math.nan}

    def summary(self) -> Summary:
        """Return the table."""
        rows: list[tuple[str, ...]] = []
        for name, variable in self.variables.items():
            tested = (_or_hidden(variable.pvalue, chance_of),) if self.tests else ()
            compared = (*tested, _smd(variable))[: len(self._compared)]
            rows.append((name, *(known.short for known in variable.known), *compared))
            for cell, numbers, shares in variable.rows:
                cells = map(_cell, numbers, shares)
                rows.append((f"  {cell}", *cells, *[""] * len(self._compared)))
            if variable.quartiles:
                rows.append(("  median [IQR]", *map(_median, variable.quartiles), *[""] * len(self._compared)))
        known = ((self.by,), *((name,) for name in self.variables))
        source = Source(self.release, self.alpha, "independent records, honest clients", known=known)
        columns = ("", *(f"{self.by}: {group}, n (%)" for group in self.groups), *self._compared)
        tested = (_TESTS,) if self.tests else ()
        medians = (_MEDIANS,) if any(each.quartiles for each in self.variables.values()) else ()
        return source.summary(
            f"Cells by {self.by}",
            columns,
            rows,
            about=self._description,
            notes=(_FOOT, *medians, *tested),
            methods=f"{_METHODS} {_TESTED}" if self.tests else _METHODS,
        )

    @property
    def _description(self) -> Description:
        groups = [f"{self.by}: {group}" for group in self.groups]
        counts = counts_of_groups(groups, self.records, self.sigma)
        named = [f"{each.sigma:,.1f} ({name})" for name, each in self.variables.items() if each.sigma]
        return Description(
            counts=counts,
            noisy_rows=bool(named),
            notes=(_CELLS.format(listed(named)),) if named else (),
        )

    @property
    def _compared(self) -> tuple[str, ...]:
        return (*(("P",) if self.tests else ()), *(("SMD",) if len(self.groups) == 2 else ()))


def group_shares(
    release: Release,
    by: str | None,
    *,
    columns: Sequence[str] | None = None,
    alpha: float = 0.05,
    tests: bool = False,
) -> GroupShares:
    """Return cells' numbers and shares of every variable that a released table crosses with ``by``.

    A share is a part of the group's known values, with Wilson's interval widened by the noise. Two groups have the
    standardised difference d = sqrt((p - q)' S^+ (p - q)): p and q are the shares of all cells but the first, S the
    mean of both multinomial covariances (Yang and Dalton, SAS Global Forum 2012, paper 335). For two cells it is |p -
    q| / sqrt((p (1 - p) + q (1 - q)) / 2) (Austin 2009). Its interval is ``category_difference``'s.

    Raises:
        ReleaseError: no count tables, no ``by``, or no table crosses it with a requested variable.
    """
    schema = release.plan.schema
    if by is None:
        names = ", ".join(dict.fromkeys(name for table in getattr(schema, "tables", ()) for name in table))
        raise ReleaseError(f"count tables need by=..., the variable of the groups (on the command line --by): {names}")
    others = crossed_names(schema, by)
    if not others:
        raise ReleaseError(f"no released table crosses {by!r} with another variable; name one that is crossed")
    z, others = z_of(alpha), chosen_names(others, columns, f"crossed with {by}")
    groups = count_table(release, by).known()
    variables = {name: _shares(release, by, name, alpha, z) for name in others}
    cells = groups.variables[0].cells[: len(groups.counts)]
    return GroupShares(by, cells, groups.counts, variables, release, alpha, groups.sigma, tests)


def crossed_names(schema: Schema, by: str) -> list[str]:
    """Return the variables that a table of counts crosses with ``by``; numbers have averages instead."""
    numbers = {number.name for number in getattr(schema, "numbers", None) or ()}
    tables = (table for table in getattr(schema, "tables", ()) if by in table and by not in numbers)
    return list(dict.fromkeys(name for table in tables for name in table if name not in (by, *numbers)))


def chosen_names(known: Sequence[str], chosen: Sequence[str] | None, what: str) -> list[str]:
    """Return requested names, or all; refuse unknown or repeated ones."""
    if chosen is None:
        return list(known)
    wanted = [chosen] if isinstance(chosen, str) else list(chosen)
    unknown = [name for name in wanted if name not in known]
    if unknown or not wanted or len(set(wanted)) < len(wanted):
        text = f"has {unknown[0]!r}" if unknown else "is empty or names one twice"
        raise ReleaseError(f"columns (on the command line --column) {text}; {what} are {', '.join(known)}")
    return wanted


def _shares(release: Release, by: str, name: str, alpha: float, z: float) -> Shares:
    table = count_table(release, by, name).known()
    counts, others = table.counts, table.counts.shape[1] - 1
    shares = tuple(
        tuple(ratio(float(count), float(group.sum()), (1, others), table.sigma, z) for count in group)
        for group in counts
    )
    reported = len(counts) == 2 and all(share.reported for group in shares for share in group)
    apart = category_difference(counts, table.sigma, alpha, z) if reported else Interval(math.nan, 0.0, math.inf, False)
    cells, variable = table.variables[1].cells[: others + 1], table.variables[1]
    quartiles = _quartiles(variable, counts, table.sigma, z)
    gone, missing = _missing(count_table(release, by, name), len(counts), z)
    ends = apart.low, apart.high
    tested = (_pvalue(release, by, name), apart.value, ends)
    degrees = (len(counts) - 1) * others
    return Shares(cells, counts, shares, *tested, quartiles, gone, missing, table.sigma, degrees)


def _missing(table: CountTable, groups: int, z: float) -> tuple[Array | None, tuple[Interval, ...]]:
    """Return the numbers of records without a value by group, and their shares of all records of the group."""
    if not table.variables[1].missing:
        return None, ()
    counts = table.counts[:groups]
    cells = (1, counts.shape[1] - 1)
    shares = (ratio(float(group[-1]), float(group.sum()), cells, table.sigma, z) for group in counts)
    return counts[:, -1], tuple(shares)


def _pvalue(release: Release, by: str, name: str) -> float:
    """Return the p-value; NaN where hidden, or for a cell empty in every group."""
    try:
        test = chi2_contingency(release, by, name)
    except ReleaseError:
        return math.nan
    return test.pvalue if test.reported else math.nan


def proportion_row(share: Interval) -> dict[str, object]:
    """Return a share's plain values."""
    value = share.value if share.reported else math.nan
    return {"proportion": value, "conf_low": share.low, "conf_high": share.high, "reported": share.reported}


def _cell(count: float, share: Interval) -> str:
    if not share.reported:
        return HIDDEN
    value, low, high = (100 * each for each in share[:3])
    return f"{max(round(float(count)), 0):,} ({value:.1f}; {low:.1f} to {high:.1f})"


def _quartiles(variable: Variable, counts: Array, sigma: float, z: float) -> tuple[tuple[Quantile, ...], ...]:
    if not isinstance(variable, Bins):
        return ()
    known = replace(variable, missing=False)
    alone = [CountTable((known,), group, sigma) for group in counts]
    return tuple(tuple(quantile_in(each, q, z) for q in (0.25, 0.5, 0.75)) for each in alone)


def _median(quartiles: Sequence[Quantile]) -> str:
    if not all(each.reported for each in quartiles):
        return HIDDEN
    first, median, third = (each.ends for each in quartiles)
    return f"{median} [{first}; {third}]"


def _smd(shares: Shares) -> str:
    low, high = shares.difference_ends
    if math.isnan(shares.difference):
        return HIDDEN
    if math.isinf(shares.difference):
        return "infinite"
    ends = "" if low == high else f" ({low:.2f} to {high:.2f})"
    return f"{shares.difference:.2f}{ends}"


def _or_hidden(number: float, shown: Any) -> str:
    return HIDDEN if math.isnan(number) else str(shown(number))


def category_difference(counts: Array, sigma: float, alpha: float, z: float) -> Interval:
    """Return d = sqrt(a' S^+ a) with a = p - q, and its interval.

    p, q and S are those of :func:`group_shares`. The interval is for *these* records, from noise alone. With S = L L',
    v = L^-1 a of length d has the errors L^-1 (da - dS S^-1 a / 2) to first order, up to a rotation. Their covariance's
    largest eigenvalue is l. The upper end is d + z sqrt(l), because v along its exact direction is at most d long, and
    d x^2 / 2 more with x = z sqrt(l) / d, or with half of x from .5 on: next to a common cell of few records d is the
    inverse root of a noisy count, for which the first order is too short. The
    lower end inverts the length of a normal vector of covariance l I in k - 1 dimensions (noncentral chi-squared). It
    is 0 where groups may be equal, because noise enlarges a length. Both ends are conservative where noise differs by
    direction; without noise both are d.

    Groups without a common cell are infinitely far apart: a score that separates them has no variance in either. This
    is the only case in which a lies outside the range of S, whatever the order of the cells.

    Not reported where noise could hide a group, a cell in both groups, or that the groups have a common cell.
    """
    records, unreported = counts.sum(axis=1), Interval(math.nan, 0.0, math.inf, False)
    if not (records > 0).all():
        return unreported
    common = counts.min(axis=0)
    if not sigma and not (common > 0).any():
        return Interval(math.inf, math.inf, math.inf, True)
    if not sigma:
        value = math.sqrt(max(float(_length(counts, records)), 0.0))
        return Interval(value, value, value, True)
    clear = _CLEAR_CELL * sigma * math.sqrt(2)
    if (counts.sum(axis=0) <= clear).any() or (records <= clear * math.sqrt(counts.shape[1])).any():
        return unreported
    length = _length_and_errors(counts, records) if (common > _CLEAR_CELL * sigma).any() else None
    if length is None:
        return unreported
    value, errors = length
    spread = sigma**2 * float(np.linalg.eigvalsh(errors @ errors.T)[-1])
    ratio, cells = value**2 / spread, len(errors)
    alike = chdtr(cells, ratio) <= 1 - alpha / 2
    low = 0.0 if alike else math.sqrt(float(chndtrinc(ratio, cells, 1 - alpha / 2)) * spread)
    margin = z * math.sqrt(spread)
    return Interval(value, low, value + margin * (1 + margin / max(value, 2 * margin) / 2), True)


def _shares_apart(counts: Array, records: Array) -> tuple[Array, Array, Array]:
    shares = counts / records[:, None]
    one, other = (np.diag(each[1:]) - np.outer(each[1:], each[1:]) for each in shares)
    return shares, shares[0, 1:] - shares[1, 1:], (one + other) / 2


def _length(counts: Array, records: Array) -> float:
    _, apart, covariance = _shares_apart(counts, records)
    return float(apart @ np.linalg.pinv(covariance, hermitian=True) @ apart)


def _length_and_errors(counts: Array, records: Array) -> tuple[float, Array] | None:
    shares, apart, covariance = _shares_apart(counts, records)
    try:
        root = np.linalg.cholesky(covariance)
    except np.linalg.LinAlgError:
        return None
    solved = np.linalg.solve(covariance, apart)
    columns = []
    for group, sign in enumerate((1.0, -1.0)):
        rest = shares[group, 1:]
        for moved in (np.eye(counts.shape[1]) - shares[group])[:, 1:] / records[group]:
            spread = moved * solved - moved * (rest @ solved) - rest * (moved @ solved)
            columns.append(sign * moved - spread / 4)
    errors = np.linalg.solve(root, np.stack(columns, axis=1))
    return math.sqrt(max(float(apart @ solved), 0.0)), errors
