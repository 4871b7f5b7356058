"""Sum over records, compute each record's contribution, and assign records to folds.

A record's fold is a public hash of its own grid vectors. With folds by position, removing one record would move all
later ones, which noise for one record would not hide. Identical records share a fold.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csc_array, csr_array, issparse

from privstats.moments.base import Moments
from privstats.moments.clip_report import ClipReport
from privstats.moments.grid import ExactSum, Ints, add_gram, require_known
from privstats.schema import ClassSchema, RidgeSchema
from privstats.schema.kinds import kind_of

Product: TypeAlias = tuple[Ints, Ints | None]
"""Rows ``(n, a)`` and ``(n, b)`` whose outer products are added up, or rows alone."""


@dataclass(frozen=True, eq=False)
class Term:
    """Contributions of records to statistics that share their blocks.

    Attributes:
        products: by letter, in steps of the exact sums.
        blocks: block of each record, ``(n,)``; None: the only block.
    """

    products: Mapping[str, Product]
    blocks: NDArray[np.intp] | None = None


@dataclass(frozen=True, eq=False)
class RecordTerms:
    """Contributions of records, in input order; ``included`` marks those in the sums, ``(n,)``."""

    included: NDArray[np.bool_]
    terms: tuple[Term, ...]
    reports: Mapping[str, Any]

    @classmethod
    def of(cls, records: int, *terms: Term, **reports: Any) -> RecordTerms:
        """Build the terms of records that are all in the sums."""
        return cls(np.ones(records, np.bool_), terms, reports)

    @classmethod
    def joined(cls, parts: Iterable[RecordTerms]) -> RecordTerms:
        """Concatenate parts that have the same terms."""
        several = list(parts)
        if len(several) < 2:
            return several[0] if several else cls.of(0)
        reports = {
            name: sum((each.reports[name] for each in several[1:]), of) for name, of in several[0].reports.items()
        }
        terms = tuple(_joined(each) for each in zip(*(part.terms for part in several), strict=True))
        return cls(np.concatenate([part.included for part in several]), terms, reports)

    @property
    def records(self) -> int:
        """Number of records in the sums."""
        return int(self.included.sum())

    def among(self, read: NDArray[np.bool_]) -> RecordTerms:
        """Extend ``included`` to all records; ``read``, ``(n,)``, marks those that were read."""
        readable = read.copy()
        readable[read] = self.included
        return replace(self, included=readable)

    def at(self, where: Any) -> list[Term]:
        """Return the terms of some records in the sums; an array of several products is selected once."""
        selected: dict[int, Any] = {id(None): None}
        where = slice(where[0], where[-1] + 1) if (np.diff(where) == 1).all() else where

        def some(array: Any) -> Any:
            if id(array) not in selected:
                selected[id(array)] = array[where]
            return selected[id(array)]

        return [
            Term({s: (some(left), some(right)) for s, (left, right) in each.products.items()}, some(each.blocks))
            for each in self.terms
        ]


def _joined(terms: tuple[Term, ...]) -> Term:
    joined: dict[tuple[int, ...], Any] = {}

    def joined_arrays(arrays: list[Any]) -> Any:
        return None if arrays[0] is None else joined.setdefault(tuple(map(id, arrays)), np.concatenate(arrays))

    products: Any = {
        letter: tuple(joined_arrays([each.products[letter][side] for each in terms]) for side in (0, 1))
        for letter in terms[0].products
    }
    return Term(products, joined_arrays([each.blocks for each in terms]))


Rows: TypeAlias = NDArray[np.float64] | csr_array

_Adder: TypeAlias = Callable[[Rows, NDArray[np.intp], NDArray[np.float64]], None]


class ClassSums:
    """Class statistics of the chunks so far."""

    def __init__(self, schema: ClassSchema) -> None:
        self._schema = schema
        self._counts = np.zeros(schema.classes, np.int64)
        summed = [row for row in schema.sent if row.degree]
        self._sums = {row.letter: ExactSum(row.shape(schema.sizes), schema.steps**row.degree) for row in summed}
        self._symmetric = {row.letter for row in summed if row.symmetric}
        self._adders: dict[str, _Adder] = {
            "A": self._add_rows,
            "B": lambda rows, _, into: add_gram(rows, into),
            "S": self._add_class_grams,
            "T": partial(self._add_powers, 3),
            "F": partial(self._add_powers, 4),
            "D": self._add_squares,
        }
        require_known(self._sums, self._adders)

    def add(self, rows: Rows, labels: NDArray[np.intp]) -> None:
        """Add grid vectors ``(n, d)`` of classes ``labels``; ``rows`` may be overwritten.

        At most ``exact_rows(schema.bound)`` rows at once.
        """
        self._counts += np.bincount(labels, minlength=self._schema.classes)
        for letter, add in self._adders.items():  # in this order, because squares overwrite the rows
            if letter in self._sums:
                self._sums[letter].admit(len(labels))
                add(rows, labels, self._sums[letter].partial)

    def moments(self, report: ClipReport) -> Moments:
        """Return the exact moments; the sums cannot be used again."""
        totals = {letter: total.result(symmetric=letter in self._symmetric) for letter, total in self._sums.items()}
        moments: Moments = kind_of(self._schema).exact(self._schema, {"N": self._counts, **totals}, clip_report=report)
        return moments

    def _add_rows(self, rows: Rows, labels: NDArray[np.intp], into: NDArray[np.float64]) -> None:
        into += self._by_class(rows, labels)

    def _add_squares(self, rows: Rows, labels: NDArray[np.intp], into: NDArray[np.float64]) -> None:
        entries = rows.data if isinstance(rows, csr_array) else rows
        np.square(entries, out=entries)
        into += self._by_class(rows, labels)

    def _add_powers(self, power: int, rows: Rows, labels: NDArray[np.intp], into: NDArray[np.float64]) -> None:
        """Add powers by repeated products, exact up to 2**53; ``pow`` guarantees exactness on no platform."""
        raised = rows.copy()
        entries, factors = (each.data if isinstance(each, csr_array) else each for each in (raised, rows))
        for _ in range(power - 1):
            np.multiply(entries, factors, out=entries)
        into += self._by_class(raised, labels)

    def _by_class(self, rows: Rows, labels: NDArray[np.intp]) -> NDArray[np.float64]:
        shape = (self._schema.classes, len(labels))
        membership = csc_array((np.ones(len(labels)), labels, np.arange(len(labels) + 1)), shape=shape)
        sums = membership @ rows
        return np.asarray(sums.toarray() if issparse(sums) else sums)

    def _add_class_grams(self, rows: Rows, labels: NDArray[np.intp], into: NDArray[np.float64]) -> None:
        order = np.argsort(labels, kind="stable")
        present, starts = np.unique(labels[order], return_index=True)
        for label, members in zip(present, np.split(order, starts[1:]), strict=True):
            contiguous = members[-1] - members[0] + 1 == len(members)  # true for chunks sorted by class
            block = rows[members[0] : members[-1] + 1] if contiguous else rows[members]
            add_gram(block, into[label])


# Rows of this many entries stay in the second-level cache while they are grouped by fold.
_CACHED = 1 << 17

# Minimum number of a chunk's rows per fold and feature, so that a symmetric product costs more than its call.
_RANKS = 16

_MASK_64 = (1 << 64) - 1

_POSITIVE = (1 << 63) - 1

_MIX = 0x9E3779B97F4A7C15 - (1 << 64)


@lru_cache(maxsize=64)
def key_weights(entries: int) -> NDArray[np.int64]:
    """Return odd 64-bit weights ``(entries,)``: a record's key is their inner product with its integers, mod 2**64."""
    weights = np.array([_splitmix(i) | 1 for i in range(entries)], np.uint64).view(np.int64)
    weights.setflags(write=False)
    return weights


def grid_key(steps: int, *parts: Any) -> NDArray[np.int64]:
    """Return the keys of records whose grid vectors are these parts side by side.

    A part is ``(n, columns)``, integer float64 rows of norm at most ``steps``. The weights are used b bits at a time. A
    partial sum is at most 2**b times the parts' total of steps sqrt(columns). b keeps sums below 2**52, so they are
    exact.
    """
    weights = key_weights(sum(part.shape[1] for part in parts)).view(np.uint64)
    bits = 52 - sum(steps * (math.isqrt(part.shape[1] - 1) + 1) for part in parts).bit_length()
    key = np.zeros(parts[0].shape[0], np.uint64)
    for shift in np.arange(0, 64, bits, dtype=np.uint64):
        digits = ((weights >> shift) & np.uint64((1 << bits) - 1)).astype(np.float64)
        sums, start = np.zeros(len(key)), 0
        for part in parts:
            # For a part of one column, dot is ten times faster than @.
            sums += part.dot(digits[start : start + part.shape[1]])
            start += part.shape[1]
        key += sums.astype(np.int64).view(np.uint64) << shift
    return key.view(np.int64)


def fold_of_key(key: Any, folds: int) -> Any:
    """Return folds 0..folds-1 of int64 keys; mixed first, because a key's low bits depend on low bits alone."""
    for shift in (32, 29):
        key = (key ^ ((key >> shift) & (_POSITIVE >> (shift - 1)))) * _MIX
    return ((key >> 16) & _POSITIVE >> 16) % folds


def _splitmix(i: int) -> int:
    """Return the i-th output of splitmix64 (Steele, Lea and Flood 2014)."""
    z = ((i + 1) * 0x9E3779B97F4A7C15) & _MASK_64
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & _MASK_64
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & _MASK_64
    return z ^ (z >> 31)


class RidgeSums:
    """G, h, q per fold of the chunks so far."""

    def __init__(self, schema: RidgeSchema) -> None:
        self._schema = schema
        sums = {row.letter: ExactSum(row.shape(schema.sizes), schema.steps**row.degree) for row in schema.sent}
        require_known(sums, "Ghq")
        self._G, self._h, self._q = (sums[letter] for letter in "Ghq")
        self._step = max(_CACHED // schema.features, _RANKS * schema.features * schema.folds)

    def add(self, rows: Rows, targets: NDArray[np.float64]) -> None:
        """Add at most ``exact_rows(4**f)`` grid vectors ``(n, d)`` and targets ``(n, T)``."""
        for total in (self._G, self._h, self._q):
            total.admit(len(targets))
        size = max(1, len(targets)) if isinstance(rows, csr_array) else self._step
        for start in range(0, len(targets), size):
            part = slice(start, start + size)
            for fold, (a, b) in self._by_fold(rows[part], targets[part]):
                add_gram(a, self._G.partial[fold])
                self._h.partial[fold] += a.T @ b
                self._q.partial[fold] += np.vdot(b, b)

    def _by_fold(
        self, rows: Rows, targets: NDArray[np.float64]
    ) -> Iterator[tuple[int, tuple[Rows, NDArray[np.float64]]]]:
        if self._schema.folds == 1:
            yield 0, (rows, targets)
            return
        folds = fold_of_key(grid_key(self._schema.steps, rows, targets), self._schema.folds)
        order = np.argsort(folds.astype(np.min_scalar_type(self._schema.folds)), kind="stable")
        ends = np.cumsum(np.bincount(folds, minlength=self._schema.folds))
        rows = rows[order] if isinstance(rows, csr_array) else np.take(rows, order, axis=0)
        targets = np.take(targets, order, axis=0)
        for fold, (start, end) in enumerate(zip((0, *ends[:-1]), ends, strict=True)):
            if start < end:
                yield fold, (rows[start:end], targets[start:end])

    def moments(self, report: ClipReport) -> Moments:
        """Return the exact moments; the sums cannot be used again."""
        sums = {"G": self._G.result(symmetric=True), "h": self._h.result(), "q": self._q.result()}
        moments: Moments = kind_of(self._schema).exact(self._schema, sums, clip_report=report)
        return moments
