"""Which wire entries the statement ``moments`` gathers into T: class sums, sums by class, a regression's folds.

Orders and limits only; what is proved of them is in ``moments``. Wire entries are in steps of which a record of full
norm has 4**f in every statistic.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from privstats.secagg.upload.proof.grams import Indices, Pattern, diagonal
from privstats.secagg.upload.proof.moments import Line, Moments
from privstats.secagg.upload.proof.statement import Slack

__all__ = ["of_classes", "of_folds", "of_separate_classes"]

_NOTHING: Indices = np.zeros(0, np.intp)


def _symmetric(features: int, first: int, blocks: int = 1) -> Indices:
    """Indices of the lower triangles of blocks that travel as all diagonals, then all strict upper triangles by row."""
    row, column = np.tril_indices(features)
    off = features * (features - 1) // 2
    upper = column * features - column * (column + 1) // 2 + row - column - 1
    number = np.arange(blocks)[:, None]
    places = np.where(row == column, number * features + row, blocks * features + number * off + upper)
    return np.asarray(first + places)


def _limits(mass: int, rows: int, count: int) -> tuple[Slack, ...]:
    trace = Slack("trace", rows, (mass + rows).bit_length())
    return (*[trace] * count, Slack("records", mass, trace.width))


def of_classes(
    classes: int, features: int, grid_bits: int, most_records: int, *, second: bool = True, clipped: bool = False
) -> Moments:
    """Of N and A, with B summed (``second``) or measured by the client alone.

    Wire entries: N and A in steps of which one record has 4**f, B in its own; x is N, A class by class, B's diagonal,
    its strict upper triangle row by row, and without ``second`` that B is the hidden part, in the same order.

    Args:
        classes, features: of the schema.
        grid_bits: f, at least 6.
        most_records: n.
        second: B is among the sums.
        clipped: the plan shrinks whole clients, toward zero, by up to a grid step an entry.
    """
    unit, block = 4**grid_bits, features * (features + 1) // 2
    pattern = Pattern(1, classes, features)
    start = classes + classes * features
    source = np.concatenate([np.arange(start), _symmetric(features, start)[0]])
    counts, trace = np.arange(classes), start + np.arange(features)
    steps = (unit // 4096, 2**grid_bits, 1)
    coarse = sum(size * step**2 for size, step in zip((classes, classes * features, block), steps, strict=True))
    mass = most_records * unit
    limits = _limits(mass, pattern.rows + (classes * steps[0] if clipped else 0), 1)
    statement = Moments(
        pattern,
        source,
        size=start + (block if second else 0),
        hidden=0 if second else block,
        lines=(Line(counts, trace), Line(_NOTHING, counts)),
        limits=limits,
        unit=unit,
        most_records=most_records,
        coarse=(coarse, 4 * steps[0]) if clipped else (0, 0),
    )
    return _roomy(statement, grid_bits)


def of_separate_classes(classes: int, features: int, grid_bits: int, most_records: int) -> Moments:
    """Of N, A and S: a block for each class, whose cone follows from its trace; x is N, A, S's diagonals, its rest."""
    unit, start = 4**grid_bits, classes + classes * features
    pattern = Pattern(classes, 1, features)
    of_class = np.arange(classes)[:, None]
    sums = classes + of_class * features + np.arange(features)
    source = np.concatenate([of_class, sums, _symmetric(features, start, classes)], axis=1).ravel()
    traces = tuple(
        Line(np.array([c]), start + c * features + np.arange(features, dtype=np.intp)) for c in range(classes)
    )
    statement = Moments(
        pattern,
        source,
        size=start + classes * features * (features + 1) // 2,
        hidden=0,
        lines=(*traces, Line(_NOTHING, np.arange(classes))),
        limits=_limits(most_records * unit, pattern.width, classes),
        unit=unit,
        most_records=most_records,
    )
    return _roomy(statement, grid_bits)


@dataclass(frozen=True)
class _Folds:
    """Where the sums of a regression lie on the wire, and the client's own Q behind them.

    x is G's diagonals, its strict upper triangles, h feature by feature, q; then Q, fold by fold its lower triangle
    row by row.
    """

    features: int
    targets: int
    folds: int

    @property
    def across(self) -> int:
        """Where h begins."""
        return self.folds * self.features * (self.features + 1) // 2

    @property
    def squares(self) -> int:
        """Where q begins."""
        return self.across + self.folds * self.features * self.targets

    @property
    def size(self) -> int:
        """Entries of x, and where Q begins."""
        return self.squares + self.folds

    @property
    def own(self) -> int:
        """Entries of one fold's Q."""
        return self.targets * (self.targets + 1) // 2

    @property
    def traces(self) -> Indices:
        """Q's diagonals, ``(folds, targets)``."""
        return np.asarray(self.size + np.arange(self.folds)[:, None] * self.own + diagonal(self.targets))

    @property
    def source(self) -> Indices:
        """What every place of [[G, h], [h', Q]] holds, fold by fold its lower triangle row by row."""
        d, t, fold = self.features, self.targets, np.arange(self.folds)[:, None]
        matrix = np.zeros((self.folds, d + t, d + t), np.intp)
        row, column = np.tril_indices(d)
        matrix[:, row, column] = _symmetric(d, 0, self.folds)
        across = self.across + np.arange(d) * t + np.arange(t)[:, None]
        matrix[:, d:, :d] = fold[:, :, None] * d * t + across
        below, beside = np.tril_indices(t)
        matrix[:, d + below, d + beside] = self.size + fold * self.own + np.arange(self.own)
        rows, columns = np.tril_indices(d + t)
        return matrix[:, rows, columns].ravel()


def of_folds(features: int, targets: int, folds: int, grid_bits: int, most_records: int) -> Moments:
    """Of G, h and q per fold: [[G, h], [h', Q]], whose Q is the client's own and has the trace q.

    The number of records is not sent: n bounds tr G and q over all folds, to each of which a record adds at most 4**f.
    With one fold these are n records; with several, G may be of n records in some folds and q of n others in the rest.
    The hidden part is Q, as :class:`_Folds` lays it out.
    """
    unit, wire = 4**grid_bits, _Folds(features, targets, folds)
    mass = most_records * unit
    equal = tuple(Line(wire.squares + np.array([k]), wire.traces[k]) for k in range(folds))
    bounded = (np.arange(folds * features), wire.squares + np.arange(folds))
    names = ("records", "targets")
    statement = Moments(
        Pattern(folds, 0, features + targets),
        wire.source,
        size=wire.size,
        hidden=folds * wire.own,
        lines=(*equal, *(Line(_NOTHING, places) for places in bounded)),
        limits=(*[Slack("square", 0, 0)] * folds, *(Slack(name, mass, mass.bit_length()) for name in names)),
        unit=unit,
        most_records=most_records,
    )
    return _roomy(statement, grid_bits)


def _roomy(statement: Moments, grid_bits: int) -> Moments:
    statement.check_room(f"lower most_records={statement.most_records} or grid_bits={grid_bits}")
    return statement
