"""Arrays inside frozen values: read-only views and exact equality."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

__all__ = ["equal_arrays", "readonly_array"]


def readonly_array(array: NDArray[Any] | None, dtype: DTypeLike) -> NDArray[Any] | None:
    """A read-only view of ``array`` as ``dtype``; None stays None."""
    if array is None:
        return None
    view = np.asarray(array, dtype).view()
    view.flags.writeable = False
    return view


def equal_arrays(left: NDArray[Any] | None, right: NDArray[Any] | None) -> bool:
    """Whether both are None or hold the same numbers in the same shape."""
    if left is None or right is None:
        return left is right
    return np.array_equal(left, right)
