"""What records add to sums, each by itself: rows whose products are added up, and the block in which each lies.

``measure`` adds records up and forgets them; what a person adds is found from these, for many persons at once
(``person_sums``).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

__all__ = ["Product", "RecordTerms", "Term"]

Whole: TypeAlias = NDArray[np.float64]
"""Whole numbers in float64."""
Product: TypeAlias = tuple[Whole, Whole | None]
"""Rows ``(n, a)`` and ``(n, b)`` whose outer products are added up, or rows alone."""


@dataclass(frozen=True, eq=False)
class Term:
    """What records add to statistics that lie in the same blocks.

    Attributes:
        products: by letter, in steps of the exact sums.
        blocks: the block of each record, ``(n,)``; None: the one that there is.
    """

    products: Mapping[str, Product]
    blocks: NDArray[np.intp] | None = None


@dataclass(frozen=True, eq=False)
class RecordTerms:
    """What records add, in the order in which they came.

    Attributes:
        kept: which of the records that were read are in the sums, ``(n,)``.
        terms: of those; a letter may be in several whose blocks differ.
        reports: by name, the reports on them that moments have.
    """

    kept: NDArray[np.bool_]
    terms: tuple[Term, ...]
    reports: Mapping[str, Any]

    @classmethod
    def of(cls, records: int, *terms: Term, **reports: Any) -> RecordTerms:
        """Of records that are all in the sums."""
        return cls(np.ones(records, np.bool_), terms, reports)

    @classmethod
    def joined(cls, parts: Iterable[RecordTerms]) -> RecordTerms:
        """Those of one part after the other, of the same terms."""
        several = list(parts)
        if len(several) < 2:
            return several[0] if several else cls.of(0)
        reports = {
            name: sum((each.reports[name] for each in several[1:]), of) for name, of in several[0].reports.items()
        }
        terms = tuple(_joined(each) for each in zip(*(part.terms for part in several), strict=True))
        return cls(np.concatenate([part.kept for part in several]), terms, reports)

    @property
    def records(self) -> int:
        """How many are in the sums."""
        return int(self.kept.sum())

    def among(self, read: NDArray[np.bool_]) -> RecordTerms:
        """The same, where only these of all records ``(n,)`` were read."""
        kept = read.copy()
        kept[read] = self.kept
        return replace(self, kept=kept)

    def at(self, where: NDArray[np.intp]) -> list[Term]:
        """The terms of some of the records that are in the sums; rows that several letters share stay shared."""
        taken: dict[int, Any] = {id(None): None}

        def some(array: Any) -> Any:
            if id(array) not in taken:
                taken[id(array)] = array[where]
            return taken[id(array)]

        return [
            Term(
                {letter: (some(left), some(right)) for letter, (left, right) in each.products.items()},
                some(each.blocks),
            )
            for each in self.terms
        ]


def _joined(terms: tuple[Term, ...]) -> Term:
    joined: dict[tuple[int, ...], Any] = {}

    def whole(arrays: list[Any]) -> Any:
        if arrays[0] is None:
            return None
        return joined.setdefault(tuple(map(id, arrays)), np.concatenate(arrays))

    products = {
        letter: (
            whole([each.products[letter][0] for each in terms]),
            whole([each.products[letter][1] for each in terms]),
        )
        for letter in terms[0].products
    }
    return Term(products, whole([each.blocks for each in terms]))
