"""Logistic and Poisson regression from the rounds of a ``Newton`` course: the last round, solved without damping.

One step from the last published weights w is as good as the maximum of the likelihood if the rounds have converged
there. That is checked, and a coefficient that has not converged is not told.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from privstats.course.newton import weights_after
from privstats.errors import ReleaseError
from privstats.estimates.spectrum import Array
from privstats.inference.evidence import CONSTANT, column_names, contrasts_of, map_columns, require_records
from privstats.inference.inversion import Inversion, NormalEquations
from privstats.inference.regression import Regression
from privstats.release import Release
from privstats.schema import ScoreSchema

__all__ = ["LastStep", "logit", "poisson"]

_ARRIVED = 2.0  # standard errors that the next step may move a coefficient by, at the most
_TITLES = {"logistic": "Logistic regression", "poisson": "Poisson regression"}


@dataclass(frozen=True)
class LastStep:
    """Parameters theta = C (w + b): test inversion of the step b, shifted by C w.

    Attributes:
        inversion: of the last round's information and score, with variance 1 and normal quantiles.
        offset: C w, ``(m,)``.
        radius: R, the norm of a row.
    """

    inversion: Inversion
    offset: Array
    radius: float

    @property
    def estimate(self) -> Array:
        """Parameters, ``(m,)``."""
        return self.offset + self.inversion.estimate

    @property
    def error(self) -> Array:
        """Standard errors."""
        return self.inversion.error

    @property
    def noise_error(self) -> Array:
        """Standard errors from the noise alone."""
        return self.inversion.noise_error

    @cached_property
    def left(self) -> Array:
        """The most standard errors by which the next step could move each parameter, ``(m,)``.

        ``(e^r - 1 - r) / r sqrt(d'H d c'H^-1 c) / se`` with d the last step and r = R |d|: log v moves by at most
        R |w - w'| between two weights (self-concordance), which bounds the score that is left after the step.
        """
        equations, step = self.inversion.equations, self.inversion.equations.solution
        if equations.eigenvalues[0] <= 0:
            return np.full(len(self.offset), np.inf)
        r = min(self.radius * float(np.linalg.norm(step)), 50.0)
        curve = (math.expm1(r) - r) / r if r > 0 else 0.0
        length = math.sqrt(float(step @ equations.G @ step))
        with np.errstate(divide="ignore"):
            spread = np.sqrt(1 / self.inversion.precision)
        return curve * length * spread / self.error

    @property
    def arrived(self) -> NDArray[np.bool_]:
        """Whether the rounds have converged for each parameter, ``(m,)``."""
        return np.asarray(self.left <= _ARRIVED)

    def told(self, alpha: float) -> NDArray[np.bool_]:
        """Whether the interval at this level is bounded."""
        return self.inversion.told(alpha) & self.arrived

    def statistics(self, null: Array | float = 0.0) -> Array:
        """Score of "parameter == null" over its standard deviation there."""
        return self.inversion.statistics(null - self.offset)

    def pvalues(self, null: Array | float = 0.0) -> Array:
        """Two-sided p-values of "parameter == null"; 1 where the rounds have not converged."""
        return np.where(self.arrived, self.inversion.pvalues(null - self.offset), 1.0)

    def interval(self, alpha: float, *, sampling: bool = True) -> tuple[Array, Array]:
        """Ends of the intervals; as :meth:`Inversion.interval`."""
        low, high = self.inversion.interval(alpha, sampling=sampling)
        told = self.told(alpha)
        return np.where(told, self.offset + low, -np.inf), np.where(told, self.offset + high, np.inf)

    def combined(self, rows: Array) -> LastStep:
        """The same of linear combinations of the parameters, ``(r, m)``."""
        return LastStep(self.inversion.combined(rows), rows @ self.offset, self.radius)

    def joint_pvalue(self) -> float:
        """p-value of "all parameters are 0"; 1 where the rounds have not converged."""
        return self.inversion.joint_pvalue(-self.offset) if self.arrived.all() else 1.0


def logit(releases: Sequence[Release | None]) -> Regression:
    """Logistic regression from all releases of a ``Newton`` course, in order.

    Coefficients are log odds ratios per unit of the columns as they came in. A coefficient is told only where the next
    Newton step could move it by at most two standard errors: rounds that ended before they converged tell no
    coefficient. Give the schema a public ``rate=``, or take more rounds, where outcomes are rare.

    Args:
        releases: of every round; None for one that ended without a sum.

    Raises:
        ReleaseError: no release, releases of another regression, or out of order.

    Example:
        >>> schema = ps.ScoreSchema(2, clip_norm=2.0, transform=(ps.transforms.ConstantFeature(1.0),))
        >>> privacy = ps.Privacy(model="central", unit="record", adjacency="add-remove", epsilon=8.0, delta=1e-6)
        >>> course = ps.Newton.start(schema, ps.Cohort(2, 2, 4_000), privacy)
        >>> rng = np.random.default_rng(0)
        >>> X = rng.uniform(-1, 1, (4_000, 1))
        >>> y = (rng.random(4_000) < 1 / (1 + np.exp(-X[:, 0]))).astype(int)
        >>> releases = ps.simulate(course, [(X[::2], y[::2]), (X[1::2], y[1::2])])
        >>> ps.inference.logit(releases).names
        ('const', 'x0')
    """
    return _regression(releases, "logistic")


def poisson(releases: Sequence[Release | None]) -> Regression:
    """Poisson regression from all releases of a ``Newton`` course, in order; coefficients are log rate ratios.

    Args and errors as for :func:`logit`. Counts above the schema's ``target_bound`` were cut to it, which pulls
    coefficients toward 0.

    Example:
        >>> from privstats import randomness
        >>> constant = (ps.transforms.ConstantFeature(1.0),)
        >>> schema = ps.ScoreSchema(2, clip_norm=2.0, family="poisson", target_bound=20.0, transform=constant)
        >>> privacy = ps.Privacy(model="central", unit="record", adjacency="add-remove", epsilon=8.0, delta=1e-6)
        >>> course = ps.Newton.start(schema, ps.Cohort(2, 2, 8_000), privacy)
        >>> X = np.linspace(-1, 1, 8_000)[:, None]
        >>> y = np.random.default_rng(0).poisson(np.exp(X[:, 0]))
        >>> releases = ps.simulate(course, [(X[::2], y[::2]), (X[1::2], y[1::2])], rng=randomness.seeded(0))
        >>> ps.inference.poisson(releases).params.round(1).tolist()  # log rate ratios
        [0.0, 1.0]
    """
    return _regression(releases, "poisson")


def _regression(releases: Sequence[Release | None], family: str) -> Regression:
    present = _present(releases, family)
    last, schema = present[-1], present[-1].plan.schema
    assert isinstance(schema, ScoreSchema)  # noqa: S101  _present has refused others
    w = weights_after(schema, present)[len(present) - 1].real
    raw = schema.features - (schema.constant is not None)
    scale, shift = map_columns(schema.transform, raw)
    contrasts = contrasts_of(scale, shift, schema.constant)
    equations = _equations(last)
    errors = LastStep(Inversion(equations, contrasts, math.inf), contrasts @ w, schema.clip_norm)
    smallest, largest = float(equations.eigenvalues[0]), float(equations.eigenvalues[-1])
    names = column_names(schema, raw)
    late = [] if errors.arrived.all() else ["the rounds ended before they arrived: give rate=, or more rounds"]
    return Regression(
        names=names if schema.constant is None else (CONSTANT, *names),
        nobs=None,
        df_resid=math.inf,
        scale=1.0,
        rsquared=None,
        condition_number=math.sqrt(largest / smallest) if smallest > 0 else None,
        saturation_=None,
        cov_type="nonrobust",
        cov_reason=f"one step after {len(present) - 1} rounds",
        notes=tuple(late),
        release=last,
        columns=raw,
        errors=errors,
        model=_TITLES[family],
        rounds=len(releases),
    )


def _equations(last: Release) -> NormalEquations:
    """The Newton step of a round: its information, its score, and a variance of 1."""
    H, g = np.asarray(last.moments.H), np.asarray(last.moments.g)
    noise = {"sigma_G": last.sigma["H"], "sigma_h": last.sigma["g"], "sigma_q": 0.0}
    return NormalEquations((H + H.T) / 2, g, 0.0, **noise, degrees=math.inf, known_variance=1.0)


def _present(releases: Sequence[Release | None], family: str) -> list[Release]:
    if isinstance(releases, Release) or not isinstance(releases, Sequence):
        raise ReleaseError("give the list of all releases of the course, in order")
    present = [require_records(release) for release in releases if release is not None]
    if not present:
        raise ReleaseError("no round has a release, so there is nothing to read; run the course again")
    for release in present:
        schema = release.plan.schema
        if not isinstance(schema, ScoreSchema) or schema.family != family:
            raise ReleaseError(
                f"this reader takes rounds of a {family} regression, and the release measures a "
                f"{type(schema).__name__}"
                + (f" of family {schema.family!r}" if isinstance(schema, ScoreSchema) else "")
            )
    return present
