"""How much of a normal law lies beyond a bound, from the two moments that are left of it behind the clip."""

from __future__ import annotations

import math

from scipy.optimize import brentq
from scipy.special import ndtr

__all__ = ["share_beyond"]

_SIZES = (-14.0, 7.0)  # log of the standard deviation over the bound: between these any two moments have their law
_FAR = 40.0  # standard deviations from the bounds within which the mean is looked for


def share_beyond(mean: float, square: float, bound: float) -> float:
    """The share of a normal law beyond +-``bound``, from the mean and the mean square of what a clip to it left.

    The clipped law's variance is smaller than the law's, so the share that it would give itself is never above .317.
    Two moments of the clipped law are those of one normal law; this inverts them. Of targets that are not normal it is
    no more than what would be clipped if they were: values spread evenly up to the bound give .12.

    Args:
        mean: of the clipped values.
        square: their mean square.
        bound: Y > 0.

    Example:
        >>> from privstats.estimates.clipped import share_beyond
        >>> round(share_beyond(0.0, 0.25, 4.0), 3)  # far inside
        0.0
        >>> round(share_beyond(0.0, 0.516, 1.0), 2)  # N(0, 1), clipped to -1..1
        0.32
    """
    mean, square = mean / bound, square / bound**2
    if square >= 1 or abs(mean) >= 1:
        return 1.0
    if square - mean**2 <= math.exp(2 * _SIZES[0]) * 2:
        return 0.0

    def centre(size: float) -> float:
        """The mean of the law of this size whose clipped mean is the one given."""
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
    """Mean and mean square of N(mean, size^2) clipped to -1..1, and the share beyond."""
    a, b = (-1 - mean) / size, (1 - mean) / size
    below, above, inside = float(ndtr(a)), float(ndtr(-b)), float(ndtr(b) - ndtr(a))
    at_a, at_b = (math.exp(-min(each * each, 1_400.0) / 2) / math.sqrt(2 * math.pi) for each in (a, b))
    first = above - below + mean * inside + size * (at_a - at_b)
    second = below + above + (mean**2 + size**2) * inside + 2 * mean * size * (at_a - at_b)
    return first, second + size**2 * (a * at_a - b * at_b), below + above
