"""Prepare the rows that rivals train on: those that the heads' sums have, over the clip norm."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from privstats.kinds import ClassSchema
from privstats.records.labels import check_labels
from privstats.transforms import apply


def clipped_rows(schema: ClassSchema, X: Any, y: Any) -> tuple[NDArray[np.float32], NDArray[np.intp]]:
    """Return rows of norm at most 1, ``(n, d)``, and class places, ``(n,)``.

    The rows go through the plan's public maps, are clipped to ``clip_norm``, and are divided by it, so that one
    recipe suits every scale.

    Example:
        >>> from privstats.contrib.sweep.rivals.rows import clipped_rows
        >>> rows, labels = clipped_rows(ps.ClassSchema(2, 2, "NA", clip_norm=2.0), [[0.0, 1.0], [0.0, 8.0]], [0, 1])
        >>> rows.tolist(), labels.tolist()
        ([[0.0, 0.5], [0.0, 1.0]], [0, 1])
    """
    rows = apply(schema.transform, np.asarray(X, np.float64))
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    labels: Any = check_labels(schema.goal, np.asarray(y))
    return (rows / np.maximum(lengths, schema.clip_norm)).astype(np.float32), labels
