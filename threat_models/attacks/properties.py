"""Labels, attributes and properties read from counts and from S of one-hot features.

Every column is binary, so ``S[j, k]`` counts the records that have both. A count of one is a record; a count of zero
excludes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from privstats.errors import DataError

Array: TypeAlias = NDArray[np.float64]
Sums: TypeAlias = NDArray[Any]


@dataclass(frozen=True, eq=False)
class Attribute:
    """A table's evidence on one person's hidden attribute.

    Attributes:
        guess: index into the candidate columns.
        probabilities: of each candidate, ``(v,)``, sum 1.
        certain: the counts allow one value only.
    """

    guess: int
    probabilities: Array
    certain: bool


def lone_labels(N: Sums) -> NDArray[np.intp]:
    """Classes in which exactly one record lies, from counts ``(C,)``; noisy counts are rounded.

    An attacker who knows that a person is in the data, and the classes of all others, knows that person's label.
    """
    return np.flatnonzero(np.rint(np.asarray(N, dtype=np.float64)) == 1)


def label_between(before: Sums, after: Sums) -> int:
    """The class that a record joined between two releases, from counts ``(C,)`` of each: the largest difference."""
    return int(np.argmax(np.asarray(after, dtype=np.float64) - np.asarray(before, dtype=np.float64)))


def label_baseline(public: Sums) -> int:
    """Return the attacker's guess without the releases: the commonest class of public counts ``(C,)``."""
    return int(np.argmax(public))


def lone_records(S: Sums) -> NDArray[np.float64]:
    """Whole records of one-hot features that S ``(d, d)`` shows in one row, ``(m, d)``, without repeats.

    A column that one record has, ``S[j, j] = 1``, makes ``S[j]`` that record. Noisy moments are rounded first.
    """
    counts = np.rint(np.asarray(S, dtype=np.float64))
    return np.unique(counts[np.diagonal(counts) == 1], axis=0)


def attribute(S: Sums, known: NDArray[np.intp], candidates: NDArray[np.intp], *, weight: float = 1.0) -> Attribute:
    """A person's hidden attribute from two-way counts with what is known of them.

    Each known column j gives the likelihood of value v as ``P(j | v) = S[j, v] / S[v, v]``, and the values are weighed
    by ``S[v, v]``: naive Bayes in which the tables are the data with the target in it. A value that never occurs with
    a known column is excluded; where one is left it is certain.

    Args:
        S: second moment of one-hot records, ``(d, d)``, all classes or one; noise below 0 reads 0.
        known: columns that the person is known to have.
        candidates: columns of which the person has exactly one.
        weight: pseudo-count in every cell, which noisy tables need; above 0.

    Raises:
        DataError: no candidate, or a weight that is not above 0.
    """
    if not len(candidates):
        raise DataError("candidates must name at least one column")
    if not weight > 0:
        raise DataError(f"weight must be above 0, got {weight}")
    counts = np.maximum(np.asarray(S, dtype=np.float64), 0.0)
    totals = np.diagonal(counts)[candidates]
    table = counts[np.ix_(known, candidates)]
    possible = (table >= 0.5).all(axis=0) & (totals >= 0.5)
    scores = np.log(totals + weight) + np.log((table + weight) / (totals + 2 * weight)).sum(axis=0)
    if possible.any():
        scores = np.where(possible, scores, -np.inf)
    probabilities = np.exp(scores - scores.max())
    probabilities /= probabilities.sum()
    return Attribute(int(np.argmax(probabilities)), probabilities, int(possible.sum()) == 1)


def attribute_baseline(
    public: Sums, known: NDArray[np.intp], candidates: NDArray[np.intp], *, weight: float = 1.0
) -> Attribute:
    """Return the attacker's guess from a public sample ``(m, d)`` of one-hot records instead of the release."""
    rows = np.asarray(public, dtype=np.float64)
    guess = attribute(rows.T @ rows, known, candidates, weight=weight)
    return Attribute(guess.guess, guess.probabilities, certain=False)


def property_scores(N: Sums, A: Sums, column: int) -> Array:
    """Share of records with a property, per class ``(C,)``: the property's column of the sums over the counts.

    A property of the data and not of one person, such as the share of smokers in each class; nothing hides it when
    records are protected one by one. Classes whose count is below 1 read as the share of all.
    """
    N, held = np.asarray(N, dtype=np.float64), np.asarray(A, dtype=np.float64)[:, column]
    overall = held.sum() / max(float(N.sum()), 1.0)
    return np.where(N >= 1, held / np.maximum(N, 1.0), overall)
