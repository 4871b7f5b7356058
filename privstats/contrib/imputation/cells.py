"""Odds ratios and risks by group from tables of counts with a cell for gaps."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import chdtrc, expit, ndtr

from privstats.contrib.imputation.log_linear import Fit, Layout, fitted, group_odds
from privstats.dp import Privacy
from privstats.errors import ReleaseError
from privstats.estimates.denoise import Array
from privstats.inference.counts.table import CountTable, count_table, z_of
from privstats.inference.evidence import CONSTANT as INTERCEPT
from privstats.inference.evidence import residual_degrees
from privstats.inference.inversion import condition, quantile
from privstats.inference.regression.restricted_likelihood import MixedErrors
from privstats.inference.regression.table import ContrastTest, Regression
from privstats.inference.releases import require_gaussian, require_records
from privstats.inference.reporting import HIDDEN, Source
from privstats.inference.summary import RowTable, Summary, chance_of, ends_of, number_of, rows_by
from privstats.intake.tables import is_list
from privstats.kinds import CountSchema
from privstats.release import Release
from privstats.schema import Variable, narrowed

MAX_CELLS = 4_096
"""Maximum number of cells of a table without its gaps."""

# Noise of a log odds. Noise that inflates a count also makes its error look small: with a limit L on the noise's
# deviation over the count, a count of exp(-1.96 L) / L deviations is reported and missed with a chance of 4.7 % at L =
# 1/6, 5.3 % at 1/5 and 7.5 % at 1/3.
_MAX_NOISE = 1 / 6
_MAX_ERROR = 2.0  # of a log odds: beyond, hardly a record has the value together with the other
_MIN_DEGREES = 100
_MODEL = "Logistic regression with imputed gaps"
_REASON = "the observed information, which is Rubin's rule for infinitely many imputations, and noise"


def logit(
    release: Release,
    *,
    outcome: str,
    columns: Sequence[str] | None = None,
    reference: Mapping[str, str] | None = None,
    interactions: Sequence[tuple[str, str]] = (),
) -> Regression:
    """Fit a logistic regression to a table of counts with gaps, by imputation on the counts.

    A log-linear model with all products of two variables is fitted to the counts of all records, with gaps or without.
    The logistic regression is that of its cells, which are complete. Variables of the table that are not in the
    regression still help to explain gaps. Fitting costs no privacy.

    Args:
        release: of a :class:`~privstats.CountSchema`, with variables that have ``missing=True``.
        outcome: a variable of two values; the odds are those of the second.
        columns: variables of the regression; all others of the table if omitted. The smallest table that crosses them
            with the outcome is read.
        reference: the value by column that others are compared with; the first if omitted.
        interactions: pairs of columns whose product is in the regression, and with the outcome in the model.

    Assumes:
        Values are missing at random given the observed variables, which no sum can test. Beyond ``interactions``, no
        product of three variables is in the log probabilities of cells. Records are independent, clients are honest.

    Returns:
        A table whose intervals hold under noise, by the normal law. A coefficient is not reported where noise moves it
        by more than a sixth, or where its error exceeds 2; none is where the likelihood has no maximum.

    Raises:
        ReleaseError: other sums, Laplace noise, averaged or clipped persons, an outcome without exactly two values,
            unknown columns or values, more than 4,096 cells, or fewer than 100 records beyond the number of parameters.

    Example:
        >>> from privstats.contrib.imputation import logit
        >>> dose = ps.Categories("dose", ("low", "high"), missing=True)
        >>> schema = ps.CountSchema((dose, ps.Categories("ill", ("no", "yes"))), (("dose", "ill"),))
        >>> doses, ill = ["low", "high", None, None] * 200, ["no", "yes", "no", "yes"] * 200
        >>> ill[:80] = ["yes", "no", "no", "yes"] * 20
        >>> release = ps.Release.exact(schema, ps.measure(schema, {"dose": doses, "ill": ill}))
        >>> table = logit(release, outcome="ill")
        >>> table.names, table.params.round(2).tolist()
        (('const', 'dose: high vs low'), [-2.19, 4.39])
    """
    read = _read(release, outcome, columns, reference or {}, interactions)
    names, X, own = read.design(interactions)
    errors = coefficients(read.fit, X, own, whole=len(read.chosen) == len(read.names) - 1)
    return ImputedOdds(
        names=names,
        nobs=read.records,
        df_resid=math.inf,
        scale=1.0,
        rsquared=None,
        condition_number=condition(np.asarray(np.linalg.eigvalsh(X.T @ (read.fit.p[:, None] * X)), np.float64)),
        saturation_=None,
        cov_type="imputed",
        cov_reason=_REASON,
        assumed=read.assumed,
        notes=read.notes if errors.degrees.all() else (*read.notes, read.hidden("coefficient")),
        release=release,
        columns=len(names) - 1,
        errors=errors,
        model=_MODEL,
    )


@dataclass(frozen=True, eq=False)
class ImputedOdds(Regression):
    """A logistic regression from :func:`logit`; its columns are indicators of values.

    Example:
        >>> from privstats.contrib.imputation import logit
        >>> dose, ill = ps.Categories("dose", ("low", "high"), missing=True), ps.Categories("ill", ("no", "yes"))
        >>> schema = ps.CountSchema((dose, ill), (("dose", "ill"),))
        >>> records = {"dose": ["low", "high", None] * 100, "ill": ["no", "yes", "yes", "no", "no", "yes"] * 50}
        >>> logit(ps.Release.exact(schema, ps.measure(schema, records)), outcome="ill").model
        'Logistic regression with imputed gaps'
    """

    def slope_at(self, *_: object, **__: object) -> ContrastTest:
        """Refuse: an indicator has no slope; :meth:`t_test` adds a product's coefficient to that of its column."""
        raise ReleaseError("columns are indicators of values, without slopes: add coefficients by t_test")


def coefficients(fit: Fit, X: Array, own: NDArray[np.intp], *, whole: bool) -> WaldErrors:
    """Return the errors of the logistic regression of a model's cells.

    Args:
        X: columns of complete cells, the constant first, ``(K, m)``.
        own: the model's parameter of each column's product with the outcome, ``(m,)``.
        whole: whether all other variables of the model are in the regression. Its coefficients are then the model's
            own parameters. Else they are those of :func:`fitted_odds`, reported where the own parameters are.
    """
    both = np.ix_(own, own)
    theta = WaldErrors.of(fit.theta[own], fit.covariance[both], fit.noise_covariance[both])
    if whole:
        return theta
    b, slopes = fit.logistic(X, fit.layout.codes[-1] == 1)
    errors = WaldErrors.of(b, *fit.covariances(slopes))
    return replace(errors, degrees=np.minimum(errors.degrees, theta.degrees))


@dataclass(frozen=True, eq=False)
class WaldErrors(MixedErrors):
    """Tests and intervals by the normal law."""

    noise: Array

    @classmethod
    def of(cls, estimate: Array, covariance: Array, noise: Array) -> WaldErrors:
        """Return the errors of log odds; one that noise or gaps hide has no degrees of freedom.

        Covariances are NaN of what has no unique value.
        """
        error, moved = (np.sqrt(np.maximum(np.diag(each), 0.0)) for each in (covariance, noise))
        clear = (error <= _MAX_ERROR) & (moved <= _MAX_NOISE)
        return cls(estimate, np.nan_to_num(covariance), np.where(clear, np.inf, 0.0), np.nan_to_num(noise))

    @property
    def error(self) -> Array:
        """Standard errors, ``(m,)``; infinite where not reported."""
        return self._shown(self.covariance)

    @property
    def noise_error(self) -> Array:
        """Standard errors from noise alone, ``(m,)``; infinite where not reported."""
        return self._shown(self.noise)

    def interval(self, alpha: float, *, sampling: bool = True) -> tuple[Array, Array]:
        """Return ends; about exact sums, with the noise's error alone."""
        margin = quantile(alpha, math.inf) * (self.error if sampling else self.noise_error)
        return self.estimate - margin, self.estimate + margin

    def combined(self, rows: Array) -> WaldErrors:
        """Return linear combinations, ``(r, m)``; of reported parameters alone they are reported."""
        degrees = np.where(rows != 0, self.degrees, np.inf).min(axis=1)
        both = (rows @ each @ rows.T for each in (self.covariance, self.noise))
        return WaldErrors(rows @ self.estimate, next(both), degrees, next(both))

    def joint_pvalue(self) -> float:
        """Return the chi-squared law's joint p-value; 1 where a parameter is not reported."""
        if not self.degrees.all():
            return 1.0
        statistic = float(self.estimate @ np.linalg.solve(self.covariance, self.estimate))
        return float(chdtrc(len(self.estimate), statistic))

    def _shown(self, covariance: Array) -> Array:
        variance = np.where(self.degrees > 0, np.diag(covariance), np.inf)
        return np.sqrt(np.maximum(variance, 0.0))


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

    def __iter__(self) -> Iterator[Measure]:
        return iter(self.measures)

    @property
    def reported(self) -> bool:
        """Whether any risk is reported."""
        return any(each.reported for each in self.measures)

    def to_rows(self) -> list[dict[str, object]]:
        """Return a row per measure."""
        names = ("measure", "group", "estimate", "std_error", "conf_low", "conf_high", "told", "p_value")
        return rows_by(dict(zip(names, zip(*self.measures, strict=True), strict=True)))

    def summary(self) -> Summary:
        """Return the table."""
        reference = self.measures[0].group
        over = f", over the {' and '.join(self.over)} of all records" if self.over else ""
        return Source(self.release, self.alpha, f"{self.assumed}, independent records, honest clients").summary(
            f"Risks of {self.outcome} by {self.by}, with imputed gaps",
            ("", self.by, "estimate", "std err", *ends_of(self.alpha), "P"),
            [_shown(each) for each in self.measures],
            head=(("records", f"{self.records:,.0f}" + " (noisy)" * (self.release.plan.noise is not None)),),
            notes=(f"Differences and ratios are to {reference}{over}.",),
            warnings=self.notes,
            methods=f"Risks of {self.outcome} by {self.by}{over} follow from a log-linear model with all products of "
            "two variables, fitted to the counts of records with and without gaps; errors are by the delta method.",
        )


def _shown(each: Measure) -> tuple[str, ...]:
    if not each.reported:
        return (each.name, each.group, HIDDEN, "", "", "", "")
    numbers = map(number_of, (each.estimate, each.error, each.low, each.high))
    return (each.name, each.group, *numbers, "" if math.isnan(each.p_value) else chance_of(each.p_value))


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
    z = z_of(alpha)
    _check_columns(outcome, columns)
    if columns is not None and by in columns:
        raise ReleaseError(f"columns names {by!r}, whose groups are compared; leave it out")
    read = _read(release, outcome, None if columns is None else [by, *columns], reference or {}, interactions)
    if by not in read.names[:-1]:
        raise ReleaseError(f"by must be a variable of the table besides the outcome, got {by!r}: {read.listed}")
    place = read.names.index(by)
    groups = read.values[place]
    own = risk_errors(read.fit, place)
    measures = [*_risks(groups, own, z), *compared("difference", groups, own, z), *compared("ratio", groups, own, z)]
    return Risks(
        measures=tuple(measures),
        outcome=f"{outcome} = {read.values[-1][1]}",
        by=by,
        over=tuple(name for name in read.names[:-1] if name != by),
        records=read.records,
        assumed=read.assumed,
        notes=read.notes if own.degrees.all() else (*read.notes, read.hidden("risk")),
        alpha=alpha,
        release=release,
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


@dataclass(frozen=True, eq=False)
class _Read:
    """A table's fitted model; the outcome is its last variable.

    Attributes:
        names, values: of each variable, and of its values, the reference first.
        chosen: places of the regression's variables.
        missing: share of gaps by name.
    """

    names: tuple[str, ...]
    values: tuple[tuple[str, ...], ...]
    chosen: tuple[int, ...]
    fit: Fit
    records: float
    missing: Mapping[str, float]

    @property
    def listed(self) -> str:
        """The variables as words."""
        return f"the table crosses {', '.join(self.names)}"

    @property
    def assumed(self) -> str:
        """What intervals assume."""
        return "values missing at random given the table's other variables, no product of three variables" + (
            " but those declared" * bool(self.fit.layout.products) + " in the cells' log probabilities"
        )

    @property
    def notes(self) -> tuple[str, ...]:
        """Warnings of every table."""
        shares = ", ".join(f"{name} {100 * share:.0f} %" for name, share in self.missing.items())
        return (
            f"missing: {shares or 'nothing'}; no sum can test that values are missing at random: where a gap depends "
            "on the value itself, complete cases may be right and this table wrong",
        )

    def hidden(self, what: str) -> str:
        """Return why some are not reported."""
        if not self.fit.converged:
            return f"no {what} is reported: noise hides the counts, or gaps hide how two variables are related"
        return (
            f"a {what} is not reported where noise moves its log odds by more than a sixth, or where hardly a record "
            "tells of it: cross fewer variables or values, or release more records"
        )

    def design(self, interactions: Sequence[tuple[str, str]]) -> tuple[tuple[str, ...], Array, NDArray[np.intp]]:
        """Return the regression's columns: names, values ``(K, m)``, and the parameter of each with the outcome."""
        layout, last = self.fit.layout, len(self.names) - 1
        names, parts, own = [INTERCEPT], [np.ones((layout.codes.shape[1], 1))], [layout.places((last,))]
        pairs = [tuple(map(self.names.index, pair)) for pair in interactions]
        for places in (*((each,) for each in self.chosen), *pairs):
            names += [" x ".join(words) for words in itertools.product(*map(self._terms, places))]
            parts.append(layout.product(places))
            own.append(layout.places((*places, last)))
        return tuple(names), np.hstack(parts), np.concatenate(own)

    def _terms(self, place: int) -> list[str]:
        first, *others = self.values[place]
        return [f"{self.names[place]}: {value} vs {first}" for value in others]


def _read(
    release: Release,
    outcome: str,
    columns: Sequence[str] | None,
    reference: Mapping[str, str],
    interactions: Sequence[tuple[str, str]],
) -> _Read:
    _check(release)
    _check_columns(outcome, columns)
    table = _table(release, outcome, columns)
    names = tuple(variable.name for variable in table.variables)
    chosen = tuple(j for j, name in enumerate(names[:-1]) if columns is None or name in columns)
    values, counts = _in_order(table, names, reference)
    if len(values[-1]) != 2:
        raise ReleaseError(f"the outcome {outcome!r} has {len(values[-1])} values, and odds are of two: count two")
    products = _products(names, chosen, interactions)
    layout = Layout(tuple(map(len, values)), tuple(bool(each.missing) for each in table.variables), products)
    if math.prod(layout.levels) > MAX_CELLS:
        raise ReleaseError(
            f"the table has {math.prod(layout.levels):,} cells without gaps, and at most {MAX_CELLS:,} are imputed: "
            "cross fewer variables or values"
        )
    records = float(counts.sum())
    taken = layout.features.shape[1] + 1
    degrees = residual_degrees(records, table.sigma * math.sqrt(counts.size), taken, f"{taken} parameters")
    if degrees < _MIN_DEGREES:
        raise ReleaseError(
            f"the release holds about {records:.0f} records for {taken} parameters; imputation needs at least "
            f"{_MIN_DEGREES} records more than parameters: release more records, or cross fewer variables"
        )
    missing = {
        name: float(np.clip(np.take(counts, -1, axis=axis).sum() / records, 0.0, 1.0))
        for axis, name in enumerate(names)
        if layout.gaps[axis]
    }
    return _Read(names, values, chosen, fitted(layout, counts.reshape(-1), table.sigma), records, missing)


def _check(release: Release) -> None:
    """Refuse releases for which intervals were not measured."""
    require_gaussian(require_records(release))
    privacy = release.plan.privacy
    if isinstance(privacy, Privacy) and privacy.averaged:
        raise ReleaseError(
            "the plan averages persons, for which imputation was not measured; count one row per person, and promise "
            "records"
        )
    if release.suppressed:
        raise ReleaseError("cells were suppressed, so records are missing from the table; set min_count = 0")


def _check_columns(outcome: object, columns: object) -> None:
    if not isinstance(outcome, str):
        raise ReleaseError(f"outcome must be the name of a variable, got {outcome!r}")
    if columns is None:
        return
    if not is_list(columns) or not columns or not all(isinstance(each, str) for each in columns):
        raise ReleaseError("columns must be a list of different variables, such as ['age']")
    if len(set(columns)) < len(columns):
        raise ReleaseError("columns names a variable twice; name each once")
    if outcome in columns:
        raise ReleaseError(f"columns names the outcome {outcome!r}; leave it out")


def _table(release: Release, outcome: str, columns: Sequence[str] | None) -> CountTable:
    """Return the smallest table that crosses the columns with the outcome, whole, the outcome last."""
    refusal = ReleaseError("imputation through cells reads count tables; measure a CountSchema")
    schema = narrowed(release.plan.schema, CountSchema, refusal)
    plain = schema.tables[: len(schema.tables) - len(schema.numbers or ())]
    wanted = {outcome, *(columns or ())}
    holding = [table for table in plain if wanted <= set(table) and len(table) > 1]
    if not holding or (columns is None and len(holding) > 1):
        tables = "; ".join(" x ".join(table) for table in plain)
        found = "no table crosses" if not holding else "several tables cross"
        raise ReleaseError(f"{found} {', '.join(sorted(wanted))} with others; name columns of one of: {tables}")
    names = min(holding, key=lambda each: math.prod(schema.shape(each)))
    return count_table(release, *(name for name in names if name != outcome), outcome)


def _in_order(
    table: CountTable, names: Sequence[str], reference: Mapping[str, str]
) -> tuple[tuple[tuple[str, ...], ...], Array]:
    """Return each variable's values with the reference first, and the counts in that order."""
    if unknown := [name for name in reference if name not in names[:-1]]:
        raise ReleaseError(f"reference names {unknown[0]!r}, which is no column of the table: {', '.join(names[:-1])}")
    counts, values = table.counts, []
    for axis, variable in enumerate(table.variables):
        own = _known(variable)
        first = str(reference.get(variable.name, own[0]))
        if first not in own:
            raise ReleaseError(f"reference of {variable.name!r} must be one of {', '.join(own)}, got {first!r}")
        order = [own.index(first), *(place for place, value in enumerate(own) if value != first)]
        counts = np.take(counts, [*order, *range(len(own), counts.shape[axis])], axis=axis)
        values.append(tuple(own[place] for place in order))
    return tuple(values), counts


def _known(variable: Variable) -> list[str]:
    cells: Any = variable.cells
    return [str(cell) for cell in (cells[:-1] if variable.missing else cells)]


def _products(
    names: Sequence[str], chosen: Sequence[int], interactions: Sequence[tuple[str, str]]
) -> tuple[tuple[int, ...], ...]:
    """Return the places of each interaction's columns and of the outcome."""
    allowed = [names[place] for place in chosen]
    for pair in interactions if is_list(interactions) else [interactions]:
        if not is_list(pair) or len(pair) != 2 or pair[0] == pair[1] or not set(pair) <= set(allowed):
            raise ReleaseError(
                f"interactions must be pairs of different columns of {', '.join(allowed)}, such as [('arm', 'sex')]"
            )
    if len({frozenset(pair) for pair in interactions}) < len(interactions):
        raise ReleaseError("interactions names a pair twice; name it once")
    return tuple((names.index(first), names.index(second), len(names) - 1) for first, second in interactions)
