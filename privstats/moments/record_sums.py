"""State what each record adds, and assign records to folds.

A record's fold is a public hash of its own grid vectors. With folds by position, removing one record would move all
later ones, which noise for one record would not hide. Identical records share a fold.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from privstats.moments.grid import Ints

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

    def at(self, where: NDArray[np.intp]) -> list[Term]:
        """Return the terms of some records in the sums; an array of several products is selected once."""
        selected: dict[int, Any] = {id(None): None}
        chosen = slice(where[0], where[-1] + 1) if (np.diff(where) == 1).all() else where

        def some(array: Any) -> Any:
            if id(array) not in selected:
                selected[id(array)] = array[chosen]
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


_MASK_64 = (1 << 64) - 1

_POSITIVE = (1 << 63) - 1

_MIX = 0x9E3779B97F4A7C15 - (1 << 64)


@lru_cache(maxsize=64)
def key_weights(entries: int) -> NDArray[np.int64]:
    """Return odd 64-bit weights ``(entries,)``: a record's key is their inner product with its integers, mod 2**64."""
    weights = np.array([_splitmix(i) | 1 for i in range(entries)], np.uint64).view(np.int64)
    weights.setflags(write=False)
    return weights


def grid_key(grid_steps: int, *parts: Any) -> NDArray[np.int64]:
    """Return the keys of records whose grid vectors are these parts side by side.

    A part is ``(n, columns)``, integer float64 rows of norm at most ``grid_steps``. The weights are used b bits at a
    time. A partial sum is at most 2**b times the parts' total of ``grid_steps`` sqrt(columns). b keeps sums below
    2**52, so they are exact.
    """
    weights = key_weights(sum(part.shape[1] for part in parts)).view(np.uint64)
    bits = 52 - sum(grid_steps * (math.isqrt(part.shape[1] - 1) + 1) for part in parts).bit_length()
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
