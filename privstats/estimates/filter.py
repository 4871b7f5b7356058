"""A diagonal Kalman filter on weights that noisy gradients are taken at: damped Newton with no rate to choose.

Not a gradient and not a plan: it is told the gradient, its noise and a curvature, and says how far to go. Between the
released sums of a round and the weights that the next round is measured at.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from privstats.estimates.spectrum import Array

__all__ = ["Filter", "advanced"]


@dataclass(frozen=True)
class Filter:
    """What is believed of the weights: an estimate and how far off it may be.

    Attributes:
        weights: W, ``(C, k)`` for a softmax, ``(k,)`` for a regression.
        variance: S, ``(k,)``: prior variance of an entry about the optimum, one per column; it only falls.
        step: the last step, damped, of the shape of ``weights``; what momentum starts from.
    """

    weights: Array
    variance: Array
    step: Array


def advanced(
    state: Filter,
    gradient: Array,
    noise: Array | float,
    curvature: Array,
    *,
    caution: float,
    momentum: float = 0.0,
    centred: bool = False,
) -> Filter:
    """The state after one gradient: ``W - (eta G / cur + momentum old)`` with ``eta = S / (S (1 + c) + s^2 / cur^2)``.

    ``G / cur`` is Newton's estimate of the way to the optimum and ``s^2 / cur^2`` the noise in it, so eta is Kalman's
    gain where the model is right, less by ``c``. Without noise that is damped Newton (``eta = 1 / (1 + c)``), under
    strong noise an average with a Wiener prior (Wiener 1949; Kalman 1960). Then ``S <- (1 - eta) S``, and the step is
    kept, times ``(1 + c) eta``.

    Args:
        state: before.
        gradient: mean over records of the gradient of the loss at ``state.weights``, ridge term included.
        noise: s^2, the variance of its entries: a number, or one per column ``(k,)``.
        curvature: cur, a diagonal of the Hessian, ``(k,)``, all above 0.
        caution: c, at least 0.
        momentum: share of the damped last step that is walked again.
        centred: whether steps are taken less their mean over classes, which a softmax does not see.
    """
    gain = state.variance / ((1 + caution) * state.variance + noise / np.square(curvature))
    step = gain * gradient / curvature + momentum * state.step
    if centred:
        step = step - step.mean(axis=0)
    return replace(
        state,
        weights=state.weights - step,
        variance=state.variance * (1 - gain),
        step=(1 + caution) * step * gain,
    )
