"""Choose clip norm and grid from public data only: never tune on private data."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privstats.errors import DataError, SchemaError
from privstats.heads import LDA, OneClassWarning, UnlikeColumnsWarning
from privstats.intake.accepted import RowsLike, TableLike, TargetsLike
from privstats.intake.frames import named_target
from privstats.intake.splits import Split
from privstats.kinds import ClassMoments, ClassSchema
from privstats.moments import exact_moments
from privstats.release import Release
from privstats.transforms import Transform, apply, output_features

_QUANTILES = (0.25, 0.5, 0.75, 0.9, 0.95, 0.99, 1.0)
_GRIDS = (4, 6, 8, 10, 12, 14, 16)
_FINE = 16
_USUAL = 12
_HELD_OUT = 0.2
_MOST_OF_A_NORM = 0.9
_MANY_CLIPPED = 0.5


@dataclass(frozen=True)
class Choice:
    """One candidate and its effect on the public data.

    Attributes:
        clipped: share of shortened records.
        steps: grid steps per root mean square entry.
        covariance_error: relative, in Frobenius norm.
        noise: on second moments, relative to the largest clip norm's.
        accuracy: held-out, of LDA, or None.

    Example:
        >>> from privstats.workflows.suggest import suggest
        >>> first, *_, last = suggest(np.random.default_rng(0).normal(size=(200, 4))).clips
        >>> first.clipped >= last.clipped  # a larger clip norm shortens fewer records
        True
    """

    clip_norm: float
    grid_bits: int
    clipped: float
    steps: float
    covariance_error: float
    noise: float
    accuracy: float | None


@dataclass(frozen=True)
class Suggestion:
    """Suggested bounds of a schema, and the two sweeps behind them.

    Attributes:
        clip_norm: the smallest within ``tolerance`` of the best; without labels, the smallest that clips at most one
            record in twenty.
        grid_bits: 12, or the coarsest finer grid within ``tolerance`` of the finest. Finer grids cost only upload bits,
            and noise needs steps finer than itself.
        clips: candidates for the clip norm, on a fine grid.
        grids: candidates for the grid, at this clip norm.
        reference: LDA's accuracy without clip or grid; None without labels.
        error: standard error of the accuracies, or None.
        tolerance: acceptable loss of accuracy, or relative covariance error.
        remarks: on data that no clip norm suits.

    Example:
        >>> from privstats.workflows.suggest import suggest
        >>> suggestion = suggest(np.random.default_rng(0).normal(size=(200, 4)))
        >>> suggestion.clip_norm in [choice.clip_norm for choice in suggestion.clips], suggestion.reference is None
        (True, True)
    """

    clip_norm: float
    grid_bits: int
    clips: tuple[Choice, ...]
    grids: tuple[Choice, ...]
    reference: float | None
    error: float | None
    tolerance: float
    remarks: tuple[str, ...] = ()


def suggest(
    X: RowsLike | TableLike,
    y: TargetsLike | None = None,
    *,
    transform: Sequence[Transform] = (),
    tolerance: float = 0.005,
) -> Suggestion:
    """Sweep clip norms and grids over public data.

    Args:
        X: public features like the private ones, ``(n, inputs)``, before the transform; at least 20 records.
        y: labels, integers or texts, ``(n,)``; without them the covariance measures losses.
        transform: the schema's public maps.
        tolerance: acceptable loss of accuracy, 0 to 1.

    Raises:
        DataError: too few records, NaN, labels of another length, or fewer than two classes.

    Example:
        >>> from privstats.workflows.suggest import suggest
        >>> X = np.random.default_rng(0).normal(size=(200, 4))  # public rows like the private ones
        >>> suggestion = suggest(X, np.arange(200) % 2)
        >>> suggestion.clip_norm > 0, suggestion.grid_bits
        (True, 12)
    """
    if isinstance(tolerance, bool) or not isinstance(tolerance, int | float) or not 0 <= tolerance <= 1:
        raise DataError("tolerance must be between 0 and 1, a share of records; 0.005 is half a point of accuracy")
    features, target = named_target(X, y)
    rows = _checked_rows(features, transform)
    labels = np.zeros(len(rows), np.intp) if target is None else _checked_labels(target, len(rows))
    split = Split(_HELD_OUT, seed=0)
    held_out = None if target is None else split.held_out(rows, labels)
    trial = _Trial(rows, labels, held_out)
    norms = np.linalg.norm(rows, axis=1)
    radii = sorted({_rounded_up(float(q)) for q in np.quantile(norms, _QUANTILES) if q > 0})
    if not radii:
        raise DataError("X is zero everywhere after the transform, so no clip norm suits it; check the transform")
    clips = tuple(trial.run(radius, _FINE, radii[-1]) for radius in radii)
    best = _smallest_good(clips, tolerance)
    chosen = best.clip_norm
    least = math.floor(math.log2(math.sqrt(rows.shape[1]) / 2)) + 1
    grids = tuple(trial.run(chosen, bits, radii[-1]) for bits in _GRIDS if bits >= max(2, least))
    finest = grids[-1]
    fine_enough = [choice.grid_bits for choice in grids if _loss(choice, finest) <= tolerance]
    error = None if trial.reference is None else math.sqrt(trial.reference * (1 - trial.reference) / trial.tested)
    bits = max(_USUAL, min(fine_enough))
    remarks = (*_remarks(rows, best), *filter(None, [split.remark()]))
    return Suggestion(chosen, bits, clips, grids, trial.reference, error, tolerance, remarks)


class _Trial:
    def __init__(self, rows: NDArray[np.float64], labels: NDArray[np.intp], held_out: NDArray[np.bool_] | None) -> None:
        self._train = slice(None) if held_out is None else ~held_out
        self._test = held_out
        self._rows, self._labels = rows, labels
        self._covariance = np.cov(rows[self._train].T, bias=True)
        self.tested = 0 if held_out is None else int(held_out.sum())
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UnlikeColumnsWarning)  # a remark states it
            exact = None if held_out is None else LDA().fit(rows[self._train], labels[self._train])
        self.reference = None if exact is None else self._score(exact)

    def run(self, clip_norm: float, grid_bits: int, largest: float) -> Choice:
        classes = max(2, int(self._labels.max()) + 1)
        schema = ClassSchema(classes, self._rows.shape[1], "NAB", clip_norm, grid_bits)
        moments: Any = exact_moments(schema, self._rows[self._train], self._labels[self._train])
        report = moments.clip_report
        return Choice(
            clip_norm=clip_norm,
            grid_bits=grid_bits,
            clipped=report.fraction_clipped if report else math.nan,
            steps=report.resolution if report else math.nan,
            covariance_error=self._covariance_error(moments),
            noise=(clip_norm / largest) ** 2,
            accuracy=None if self._test is None else self._score(LDA().fit_release(Release.exact(schema, moments))),
        )

    def _covariance_error(self, moments: ClassMoments) -> float:
        real, n = moments.real(), moments.records
        mean = real.A.sum(axis=0) / n
        covariance = np.asarray(real.B) / n - np.outer(mean, mean)
        return float(np.linalg.norm(covariance - self._covariance) / np.linalg.norm(self._covariance))

    def _score(self, head: LDA) -> float:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", OneClassWarning)  # for a clip norm on trial; its accuracy shows it
            return float(head.score(self._rows[self._test], self._labels[self._test]))


def _remarks(rows: NDArray[np.float64], chosen: Choice) -> tuple[str, ...]:
    remedy = "centre and scale the columns by public ranges first, with transforms.Centre and transforms.Scale"
    shares = np.square(rows / np.abs(rows).max()).sum(axis=0)
    shares /= shares.sum()
    remarks = []
    if shares.max() > _MOST_OF_A_NORM:
        remarks.append(
            f"column {int(shares.argmax())}, counted from 0, holds {shares.max():.1%} of the squared norms: {remedy}"
        )
    if chosen.clipped > _MANY_CLIPPED:
        remarks.append(
            f"clip_norm = {chosen.clip_norm:g} shortens {chosen.clipped:.1%} of the records: where their columns have "
            f"different units or means far from 0, {remedy}"
        )
    return tuple(remarks)


def _smallest_good(clips: Sequence[Choice], tolerance: float) -> Choice:
    if clips[0].accuracy is None:
        return next(choice for choice in clips if choice.clipped <= 0.05)
    best = max(clips, key=lambda choice: choice.accuracy or 0.0)
    return next(choice for choice in clips if _loss(choice, best) <= tolerance)


def _loss(choice: Choice, best: Choice) -> float:
    if choice.accuracy is None or best.accuracy is None:
        return choice.covariance_error - best.covariance_error
    return best.accuracy - choice.accuracy


def _checked_rows(X: Any, transform: Sequence[Transform]) -> NDArray[np.float64]:
    try:
        rows = np.asarray(X, np.float64)
    except (TypeError, ValueError):
        raise DataError("X must be a rectangular array of real numbers; convert it to float32 or float64") from None
    if rows.ndim != 2 or rows.shape[0] < 20 or rows.shape[1] < 2:
        raise DataError("X must have shape (records, features) with at least 20 records and 2 features; pass more")
    if not np.isfinite(rows).all():
        raise DataError("X holds NaN or infinite entries; remove or impute them first")
    try:
        output_features(transform, rows.shape[1])
    except SchemaError as error:
        raise DataError(f"X does not fit the transform: {error}") from None
    mapped: NDArray[np.float64] = apply(transform, rows)
    return mapped


def _checked_labels(y: Any, count: int) -> NDArray[np.intp]:
    labels = np.asarray(y)
    if labels.shape != (count,):
        raise DataError(f"y must have shape ({count},) like X; pass one label per record")
    if labels.dtype.kind not in "iubU":  # public labels of one data set: any numbering of them will do
        raise DataError(f"y must hold integers or texts, got dtype {labels.dtype}; use y.astype(str)")
    names, index = np.unique(labels, return_inverse=True)
    if len(names) < 2:
        raise DataError("y has one class only; two are needed to measure accuracy; pass such labels, or none")
    return np.asarray(index, np.intp)


def _rounded_up(value: float) -> float:
    """Round up to two significant digits."""
    unit = 10.0 ** (math.floor(math.log10(value)) - 1)
    return float(f"{math.ceil(value / unit * (1 - 1e-12)) * unit:.6g}")
