"""The predicted half width of an effect's interval, from public guesses: what the reader would compute of exact sums.

Columns are taken for uncorrelated and of one variance, and log odds of treatment for normal.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.polynomial.hermite_e import hermegauss
from scipy.special import expit

from privstats.course import Effect
from privstats.errors import PlanError
from privstats.estimates.effect import penalty
from privstats.estimates.spectrum import Array
from privstats.inference.inversion import quantile
from privstats.plan import Plan
from privstats.schema import EffectSchema

__all__ = ["Guesses", "half_widths_of"]

_NODES = 64
_MOST_R = 0.5
_CLEAR = 3.0


@dataclass(frozen=True)
class Guesses:
    """What is publicly guessed of the records.

    Attributes:
        records: how many there are.
        variance: of a column behind its range; 1/3 for one that is uniform on -1 to 1.
        residual: standard deviation of outcomes about the lines, in units of the outcome; None: half of half the range.
        treated: share of the treated, where nobody assigned the treatment.
        separation: standard deviation of the log odds of treatment: 0 for a coin, 1 for moderate confounding.

    Raises:
        PlanError: a guess that is out of range.

    Example:
        >>> from privstats.inference.treatment_effects.prediction import Guesses
        >>> Guesses(10_000, variance=1 / 3).treated
        0.5
    """

    records: int
    variance: float
    residual: float | None = None
    treated: float = 0.5
    separation: float = 1.0

    def __post_init__(self) -> None:
        for name in ("records", "variance", "residual"):
            value = getattr(self, name)
            if value is not None and not (value > 0 and math.isfinite(value)):
                raise PlanError(f"{name} must be above 0, got {value!r}; give a public guess")
        if not 0 < self.treated < 1:
            raise PlanError(f"treated must be between 0 and 1, a share of the records, got {self.treated!r}")
        if not 0 <= self.separation <= 10:
            raise PlanError(f"separation must be from 0 to 10, in log odds, got {self.separation!r}; 1 is moderate")


def half_widths_of(course: Effect, guesses: Guesses, alpha: float) -> tuple[float, float]:
    """The half width without noise, and with that of the course; infinite where the effect will not be told.

    Args:
        course: as its plan has it.
        guesses: public.
        alpha: level of the interval.

    Raises:
        PlanError: the effect is a ratio, or outcomes may be missing.
    """
    schema, z = course.schema, quantile(alpha, math.inf)
    if schema.measure:
        raise PlanError("no half width is predicted of a ratio; ask for that of the difference")
    if schema.missing:
        raise PlanError(
            "no half width is predicted where outcomes may be missing; ask for that of a trial where none is, with as "
            "many records as will have one"
        )
    means = _means(schema, guesses)
    exact = z * math.sqrt(means.square / guesses.records) / means.weight
    return exact, _noisy(course, guesses, means, alpha)


class _Means(NamedTuple):
    """Means over records: the weight, the squared influence, e (1 - e), and the share of treated."""

    weight: float
    square: float
    information: float
    treated: float


def _means(schema: EffectSchema, guesses: Guesses) -> _Means:
    """Influences about lines that are right have mean squares that follow from the propensity and the residual."""
    variance = _residual(schema, guesses)
    if schema.probability is not None:
        pi = _chance(schema)
        return _Means(1.0, variance / (pi * (1 - pi)), pi * (1 - pi), pi)
    e, chances = _propensities(guesses)
    low = schema.trim or 0.0
    kept = (e <= 1 - low) & ((e >= low) | (schema.estimand == "att"))
    weight = {"ate": np.ones_like(e), "att": e, "overlap": e * (1 - e)}[schema.estimand]
    square = {"ate": 1 / (e * (1 - e)), "att": e / (1 - e), "overlap": e * (1 - e)}[schema.estimand]
    mean = {name: float(chances @ (each * kept)) for name, each in (("weight", weight), ("square", square))}
    return _Means(mean["weight"], variance * mean["square"], float(chances @ (e * (1 - e))), guesses.treated)


def _chance(schema: EffectSchema) -> float:
    """Of treatment in a trial; of places that differ, the one at which an influence varies as it does on average over
    sites of one size."""
    pi = np.atleast_1d(np.asarray(schema.probability, np.float64))
    if len(pi) == 1:
        return float(pi[0])
    return float((1 - math.sqrt(max(1 - 4 / float(np.mean(1 / (pi * (1 - pi)))), 0.0))) / 2)


def _propensities(guesses: Guesses) -> tuple[Array, Array]:
    """Propensities and their chances, by quadrature; their mean is the share of the treated."""
    nodes, weights = hermegauss(_NODES)
    chances, low, high = weights / weights.sum(), -40.0, 40.0
    for _ in range(_NODES):
        middle = (low + high) / 2
        above = float(chances @ expit(middle + guesses.separation * nodes)) > guesses.treated
        low, high = (low, middle) if above else (middle, high)
    return np.asarray(expit(low + guesses.separation * nodes)), np.asarray(chances)


def _noisy(course: Effect, guesses: Guesses, means: _Means, alpha: float) -> float:
    """As the reader has it: second moments no less than their noise, Satterthwaite's degrees, Fieller's interval."""
    schema, n = course.schema, float(guesses.records)
    C, parts = schema.half * schema.cap, math.sqrt(schema.blocks)  # noise of all subgroups is in their sum
    sigma = {letter: size * parts for letter, size in _sigma(course.plan).items()}
    weight = n * means.weight
    tau = sigma.get("W", sigma["N"]) * schema.largest_weight
    left = weight / schema.largest_weight - (3 * schema.width if course.share else 1)
    if left <= 1:
        return math.inf
    deviation = C**2 * math.hypot(sigma["e"], sigma["N"])
    spread = max(n * means.square + _of_lines(course, guesses), deviation) * (left + 3 * schema.width) / left
    rest = spread + (C * sigma["e"]) ** 2
    nuisances = 0.0 if schema.probability is not None else _nuisances(course, guesses, means)
    if not nuisances <= _MOST_R**2 * rest:
        return math.inf
    variance = rest + nuisances
    q = quantile(alpha, 1 / (1 / left + deviation**2 / (2 * variance**2)))
    square = weight**2 - (q * tau) ** 2
    return q * math.sqrt(variance / square) if square > 0 else math.inf


def _of_lines(course: Effect, guesses: Guesses) -> float:
    """What errors of a trial's lines add to the squared influences of all records.

    Of both arms alike where a penalty takes them, each for itself where noise does.
    """
    if course.schema.probability is None:
        return 0.0
    pi = _chance(course.schema)
    taken, spread = _line_errors(course, guesses, guesses.records * min(pi, 1 - pi))
    of_both = float(_columns(course.schema, guesses) @ (taken + (pi**2 + (1 - pi) ** 2) * spread))
    return guesses.records * min(of_both, course.schema.half**2) / (pi * (1 - pi))


def _sigma(plan: Plan) -> dict[str, float]:
    return {} if plan.noise is None else dict(plan.noise.released_sigma(plan.cohort.min_survivors))


def _nuisances(course: Effect, guesses: Guesses, means: _Means) -> float:
    """tr(M S_a M S_w) over both arms, of diagonal matrices; infinite where noise would hide who is treated."""
    schema, n, propensity = course.schema, float(guesses.records), course.propensity
    if propensity is None:
        return math.inf
    columns, rounds = _columns(schema, guesses), _sigma(propensity)
    information = n * means.information * columns
    if not information.min() > _CLEAR * rounds["H"]:
        return math.inf
    weights = 1 / information + (rounds["g"] / information) ** 2
    total, sides = 0.0, (means.treated,) if schema.estimand == "att" else (means.treated, 1 - means.treated)
    for share in sides:
        taken, spread = _line_errors(course, guesses, n * share)
        total += float((np.square(n * (1 - share) * columns) * (taken + spread) * weights).sum())
    return total * (0.0625 if schema.estimand == "overlap" else 1.0)


def _columns(schema: EffectSchema, guesses: Guesses) -> Array:
    """Mean squares of the columns of one arm, the constant last."""
    return np.append(np.full(schema.width - 1, guesses.variance), 1.0)


def _line_errors(course: Effect, guesses: Guesses, records: float) -> tuple[Array, Array]:
    """Squared errors of one arm's line along each column: what its penalty takes, and what sampling and noise add.

    Slopes are guessed to explain as much as they leave, as far as the range of outcomes has room for it; all of that
    is taken where the lines are left out.
    """
    schema = course.schema
    residual, columns = _residual(schema, guesses), _columns(schema, guesses)
    explained = min(residual, max(schema.half**2 - residual, 0.0))
    slopes = np.append(np.full(schema.width - 1, explained / (schema.width - 1) / guesses.variance), 0.0)
    if course.outcome is None:
        return slopes, np.zeros_like(slopes)
    sigma, own = _sigma(course.outcome), records * columns
    noise = sigma["h"] ** 2 + sigma["G"] ** 2 / 2 * (float(slopes.sum()) + slopes)
    size = penalty(sigma["G"], schema.width)
    raised = np.square(own + size)
    return size**2 * slopes / raised, (residual * own + noise) / raised


def _residual(schema: EffectSchema, guesses: Guesses) -> float:
    """The variance of outcomes about the lines."""
    return (schema.half / 2 if guesses.residual is None else guesses.residual) ** 2
