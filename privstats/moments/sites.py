"""Sums within sites: one site's second moments less the part that its own shrunk mean explains, in whole numbers.

A function of all records of one site, so they add over sites only. Target and columns form one vector here; the readers
in ``inference`` separate them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from privstats.errors import DataError
from privstats.moments.accumulators import measured
from privstats.moments.base import Moments, RealMoments, place_of
from privstats.moments.clip_report import ClipReport
from privstats.moments.code_rows import behind
from privstats.moments.grid import Grid, feature_grid
from privstats.moments.input_validation import as_rows, check_features, check_targets, dense, pairs
from privstats.moments.within import less
from privstats.schema import ClassSchema, SitesSchema
from privstats.schema.public_values import Values

__all__ = ["RealSiteMoments", "SiteMoments", "less_mean", "measured_sites", "site_moments"]

_ROWS = 1 << 14


@dataclass(frozen=True, eq=False)
class RealSiteMoments(RealMoments):
    """Sums within sites in real units, float64, with noise or without.

    Attributes:
        N: records.
        Q: one matrix per pull, or per group, ``(pulls or groups, p, p)``; the target last, over ``target_scale``.

    Example:
        >>> real = ps.measure(ps.SitesSchema(2, clip_norm=16.0), [[0.0], [1.0], [2.0]], [5.0, 7.0, 9.0]).real()
        >>> (real.Q[0][0, 1] / real.Q[0][0, 0]).round(2)  # the slope within this site
        np.float64(2.0)
    """

    N: float
    Q: NDArray[np.float64]


@dataclass(frozen=True, eq=False, repr=False)
class SiteMoments(Moments):
    """Exact sums within sites: N in records, Q in squared grid steps, int64.

    They add over sites; the records of one site are measured in one piece.

    As measured they lie in group 0; a session moves them to the group of the site's place (:meth:`for_client`).

    Attributes:
        schema: what was measured.
        N, Q: as in :class:`RealSiteMoments`.
        clip_report: what the clip did, the target being one of the entries; stays with the client, ignored by ``==``.

    Raises:
        DataError: Q has another shape, or no records have these counts.

    Example:
        >>> moments = ps.measure(ps.SitesSchema(2, clip_norm=16.0), [[0.0], [1.0], [2.0]], [5.0, 7.0, 9.0])
        >>> moments.N, moments.real().Q[0].round(1).tolist()
        (3, [[2.0, 4.0], [4.0, 8.0]])
    """

    shown: ClassVar[tuple[str, ...]] = ("features", "pulls", "groups")

    schema: SitesSchema
    N: int
    Q: NDArray[np.int64]
    clip_report: ClipReport | None = field(default=None, compare=False)

    @property
    def records(self) -> int:
        """Records measured. Private, though their sum is sent."""
        return self.N

    def for_client(self, index: int | None) -> SiteMoments:
        """The same in the group of a site's place in the roster.

        Raises:
            DataError: the schema has groups and no place is given, or these sums already have several groups.
        """
        groups = self.schema.groups
        if groups == 1:
            return self
        place = place_of(index)
        if self.Q[1:].any():
            raise DataError("these sums are in a group already; give what measure returned")
        Q = np.zeros_like(self.Q)
        Q[place % groups] = self.Q[0]
        return SiteMoments(self.schema, self.N, Q, self.clip_report)

    def real(self) -> RealSiteMoments:
        """The same in real units, float64."""
        return RealSiteMoments.of_sums(self.schema, self.wire())


def site_moments(
    schema: SitesSchema, records: int, total: NDArray[Any], second: NDArray[Any], report: ClipReport | None = None
) -> SiteMoments:
    """A site's moments from its exact count, sum ``(p,)`` and second moment ``(p, p)`` in grid steps."""
    Q = np.zeros((schema.sizes["pull"], schema.features, schema.features), np.int64)
    for place, pull in enumerate(schema.pulls):
        Q[place] = less_mean(second, total, records + Fraction(pull))
    return SiteMoments(schema, records, Q, report)


def measured_sites(schema: SitesSchema, X: Any, y: Any, _: Mapping[str, Values], progress: bool) -> SiteMoments:
    """The sums within a site from its records: X holds the columns and y the target, as for a ``RidgeSchema``.

    Raises:
        DataError: records that do not fit the schema.
    """
    plain = ClassSchema(2, schema.features, "NAB", schema.clip_norm, schema.grid_bits)
    sums: Any = measured(plain, _vectors(schema, X, y), None, progress)  # of one class
    return site_moments(schema, sums.records, sums.A.sum(axis=0), np.asarray(sums.B), sums.clip_report)


def less_mean(second: NDArray[Any], total: NDArray[Any], over: Fraction) -> NDArray[np.int64]:
    """``Z'Z - s s' / over`` as :func:`~privstats.moments.within.less` has it; 0 for nothing."""
    return less(second, total, total, over) if over else np.zeros(second.shape, np.int64)


def _vectors(schema: SitesSchema, X: Any, y: Any) -> Iterator[tuple[NDArray[np.float64], NDArray[np.intp]]]:
    """Pieces of ``(x, y / target_scale)``, all of one class."""
    columns, target = feature_grid(schema), Grid("y", 1, schema.steps, 1.0)
    for rows, targets in pairs(X) if y is None else ((X, y),):
        rows = check_features(schema, rows)
        targets = _target(rows.shape[0], as_rows(targets, "y"))
        for start in range(0, max(rows.shape[0], 1), _ROWS):  # once for no records
            at = slice(start, min(start + _ROWS, rows.shape[0]))
            x, b = behind(schema, dense(rows[at]), columns), dense(targets[at]).astype(np.float64).reshape(-1, 1)
            target.require_finite(b)
            yield np.hstack([x, b / schema.target_scale]), np.zeros(len(x), np.intp)


def _target(records: int, targets: Any) -> Any:
    if tuple(targets.shape) not in ((records,), (records, 1)):
        raise DataError(f"y must have shape ({records},), one target per row of X; reshape it")
    return check_targets(targets, 1)
