"""Fit logistic regressions to tables of counts with gaps, by imputation on the counts."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from privstats.contrib.imputation.gap_tables import read
from privstats.contrib.imputation.log_linear import Fit
from privstats.contrib.imputation.wald import WaldErrors
from privstats.errors import ReleaseError
from privstats.extend.readers import condition
from privstats.extend.support import Array
from privstats.inference import ContrastTest, Regression
from privstats.release import Release

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
    table = read(release, outcome, columns, reference or {}, interactions)
    names, X, own = table.design(interactions)
    errors = coefficients(table.fit, X, own, whole=len(table.chosen) == len(table.names) - 1)
    return ImputedOdds(
        names=names,
        nobs=table.records,
        nobs_sigma=table.records_sigma,
        df_resid=math.inf,
        scale=1.0,
        rsquared=None,
        condition_number=condition(np.asarray(np.linalg.eigvalsh(X.T @ (table.fit.p[:, None] * X)), np.float64)),
        saturation_=None,
        cov_type="imputed",
        cov_reason=_REASON,
        assumed=table.assumed,
        notes=table.notes if errors.degrees.all() else (*table.notes, table.hidden("coefficient")),
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
