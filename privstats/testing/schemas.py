"""Strategies for schemas: every combination of statistics, narrow and wide, coarse and fine grids."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from privstats.schema import ClassSchema, RidgeSchema, Schema
from privstats.testing.extra import strategies as st

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy

__all__ = ["class_schemas", "ridge_schemas", "schemas"]

_FINEST = {"T": 17, "F": 13}
"""The most grid bits of a schema with one of these letters; 20 for the others."""

_CLIP_NORMS = st.one_of(st.sampled_from([1.0, 0.5, 3.0, 1e-6, 1e6]), st.floats(1e-3, 1e3))


def class_schemas(
    *, max_classes: int = 5, max_features: int = 6, statistics: str = "NABSD"
) -> SearchStrategy[ClassSchema]:
    """Class schemas with any of the given statistics beside N and A; T and F are for plans that promise nothing."""

    @st.composite
    def build(draw: st.DrawFn) -> ClassSchema:
        features = draw(st.integers(2, max_features))
        optional = sorted(set(statistics) - set("NA"))
        chosen = draw(st.sets(st.sampled_from(optional))) if optional else set()
        finest = min((_FINEST[letter] for letter in chosen & set(_FINEST)), default=20)
        return ClassSchema(
            classes=draw(st.integers(2, max_classes)),
            features=features,
            statistics="NA" + "".join(sorted(chosen)),
            clip_norm=draw(_CLIP_NORMS),
            grid_bits=draw(st.integers(_fewest_bits(features), finest)),
            nonnegative=draw(st.booleans()),
        )

    return build()


def ridge_schemas(*, max_features: int = 6, max_targets: int = 3, max_folds: int = 4) -> SearchStrategy[RidgeSchema]:
    """Ridge schemas with one or several targets and folds."""

    @st.composite
    def build(draw: st.DrawFn) -> RidgeSchema:
        features, targets = draw(st.integers(2, max_features)), draw(st.integers(1, max_targets))
        return RidgeSchema(
            features,
            targets,
            clip_norm=draw(_CLIP_NORMS),
            target_bound=draw(_CLIP_NORMS),
            grid_bits=draw(st.integers(_fewest_bits(max(features, targets)), 20)),
            folds=draw(st.integers(1, max_folds)),
            nonnegative=draw(st.booleans()),
        )

    return build()


def schemas() -> SearchStrategy[Schema]:
    """Schemas of both kinds."""
    return st.one_of(class_schemas(), ridge_schemas())


def _fewest_bits(columns: int) -> int:
    """The coarsest grid on which rounding cannot pass the clip norm."""
    return max(2, math.floor(math.log2(math.sqrt(columns) / 2)) + 1)
