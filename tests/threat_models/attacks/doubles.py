"""Mechanisms that are broken on purpose: an attack that never succeeds on one of these proves nothing."""

from __future__ import annotations

import numpy as np


def double_gaussian(values, sigma, trials, rng):
    """Gaussian noise in double precision, as a textbook has it: ``(trials, d)`` noisy copies of ``values``."""
    return values + sigma * rng.standard_normal((trials, len(values)))
