"""What many persons add at once: of each the sum of the rows, cut as its clip says, in whole numbers.

Bit for bit what ``clip.clipped`` gives of each person alone, from the rows of that person: sums stay below 2**53 and so
exact, and where rounding might decide a factor or an entry, whole numbers do.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from privstats.moments.record_sums import Product, RecordTerms, Term
from privstats.schema import COUNT_SCALE, Schema
from privstats.schema.base import Statistic

_EXACT = 1 << 53
_MOST_ROWS = 1 << 10  # of a person, whom measuring alone costs little from there on
_TILE = 1 << 18  # entries of the sums of persons that are held at once
_FORMED = 1 << 16  # of products of rows, which are formed and used up while they are cached

Whole = NDArray[np.float64]
"""Whole numbers in float64."""


class Squares(Protocol):
    """Squared lengths of what persons add, in wire steps."""

    @property
    def error(self) -> float:
        """What rounding may have moved a square of ``of_all`` by, relative to it."""

    def of_all(self) -> Mapping[str, NDArray[np.float64]]:
        """By letter, ``(n,)``."""

    def exactly(self, person: int) -> Mapping[str, int]:
        """Of one of them, in whole numbers."""


class Cut(Protocol):
    """What a clip leaves of persons."""

    @property
    def shrunk(self) -> int:
        """How many were shrunk."""

    def of(self, sums: Whole, owner: NDArray[np.intp]) -> Whole:
        """Sums ``(n, entries)`` of these persons, cut toward zero."""


class ManyClip(Protocol):
    """A clip that cuts many persons at once."""

    def most_records(self, schema: Schema) -> int:
        """How many records bound all that a person adds."""

    def cut(self, schema: Schema, rows: int, squares: Squares) -> Cut:
        """Of persons of so many rows each."""


def rows_at_once(schema: Schema) -> int:
    """Of how many rows at most a person is summed here: public."""
    return min(_MOST_ROWS, (_EXACT - 1) // (_most(schema) + 1))


def _most(schema: Schema) -> int:
    """The most that one record adds to any entry in wire steps, and as float64 sums hold it."""
    return max(schema.bound, COUNT_SCALE)


class PersonSums:
    """Sums over persons, in wire steps.

    Attributes:
        records, counted, shrunk: as in :class:`~privstats.moments.PersonMoments`.
    """

    def __init__(self, schema: Schema, clip: ManyClip) -> None:
        self.records = self.counted = self.shrunk = 0
        self._schema, self._clip = schema, clip
        self._rows = {row.letter: row for row in schema.sent}
        shapes = {s: (row.blocks(schema.sizes), math.prod(row.block(schema.sizes))) for s, row in self._rows.items()}
        self._partial = {letter: np.zeros(shape) for letter, shape in shapes.items()}
        self._total = {letter: np.zeros(shape, np.int64) for letter, shape in shapes.items()}
        self._pending = 0

    def add(self, terms: RecordTerms, persons: NDArray[np.intp]) -> None:
        """All rows of some more persons, of at most :func:`rows_at_once` each.

        Args:
            terms: of the rows.
            persons: whose each row is that was read, ``(n,)``, by small numbers.
        """
        owner = persons[terms.kept]
        if not len(owner):
            return
        sizes_of = np.bincount(owner)[owner]
        order = np.lexsort((owner, sizes_of))
        most = self._clip.most_records(self._schema)
        ends = np.flatnonzero(np.diff(sizes_of[order], append=0)) + 1
        for start, end in zip([0, *ends[:-1].tolist()], ends.tolist(), strict=True):
            rows = int(sizes_of[order[start]])
            for tile in self._tiles(order[start:end], rows):
                self._add(terms.at(tile), len(tile) // rows, rows)
                self.counted += len(tile) // rows * min(rows, most)
        self.records += len(owner)

    def result(self) -> dict[str, NDArray[np.int64]]:
        """The sums by letter, blocks first."""
        self._empty()
        return {s: each.reshape(self._rows[s].shape(self._schema.sizes)) for s, each in self._total.items()}

    def _tiles(self, order: NDArray[np.intp], rows: int) -> Iterator[NDArray[np.intp]]:
        """Whole persons whose sums are so many entries together, without those that are formed later."""
        sizes = self._schema.sizes
        entries = sum(_held(row, sizes, rows) for row in self._rows.values())
        step = rows * max(1, min(_TILE // entries, (_EXACT - 1) // (_most(self._schema) * rows)))
        yield from (order[start : start + step] for start in range(0, len(order), step))

    def _add(self, terms: list[Term], persons: int, rows: int) -> None:
        self._admit(persons * rows)
        parts = [part for term in terms for part in _parts(self._rows, term, persons, rows)]
        cut = self._clip.cut(self._schema, rows, _Squares(parts, persons))
        self.shrunk += cut.shrunk
        for part in parts:
            part.add(self._partial[part.letter], cut)

    def _admit(self, records: int) -> None:
        if (self._pending + records) * _most(self._schema) >= _EXACT:
            self._empty()
        self._pending += records

    def _empty(self) -> None:
        for letter, partial in self._partial.items():
            self._total[letter] += partial.astype(np.int64)
            partial[:] = 0.0
        self._pending = 0


def _held(row: Statistic, sizes: Mapping[str, int], rows: int) -> int:
    """Entries of a statistic that are in memory of a person of so many rows."""
    block, apart = row.block(sizes), rows if row.blocks(sizes) > 1 else 1
    return rows * block[0] if row.symmetric and rows < block[0] else apart * math.prod(block)


@dataclass(frozen=True, eq=False)
class _Part:
    """Of one letter what persons add, or each person in each block, in wire steps.

    Attributes:
        letter: of the statistic.
        sums: ``(n, a)`` or ``(n, a, b)``; or rows ``(n, m, a)`` whose products are the sums.
        owner: whose each is, ``(n,)``; None: of one person after the other.
        block: in which block each lies, ``(n,)``; None: in the one that there is.
        formed: whether the sums are to be formed of rows.
    """

    letter: str
    sums: Whole
    owner: NDArray[np.intp] | None = None
    block: NDArray[np.intp] | None = None
    formed: bool = False

    @property
    def roundings(self) -> int:
        """Of a square of a person, at most."""
        blocks = 1 if self.owner is None else int(np.bincount(self.owner).max(initial=0))
        lines = self.sums.shape[1] if self.formed or self.sums.ndim > 2 else 1
        return lines + (lines if self.formed else self.sums.shape[-1]) + blocks

    def squares(self, persons: int) -> NDArray[np.float64]:
        """Squared lengths of the sums of each person; of products those of the scalar products of their rows."""
        lines = self.sums @ self.sums.transpose(0, 2, 1) if self.formed else self.sums
        each = np.vecdot(lines, lines).reshape(len(lines), -1).sum(axis=1)
        return np.asarray(each if self.owner is None else np.bincount(self.owner, each, minlength=persons), np.float64)

    def exactly(self, person: int) -> int:
        """The same of one person, exact."""
        own = slice(person, person + 1) if self.owner is None else np.flatnonzero(self.owner == person)
        return sum(int(entry) ** 2 for entry in self._integers(own).reshape(-1).tolist())

    def add(self, total: Whole, cut: Cut) -> None:
        """Add what a clip leaves of the sums to a total, ``(blocks, entries)``."""
        step = max(1, _FORMED // total.shape[1]) if self.formed else len(self.sums)
        for start in range(0, len(self.sums), step):
            at = slice(start, min(start + step, len(self.sums)))
            owner = np.arange(at.start, at.stop) if self.owner is None else self.owner[at]
            left = cut.of(self._integers(at), owner)
            if self.block is None:
                total[0] += left.sum(axis=0)
            else:
                _add_apart(total, left, self.block[at])

    def _integers(self, where: Any) -> Whole:
        rows = self.sums[where]
        if self.formed:
            rows = np.ascontiguousarray(rows.transpose(0, 2, 1)) @ rows
        return np.asarray(rows.reshape(len(rows), -1))


def _add_apart(total: Whole, left: Whole, block: NDArray[np.intp]) -> None:
    """Add rows where they belong."""
    present, place = np.unique(block, return_inverse=True)
    members = csr_array((np.ones(len(left)), place.reshape(-1), np.arange(len(left) + 1)), (len(left), len(present)))
    total[present] += np.asarray(members.T @ left)


class _Squares:
    """:class:`Squares` of the parts of a tile."""

    def __init__(self, parts: list[_Part], persons: int) -> None:
        self._parts, self._persons = parts, persons

    @property
    def error(self) -> float:
        """In whatever order entries are added, then lines, then blocks."""
        return 2.0**-52 * (16 + sum(each.roundings for each in self._parts))

    def of_all(self) -> Mapping[str, NDArray[np.float64]]:
        result: dict[str, NDArray[np.float64]] = {}
        for each in self._parts:
            result[each.letter] = result.get(each.letter, np.zeros(self._persons)) + each.squares(self._persons)
        return result

    def exactly(self, person: int) -> Mapping[str, int]:
        result: dict[str, int] = {}
        for each in self._parts:
            result[each.letter] = result.get(each.letter, 0) + each.exactly(person)
        return result


def _parts(rows_of: Mapping[str, Statistic], term: Term, persons: int, rows: int) -> Iterator[_Part]:
    """What each person of so many rows adds, or each in each block."""
    if term.blocks is None:
        for letter, product in term.products.items():
            yield _alike(letter, product, persons, rows, rows_of[letter].kept)
        return
    owner = np.repeat(np.arange(persons), rows)
    order = np.lexsort((term.blocks, owner))
    owner, blocks = owner[order], term.blocks[order]
    starts = np.flatnonzero((np.diff(owner, prepend=-1) != 0) | (np.diff(blocks, prepend=-1) != 0))
    for letter, (left, right) in term.products.items():
        if right is None:
            sums = np.add.reduceat(left[order], starts, axis=0)
            yield _Part(letter, _in_steps(sums, rows_of[letter].kept), owner[starts], blocks[starts])
            continue
        lengths = np.diff(starts, append=len(left))
        for length in np.unique(lengths).tolist():
            first = starts[lengths == length]
            where = order[(first[:, None] + np.arange(length)).reshape(-1)]
            rest = left[where]
            product = rest, rest if right is left else right[where]
            part = _alike(letter, product, len(first), length, rows_of[letter].kept)
            yield replace(part, owner=owner[first], block=blocks[first])


def _alike(letter: str, product: Product, several: int, rows: int, times: int) -> _Part:
    """Of so many that have as many rows each, one after the other."""
    left, right = product
    shaped = left.reshape(several, rows, -1)
    if right is None:
        return _Part(letter, _in_steps(shaped.sum(axis=1), times))
    if right is left and rows < shaped.shape[2] and times == 1:
        return _Part(letter, shaped, formed=True)
    turned = np.ascontiguousarray(shaped.transpose(0, 2, 1))
    return _Part(letter, _in_steps(turned @ right.reshape(several, rows, -1), times))


def _in_steps(sums: Whole, times: int) -> Whole:
    """In wire steps."""
    return sums if times == 1 else sums * float(times)
