"""Diagnose a head's probabilities and assumptions."""

from __future__ import annotations

import warnings
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from privstats.errors import DataError, MissingStatisticError
from privstats.heads.evidence import Array, Released, class_evidence, class_sums, require_release
from privstats.heads.fitting.class_covariance import ClassCovariances
from privstats.heads.rules import local

RARE = (
    "a class is predicted where it is the likeliest, and a rare one hardly ever is, however well records are ordered. "
    "To find its records, flag those whose probability of it is above its share of the records; or, where the head "
    "has it, set priors='uniform', which costs no privacy"
)
"""The meaning of a low balanced accuracy with a large AUC, and the remedy."""

RANKS = (
    "under noise they are far too sure, so use them to rank records and not as probabilities. For probabilities, fit "
    "RefinedSoftmax, or LDA behind a Centred course with calibrated=True"
)
"""The meaning of a discriminant's probabilities under noise, and the remedy."""

_ROUNDING = 1e-6
"""Share of the mean square: variances above it leave four digits of a fourth central moment in float64."""

_FEW = 20
"""Number of rows below which a prediction causes no warning."""

_SOME = 1024
"""Rows of which probabilities are looked at."""

_MANY, _CHANCE = 100, 1e-6
"""Rows of one class by chance: how many there must be, and how unlikely, for a word about them."""

_OTHERS = 0.05
"""Expected share of rows in other classes from which a head that predicts one class causes a warning."""

_CONSTANT = 2.0**-20
"""Share of the largest range: eight roundings of float32, in which encoders compute. MiniLM has columns of 2**-24."""

_LIKE = 100.0
"""Ranges of columns that differ by at most this factor are alike enough for shrinkage toward a round covariance."""


class FewRecordsWarning(UserWarning):
    """A covariance rests on fewer records than it has dimensions.

    Example:
        >>> import warnings
        >>> X, y = np.random.default_rng(0).normal(size=(4, 3)), [0, 1, 0, 1]
        >>> with warnings.catch_warnings(record=True) as caught:
        ...     warnings.simplefilter("always")
        ...     _ = ps.heads.QDA(shrinkage=None).fit(X, y)
        ...
        >>> {warning.category.__name__ for warning in caught}
        {'FewRecordsWarning'}
    """


class OneClassWarning(UserWarning):
    """A head predicts one class for all rows: for its class means too, or against its probabilities or priors.

    Example:
        >>> import warnings
        >>> X, y = np.random.default_rng(0).normal(size=(500, 2)) + 60.0, np.arange(500) % 5 > 0  # of years, say
        >>> schema = ps.ClassSchema(2, 2, "NAB", clip_norm=3.0)
        >>> with warnings.catch_warnings(record=True) as caught:
        ...     warnings.simplefilter("always")
        ...     moments = ps.measure(schema, X, y.astype(int))
        ...     _ = ps.heads.LDA().fit_release(ps.Release.exact(schema, moments)).predict(X)
        ...
        >>> [warning.category.__name__ for warning in caught]
        ['ClippedWarning', 'OneClassWarning']
    """


class UnlikeColumnsWarning(UserWarning):
    """Columns have different units in front of a head that shrinks toward a round covariance.

    Example:
        >>> import warnings
        >>> X, y = np.random.default_rng(0).normal(size=(40, 2)) * (1.0, 1000.0), np.arange(40) % 2
        >>> with warnings.catch_warnings(record=True) as caught:
        ...     warnings.simplefilter("always")
        ...     _ = ps.heads.LDA().fit(X, y)
        ...     _ = ps.heads.LDA(shrinkage=None).fit(X, y)
        ...
        >>> [warning.category.__name__ for warning in caught]
        ['UnlikeColumnsWarning']
    """


class Classifier(Protocol):
    """A fitted classifier."""

    classes_: NDArray[Any]

    def predict_proba(self, X: Any) -> Array:
        """Return class probabilities, ``(n, C)``."""

    def predict_log_proba(self, X: Any) -> Array:
        """Return log probabilities, ``(n, C)``."""


@dataclass(frozen=True)
class Gaussianity:
    """Absolute skewness and excess kurtosis of features within classes; 0 for Gaussians.

    Each is a mean, a median and a 90th percentile; ``per_class`` holds means per class with four records or more.
    """

    skewness: tuple[float, float, float]
    kurtosis: tuple[float, float, float]
    per_class: Array


@dataclass(frozen=True)
class Homogeneity:
    """Distances of the class covariances from the pooled one.

    Attributes:
        divergence: Kullback-Leibler divergence of N(0, Sigma_c) from N(0, Sigma) per dimension, nats, ``(C,)``.
        condition_numbers: of class covariances whitened by the pooled one, ``(C,)``.
        records: counts used, ``(C,)``.
    """

    divergence: Array
    condition_numbers: Array
    records: Array


def log_likelihood(head: Classifier, X: Any, y: Any) -> float:
    """Return the mean log probability of the true labels, nats per record; may be -inf.

    Example:
        >>> y = np.arange(400) % 2
        >>> X = np.random.default_rng(0).normal(size=(400, 2)) + y[:, None]
        >>> head = ps.heads.LDA().fit(X, y)
        >>> round(ps.heads.log_likelihood(head, X, y), 2), round(np.log(0.5), 2)  # of the head, and of guessing
        (-0.5, np.float64(-0.69))
    """
    X, y = local(X, y)
    logs = head.predict_log_proba(X)
    return float(logs[np.arange(len(logs)), class_indices(head, y)].mean())


def expected_calibration_error(head: Classifier, X: Any, y: Any, bins: int = 15) -> float:
    """Return the record-weighted gap between confidence and accuracy over ``bins`` equal intervals, 0..1.

    Guo, Pleiss, Sun and Weinberger 2017, section 2.

    Example:
        >>> y = np.arange(400) % 2
        >>> X = np.random.default_rng(0).normal(size=(400, 2)) + y[:, None]
        >>> head = ps.heads.LDA().fit(X, y)
        >>> round(head.score(X, y), 2), round(ps.heads.expected_calibration_error(head, X, y), 2)
        (0.76, 0.05)
    """
    if bins < 1:
        raise DataError(f"bins must be at least 1, got {bins}; 15 is usual")
    X, y = local(X, y)
    proba = head.predict_proba(X)
    confidence, right = proba.max(axis=1), proba.argmax(axis=1) == class_indices(head, y)
    index = np.minimum((confidence * bins).astype(np.intp), bins - 1)
    gaps = np.bincount(index, weights=confidence - right, minlength=bins)
    return float(np.abs(gaps).sum() / len(confidence))


def gaussianity(X: Any, y: Any) -> Gaussianity:
    """Return skewness and kurtosis of every feature within every class of local records (GH-OFL appendix D.1).

    Classes with fewer than four records, and features constant in a class, are excluded.

    Example:
        >>> X = np.random.default_rng(0).exponential(size=(500, 2))
        >>> before, after = (ps.heads.gaussianity(each, np.arange(500) % 2) for each in (X, np.log1p(X)))
        >>> before.skewness[0] > after.skewness[0]  # a public map of the features brings them closer to Gaussian
        True
    """
    X, y = local(X, y)
    X, y = np.asarray(X, dtype=np.float64), np.asarray(y)
    classes = [X[y == c] for c in np.unique(y)]
    return _gaussianity([_shape(rows) for rows in classes if len(rows) >= 4])


def gaussianity_of(release: Released) -> Gaussianity:
    """Return a release's gaussianity from N, A, D, T and F.

    Excludes classes with fewer than four records, and features that vary in a class by less than half a grid step or a
    thousandth of their size.

    Raises:
        MissingStatisticError: the release lacks D (or S), T or F.
        DataError: nothing remains.

    Example:
        >>> X = np.random.default_rng(0).exponential(size=(500, 2)).clip(0, 5)
        >>> schema = ps.ClassSchema(2, 2, "NADTF", clip_norm=8.0)
        >>> y = np.arange(500) % 2
        >>> found = ps.heads.gaussianity_of(ps.Release.exact(schema, ps.measure(schema, X, y)))
        >>> np.allclose(found.skewness, ps.heads.gaussianity(X, y).skewness, atol=1e-3)
        True
    """
    sums = class_sums(require_release(release))
    powers = [getattr(sums, letter, None) for letter in "ADTF"]
    if any(power is None for power in powers):
        raise MissingStatisticError(
            "gaussianity_of needs statistics D, T and F, which the release lacks; plan statistics='NADTF', without DP"
        )
    counts, spacing = np.asarray(sums.N), 1 / release.plan.schema.scale
    sized = [c for c in np.flatnonzero(counts >= 4) if c not in release.suppressed]
    return _gaussianity([_shape_of(spacing, *(np.asarray(power)[c] / counts[c] for power in powers)) for c in sized])


def homogeneity(release: Released) -> Homogeneity:
    """Measure how far class covariances are from the pooled one.

    ``(tr M_c - log det M_c - d) / (2 d)`` with M_c the class covariance in whitened coordinates, noise-aware.

    Raises:
        MissingStatisticError: the release has no S.

    Example:
        >>> y = np.arange(400) % 2
        >>> X = np.random.default_rng(0).normal(size=(400, 2)) * (1 + 2 * y[:, None])
        >>> schema = ps.ClassSchema(2, 2, "NAS", clip_norm=16.0)
        >>> ps.heads.homogeneity(ps.Release.exact(schema, ps.measure(schema, X, y))).divergence.round(1).tolist()
        [0.5, 0.1]
    """
    evidence, _ = class_evidence(release)
    if evidence.S is None:
        raise MissingStatisticError("homogeneity needs statistic S, which the release lacks; plan statistics='NAS'")
    n = evidence.counts
    values = ClassCovariances.of(evidence, 0.0, "auto").values
    divergence = (values - np.log(values) - 1).mean(axis=1) / 2
    return Homogeneity(divergence, values.max(axis=1) / values.min(axis=1), n)


def only_ranks(head: Any) -> bool:
    """Return whether a fitted head's probabilities are too sure, by what it was fitted on: see :data:`RANKS`.

    Example:
        >>> from privstats.heads.diagnostics import only_ranks
        >>> X, y = np.array([[0.0, 0.0], [0.0, 0.2], [1.0, 0.0], [1.0, 0.2]] * 5), [0, 0, 1, 1] * 5
        >>> terms = {"epsilon": 1.0, "delta": 1e-5, "adjacency": "add-remove", "clip_norm": 2.0, "classes": [0, 1]}
        >>> noisy = ps.heads.LDA().fit_private(X, y, ledger="uncharged", **terms)
        >>> only_ranks(noisy), only_ranks(ps.heads.LDA().fit(X, y))
        (True, False)
    """
    provenance = getattr(head, "provenance_", None)
    noisy = provenance is not None and provenance.exact is False
    return noisy and bool(getattr(head, "sure_under_noise", False)) and getattr(head, "temperature_", 1.0) == 1.0


def warn_of_few_records(head: str, records: float, features: int, remedy: str) -> None:
    """Issue a :class:`FewRecordsWarning` if due."""
    if records < features:
        warnings.warn(
            f"{head} estimates a covariance of {features} features from about {max(records, 0):.0f} records: {remedy}",
            FewRecordsWarning,
            stacklevel=5,
        )


def warn_of_one_class(head: Any, means: Array | None, rows: Array, best: NDArray[np.intp]) -> None:
    """Warn where a classifier suspiciously predicts one class for all rows ``(n, d)`` behind its public map.

    Signs: the class means get that class too; its probabilities expect 5 % of rows in others; or its priors make 100
    rows of one class improbable.
    """
    if len(best) < _FEW or means is None or len(head.classes_) < 2 or (best != best[0]).any():
        return
    if (why := _sign_of_one_class(head, means, rows, int(best[0]))) is not None:
        warnings.warn(
            f"{type(head).__name__} predicts class {head.classes_[best[0]].item()!r:.40} for all {len(best):,} rows, "
            f"{why}; if they are of several classes, noise or the clip hides how these differ, or one outweighs the "
            "others: compare clip_norm with the norms of public rows and epsilon with the number of records, and try "
            "priors='uniform' where the head has it",
            OneClassWarning,
            stacklevel=3,  # the caller of predict
        )


def _sign_of_one_class(head: Any, means: Array, rows: Array, only: int) -> str | None:
    if head.rule_.sole(means) is not None:
        return "and one class at the mean of every class"
    if head.softmax:
        others = 1 - head._probabilities(head.rule_.scores(rows[:_SOME]))[:, only].mean()
        if others >= _OTHERS:
            return f"and expects about {others:.0%} of them in others"
    share = float(head.priors_[only]) if hasattr(head, "priors_") else 1.0
    if len(rows) >= _MANY and len(rows) * np.log(share) < np.log(_CHANCE):
        return f"and takes {1 - share:.0%} of records for others before it sees them"
    return None


def quiet_about(y: Any) -> AbstractContextManager[Any]:
    """Suppress the one-class warning where all labels are of one class."""
    if len(np.unique(np.asarray(y))) > 1:
        return nullcontext()
    return warnings.catch_warnings(action="ignore", category=OneClassWarning)


def warn_of_unlike_columns(head: str, X: Array) -> None:
    """Warn where ranges of local records' columns, constants aside, differ by more than a factor of 100."""
    with np.errstate(over="ignore"):
        ranges = np.minimum(np.ptp(X, axis=0), np.finfo(np.float64).max)
    ranges = ranges[ranges > _CONSTANT * ranges.max(initial=0.0)]
    if ranges.size and ranges.max() / _LIKE > ranges.min():
        warnings.warn(
            f"the ranges of X's columns differ by more than a factor of {_LIKE:g}, and {head} shrinks toward a "
            "covariance that is equal in all columns: put transforms.Centre and Scale by public ranges or a "
            "StandardScaler in front, or set shrinkage=None",
            UnlikeColumnsWarning,
            stacklevel=3,  # the caller of fit
        )


def class_indices(head: Classifier, y: Any) -> NDArray[np.intp]:
    """Return label indices in ``head.classes_``, ``(n,)``; DataError for an unknown label."""
    y = np.asarray(y)
    order = np.argsort(head.classes_)
    at = np.minimum(np.searchsorted(head.classes_, y, sorter=order), len(order) - 1)
    index: NDArray[np.intp] = order[at]
    if not (head.classes_[index] == y).all():
        raise DataError("y holds labels that the head does not know, perhaps suppressed classes; leave them out")
    return index


def _shape(rows: Array) -> tuple[Array, Array]:
    centred = rows - rows.mean(axis=0)
    variance = np.square(centred).mean(axis=0)
    varies = variance > 1e-12 * max(float(variance.max()), np.finfo(np.float64).tiny)
    scaled = centred[:, varies] / np.sqrt(variance[varies])
    return np.abs((scaled**3).mean(axis=0)), np.abs((scaled**4).mean(axis=0) - 3)


def _shape_of(spacing: float, mean: Array, square: Array, cube: Array, fourth: Array) -> tuple[Array, Array]:
    variance = square - mean**2
    third = cube - 3 * mean * square + 2 * mean**3
    central = fourth - 4 * mean * cube + 6 * mean**2 * square - 3 * mean**4
    varies = variance > np.maximum(spacing**2 / 4, _ROUNDING * square)
    deviation = np.sqrt(variance[varies])
    return np.abs(third[varies] / deviation**3), np.abs(central[varies] / deviation**4 - 3)


def _gaussianity(shapes: list[tuple[Array, Array]]) -> Gaussianity:
    if not any(len(skewness) for skewness, _ in shapes):
        raise DataError("gaussianity needs a class with at least four records and a feature that varies in it")
    skewness, kurtosis = (np.concatenate(parts) for parts in zip(*shapes, strict=True))
    per_class = np.array([[s.mean(), k.mean()] if len(s) else [0.0, 0.0] for s, k in shapes])
    return Gaussianity(_summary(skewness), _summary(kurtosis), per_class)


def _summary(values: Array) -> tuple[float, float, float]:
    return float(values.mean()), float(np.median(values)), float(np.quantile(values, 0.9))
