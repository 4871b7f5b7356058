"""An adder sums what it says that each record adds, and each kind's row names its own or none."""

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import privstats as ps
from privstats.moments.adders import Adder

SUMMED: tuple[Any, ...] = (
    ps.ClassSchema(3, 4, "NABDTF", 1.0, grid_bits=8),
    ps.ClassSchema(3, 4, "NAS", 1.0, grid_bits=8),
    ps.RidgeSchema(4, clip_norm=1.0, target_bound=1.0, grid_bits=8),
    ps.RidgeSchema(4, 2, clip_norm=1.0, target_bound=1.0, grid_bits=8, folds=3),
)


def named(schema: ps.schema.Schema) -> str:
    return f"{schema.task}-{schema.statistics}"


def on_grid(schema: Any, adder: Adder) -> tuple[np.ndarray, np.ndarray]:
    """Rows of integers, and labels or targets as the adder takes them."""
    rng = np.random.default_rng(0)
    rows = rng.integers(-60, 60, (50, schema.features)).astype(float)
    targets = rng.integers(0, 3, 50) if schema.task == "classes" else rng.normal(size=(50, schema.targets))
    return rows, adder.integers(targets)[0]


@pytest.mark.parametrize("schema", SUMMED, ids=named)
def test_totals_are_the_sums_of_what_each_record_adds(schema: Any) -> None:
    adder = schema.adder()
    rows, targets = on_grid(schema, adder)
    expected = {row.letter: np.zeros((row.blocks(schema.sizes), *row.block(schema.sizes))) for row in schema.sent}
    for term in adder.terms(rows, targets):
        for letter, (left, right) in term.products.items():
            each = left if right is None else left[:, :, None] * right[:, None, :]
            for place, added in enumerate(each):
                at = 0 if term.blocks is None else term.blocks[place]
                expected[letter][at] += added.reshape(expected[letter][at].shape)
    adder.add(rows.copy(), targets)
    totals = adder.totals()
    assert set(totals) == set(expected)
    assert all(np.array_equal(totals[letter], each.reshape(totals[letter].shape)) for letter, each in expected.items())


@pytest.mark.parametrize("schema", SUMMED, ids=named)
def test_sparse_rows_add_the_integers_of_dense_ones(schema: Any) -> None:
    dense, sparse = schema.adder(), schema.adder()
    rows, targets = on_grid(schema, dense)
    sparse.add(sp.csr_array(rows), targets)
    dense.add(rows.copy(), targets)
    found, expected = sparse.totals(), dense.totals()
    assert all(np.array_equal(found[letter], expected[letter]) for letter in expected)
