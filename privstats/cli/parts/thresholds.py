"""Read a threshold that a command accepts: a probability, or ``prevalence``."""

from __future__ import annotations

from typing import Literal

from privstats.errors import PlanError


def threshold_of(text: str) -> float | Literal["prevalence"]:
    """Return the threshold that a text states.

    Raises:
        PlanError: it is neither a number nor ``prevalence``.

    Example:
        >>> from privstats.cli.parts.thresholds import threshold_of
        >>> threshold_of("0.25"), threshold_of("prevalence")
        (0.25, 'prevalence')
    """
    if text == "prevalence":
        return "prevalence"
    try:
        return float(text)
    except ValueError:
        raise PlanError(
            f"--threshold must be a probability above 0 and below 1, or prevalence, got {text!r:.40}"
        ) from None
