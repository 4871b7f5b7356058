"""Test the interactions of a regression, and state effects at a value of the other column."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from privstats.errors import ReleaseError
from privstats.estimates.denoise import Array
from privstats.inference.releases import interactions_of
from privstats.inference.summary import p_value_text
from privstats.transforms.interactions import owners_of

if TYPE_CHECKING:
    from privstats.inference.regression.table import Regression

_LEVEL = 0.05  # at which every product must be reported
_BESIDE_PRODUCTS = (
    "Where a column has products, its own row is its effect where the other column of each product is 0, in original "
    "units; slope_at gives it at other values."
)


class InteractionTest(NamedTuple):
    """Wald's test of "no product of these two columns has an effect".

    Attributes:
        columns: both columns.
        terms: names of the products in the table; several where a column has several texts.
        p_value: None where a product is not reported at .05: noise hides it, or the rounds have not converged.

    Example:
        >>> from privstats.transforms import ConstantFeature, Interactions
        >>> names, maps = ("arm", "sex"), (Interactions(((0, 1),)), ConstantFeature(1.0))
        >>> schema = ps.RidgeSchema(4, clip_norm=2.0, target_bound=4.0, transform=maps, feature_names=names)
        >>> X = np.array([[arm, sex] for arm in (-1, 1) for sex in (-1, 1)] * 50)
        >>> y = X[:, 0] + X[:, 0] * X[:, 1] + np.random.default_rng(0).normal(size=200) / 4
        >>> (test,) = ps.inference.ols(ps.Release.exact(schema, ps.measure(schema, X, y))).interactions()
        >>> test.columns, test.terms, test.p_value < 0.001
        (('arm', 'sex'), ('arm x sex',), True)
    """

    columns: tuple[str, str]
    terms: tuple[str, ...]
    p_value: float | None

    def to_row(self) -> dict[str, object]:
        """Return the test as a row of data."""
        return {"test": "interaction", "term": " x ".join(self.columns), "p_value": self.p_value}


def interaction_tests(table: Regression) -> tuple[InteractionTest, ...]:
    """Return a test for each pair of columns with products in the table, in the plan's order."""
    found: dict[tuple[str, str], list[str]] = {}
    for pair, term in _products(table):
        found.setdefault(pair, []).append(term)
    return tuple(InteractionTest(pair, tuple(terms), _p_value(table, terms)) for pair, terms in found.items())


def _products(table: Regression) -> list[tuple[tuple[str, str], str]]:
    """Return the input columns and the name of each product in the table."""
    schema = table.release.plan.schema
    products = interactions_of(schema.transform)
    if products is None:
        return []
    inputs = products.takes(table.columns)
    owners = owners_of(_plain_names(table, inputs), schema.reading.levels)
    terms = products.named(_own_names(table, inputs))[inputs:]
    pairs = [(owners[a], owners[b]) for a, b in products.pairs]
    return [each for each in zip(pairs, terms, strict=True) if each[1] in table.names]


def _p_value(table: Regression, terms: Sequence[str]) -> float | None:
    places = [table.names.index(term) for term in terms]
    if not table.errors.reported(_LEVEL)[places].all():
        return None
    if len(places) == 1:
        return float(table.pvalues[places[0]])
    return table.errors.combined(np.eye(len(table.names))[places]).joint_pvalue()


def interaction_lines(table: Regression) -> tuple[tuple[str, str], ...]:
    """Return the tests as lines of the table's head."""
    return tuple(
        (f"interaction, {a} x {b}", p_value_text(p_value, f"Wald, {_degrees(len(terms))}", "a product"))
        for (a, b), terms, p_value in interaction_tests(table)
    )


def _degrees(count: int) -> str:
    return "1 degree of freedom" if count == 1 else f"{count} degrees of freedom"


def interaction_notes(table: Regression) -> tuple[str, ...]:
    """Return what a row means where its column has products."""
    return (_BESIDE_PRODUCTS,) if _products(table) else ()


def slope_row(table: Regression, column: str, at: Mapping[str, float]) -> Array:
    """Return the combination of parameters that is a column's slope where other columns have these values, ``(m,)``."""
    schema = table.release.plan.schema
    products = interactions_of(schema.transform)
    known = [name for name in table.names if name != "const"]
    if column not in known:
        raise ReleaseError(f"column must be one of {', '.join(known)}, got {column!r}")
    partners: dict[str, str] = {}
    if products is not None:
        inputs = products.takes(table.columns)
        names = _own_names(table, inputs)
        for (a, b), term in zip(products.pairs, products.named(names)[inputs:], strict=True):
            if column in (names[a], names[b]) and term in table.names:
                partners[names[b] if names[a] == column else names[a]] = term
    if set(at) != set(partners):
        others = ", ".join(map(repr, partners)) or "none"
        raise ReleaseError(f"at must give one number for each column that has a product with {column!r}: {others}")
    row = np.zeros(len(table.names))
    row[table.names.index(column)] = 1.0
    for name, value in at.items():
        if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
            raise ReleaseError(f"at must give a finite number for {name!r}, got {value!r}: in its original unit")
        row[table.names.index(partners[name])] = value
    return row


def _own_names(table: Regression, inputs: int) -> tuple[str, ...]:
    levels, plain = table.release.plan.schema.reading.levels, _plain_names(table, inputs)
    return plain if levels is None else levels.named(plain)


def _plain_names(table: Regression, inputs: int) -> tuple[str, ...]:
    named = table.release.plan.schema.feature_names
    return tuple(f"x{place}" for place in range(inputs)) if named is None else named
