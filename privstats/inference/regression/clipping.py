"""Estimate how many targets were clipped, and hide the table where too many were."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.special import ndtr

from privstats.estimates.denoise import Array
from privstats.inference.inversion import Errors
from privstats.kinds import RidgeSchema
from privstats.release import Release

_SIZES = (-14.0, 7.0)  # log of the standard deviation over the bound: between these any two moments have their law
_FAR = 40.0  # standard deviations from the bounds within which the mean is looked for
_SATURATED = 0.01
_FEW_CUT = 3e-4  # share of counts up to which the cut is not stated: .006 % kept the level, .1 % did not
_MOST = 0.1  # coefficients are reported up to this share of targets beyond the bound


def share_beyond(mean: float, square: float, bound: float) -> float:
    """Return the share of a normal law beyond +-``bound``, from mean and mean square after clipping.

    Two moments of a clipped normal law determine the law; this function inverts them. Values spread evenly up to the
    bound give .12.
    """
    mean, square = mean / bound, square / bound**2
    if square >= 1 or abs(mean) >= 1:
        return 1.0
    if square - mean**2 <= math.exp(2 * _SIZES[0]) * 2:
        return 0.0

    def centre(size: float) -> float:
        reach = 1 + _FAR * size
        return float(brentq(lambda m: _moments(m, size)[0] - mean, -reach, reach))

    def gap(log_size: float) -> float:
        size = math.exp(log_size)
        return _moments(centre(size), size)[1] - square

    if gap(_SIZES[1]) <= 0:
        return 1.0
    size = math.exp(float(brentq(gap, *_SIZES))) if gap(_SIZES[0]) < 0 else math.exp(_SIZES[0])
    return _moments(centre(size), size)[2]


def _moments(mean: float, size: float) -> tuple[float, float, float]:
    a, b = (-1 - mean) / size, (1 - mean) / size
    below, above, inside = float(ndtr(a)), float(ndtr(-b)), float(ndtr(b) - ndtr(a))
    at_a, at_b = (math.exp(-min(each * each, 1_400.0) / 2) / math.sqrt(2 * math.pi) for each in (a, b))
    first = above - below + mean * inside + size * (at_a - at_b)
    second = below + above + (mean**2 + size**2) * inside + 2 * mean * size * (at_a - at_b)
    return first, second + size**2 * (a * at_a - b * at_b), below + above


class Saturation(NamedTuple):
    """Estimated clipping of targets and rows.

    Attributes:
        targets: share beyond ``target_bound`` if normal; of counts, if negative binomial with the table's dispersion.
        rows: mean squared norm over ``clip_norm`` squared; NaN for rounds, whose sums do not show it.

    Example:
        >>> saturation = ps.inference.Saturation(targets=0.02, rows=0.3)  # as a Regression's saturation_
        >>> max(saturation) < 1.0  # below the bounds: the clip cut little
        True
    """

    targets: float
    rows: float


@dataclass(frozen=True)
class TargetClip:
    """How many targets of a linear regression were clipped, and what its table does about it.

    Attributes:
        saturation: None without an intercept, or for several targets, which share one energy.
        unclipped: whether the caller states that no target was clipped.
    """

    saturation: Saturation | None
    unclipped: bool

    @classmethod
    def of(
        cls, schema: RidgeSchema, release: Release, mean: float, square: float, records: float, *, unclipped: bool
    ) -> TargetClip:
        """Return what the sums of a model with an intercept show.

        Args:
            mean, square: mean and mean square of the target.
        """
        if schema.targets > 1:
            return cls(None, unclipped)
        beyond = share_beyond(mean, square, schema.target_bound)
        energy = float(np.trace(release.moments.G))
        return cls(Saturation(beyond, energy / (records * schema.clip_norm**2)), unclipped)

    @property
    def hides(self) -> bool:
        """Whether too many targets may be clipped."""
        return self.saturation is not None and not self.unclipped and self.saturation.targets > _MOST

    @property
    def note(self) -> str:
        """A sentence on clipped targets, or empty."""
        if self.saturation is None or self.unclipped or self.saturation.targets < _SATURATED:
            return ""
        effect = "so no coefficient is reported" if self.hides else "which would pull coefficients toward 0"
        return (
            f"if targets are normal, {self.saturation.targets:.1%} of them are beyond target_bound and were clipped, "
            f"{effect}; sums do not show whether they were, or are just inside: where every party's clip report counts "
            "none, pass unclipped=True, else raise target_bound, or centre the target by public knowledge"
        )

    def errors(self, errors: Errors) -> Errors:
        """Return the errors, hidden where too many targets may be clipped."""
        return Hidden(errors) if self.hides else errors


def cut_notes(saturation: Saturation, bound: float) -> tuple[str, ...]:
    """Return a sentence on counts that were cut, or none where the estimated share is small."""
    if not saturation.targets >= _FEW_CUT:
        return ()
    return (
        f"if counts are negative binomial, about {100 * saturation.targets:.2g}% of them are above target_bound, "
        f"{bound:g}, and were cut, so intervals of coefficients miss more often than stated: raise target_bound by "
        "public knowledge",
    )


def cut_caution(bound: float) -> str:
    """Return what a table of counts states about the cut, whether or not any count was cut."""
    return (
        f"Counts above target_bound, {bound:g}, were cut, which pulls coefficients toward 0. The sums do not show how "
        "many were, and no interval of a coefficient allows for it: where 0.1% of counts were cut, 8 to 64% of "
        "releases missed. Each party's clip report has its own share."
    )


@dataclass(frozen=True)
class Hidden:
    """Errors of a regression that reports no coefficient."""

    errors: Errors

    @property
    def estimate(self) -> Array:
        """Parameters of the sums, ``(m,)``."""
        return self.errors.estimate

    @property
    def error(self) -> Array:
        """Standard errors, without the bias that hides the coefficients."""
        return self.errors.error

    @property
    def noise_error(self) -> Array:
        """Noise's standard errors."""
        return self.errors.noise_error

    @property
    def df(self) -> Array:
        """Degrees of freedom of the sums' errors."""
        return self.errors.df

    def reported(self, alpha: float) -> NDArray[np.bool_]:  # noqa: ARG002  the same at every level
        """Return False for every parameter."""
        return np.zeros(len(self.estimate), dtype=np.bool_)

    def statistics(self, null: Array | float = 0.0) -> Array:
        """Return the sums' statistics."""
        return self.errors.statistics(null)

    def pvalues(self, null: Array | float = 0.0) -> Array:  # noqa: ARG002  the same for every null
        """Return 1 for every parameter."""
        return np.ones(len(self.estimate))

    def interval(self, alpha: float, *, sampling: bool = True) -> tuple[Array, Array]:  # noqa: ARG002
        """Return unbounded intervals."""
        return np.full(len(self.estimate), -np.inf), np.full(len(self.estimate), np.inf)

    def combined(self, rows: Array) -> Hidden:
        """Return linear combinations, ``(r, m)``."""
        return Hidden(self.errors.combined(rows))

    def joint_pvalue(self) -> float:
        """Return 1."""
        return 1.0
