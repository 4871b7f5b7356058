"""Dividing a promise: the noise of a node that may spend a part of a whole plan's mu^2.

Arithmetic on promises, shared by the kinds of courses. No schedule and no release.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

from privstats.course.recipes import promised, rounded_down
from privstats.dp import Privacy, gaussian_epsilon
from privstats.errors import PlanError
from privstats.plan import Plan

__all__ = ["part_of"]


def part_of(whole: Plan, part: float, shares: Mapping[str, float] | None) -> Privacy:
    """The promise whose mu^2 is this part of a plan's, at its delta; epsilon is rounded down.

    Args:
        whole: the plan that is divided.
        part: above 0.
        shares: how the node divides its own part over its statistics; None for the default.

    Raises:
        PlanError: the plan has no DP, or so small an epsilon cannot be promised.
    """
    privacy, most = promised(whole)
    mu, margin = most * math.sqrt(part), privacy.trust.margin
    epsilon = rounded_down(gaussian_epsilon(mu, privacy.delta * margin) / margin)
    return _promised(privacy, epsilon, shares)


def _promised(privacy: Privacy, epsilon: float, shares: Mapping[str, float] | None) -> Privacy:
    try:
        return replace(privacy, epsilon=epsilon, shares=shares)
    except PlanError:
        raise PlanError(
            f"a node would have epsilon {epsilon:.3g}, which no plan can promise: take fewer nodes or a larger epsilon"
        ) from None
