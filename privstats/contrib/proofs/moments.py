"""The statement ``moments``: these sums are of at most n fractional records in their ball, class by class.

T gathers the sums: [[diag N, A], [A', B]] for class sums (one such block per class with second moments by class), [[G,
h], [h', Q]] per fold for a regression. The client proves T = L L' + E for a triangular L and a small E, the traces of
records of bounded norm, at most n records, and, where one block holds all classes, every class's mean in the ball. A
record of full norm has 4**f field steps.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import isqrt
from typing import ClassVar

import numpy as np

from privstats.contrib.proofs.field import Field, Integers, P, subtract, total
from privstats.contrib.proofs.grams import (
    Factor,
    Full,
    Indices,
    Pattern,
    candidates,
    completed,
    diagonal,
    rectangle,
)
from privstats.contrib.proofs.statement import Coins, Gram, Slack, Statement
from privstats.errors import DataError

_FAR = 2.0**60  # where hidden entries end, which no sums of records reach
_NOTHING: Indices = np.zeros(0, np.intp)


@dataclass(frozen=True, eq=False)
class Line:
    """A linear form: the sum of some of T's sources minus that of others."""

    plus: Indices
    minus: Indices

    def of(self, sources: Field) -> int:
        """Return the form's value."""
        return (total(sources[self.plus]) - total(sources[self.minus])) % P


@dataclass(frozen=True, eq=False)
class Moments(Statement):
    """T = L L' + E, traces, number of records, and cones where they do not follow.

    Args:
        pattern: entries of T that may be nonzero.
        source: each pattern entry's index among x and the hidden entries.
        hidden: unsent entries, part of the witness.
        lines, limits: linear forms of x and the hidden entries, and their slacks.
        unit: 4**f.
        most_records: n.
        coarse: what a client's clip, toward zero, may add to E (squared) and to the cones' width.
    """

    name: ClassVar[str] = "moments"

    pattern: Pattern
    source: Indices
    size: int
    hidden: int
    lines: tuple[Line, ...]
    limits: tuple[Slack, ...]
    unit: int
    most_records: int
    coarse: tuple[int, int] = (0, 0)

    @property
    def error(self) -> int:
        """e2, the bound on the sum of E's squared entries: n K 4**f."""
        return self.most_records * self.pattern.rows * self.unit + self.coarse[0]

    @property
    def mass(self) -> int:
        """n 4**f, n records in steps."""
        return self.most_records * self.unit

    @property
    def cones(self) -> int:
        """Number of class means to be proved in the ball; 0 where every class has its own block."""
        return self.pattern.classes if self.pattern.classes > 1 else 0

    @property
    def width(self) -> int:
        """t, how far a class's squared column may exceed its count."""
        return isqrt(self.error) + 6 * isqrt(self.mass) + self.pattern.features + self.coarse[1]

    @property
    def tolerance(self) -> int:
        """Addend that E allows, as a full matrix's norm, or the cones' width at one record: |A_c| <= R (N_c + t
        / 2).
        """
        return max(isqrt(2 * self.error), self.width // 2) + 1

    @property
    def entries(self) -> int:
        """Entries of T."""
        return self.pattern.size

    @property
    def witness_size(self) -> int:  # type: ignore[override]
        """Entries of L, E and the hidden part."""
        return 2 * self.entries + self.hidden

    @property
    def tested_size(self) -> int:  # type: ignore[override]
        """Entries of L and E."""
        return 2 * self.entries

    @cached_property
    def square(self) -> int:  # type: ignore[override]
        """Bound on |L|**2 + |E|**2, with |L|**2 = tr T - tr E: beta**2 = 2 n 4**f + K + e2 + K sqrt(n) 2**f."""
        rows = self.pattern.rows
        return 2 * self.mass + rows + self.error + rows * isqrt(self.most_records) * isqrt(self.unit)

    @cached_property
    def slacks(self) -> tuple[Slack, ...]:  # type: ignore[override]
        """Slacks of lines, of E's size, and of cones."""
        cone = Slack("cone", self.width, (self.mass + 2 * self.width).bit_length())
        return (*self.limits, Slack("error", self.error, self.error.bit_length()), *[cone] * self.cones)

    @cached_property
    def grams(self) -> tuple[Gram, ...]:  # type: ignore[override]
        """Gram matrices: L against T - E; E's own, with its size as the trace; the classes' columns."""
        rows, columns = rectangle(self.entries)
        padding = np.zeros(rows * columns - self.entries, np.uint64)
        squares = Full("error", rows, columns, lambda _, w: np.concatenate([self.error_of(w), padding]))
        factor = Factor("factor", self.pattern, lambda _, w: self.factor_of(w), self._product_of)
        if not self.cones:
            return factor, squares
        return factor, squares, Full("cones", self.cones, self.pattern.features, lambda _, w: self._columns_of(w))

    def factor_of(self, w: Field) -> Field:
        """Return L's entries."""
        return w[: self.entries]

    def error_of(self, w: Field) -> Field:
        """Return E's entries."""
        return w[self.entries : 2 * self.entries]

    def sources_of(self, x: Field, w: Field) -> Field:
        """Return x and the hidden entries."""
        return np.concatenate([x, w[2 * self.entries :]]) if self.hidden else x

    def hidden_of(self, x: Integers) -> Integers:
        """Return the smallest hidden entries that make every block positive, plus an equation's diagonal addend.

        They are C P^-1 C' below [P, C'], with P the sent block. Their traces meet every bound, because the measured
        ones are no smaller.
        """
        out = np.zeros(self.hidden, np.int64)
        if not self.hidden:
            return out
        rows, columns = self.pattern.inner
        sources, own = np.concatenate([x, out]), self.source[: len(rows)] >= self.size
        first = int(rows[own].min())
        for places in self.source.reshape(self.pattern.blocks, -1):
            block = np.zeros((self.pattern.width, self.pattern.width))
            block[rows, columns] = block[columns, rows] = sources[places]
            least = completed(block[:first, :first], block[first:, :first])
            steps = np.clip(least[rows[own] - first, columns[own] - first], -_FAR, _FAR)
            out[places[own] - self.size] = np.rint(steps)
        for line, slack in zip(self.lines, self.limits, strict=True):
            if not slack.width:
                diagonal = line.minus - self.size
                each, more = divmod(int(x[line.plus].sum() - out[diagonal].sum()), diagonal.size)
                out[diagonal] += each
                out[diagonal[:more]] += 1
        return out

    def tested(self, x: Field, w: Field) -> Field:  # noqa: ARG002
        """Return L and E."""
        return w[: 2 * self.entries]

    def relations(self, x: Field, w: Field, products: Sequence[Field]) -> Field:
        """Return the lines; minus the trace of E E'; and per class N_c - E_cc - |l_c|**2."""
        sources, rows = self.sources_of(x, w), self.grams[1].rows
        forms = [line.of(sources) for line in self.lines]
        forms.append(-total(products[1][diagonal(rows)]) % P)
        if not self.cones:
            return np.array(forms, np.uint64)
        counts, errors = sources[self.source[: self.cones]], self.error_of(w)[: self.cones]
        cones = subtract(subtract(counts, errors), products[2][diagonal(self.cones)])
        return np.concatenate([np.array(forms, np.uint64), cones])

    def _product_of(self, x: Field, w: Field) -> Field:
        return subtract(self.sources_of(x, w)[self.source], self.error_of(w))

    def _columns_of(self, w: Field) -> Field:
        return self.factor_of(w)[self.cones : self.cones * (1 + self.pattern.features)]

    def witness(self, x: Integers, hidden: Integers, coins: Coins) -> Integers:
        """Return L, E and hidden entries, checked in integers."""
        if x.shape != (self.size,) or hidden.shape != (self.hidden,):
            raise DataError(f"the statement is about {self.size} sums and {self.hidden} hidden entries")
        sources = np.concatenate([x, hidden])
        target = sources[self.source]
        rows, columns = self.pattern.inner
        width, blocks = self.pattern.width, self.pattern.blocks
        full = np.zeros((blocks, width, width))
        full[:, rows, columns] = full[:, columns, rows] = target.reshape(blocks, -1)
        if np.abs(full).max(initial=0) <= 4 * self.mass:  # beyond, products of doubles would not be exact
            places = np.zeros((width, width), np.bool_)
            places[rows, columns] = True
            for lower, left in candidates(full, places, coins):
                factor, error = lower[:, rows, columns].ravel(), left[:, rows, columns].ravel()
                if self._holds(sources, factor, error):
                    return np.concatenate([factor, error, hidden])
        raise DataError(
            f"these sums are not of at most most_records={self.most_records} records within the schema's bounds, or "
            "have no short enough proof of it: raise most_records, or measure under the plan's schema"
        )

    def _holds(self, sources: Integers, factor: Integers, error: Integers) -> bool:
        lines = [int(sources[line.plus].sum()) - int(sources[line.minus].sum()) for line in self.lines]
        squares = int((error.astype(np.float64) ** 2).sum())
        if squares < 1 << 52:
            squares = int((error * error).sum())
        forms = [*lines, -squares]
        if self.cones:
            columns = self._columns_of(factor.view(np.uint64)).view(np.int64).reshape(self.cones, -1)
            counts = sources[self.source[: self.cones]] - error[: self.cones]
            forms += (counts - (columns * columns).sum(axis=1)).tolist()
        return all(
            0 <= form + slack.constant < 1 << slack.width if slack.width else form + slack.constant == 0
            for form, slack in zip(forms, self.slacks, strict=True)
        )


def _symmetric(features: int, first: int, blocks: int = 1) -> Indices:
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
    """Build the statement about N and A, with B summed (``second``) or measured by the client alone.

    N and A count in steps, 4**f per record. x is N, A class by class, B's diagonal, its strict upper triangle row by
    row; without ``second``, B is the hidden part.

    Args:
        grid_bits: f, at least 6.
        most_records: n.
        second: B is among the sums.
        clipped: the plan clips clients, toward zero, by up to a wire step an entry.
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
    """Build the statement about N, A and S, with a block per class and a cone from its trace.

    x is N, A, S's diagonals, then the rest of S.
    """
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
    """Positions on the wire: G's diagonals, its strict upper triangles, h feature by feature, q; then Q, fold
    by fold its lower triangle row by row.
    """

    features: int
    targets: int
    folds: int

    @property
    def across(self) -> int:
        return self.folds * self.features * (self.features + 1) // 2

    @property
    def squares(self) -> int:
        return self.across + self.folds * self.features * self.targets

    @property
    def size(self) -> int:
        return self.squares + self.folds

    @property
    def own(self) -> int:
        return self.targets * (self.targets + 1) // 2

    @property
    def traces(self) -> Indices:
        return np.asarray(self.size + np.arange(self.folds)[:, None] * self.own + diagonal(self.targets))

    @property
    def source(self) -> Indices:
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
    """Build the statement about G, h and q per fold: [[G, h], [h', Q]], with the client's hidden Q of trace q.

    n bounds tr G and q over all folds; a record adds at most 4**f to each. With one fold these are n records; with
    several, G may be of n records in some folds and q of n others in the rest.
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
