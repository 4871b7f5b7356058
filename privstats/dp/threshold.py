"""The minimum count of a class, applied to the noisy counts only.

What falls below is suppressed from the release; the exact counts are never consulted, so the decision costs no
privacy. After the noise, before the release.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["suppressed"]


def suppressed(noisy_counts: NDArray[np.floating[Any]], min_count: float) -> tuple[int, ...]:
    """Classes whose noisy count (records, shape ``(C,)``) is below ``min_count``: post-processing, free of charge."""
    return tuple(int(label) for label in np.flatnonzero(np.asarray(noisy_counts) < min_count))
