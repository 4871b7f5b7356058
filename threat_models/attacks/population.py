"""Estimates from a public sample of a class: its mean and the inverse of its covariance.

The attacks that whiten share it; the adversary declares the sample, so it is no private data.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from privstats.kinds import ClassSchema, of_records
from threat_models.adversary import View

_RIDGE = 1e-3


def population(view: View, label: Any) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """(mean of the class, inverse covariance pooled over the classes) of the public sample, ``(d,)`` and ``(d, d)``.

    A class that the sample lacks has the mean of all; a ridge schema has one class. Directions in which the sample does
    not vary are damped, not trusted.
    """
    if view.public is None:
        d = view.plan.schema.features
        return np.zeros(d), np.eye(d)
    X, y = view.public
    classed = isinstance(of_records(view.plan.schema), ClassSchema)
    mine = X[y == label] if classed and (y == label).any() else X
    centred = X - (_class_means(X, y) if classed else X.mean(axis=0))
    covariance = centred.T @ centred / max(1, len(X) - 1)
    damping = _RIDGE * float(np.trace(covariance)) / len(covariance)
    inverse = np.linalg.inv(covariance + max(damping, 1e-12) * np.eye(len(covariance)))
    return np.asarray(mine.mean(axis=0)), np.asarray(inverse)


def whitener(view: View) -> NDArray[np.float64]:
    """W with W E[x x^T] W^T near the identity, from the raw second moment of the public sample."""
    if view.public is None:
        return np.eye(view.plan.schema.features)
    X, _ = view.public
    values, vectors = np.linalg.eigh(X.T @ X / len(X))
    floor = _RIDGE * float(values.mean())
    return np.asarray(vectors.T / np.sqrt(np.maximum(values, max(floor, 1e-12)))[:, None])


def _class_means(X: NDArray[np.float64], y: NDArray[Any]) -> NDArray[np.float64]:
    values, index = np.unique(y, return_inverse=True)
    sums = np.zeros((len(values), X.shape[1]))
    np.add.at(sums, index, X)
    return np.asarray((sums / np.bincount(index)[:, None])[index])
