"""Compare risks by group in tables of counts with gaps, by imputation on the counts."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import NamedTuple

import numpy as np
from scipy.special import expit, ndtr

from privstats.contrib.imputation.gap_tables import check_columns, read
from privstats.contrib.imputation.log_linear import Fit, group_odds
from privstats.contrib.imputation.wald import WaldErrors
from privstats.errors import ReleaseError
from privstats.extend.readers import Count, Description, Law, quantile, require_level
from privstats.inference import Summary
from privstats.inference.reporting import HIDDEN, Source
from privstats.inference.summary import RowTable, chance_of, ends_of, number_of
from privstats.release import Release


class Measure(NamedTuple):
    """A risk, or two risks compared.

    Attributes:
        name: "risk", "difference" or "ratio"; the latter two against the reference group.
        group: a value of the groups' variable.
        low, high: (0, 1), (-1, 1) or (0, inf) where not reported.
        p_value: of "equal risks"; NaN for a risk.

    Example:
        >>> from privstats.contrib.imputation import Measure
        >>> Measure("risk", "drug", 0.2, 0.01, 0.18, 0.22, True, float("nan")).group
        'drug'
    """

    name: str
    group: str
    estimate: float
    error: float
    low: float
    high: float
    reported: bool
    p_value: float


@dataclass(frozen=True, eq=False)
class Risks(RowTable):
    """Risks by group over all records' other variables, as :func:`risks` returns them.

    Attributes:
        measures: of each group in order: its risk, then its difference and ratio to the first group's.
        records_sigma: standard error of the noise in ``records``.

    Example:
        >>> from privstats.contrib.imputation import risks
        >>> arm, ill = ps.Categories("arm", ("a", "b")), ps.Categories("ill", ("no", "yes"), missing=True)
        >>> schema = ps.CountSchema((arm, ill), (("arm", "ill"),))
        >>> records = {"arm": ["a", "a", "b", "b"] * 50, "ill": ["no", None, "no", "yes"] * 25 + ["yes", "no"] * 50}
        >>> table = risks(ps.Release.exact(schema, ps.measure(schema, records)), outcome="ill", by="arm")
        >>> [(each.name, each.group, round(each.estimate, 2)) for each in table.measures]
        [('risk', 'a', 0.33), ('risk', 'b', 0.5), ('difference', 'b', 0.17), ('ratio', 'b', 1.5)]
    """

    measures: tuple[Measure, ...]
    outcome: str
    by: str
    over: tuple[str, ...]
    records: float
    assumed: str
    notes: tuple[str, ...]
    alpha: float
    release: Release = field(repr=False)
    records_sigma: float = 0.0

    def __iter__(self) -> Iterator[Measure]:
        return iter(self.measures)

    @property
    def reported(self) -> bool:
        """Whether any risk is reported."""
        return any(each.reported for each in self.measures)

    def to_rows(self) -> list[dict[str, object]]:
        """Return a row per measure."""
        names = ("measure", "group", "estimate", "std_error", "conf_low", "conf_high", "reported", "p_value")
        numbers = {"n": self.records, "n_std_error": self.records_sigma}
        reference, rows = self.measures[0].group, list[dict[str, object]]()
        for each in self.measures:
            compared = {"compared_with": "" if each.name == "risk" else reference}
            degrees = math.nan if math.isnan(each.p_value) else math.inf
            rows.append({**dict(zip(names, each, strict=True)), **compared, "df": degrees, **numbers})
        return rows

    def summary(self) -> Summary:
        """Return the table."""
        reference, law = self.measures[0].group, Law((math.inf,))
        over = f", over the {' and '.join(self.over)} of all records" if self.over else ""
        return Source(self.release, self.alpha, f"{self.assumed}, independent records, honest clients").summary(
            f"Risks of {self.outcome} by {self.by}, with imputed gaps",
            ("", self.by, "estimate", "std err", *ends_of(self.alpha), law.heading),
            [_shown(each, reference) for each in self.measures],
            about=Description(
                estimand=("risk", f"probability of {self.outcome} by {self.by}"),
                counts=(Count("records", self.records, self.records_sigma),),
                law=law,
                notes=(_SCALES,),
            ),
            notes=(f"Differences and ratios are to {reference}{over}.",),
            warnings=self.notes,
            methods=f"Risks of {self.outcome} by {self.by}{over} follow from a log-linear model with all products of "
            "two variables, fitted to the counts of records with and without gaps; errors are by the delta method.",
        )


_SCALES = "P values and intervals of ratios are on the scale of logarithms, intervals of risks on that of log odds."


def _shown(measure: Measure, reference: str) -> tuple[str, ...]:
    to = {"difference": f"risk difference, less {reference}", "ratio": f"risk ratio, over {reference}"}
    name = to.get(measure.name, measure.name)
    if not measure.reported:
        return (name, measure.group, HIDDEN, "", "", "", "")
    numbers = map(number_of, (measure.estimate, measure.error, measure.low, measure.high))
    return (name, measure.group, *numbers, "" if math.isnan(measure.p_value) else chance_of(measure.p_value))


def risks(
    release: Release,
    *,
    outcome: str,
    by: str,
    columns: Sequence[str] | None = None,
    reference: Mapping[str, str] | None = None,
    interactions: Sequence[tuple[str, str]] = (),
    alpha: float = 0.05,
) -> Risks:
    """Return the outcome's risk by group, with differences and ratios, from a table of counts with gaps.

    A group's risk is the mean over all records' other variables of the probability given the group and these
    (standardisation, or g-computation), by the model of :func:`logit`. Risks have intervals on the scale of log odds,
    ratios on that of logarithms.

    Args:
        release, outcome, reference: as for :func:`logit`; the risk is that of the outcome's second value.
        columns: variables that choose the table, the smallest that crosses them with both; None: the only one. Risks
            are standardised over all of its other variables.
        interactions: pairs that act on the outcome together, of ``by`` and a column, or of two columns.
        by: a variable of groups, such as the arm, not among ``columns``.
        alpha: level of the intervals.

    Assumes:
        As :func:`logit`. A difference is an effect only if groups are alike given the other variables.

    Returns:
        Risks, then differences and ratios; not reported where noise moves a risk's log odds by more than a sixth.

    Raises:
        ReleaseError: as for :func:`logit`.

    Example:
        >>> from privstats.contrib.imputation import risks
        >>> arm, ill = ps.Categories("arm", ("a", "b")), ps.Categories("ill", ("no", "yes"), missing=True)
        >>> schema = ps.CountSchema((arm, ill), (("arm", "ill"),))
        >>> records = {"arm": ["a", "a", "b", "b"] * 50, "ill": ["no", None, "no", "yes"] * 25 + ["yes", "no"] * 50}
        >>> table = risks(ps.Release.exact(schema, ps.measure(schema, records)), outcome="ill", by="arm")
        >>> table.to_rows()[2]["measure"], table.to_rows()[2]["conf_low"] > 0
        ('difference', True)
    """
    require_level(alpha)
    z = quantile(alpha, math.inf)
    check_columns(outcome, columns)
    if columns is not None and by in columns:
        raise ReleaseError(f"columns names {by!r}, whose groups are compared; leave it out")
    table = read(release, outcome, None if columns is None else [by, *columns], reference or {}, interactions)
    if by not in table.names[:-1]:
        raise ReleaseError(f"by must be a variable of the table besides the outcome, got {by!r}: {table.listed}")
    place = table.names.index(by)
    groups = table.values[place]
    own = risk_errors(table.fit, place)
    measures = [*_risks(groups, own, z), *compared("difference", groups, own, z), *compared("ratio", groups, own, z)]
    return Risks(
        measures=tuple(measures),
        outcome=f"{outcome} = {table.values[-1][1]}",
        by=by,
        over=tuple(name for name in table.names[:-1] if name != by),
        records=table.records,
        assumed=table.assumed,
        notes=table.notes if own.degrees.all() else (*table.notes, table.hidden("risk")),
        alpha=alpha,
        release=release,
        records_sigma=table.records_sigma,
    )


def risk_errors(fit: Fit, by: int) -> WaldErrors:
    """Return the errors of the log odds of each group's risk."""
    log_odds, slopes = fit.function(partial(group_odds, layout=fit.layout, by=by))
    return WaldErrors.of(log_odds, *fit.covariances(slopes))


_UNKNOWN = {"risk": (0.0, 1.0), "difference": (-1.0, 1.0), "ratio": (0.0, math.inf)}


def _risks(groups: Sequence[str], own: WaldErrors, z: float) -> Iterator[Measure]:
    """Yield each group's risk, with an interval on the scale of log odds."""
    for place, group in enumerate(groups):
        if not own.degrees[place]:
            yield _hidden("risk", group)
            continue
        log_odds, error = float(own.estimate[place]), float(own.error[place])
        risk, low, high = (float(expit(log_odds + side * error)) for side in (0, -z, z))
        yield Measure("risk", group, risk, risk * (1 - risk) * error, low, high, True, math.nan)


def compared(name: str, groups: Sequence[str], own: WaldErrors, z: float) -> Iterator[Measure]:
    """Yield each group's difference from the first group's risk, or its ratio to it, on the scale of logarithms."""
    risk = expit(own.estimate)
    slope = risk * (1 - risk) if name == "difference" else 1 - risk
    for place, group in enumerate(groups[1:], 1):
        if not (own.degrees[0] and own.degrees[place]):
            yield _hidden(name, group)
            continue
        both, turn = np.ix_([0, place], [0, place]), np.array([-slope[0], slope[place]])
        error = math.sqrt(max(float(turn @ own.covariance[both] @ turn), 0.0))
        first, second = float(risk[0]), float(risk[place])
        change = second - first if name == "difference" else math.log(second / first)
        chance = float(2 * ndtr(-abs(change) / error)) if error > 0 else math.nan
        low, high = change - z * error, change + z * error
        if name == "difference":
            yield Measure(name, group, change, error, max(low, -1.0), min(high, 1.0), True, chance)
        else:
            ratio = math.exp(change)
            yield Measure(name, group, ratio, ratio * error, math.exp(low), math.exp(high), True, chance)


def _hidden(name: str, group: str) -> Measure:
    return Measure(name, group, math.nan, math.inf, *_UNKNOWN[name], False, math.nan if name == "risk" else 1.0)
