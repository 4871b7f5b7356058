"""Logistic and Poisson regression from the rounds of a ``Newton`` course: the last round, solved without damping.

One step from weights w is as good as the maximum of the likelihood if w is close to it. What the step may leave is
bounded (:class:`LastStep`), and intervals and p-values hold for every bias up to the bound. A coefficient is not told
where the bound is large, nor where the information along it was still changing from round to round: in the tail of a
logistic a Newton step moves log odds by 1 and divides the information by e, wherever it stands, and noise may make that
step look small. The bias is a function of the weights, whose noise is of earlier rounds, so it is independent of the
noise of this step.
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
from privstats.inference.cell_design import CellDesign, declared_cells
from privstats.inference.evidence import (
    CONSTANT,
    cell_design,
    column_names,
    contrasts_of,
    map_columns,
    require_records,
)
from privstats.inference.inversion import Inversion, NormalEquations, condition
from privstats.inference.regression import Regression
from privstats.release import Release
from privstats.schema import ScoreSchema, narrowed

__all__ = ["LOOK_BACK", "Earlier", "LastStep", "logit", "poisson", "remainder"]

LOOK_BACK = 2
"""Rounds before the last one that are looked at: over two the noise in a change per round is half as large."""

_ARRIVED = 2.0  # standard errors that the next step may move a coefficient by, at the most
_SETTLED = 0.5  # log of the information along a coefficient that a round may have changed, at the most
_SURE = 2.0  # standard deviations of noise that a measured change must allow for
_SAID = 0.5  # standard errors of a possible next step from which a note says so
_ALL = slice(None)
_TITLES = {"logistic": "Logistic regression", "poisson": "Poisson regression"}


@dataclass(frozen=True)
class Earlier:
    """A round before the last one.

    Attributes:
        information: H at its weights, ``(p, p)``.
        sigma: noise standard deviation of H, as in ``NormalEquations``.
        moved: R |w - w'|, which log v of no record can have changed by more than between the two rounds' weights.
        rounds: from it to the last one.
    """

    information: Array
    sigma: float
    moved: float
    rounds: int


@dataclass(frozen=True)
class LastStep:
    """Parameters theta = C (w + b): test inversion of the step b, shifted by C w.

    Attributes:
        inversion: of the last round's information and score, with variance 1, normal quantiles, and as bias what the
            step may have left (:func:`remainder`).
        offset: C w, ``(m,)``.
        earlier: up to two rounds before.
    """

    inversion: Inversion
    offset: Array
    earlier: tuple[Earlier, ...] = ()

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

    @property
    def left(self) -> Array:
        """The most standard errors by which the next step could move each parameter, ``(m,)``."""
        return self.inversion.left

    @cached_property
    def change(self) -> Array:
        """The most by which a round changed the log of the information along each parameter, ``(m,)``.

        Along a parameter's line a the information is D = a'Ha. Between two rounds log D changes by at most R |w - w'|,
        and by what both D say with two standard deviations of their noise; the smaller bound counts, over the last
        round and over the last two. 0 where there is one round: its own step is all that is known.
        """
        lines, last = self.inversion.directions, self.inversion.precision
        size, sigma = np.square(np.linalg.norm(lines, axis=1)), self.inversion.equations.sigma_G
        bounds = []
        for each in self.earlier:
            then = np.einsum("ij,jk,ik->i", lines, each.information, lines)
            known = (then > 0) & (last > 0)
            before, after = np.where(known, then, 1.0), np.where(known, last, 1.0)
            noise = size * np.hypot(each.sigma / before, sigma / after)
            measured = np.abs(np.log(before / after)) + _SURE * noise
            bounds.append(np.where(known, np.minimum(measured, each.moved), each.moved) / each.rounds)
        return np.min(bounds, axis=0) if bounds else np.zeros(len(self.offset))

    @property
    def arrived(self) -> NDArray[np.bool_]:
        """Whether the rounds have converged for each parameter, ``(m,)``."""
        return np.asarray((self.left <= _ARRIVED) & (self.change <= _SETTLED))

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
        return LastStep(self.inversion.combined(rows), rows @ self.offset, self.earlier)

    def joint_pvalue(self) -> float:
        """p-value of "all parameters are 0"; 1 where the rounds have not converged."""
        return self.inversion.joint_pvalue(-self.offset) if self.arrived.all() else 1.0


def remainder(equations: NormalEquations, radius: float) -> float:
    """What the step b = H^-1 g may have left, in the norm of H: ``(e^r - 1 - r) / r sqrt(b'Hb)`` with r = R |b|.

    log v moves by at most R |w - w'| between two weights (self-concordance; Bach 2010), which bounds the score that is
    left after the step. Infinite where noise has made H indefinite.
    """
    step = equations.solution
    if equations.determined[0] <= 0:
        return math.inf
    r = min(radius * float(np.linalg.norm(step)), 50.0)
    curve = (math.expm1(r) - r) / r if r > 0 else 0.0
    return curve * math.sqrt(float(step @ equations.G @ step))


def logit(releases: Sequence[Release | None]) -> Regression:
    """Logistic regression from all releases of a ``Newton`` course, in order.

    Coefficients are log odds ratios per unit of the columns as they came in. Intervals and p-values include what the
    next Newton step could change. A coefficient is told only where that is at most two standard errors, and where the
    information along it has settled: rounds that ended before they converged tell no coefficient. Give the schema a
    public ``rate=`` where outcomes are rare, and take more rounds there and where an odds ratio is large: eight for a
    log odds ratio of 5. Of declared columns (``Cells`` and a last ``ConstantFeature``) parameters are contrasts of
    cells, which :meth:`Regression.cells` shows by column.

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
    last, schema = present[-1], _schema(present[-1], family)
    weights = [each.real for each in weights_after(schema, present)[: len(present)]]
    w = weights[-1]
    if declared_cells(schema) is not None:
        design = cell_design(schema, _symmetric(last), last.sigma["H"])
        names, rows, columns, cells = design.names, design.rows, design.cells, design.columns
        equations, contrasts = _equations(last, design), design.contrasts
    else:
        design, cells, columns = None, (), schema.features - (schema.constant is not None)
        rows = contrasts_of(*map_columns(schema.transform, columns), schema.constant)
        names = (*(() if schema.constant is None else (CONSTANT,)), *column_names(schema, columns))
        equations, contrasts = _equations(last), rows
    inversion = Inversion(equations, contrasts, math.inf, remainder(equations, schema.clip_norm))
    errors = LastStep(inversion, rows @ w, _earlier(present, weights, schema.clip_norm, design))
    return Regression(
        names=names,
        nobs=None,
        df_resid=math.inf,
        scale=1.0,
        rsquared=None,
        condition_number=condition(equations.determined),
        saturation_=None,
        cov_type="nonrobust",
        cov_reason=f"one step after {len(present) - 1} rounds",
        notes=tuple(_notes(errors) if design is None else _notes(errors, design.read) + design.notes(equations)),
        release=last,
        columns=columns,
        errors=errors,
        model=_TITLES[family],
        rounds=len(releases),
        column_cells=cells,
    )


def _notes(errors: LastStep, read: NDArray[np.bool_] | slice = _ALL) -> list[str]:
    """Warnings about rounds that ended too early for the parameters that are read."""
    arrived, notes = errors.arrived[read], list[str]()
    if not arrived.all():
        notes.append("the rounds ended before they arrived: give rate=, or more rounds")
    most = float(errors.left[read][arrived].max(initial=0.0))
    if most >= _SAID:
        notes.append(
            f"a next round could move a coefficient by up to {most:.1f} standard errors, which intervals include"
        )
    return notes


def _earlier(
    present: Sequence[Release], weights: Sequence[Array], radius: float, design: CellDesign | None
) -> tuple[Earlier, ...]:
    """The rounds before the last one, the nearest first."""
    found = []
    for back in range(1, min(LOOK_BACK, len(present) - 1) + 1):
        H, sigma = _symmetric(present[-1 - back]), present[-1 - back].sigma["H"]
        moved = radius * float(np.linalg.norm(weights[-1] - weights[-1 - back]))
        found.append(Earlier(H if design is None else design.gram(H), sigma, moved, back))
    return tuple(found)


def _equations(last: Release, design: CellDesign | None = None) -> NormalEquations:
    """The Newton step of a round: its information, its score, and a variance of 1."""
    H, g = _symmetric(last), np.asarray(last.moments.g)
    if design is not None:
        H, g = design.gram(H), design.vector(g)
    noise = {"sigma_G": last.sigma["H"], "sigma_h": last.sigma["g"], "sigma_q": 0.0}
    return NormalEquations(H, g, 0.0, **noise, degrees=math.inf, known_variance=1.0)


def _symmetric(release: Release) -> Array:
    H = np.asarray(release.moments.H)
    return np.asarray((H + H.T) / 2)


def _present(releases: Sequence[Release | None], family: str) -> list[Release]:
    if isinstance(releases, Release) or not isinstance(releases, Sequence):
        raise ReleaseError("give the list of all releases of the course, in order")
    present = [require_records(release) for release in releases if release is not None]
    if not present:
        raise ReleaseError("no round has a release, so there is nothing to read; run the course again")
    for release in present:
        _schema(release, family)
    return present


def _schema(release: Release, family: str) -> ScoreSchema:
    """The schema of a round, if it is one of this family."""
    schema = release.plan.schema
    said = f"this reader takes rounds of a {family} regression, and the release measures a {type(schema).__name__}"
    score = narrowed(schema, ScoreSchema, ReleaseError(said))
    if score.family != family:
        raise ReleaseError(f"{said} of family {score.family!r}")
    return score
