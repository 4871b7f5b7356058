"""Fit a linear regression by Rubin's rule on completed sums."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtr, stdtrit

from privstats.contrib.imputation.completion import (
    FLOOR,
    MAX_MISSING,
    Mode,
    Patterns,
    completed,
    completed_again,
    drawn,
    floored,
    missing_information,
)
from privstats.contrib.imputation.gaps import CONSTANT, layout_of, observed
from privstats.contrib.imputation.measured import degrees_of, require_measured
from privstats.errors import ReleaseError
from privstats.extend.readers import CONSTANT as INTERCEPT
from privstats.extend.readers import chosen_columns, condition, contrasts_of, quantile
from privstats.extend.support import Array
from privstats.inference import Regression
from privstats.inference.releases import map_columns
from privstats.release import Release

DRAWS = 20
"""Draws of completed sums; the benchmark measures intervals and refusals with the same number."""
_SEED_DIGITS = 16
_COVERED = {
    "a strongly skewed covariate": (86, 94),
    "heavy tails (t laws of 4 and 5 degrees)": (15, 47),
    "such a product": (0, 7),
}
"""Coverage of the worst slope by world, in %: 20,000 records without noise (``benchmarks.inference.imputation``)."""
_CLIPPED, _MAX_CLIPPED = 0.001, 0.05  # of the rows' squares: what is warned of, and what noise must exclude
_ONE_SIDED = 1.645
_LEAST_SHARE = 0.1  # of the residual sum that remains when the noise's part is subtracted


def ols(release: Release, *, target: str | int, columns: Sequence[str | int] | None = None) -> Regression:
    """Fit ordinary least squares on columns with gaps, by multiple imputation on the released sums.

    No record is imputed: completed sums are drawn 20 times from their posterior under a normal model, with the
    release's noise, and combined by Rubin's rule (docs/imputation_on_sums.md). Columns that are not in the regression
    still help to explain gaps. Fitting costs no privacy.

    Args:
        release: of a schema from :func:`schema_of`, with or without noise.
        target: name or index of the outcome's column.
        columns: names or indices of the regressors; all other columns if omitted.

    Assumes:
        Values are missing at random given the observed columns, which no sum can test. The columns are jointly normal:
        each incomplete column is linear in the observed ones, with one variance. Nothing bounds the error for skewed or
        discrete columns. Records are independent, clipping is negligible, clients are honest. All of these are printed.

    Returns:
        A table like that of ``ps.inference.ols``, with degrees of freedom by Barnard and Rubin (1999). It reports no
        coefficient where noise hides the sums, or where more than .75 of the information is missing.

    Raises:
        ReleaseError: other sums, a plan that clips clients or averages persons, Laplace noise, patterns that were
            suppressed, or fewer than 100 records beyond the number of parameters.

    Example:
        >>> from privstats.contrib.imputation import by_gaps, ols, schema_of
        >>> rng = np.random.default_rng(0)
        >>> dose, age = rng.normal(size=(2, 2_000))
        >>> days = dose + age + rng.normal(size=2_000)
        >>> dose[days > rng.normal(1, 1, 2_000)] = np.nan  # those who stay long have no dose
        >>> schema = schema_of({"dose": (0, 1), "age": (0, 1), "days": (0, 2)}, ["dose"], clip_norm=5.0)
        >>> moments = ps.measure(schema, *by_gaps(schema, {"dose": dose, "age": age, "days": days}))
        >>> ols(ps.Release.exact(schema, moments), target="days").params[1:].round(1).tolist()
        [1.0, 1.0]
    """
    sums = _sums(release)
    names, incomplete = layout_of(release.plan.schema)
    (outcome,) = chosen_columns(names, [target])
    chosen = [j for j in range(len(names)) if j != outcome] if columns is None else chosen_columns(names, columns)
    if outcome in chosen:
        raise ReleaseError(f"columns names the target {names[outcome]!r}; leave it out")
    sigma = release.sigma["S"]
    places = [*chosen, len(names)]
    n = float(sums.records)
    count_sigma = sigma * math.sqrt(len(sums.observed)) / sums.constant**2
    degrees = degrees_of(n, count_sigma, len(places), "read fewer columns=[...]")
    rubin, hidden = _combined(sums, sigma, places, outcome, degrees, release.digest)
    scale, shift = map_columns(release.plan.schema.transform, len(names))
    rows = contrasts_of(np.diag(scale[chosen]), shift[chosen], sums.constant) / scale[outcome]
    errors = replace(rubin, contrasts=rows, offset=np.array([-shift[outcome] / scale[outcome], *np.zeros(len(chosen))]))
    total = rubin.total - n * rubin.mean**2
    explained = 1 - rubin.residual / total if total > 0 else math.nan
    shares = _shares(sums, incomplete)
    return Regression(
        names=(INTERCEPT, *(names[j] for j in chosen)),
        nobs=n,
        nobs_sigma=count_sigma,
        df_reason="by Barnard and Rubin (1999)",
        df_resid=degrees,
        scale=rubin.residual / degrees / scale[outcome] ** 2,
        rsquared=explained if 0 <= explained <= 1 else None,
        condition_number=condition(rubin.eigenvalues),
        saturation_=None,
        cov_type="imputed",
        cov_reason=f"Rubin's rule over {DRAWS} completions of the sums",
        assumed="values are missing at random given the observed columns, the columns are jointly normal (nothing "
        "bounds the error for skewed, heavy-tailed or discrete ones, nor where a product matters), and the prior is "
        "Jeffreys'",
        notes=(
            *_notes({names[j]: share for j, share in zip(incomplete, shares, strict=True)}),
            *_clipping(release, sums),
            *((f"no coefficient is reported: {hidden}",) if hidden else ()),
        ),
        release=release,
        columns=len(names),
        errors=errors,
        model="Linear regression with imputed gaps",
    )


@dataclass(frozen=True, eq=False)
class RubinErrors:
    """Tests and intervals by Rubin's rule (1987), with Student's quantiles.

    Attributes:
        solution: of the completed sums, ``(p,)``.
        within: covariance without gaps and noise, ``(p, p)``.
        complete_degrees: degrees of freedom of complete records.
        draws: solutions of drawn sums, ``(draws, p)``: their spread is that of imputation and noise.
        noisy: solutions under fresh noise alone, ``(draws, p)``.
        valid: whether coefficients are reported.
        contrasts, offset: parameters are ``contrasts @ solution + offset``.
        residual, total, mean, eigenvalues: the residual sum, the target's square sum and mean, and G's eigenvalues.
    """

    solution: Array
    within: Array
    complete_degrees: float
    draws: Array
    noisy: Array
    valid: bool
    contrasts: Array
    offset: Array
    residual: float
    total: float
    mean: float
    eigenvalues: Array

    @property
    def estimate(self) -> Array:
        """Parameters at the solution, ``(m,)``."""
        return np.asarray(self.contrasts @ self.solution + self.offset)

    @property
    def error(self) -> Array:
        """Standard errors, ``(m,)``; infinite where none is reported."""
        return self._shown(np.sqrt(np.diagonal(self._covariance)))

    @property
    def noise_error(self) -> Array:
        """Standard errors from noise alone, ``(m,)``."""
        return self._shown(np.std(self.noisy @ self.contrasts.T, axis=0, ddof=1))

    @property
    def df(self) -> Array:
        """Degrees of freedom by Barnard and Rubin, ``(m,)``."""
        return self._degrees

    def reported(self, alpha: float) -> NDArray[np.bool_]:  # noqa: ARG002 - the signature of Errors
        """Return whether intervals are bounded: all or none."""
        return np.full(len(self.contrasts), self.valid)

    def statistics(self, null: Array | float = 0.0) -> Array:
        """Return (estimate - ``null``) / standard error."""
        step = self.estimate - null
        return np.where(step == 0, 0.0, step / self.error)

    def pvalues(self, null: Array | float = 0.0) -> Array:
        """Return two-sided p-values; 1 where not reported."""
        return np.asarray(2 * stdtr(self._degrees, -np.abs(self.statistics(null))))

    def interval(self, alpha: float, *, sampling: bool = True) -> tuple[Array, Array]:
        """Return ends; about exact sums, with the noise's error alone."""
        margin = stdtrit(self._degrees, 1 - alpha / 2) * self.error
        if not sampling:
            margin = quantile(alpha, len(self.noisy) - 1.0) * self.noise_error
        return self.estimate - margin, self.estimate + margin

    def combined(self, rows: Array) -> RubinErrors:
        """Return linear combinations, ``(r, m)``."""
        return replace(self, contrasts=rows @ self.contrasts, offset=rows @ self.offset)

    def joint_pvalue(self) -> float:
        """Return Bonferroni's p-value of "all parameters are 0": the smallest of theirs, times their number.

        An F law would need the inverse of a covariance from as few draws, and rejects too often with many parameters.
        """
        return min(1.0, len(self.contrasts) * float(self.pvalues().min()))

    @cached_property
    def _between(self) -> Array:
        m = len(self.draws)
        spread = np.atleast_2d(np.cov(self.draws @ self.contrasts.T, rowvar=False))
        return np.asarray((1 + 1 / m) * spread)

    @cached_property
    def _covariance(self) -> Array:
        return self.contrasts @ self.within @ self.contrasts.T + self._between

    @cached_property
    def _degrees(self) -> Array:
        share = np.diagonal(self._between) / np.diagonal(self._covariance)
        return barnard_rubin(share, len(self.draws), self.complete_degrees)

    def _shown(self, errors: Array) -> Array:
        return np.asarray(errors if self.valid else np.full(len(errors), np.inf))


def barnard_rubin(share: Array, draws: int, complete: float) -> Array:
    """Return degrees of freedom by Barnard and Rubin (1999).

    Args:
        share: of gaps and noise in the variance.
        complete: degrees of freedom of complete records.
    """
    of_draws = (draws - 1) / np.square(np.maximum(share, math.sqrt(np.finfo(np.float64).eps)))
    of_records = (1 - share) * complete * (complete + 1) / (complete + 3)
    return np.asarray(1 / (1 / of_draws + 1 / of_records))


def _sums(release: Release) -> Patterns:
    """Return the sums by pattern; refuse releases for which Rubin's rule was not measured."""
    require_measured(release, "patterns of gaps")
    names, incomplete = layout_of(release.plan.schema)
    constant = release.plan.schema.on_grid(CONSTANT)
    return Patterns(np.asarray(release.moments.S, np.float64), observed(len(names), incomplete), constant)


def _combined(
    sums: Patterns, sigma: float, places: list[int], outcome: int, degrees: float, digest: str
) -> tuple[RubinErrors, str]:
    """Return Rubin's rule over draws, and why nothing is reported, if so. The release seeds them: it has one table."""
    rng = np.random.default_rng(int(digest[:_SEED_DIGITS], 16))
    mode = completed(sums)
    total = mode.T
    again = sums.with_noise(rng, sigma, DRAWS)
    modes = completed_again(again, np.broadcast_to(total, (DRAWS, *total.shape)), sigma)
    hidden = hides(sums, mode, modes, sigma, places)
    if hidden:  # singular moments are solved, and not reported
        moments = [floored(T, np.full(T.shape[:-2], FLOOR * float(sums.records)))[0] for T in (total, modes.T, modes.T)]
    else:
        moments = [total, modes.T, drawn(again, modes.T, rng)]
    (b, inverse, residual), (noisy, _, noisy_residuals), (draws, _, _) = (solved(T, places, outcome) for T in moments)
    # Noise moves the residual sum down on average; replicates show by how much.
    corrected = max(2 * float(residual) - float(noisy_residuals.mean()), _LEAST_SHARE * abs(float(residual)))
    rubin = RubinErrors(
        solution=b,
        within=inverse * (corrected / degrees),
        complete_degrees=degrees,
        draws=draws,
        noisy=noisy,
        valid=not hidden,
        contrasts=np.eye(len(b)),
        offset=np.zeros(len(b)),
        residual=corrected,
        total=float(total[outcome, outcome]),
        mean=float(total[outcome, -1]) / (sums.constant * float(sums.records)),
        eigenvalues=np.asarray(np.linalg.eigvalsh(total[np.ix_(places, places)]), np.float64),
    )
    return rubin, hidden


def solved(T: Array, places: list[int], outcome: int) -> tuple[Array, Array, Array]:
    """Return the solutions, inverse Gram matrices and residual sums of moments ``(..., d, d)``."""
    X = np.array(places)
    G, h = T[..., X[:, None], X], T[..., X, outcome]
    inverse = np.asarray(np.linalg.inv(G), np.float64)
    b = (inverse @ h[..., None])[..., 0]
    return b, inverse, np.asarray(T[..., outcome, outcome] - (h * b).sum(-1))


def hides(sums: Patterns, mode: Mode, modes: Mode, sigma: float, places: list[int]) -> str:
    """Return why no coefficient is reported, or "".

    Args:
        mode: of the released sums.
        modes: of replicates with fresh noise.
    """
    d = mode.T.shape[-1]
    full = np.flatnonzero(sums.observed.all(axis=0))
    least = min(np.linalg.eigvalsh(sums.S[0][np.ix_(each, each)])[0] for each in (np.array(places), full))
    floor = FLOOR * float(sums.records)
    definite = np.linalg.eigvalsh(mode.T)[0] > floor and (np.linalg.eigvalsh(modes.T)[:, 0] > floor).all()
    if not definite or least <= sigma * math.sqrt(2 * d):
        return (
            "noise hides the sums by gap pattern, too few records have no gap, or a column nearly follows from others; "
            "declare fewer columns with gaps, release more records, or leave out a constant or repeated column and one "
            "whose public spread is far too large"
        )
    missing = float(missing_information(sums, mode.T))
    if missing > MAX_MISSING or not (mode.converged and modes.converged.all()):
        return (
            f"gaps hide {100 * missing:.0f} % of the information on a moment, above the "
            f"{100 * MAX_MISSING:.0f} % up to which imputation was measured, or its steps did not converge; leave out "
            "the column with most gaps"
        )
    return ""


def _shares(sums: Patterns, incomplete: Sequence[int]) -> list[float]:
    """Return the share of missing values of each incomplete column."""
    n = float(sums.records)
    return [float(np.clip(sums.counts[~sums.observed[:, place]].sum() / n, 0.0, 1.0)) for place in incomplete]


def _notes(shares: dict[str, float]) -> tuple[str, ...]:
    missing = ", ".join(f"{name} {100 * share:.0f} %" for name, share in shares.items())
    worlds = ", ".join(f"{low} to {high} % with {what}" for what, (low, high) in _COVERED.items())
    return (
        f"missing: {missing}; no sum can test that values are missing at random: where a gap depends on the value "
        "itself, complete cases may be right and this table wrong",
        "where an incomplete column is skewed, heavy-tailed or discrete, or the outcome depends on a product that no "
        "column holds, nothing bounds how often intervals miss: with 20,000 records, 10 or 30 % missing and no noise, "
        f"95 % intervals covered {worlds}; more records cover less, and complete cases covered no more",
    )


def _clipping(release: Release, sums: Patterns) -> tuple[str, ...]:
    """Return a note on how much clipping took from the rows' squares, if that may matter.

    The constant's square is 4 per record before the clip. So the sum of released squares over 4 N is the mean square of
    the factors by which rows were clipped, and no record's number is needed.
    """
    square, patterns = sums.constant**2, len(sums.observed)
    n = float(release.moments.N.sum())
    if n <= 0:
        return ()
    lost = 1 - float(sums.S[..., -1, -1].sum()) / (square * n)
    error = math.sqrt(patterns * (release.sigma["S"] ** 2 + (square * release.sigma["N"]) ** 2)) / (square * n)
    low, high = lost - _ONE_SIDED * error, lost + _ONE_SIDED * error
    if low > _CLIPPED:
        return (
            f"{100 * lost:.2g} % of the rows' squares were clipped (at most {100 * high:.2g} %), and intervals ignore "
            "that; raise clip_norm",
        )
    if high > _MAX_CLIPPED:
        return (f"up to {100 * high:.0f} % of the rows' squares may have been clipped: noise hides how much",)
    return ()
