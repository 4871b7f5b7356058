"""Score and information of a round, and how records become them: read, put on a grid, mapped, added up.

The same bits in any batch, order and BLAS. A record is counted, or counts as zero: no answer depends on a record and
the published weights together.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from privstats.errors import RecordError
from privstats.moments.arms import arm_rows, real_outcomes
from privstats.moments.base import Moments, RealMoments
from privstats.moments.exact_sum import ExactSum, require_known
from privstats.moments.gradient_map import exponentials
from privstats.moments.gradients import grid_rows, pieces
from privstats.moments.record_terms import RecordTerms, Term
from privstats.schema import ScoreSchema
from privstats.schema.public_values import Values

__all__ = ["RealScoreMoments", "ScoreMoments", "measured_scores", "score_terms"]

_MEAN_BITS = 20
_ONE = float(1 << _MEAN_BITS)
_SHY = 1 - 2.0**-40  # rounding of a root and a product cannot lift what is this much shorter
_LOG_BITS = 40  # of log Y, rounded so that every platform takes the same number

Whole = NDArray[np.float64]
"""Whole numbers in float64."""


@dataclass(frozen=True, eq=False)
class RealScoreMoments(RealMoments):
    """A round's sums in real units, with noise or without: g ``(d,)`` and H ``(d, d)``."""

    g: NDArray[np.float64]
    H: NDArray[np.float64]


@dataclass(frozen=True, eq=False, repr=False)
class ScoreMoments(Moments):
    """A round's sums on the grid, exact: g int64 ``(d,)``, H int64 ``(d, d)``.

    Attributes:
        records: number of finite records measured; None where unknown. Private, and never sent.
        published: digest of the weights used; empty where unknown.

    Raises:
        DataError: another shape than the schema says.
    """

    shown: ClassVar[tuple[str, ...]] = ("family", "features")

    schema: ScoreSchema
    g: NDArray[np.int64]
    H: NDArray[np.int64]
    records: int | None = field(default=None, compare=False)
    published: str = ""

    def real(self) -> RealScoreMoments:
        """The same in real units, float64."""
        return RealScoreMoments.of_sums(self.schema, self.wire())


def measured_scores(
    schema: ScoreSchema, X: Any, y: Any, values: Mapping[str, Values], progress: bool = False
) -> ScoreMoments:
    """The exact sums of a round over records.

    Guarantee:
        Every record adds r u and a a' with |u| <= 2**f, |r| <= 2**f |y - m| and |a|^2 <= 4**f v for one and the same m,
        in whole numbers, for all admitted weights and any record; one with NaN or infinite entries adds nothing, and is
        not among the ``records``. The joint sensitivity rests on the third.

    Raises:
        DataError: arrays that are no records of this schema.
        RecordError: of rows by arm, one that cannot be read, whatever was published.
    """
    sums = {row.letter: ExactSum(row.shape(schema.sizes), row.bound(schema.steps)) for row in schema.sent}
    require_known(sums, "gH")
    records = 0
    for rows, targets in pieces(schema.rows, X, y, progress):
        (unit, residuals, roots), finite = _mapped(schema, rows, targets, values["w"])
        for total in sums.values():
            total.admit(len(rows))
        sums["g"].partial += unit.T @ residuals
        sums["H"].partial += roots.T @ roots
        records += int(np.count_nonzero(finite))
    return ScoreMoments(schema, sums["g"].result(), sums["H"].result(), records)


def score_terms(schema: ScoreSchema, X: Any, y: Any, values: Mapping[str, Values], *_: Any) -> RecordTerms:
    """What each record adds to a round.

    Raises:
        DataError, RecordError: as :func:`measured_scores`.
    """
    return RecordTerms.joined(_added(schema, *each, values["w"]) for each in pieces(schema.rows, X, y, progress=False))


def _added(schema: ScoreSchema, rows: NDArray[Any], targets: NDArray[Any], w: Values) -> RecordTerms:
    (unit, residuals, roots), finite = _mapped(schema, rows, targets, w)
    a = roots[finite]
    return RecordTerms(finite, (Term({"g": ((unit * residuals[:, None])[finite], None), "H": (a, a)}),), {})


def _mapped(
    schema: ScoreSchema, rows: NDArray[Any], targets: NDArray[Any], w: Values
) -> tuple[tuple[Whole, Whole, Whole], NDArray[np.bool_]]:
    """u ``(n, d)``, r ``(n,)`` and a ``(n, d)`` of every record, all zero for one that is not finite; and which
    are."""
    unit, outcomes, fine = _on_grid(schema, rows, targets)
    finite = fine.copy()
    mean = _means(schema, unit, w)
    variance = mean * (_ONE - mean) / _ONE if schema.family == "logistic" else mean
    residuals = np.trunc(np.ldexp(outcomes - mean, schema.grid_bits - _MEAN_BITS))
    roots = np.trunc(unit * (np.sqrt(variance / _ONE) * _SHY)[:, None])
    most = float(schema.steps) ** 2
    fine &= (np.vecdot(unit, unit) <= most) & (np.abs(residuals) * _ONE <= schema.steps * np.abs(outcomes - mean))
    fine &= np.vecdot(roots, roots) * _ONE <= most * variance
    return (unit * fine[:, None], residuals * fine, roots * fine[:, None]), finite


def _on_grid(schema: ScoreSchema, rows: NDArray[Any], targets: NDArray[Any]) -> tuple[Whole, Whole, NDArray[np.bool_]]:
    """Grid rows, outcomes in steps of 2**-20 of the largest, and which records are finite."""
    if schema.missing:
        return _seen_on_grid(schema, rows, targets)
    if schema.by_arm:
        real_outcomes(targets, schema.outcomes or 1)  # the same records count in all sessions of an effect
        treated, unit = arm_rows(schema.rows, rows)
        return unit, treated.astype(np.float64) * _ONE, np.ones(len(rows), np.bool_)
    unit, fine = grid_rows(schema, rows)
    goals = targets.astype(np.float64).reshape(len(targets))
    fine &= np.isfinite(goals)
    outcomes = np.clip(np.where(fine, goals, 0.0) / schema.outcome, 0.0, 1.0)
    return unit, np.trunc(outcomes * _ONE), fine


def _seen_on_grid(
    schema: ScoreSchema, rows: NDArray[Any], targets: NDArray[Any]
) -> tuple[Whole, Whole, NDArray[np.bool_]]:
    """Grid rows, and whether an outcome is there; all records are finite, as in the sessions that follow.

    Raises:
        RecordError: a row that cannot be read, whatever was published.
    """
    unit, fine = grid_rows(schema.rows, rows)
    if not fine.all():
        raise RecordError("X holds NaN, infinite or overflowing entries, or an arm that is neither 0 nor 1; mend them")
    seen = np.isfinite(real_outcomes(targets, 1, missing=True)[:, 0])
    return unit, seen.astype(np.float64) * _ONE, fine


def _means(schema: ScoreSchema, unit: Whole, w: Values) -> Whole:
    """m in steps of 2**-20 of the largest outcome, 0 to 2**20."""
    step = schema.clip_norm / float(schema.steps)
    fitted = (unit @ w.integers.astype(np.float64)) * math.ldexp(step, -w.exponent)
    if schema.family == "poisson":
        fitted = fitted - round(math.log(schema.outcome) * (1 << _LOG_BITS)) / (1 << _LOG_BITS)
        return np.floor(exponentials(np.stack([np.zeros_like(fitted), fitted], axis=1), 0)[:, 1] / _ONE)
    numerators = exponentials(np.stack([np.zeros_like(fitted), fitted], axis=1), 0)
    return np.asarray(np.floor(numerators[:, 1] * _ONE / numerators.sum(axis=1)))
