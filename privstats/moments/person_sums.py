"""Form clipped integer sums for many persons at once.

The result equals each person's ``clip.clipped`` bit for bit: float64 sums stay below 2**53, and exact integers decide
where rounding could change the result.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Protocol, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from privstats.moments.grid import ExactSum, Ints, add_gram, require_known
from privstats.moments.record_sums import Product, RecordTerms, Term
from privstats.schema import COUNT_SCALE, Schema
from privstats.schema.base import Statistic

_Clip: TypeAlias = Callable[[Ints, NDArray[np.intp]], Ints]
_Square = TypeVar("_Square", NDArray[np.float64], int)

_EXACT = 1 << 53
# Persons with more rows are summed one by one, which is cheap at that size.
_MAX_BATCHED_ROWS = 1 << 10
_TILE = 1 << 20  # entries of persons' sums in memory at once
# Products of rows are computed in pieces of this many entries, which stay in the cache until they are added.
_FORMED = 1 << 16
# Rows of a strip of products. Columns right of its diagonal block are omitted.
_SIDE = 32
_TIMED_PERSONS, _TIMED_FEATURES = 128, 256


class Squares(Protocol):
    """Squared lengths of persons' contributions, in wire steps."""

    @property
    def error(self) -> float:
        """Upper bound on the relative rounding error of ``of_all``."""

    def of_all(self) -> Mapping[str, NDArray[np.float64]]:
        """Return squared lengths by letter, each ``(n,)``."""

    def exactly(self, person: int) -> Mapping[str, int]:
        """Return one person's squared lengths as exact integers."""


class ClipFactors(Protocol):
    """The effect of a clip on some persons."""

    @property
    def shrunk(self) -> int:
        """Number of clipped persons."""

    def of(self, sums: Ints, owner: NDArray[np.intp]) -> Ints:
        """Return ``sums``, each clipped by its owner's factor, ``(n, entries)``, truncated toward zero."""

    def exact_factors(self, owner: NDArray[np.intp], maxima: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the factor of each sum's owner, ``(n,)``.

        The factor times a sum of at most ``maxima``, truncated, is proved to equal :meth:`of`. Without a proof it is 0.
        """


class ManyClip(Protocol):
    """A clip of many persons at once."""

    def most_records(self, schema: Schema) -> int:
        """Return the maximum number of records that a person counts as."""

    def clip_many(self, schema: Schema, rows: int, squares: Squares) -> ClipFactors:
        """Clip persons who have ``rows`` rows each."""


def rows_at_once(schema: Schema) -> int:
    """Return the maximum rows per person of the batched path, from the schema alone."""
    return min(_MAX_BATCHED_ROWS, (_EXACT - 1) // (_max_bound(schema) + 1))


def _max_bound(schema: Schema) -> int:
    return max(schema.bound, COUNT_SCALE)


class PersonSums:
    """Sums over persons, in wire steps."""

    def __init__(self, schema: Schema, clip: ManyClip) -> None:
        self.records = self.counted = self.shrunk = 0
        self._schema, self._clip = schema, clip
        self._rows = {row.letter: row for row in schema.sent}
        self._sums = {s: ExactSum(row.shape(schema.sizes), _max_bound(schema)) for s, row in self._rows.items()}

    def add(self, terms: RecordTerms, persons: NDArray[np.intp]) -> None:
        """Add all rows of further persons, at most :func:`rows_at_once` rows each.

        Args:
            persons: index of each read row's person, ``(n,)``.
        """
        owner = persons[terms.included]
        if not len(owner):
            return
        sizes_of = np.bincount(owner)[owner]
        order = np.lexsort((owner, sizes_of))
        ends = np.flatnonzero(np.diff(sizes_of[order], append=0)) + 1
        for start, end in zip([0, *ends[:-1].tolist()], ends.tolist(), strict=True):
            rows = int(sizes_of[order[start]])
            for tile in self._tiles(order[start:end], rows):
                self._add(terms.at(tile), len(tile) // rows, rows)
        self.records += len(owner)

    def result(self) -> dict[str, NDArray[np.int64]]:
        """Return the sums by letter, blocks first."""
        return {s: each.result(symmetric=self._rows[s].symmetric) for s, each in self._sums.items()}

    def _tiles(self, order: NDArray[np.intp], rows: int) -> Iterator[NDArray[np.intp]]:
        sizes = self._schema.sizes
        entries = sum(_held(row, sizes, rows) for row in self._rows.values())
        at_once = rows * max(1, min(_TILE // entries, (_EXACT - 1) // (_max_bound(self._schema) * rows)))
        yield from (order[start : start + at_once] for start in range(0, len(order), at_once))

    def _add(self, terms: list[Term], persons: int, rows: int) -> None:
        counted = persons * min(rows, self._clip.most_records(self._schema))
        for each in self._sums.values():
            each.admit(persons * rows, counted)
        parts = [part for term in terms for part in _parts(self._rows, term, persons, rows)]
        require_known(self._rows, {part.letter for part in parts})
        factors = self._clip.clip_many(self._schema, rows, _Squares(parts, persons))
        self.counted, self.shrunk = self.counted + counted, self.shrunk + factors.shrunk
        for part in parts:
            blocks = self._rows[part.letter].blocks(self._schema.sizes)
            part.add(self._sums[part.letter].partial.reshape(blocks, -1), factors)


# Entries in memory for one person with this number of rows: the rows, if their products are formed later; else a sum
# for each block that the rows can be in.
def _held(row: Statistic, sizes: Mapping[str, int], rows: int) -> int:
    block, several = row.block(sizes), rows if row.blocks(sizes) > 1 else 1
    return rows * block[0] if row.symmetric and rows < block[0] else several * math.prod(block)


@dataclass(frozen=True, eq=False)
class _Part:
    """Persons' contributions to one statistic, in wire steps.

    Attributes:
        sums: ``(n, a)`` or ``(n, a, b)``; or rows ``(n, m, a)`` whose products are the sums.
        owner: person of each sum, ``(n,)``; None: one sum per person, in order.
        block: block of each sum, ``(n,)``; None: the only block.
        unformed: whether ``sums`` holds rows, to be multiplied later.
    """

    letter: str
    sums: Ints
    owner: NDArray[np.intp] | None = None
    block: NDArray[np.intp] | None = None
    unformed: bool = False

    @property
    def roundings(self) -> int:
        # Bound on the float64 roundings behind one squared length, each of relative size 2**-53.
        blocks = 1 if self.owner is None else int(np.bincount(self.owner).max(initial=0))
        lines = self.sums.shape[1] if self.unformed or self.sums.ndim > 2 else 1
        return lines + (lines if self.unformed else self.sums.shape[-1]) + blocks

    def squares(self, persons: int) -> NDArray[np.float64]:
        lines = self._lines(slice(None))
        each = np.vecdot(lines, lines).reshape(len(lines), -1).sum(axis=1)
        return np.asarray(each if self.owner is None else np.bincount(self.owner, each, minlength=persons), np.float64)

    def exactly(self, person: int) -> int:
        own = slice(person, person + 1) if self.owner is None else np.flatnonzero(self.owner == person)
        return sum(int(entry) ** 2 for entry in self._lines(own).reshape(-1).tolist())

    # Return integers whose sum of squares equals that of the sums: for products of rows, the rows' scalar products.
    def _lines(self, where: slice | NDArray[np.intp]) -> Ints:
        lines = self.sums[where]
        return np.asarray(lines @ lines.transpose(0, 2, 1) if self.unformed else lines)

    def add(self, total: Ints, clip: ClipFactors) -> None:
        """Add the clipped sums to a total, ``(blocks, entries)``; sums formed here fill at least lower triangles."""
        owner = np.arange(len(self.sums)) if self.owner is None else self.owner
        block = np.zeros(len(owner), np.intp) if self.block is None else self.block
        if not self.unformed:
            _add_by_block(total, clip.of(self.sums.reshape(len(owner), -1), owner), block)
            return
        factors = clip.exact_factors(owner, np.einsum("pij,pij->pj", self.sums, self.sums).max(axis=1))
        for index in np.unique(block).tolist():
            into, of_block = total[index].reshape(self.sums.shape[2:] * 2), block == index
            add_gram(self.sums[of_block & (factors == 1)].reshape(-1, len(into)), into)
            exact, rest = np.flatnonzero(of_block & (factors % 1 > 0)), np.flatnonzero(of_block & (factors == 0))
            rows = self.sums if len(exact) == len(owner) else self.sums[exact]
            scaled = rows * factors[exact, None, None]
            _add_products(into, rows, scaled, exact, lambda sums, _: np.trunc(sums, out=sums))
            _add_products(into, self.sums[rest], self.sums[rest], owner[rest], clip.of)


def _add_products(into: Ints, left: Ints, right: Ints, owner: NDArray[np.intp], clip: _Clip) -> None:
    for start in range(0, len(into), _SIDE):
        side = slice(start, start + _SIDE)
        strip = into[side, : side.stop]
        step = max(1, _FORMED // strip.size)
        for first in range(0, len(left), step):
            at = slice(first, first + step)
            products = left[at, :, side].transpose(0, 2, 1) @ right[at, :, : side.stop]
            clipped = clip(products.reshape(len(products), -1), owner[at])
            strip += np.dot(np.ones(len(products)), clipped).reshape(strip.shape)


@lru_cache(maxsize=1)
def seconds_per_entry() -> float:
    """Return the time to form, clip and add one entry of a person's second moments on one core of this machine."""
    rows, owner, seconds = np.ones((_TIMED_PERSONS, 2, _TIMED_FEATURES)), np.arange(_TIMED_PERSONS), []
    for _ in range(3):
        into, began = np.zeros((_TIMED_FEATURES, _TIMED_FEATURES)), time.process_time()
        _add_products(into, rows, 0.5 * rows, owner, lambda sums, _: np.trunc(sums, out=sums))
        seconds.append(time.process_time() - began)
    return min(seconds) / (len(rows) * _TIMED_FEATURES * (_TIMED_FEATURES + 1) // 2)


def _add_by_block(total: Ints, rows: Ints, block: NDArray[np.intp]) -> None:
    present = np.bincount(block, minlength=len(total)) > 0
    place = np.cumsum(present)[block] - 1
    members = csr_array((np.ones(len(rows)), place, np.arange(len(rows) + 1)), (len(rows), np.count_nonzero(present)))
    total[present] += members.T @ rows


class _Squares:
    def __init__(self, parts: list[_Part], persons: int) -> None:
        self._parts, self._persons = parts, persons

    @property
    def error(self) -> float:
        return 2.0**-52 * (16 + sum(each.roundings for each in self._parts))

    def of_all(self) -> Mapping[str, NDArray[np.float64]]:
        return self._by_letter(lambda part: part.squares(self._persons))

    def exactly(self, person: int) -> Mapping[str, int]:
        return self._by_letter(lambda part: part.exactly(person))

    def _by_letter(self, square: Callable[[_Part], _Square]) -> dict[str, _Square]:
        result: dict[str, _Square] = {}
        for each in self._parts:
            result[each.letter] = result.get(each.letter, 0) + square(each)
        return result


def _parts(rows_of: Mapping[str, Statistic], term: Term, persons: int, rows: int) -> Iterator[_Part]:
    if term.blocks is None:
        for letter, product in term.products.items():
            yield _alike(letter, product, persons, rows, rows_of[letter].factor)
        return
    owner = np.repeat(np.arange(persons), rows)
    place = owner * (int(term.blocks.max(initial=0)) + 1) + term.blocks
    order = np.argsort(place, kind="stable")
    owner, blocks, starts = owner[order], term.blocks[order], np.flatnonzero(np.diff(place[order], prepend=-1))
    for letter, (left, right) in term.products.items():
        if right is None:
            sums = csr_array((np.ones(len(order)), order, np.append(starts, len(order)))) @ left
            yield _Part(letter, _in_steps(sums, rows_of[letter].factor), owner[starts], blocks[starts])
            continue
        lengths = np.diff(starts, append=len(left))
        for length in np.unique(lengths).tolist():
            first = starts[lengths == length]
            where = order[(first[:, None] + np.arange(length)).reshape(-1)]
            rest = left[where]
            product = rest, rest if right is left else right[where]
            part = _alike(letter, product, len(first), length, rows_of[letter].factor)
            yield replace(part, owner=owner[first], block=blocks[first])


# Build the _Part of ``several`` owners with ``rows`` rows each; an owner is a person, or one block of a person.
def _alike(letter: str, product: Product, several: int, rows: int, times: int) -> _Part:
    left, right = product
    shaped = left.reshape(several, rows, -1)
    if right is None:
        return _Part(letter, _in_steps(shaped.sum(axis=1), times))
    if right is left and rows < shaped.shape[2] and times == 1:
        return _Part(letter, shaped, unformed=True)
    turned = np.ascontiguousarray(shaped.transpose(0, 2, 1))
    return _Part(letter, _in_steps(turned @ right.reshape(several, rows, -1), times))


def _in_steps(sums: Ints, times: int) -> Ints:
    return sums if times == 1 else sums * float(times)
