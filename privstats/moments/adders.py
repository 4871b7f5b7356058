"""Sum grid vectors exactly, by class or by fold: dense or sparse rows on the host, and tensors on a device.

An adder knows a schema's statistics, sizes and grid, and no kind of schema: a kind states its adder.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from functools import cached_property, partial, reduce
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csc_array, csr_array, issparse

from privstats.moments.grid import ExactSum, Grid, add_gram, require_known
from privstats.moments.record_sums import Product, Term, fold_of_key, grid_key
from privstats.moments.tensor_grid import Labels, Pending, RoundedRows
from privstats.moments.tensor_products import in_blocks
from privstats.schema import Schema

if TYPE_CHECKING:
    from types import ModuleType

    from torch import Tensor

    from privstats.moments.tensor_products import Products

Rows: TypeAlias = NDArray[np.float64] | csr_array

_Add: TypeAlias = Callable[[Rows, NDArray[np.intp], NDArray[np.float64]], None]

POWERS: Mapping[str, int] = {"A": 1, "D": 2, "T": 3, "F": 4}
"""Degree of the entries that are summed by class, by letter."""


class Adder(ABC):
    """Exact sums over grid vectors and their labels or targets, by letter.

    Attributes:
        letters: statistics that it sums.
        counts_cells: whether records of declared columns may be summed by counting cells, instead.

    Raises:
        SchemaError: the schema sends another statistic.
    """

    letters: ClassVar[str]
    counts_cells: ClassVar[bool] = False

    def __init__(self, schema: Schema) -> None:
        require_known([row.letter for row in schema.sent], self.letters)
        self._schema = schema

    @abstractmethod
    def empty(self, records: int) -> NDArray[Any]:
        """Return memory for the labels or targets of records."""

    @abstractmethod
    def integers(self, targets: NDArray[Any]) -> tuple[NDArray[Any], int]:
        """Return labels, or targets on their grid; and how many were clipped."""

    @abstractmethod
    def add(self, rows: Rows, targets: NDArray[Any]) -> None:
        """Add at most ``exact_rows(schema.bound)`` grid vectors ``(n, d)``; ``rows`` may be overwritten."""

    @abstractmethod
    def round_tensors(self, torch: ModuleType, targets: Tensor) -> Pending:
        """Return labels, or targets on their grid, before their counts are read; ``targets`` as from :meth:`empty`."""

    @abstractmethod
    def add_tensors(self, products: Products, totals: Mapping[str, Tensor], rows: Tensor, targets: Tensor) -> None:
        """Add grid vectors and labels or targets to ``totals``, tensors by letter on their device."""

    @abstractmethod
    def terms(self, rows: NDArray[np.float64], targets: NDArray[Any]) -> tuple[Term, ...]:
        """Return what each record adds."""

    def totals(self) -> dict[str, NDArray[np.int64]]:
        """Return the sums by letter; nothing can be added afterwards."""
        symmetric = {row.letter for row in self._schema.sent if row.symmetric}
        return {letter: total.result(symmetric=letter in symmetric) for letter, total in self._sums.items()}

    @cached_property
    def _sums(self) -> dict[str, ExactSum]:
        schema = self._schema
        sizes, grid_steps = schema.sizes, schema.grid_steps
        return {row.letter: ExactSum(row.shape(sizes), grid_steps**row.degree) for row in schema.sent if row.degree}


class ClassAdder(Adder):
    """Counts, and sums of powers and products of the entries, by class."""

    letters: ClassVar[str] = "NABSDTF"
    counts_cells: ClassVar[bool] = True

    def empty(self, records: int) -> NDArray[np.intp]:
        """Return memory for labels."""
        return np.empty(records, np.intp)

    def integers(self, targets: NDArray[Any]) -> tuple[NDArray[Any], int]:
        """Return the labels."""
        return targets, 0

    def add(self, rows: Rows, targets: NDArray[np.intp]) -> None:
        """Add grid vectors of classes ``targets``."""
        self._counts += np.bincount(targets, minlength=len(self._counts))
        for letter, add in self._adders.items():  # in this order, because squares overwrite the rows
            if letter in self._sums:
                self._sums[letter].admit(len(targets))
                add(rows, targets, self._sums[letter].partial)

    def round_tensors(self, torch: ModuleType, targets: Tensor) -> Pending:
        """Return labels before their check."""
        return Labels.of(torch, targets, self._schema.sizes["class"])

    def add_tensors(self, products: Products, totals: Mapping[str, Tensor], rows: Tensor, targets: Tensor) -> None:
        """Add grid vectors of classes ``targets`` to tensors."""
        totals["N"].index_add_(0, targets, products.torch.ones_like(targets))
        integers = rows.long()
        for letter, power in POWERS.items():
            if letter in totals:
                totals[letter].index_add_(0, targets, integers**power)
        if "B" in totals:
            totals["B"].add_(products.gram(rows))
        if "S" in totals:
            labels, blocks = in_blocks(products.torch, targets, len(totals["S"]), rows)
            products.add_grams(totals["S"], labels, *blocks)

    def terms(self, rows: NDArray[np.float64], targets: NDArray[Any]) -> tuple[Term, ...]:
        """Return what each record adds to its class, and to sums over all classes."""
        letters = {row.letter for row in self._schema.sent}
        by_class: dict[str, Product] = {"N": (np.ones((len(rows), 1)), None)}
        for letter, degree in POWERS.items():
            if letter in letters:
                by_class[letter] = reduce(np.multiply, [rows] * degree), None
        if "S" in letters:
            by_class["S"] = rows, rows
        pooled = (Term({"B": (rows, rows)}),) if "B" in letters else ()
        return (Term(by_class, targets), *pooled)

    def totals(self) -> dict[str, NDArray[np.int64]]:
        """Return counts and sums by letter."""
        return {"N": self._counts, **super().totals()}

    @cached_property
    def _counts(self) -> NDArray[np.int64]:
        return np.zeros(self._schema.sizes["class"], np.int64)

    @cached_property
    def _adders(self) -> Mapping[str, _Add]:
        return {
            "A": self._add_rows,
            "B": lambda rows, _, into: add_gram(rows, into),
            "S": self._add_class_grams,
            "T": partial(self._add_powers, 3),
            "F": partial(self._add_powers, 4),
            "D": self._add_squares,
        }

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
        shape = (len(self._counts), len(labels))
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


class FoldAdder(Adder):
    """Products of rows, of rows and targets, and squared targets, by fold.

    Args:
        targets: the targets' grid.
    """

    letters: ClassVar[str] = "Ghq"

    def __init__(self, schema: Schema, targets: Grid) -> None:
        super().__init__(schema)
        self._target_grid, self._folds = targets, schema.sizes["fold"]
        self._step = max(_CACHED // schema.features, _RANKS * schema.features * self._folds)

    def empty(self, records: int) -> NDArray[np.float64]:
        """Return memory for targets."""
        return np.empty((records, self._target_grid.columns))

    def integers(self, targets: NDArray[Any]) -> tuple[NDArray[np.float64], int]:
        """Return targets ``(n, T)`` on their grid, and how many were clipped."""
        raw = targets[:, None] if targets.ndim == 1 else targets
        out = np.empty(raw.shape)
        return out, self._target_grid.quantize(raw, out).clipped

    def add(self, rows: Rows, targets: NDArray[np.float64]) -> None:
        """Add grid vectors and targets ``(n, T)``."""
        for total in self._sums.values():
            total.admit(len(targets))
        G, h, q = (self._sums[letter].partial for letter in "Ghq")
        size = max(1, len(targets)) if isinstance(rows, csr_array) else self._step
        for start in range(0, len(targets), size):
            part = slice(start, start + size)
            for fold, (a, b) in self._by_fold(rows[part], targets[part]):
                add_gram(a, G[fold])
                h[fold] += a.T @ b
                q[fold] += np.vdot(b, b)

    def round_tensors(self, torch: ModuleType, targets: Tensor) -> Pending:
        """Return rounded targets."""
        return RoundedRows.of(torch, self._target_grid, targets)

    def add_tensors(self, products: Products, totals: Mapping[str, Tensor], rows: Tensor, targets: Tensor) -> None:
        """Add grid vectors and targets on their grid to tensors."""
        weights = products.key_weights(rows.shape[1] + targets.shape[1])
        folds = fold_of_key((products.torch.cat([rows, targets], dim=1).long() * weights).sum(dim=1), self._folds)
        labels, (a, b) = in_blocks(products.torch, folds, self._folds, rows, targets)
        products.add_grams(totals["G"], labels, a)
        totals["h"].index_add_(0, labels, (a.mT @ b).long())
        totals["q"].index_add_(0, folds, targets.square().sum(dim=1).long())

    def terms(self, rows: NDArray[np.float64], targets: NDArray[Any]) -> tuple[Term, ...]:
        """Return what each record adds to its fold."""
        folds = self._folds_of(rows, targets) if self._folds > 1 else None
        squares = np.vecdot(targets, targets)[:, None]
        return (Term({"G": (rows, rows), "h": (rows, targets), "q": (squares, None)}, folds),)

    def _folds_of(self, rows: Rows, targets: NDArray[np.float64]) -> NDArray[np.intp]:
        return np.asarray(fold_of_key(grid_key(self._schema.grid_steps, rows, targets), self._folds), np.intp)

    def _by_fold(
        self, rows: Rows, targets: NDArray[np.float64]
    ) -> Iterator[tuple[int, tuple[Rows, NDArray[np.float64]]]]:
        if self._folds == 1:
            yield 0, (rows, targets)
            return
        folds = self._folds_of(rows, targets)
        order = np.argsort(folds.astype(np.min_scalar_type(self._folds)), kind="stable")
        ends = np.cumsum(np.bincount(folds, minlength=self._folds))
        rows = rows[order] if isinstance(rows, csr_array) else np.take(rows, order, axis=0)
        targets = np.take(targets, order, axis=0)
        for fold, (start, end) in enumerate(zip((0, *ends[:-1]), ends, strict=True)):
            if start < end:
                yield fold, (rows[start:end], targets[start:end])
