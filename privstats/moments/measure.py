"""From records to exact moments, in one call.

Arrays, files, tensors or an iterable of batches go in; frozen whole-number moments come out, or an error.
"""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from privstats.errors import SchemaError
from privstats.moments.base import Moments
from privstats.moments.class_moments import ClassMoments
from privstats.moments.grid import feature_grid
from privstats.moments.input_validation import check_features, dense
from privstats.moments.kinds import kind_of
from privstats.moments.ridge_moments import RidgeMoments
from privstats.moments.within import WithinMoments
from privstats.schema import ClassSchema, RecordSchema, RidgeSchema, Schema, WithinSchema, require_schema
from privstats.schema.public_values import Published
from privstats.transforms import apply

__all__ = ["measure", "quantize", "warn_if_empty"]


@overload
def measure(schema: ClassSchema, X: Any, y: Any = None, *, progress: bool = False) -> ClassMoments: ...
@overload
def measure(schema: RidgeSchema, X: Any, y: Any = None, *, progress: bool = False) -> RidgeMoments: ...
@overload
def measure(schema: RecordSchema, X: Any, y: Any = None, *, progress: bool = False) -> ClassMoments | RidgeMoments: ...
@overload
def measure(schema: WithinSchema, X: Any, y: Any = None, *, progress: bool = False) -> WithinMoments: ...
@overload
def measure(
    schema: Schema, X: Any, y: Any = None, *, published: Published | None = None, progress: bool = False
) -> Moments: ...
def measure(
    schema: Schema, X: Any, y: Any = None, *, published: Published | None = None, progress: bool = False
) -> Moments:
    """Exact moments of records: transformed, clipped, rounded to the grid and summed in whole numbers.

    The result does not depend on the order of the records, on how they are cut into batches, or on the container they
    come in, and moments of parts add up to the moments of the whole. The memory needed beside the result does not grow
    with the records. docs/moments.md has the reasons. Under a ``PartySchema`` parts of a party do not add, and its rows
    are held.

    Args:
        schema: the statistics and bounds.
        X: records ``(n, features)`` (features before the transform), of any real dtype: a numpy array or memory map,
            the path of a .npy file, a scipy sparse matrix, a torch tensor on any device, nested lists. Without ``y``:
            an iterable of ``(X, y)`` batches of these, for example a generator or a torch ``DataLoader``.
        y: class labels ``(n,)``, whole numbers in 0..C-1; or regression targets ``(n,)`` or ``(n, targets)``.
        published: values that the schema reads (``schema.needs``): give ``plan.published``.
        progress: show a progress bar at once; else a terminal has one after two seconds.

    Raises:
        DataError: records that do not fit the schema.
        PlanError: the published values are missing or do not fit the schema; no record is read then.
        SchemaError: ``schema`` is not a schema, for example because it was left out.

    Example:
        >>> schema = ps.ClassSchema(2, 2, "NA", clip_norm=1.0)
        >>> X, y = np.array([[0.5, 0.0], [0.0, 0.25], [0.5, 0.5]]), np.array([0, 1, 0])
        >>> moments = ps.measure(schema, X, y)
        >>> moments.N.tolist(), moments.real().A.tolist()
        ([2, 1], [[1.0, 0.5], [0.0, 0.25]])
        >>> ps.measure(schema, X[:1], y[:1]) + ps.measure(schema, X[1:], y[1:]) == moments
        True
    """
    require_schema(schema, "measure(schema, X, y)")
    kind = kind_of(schema)
    values = {} if published is None else published.read()
    schema.check_values(values)
    moments: Any = kind.measure(schema, X, y, values, progress)
    if published is not None and hasattr(moments, "published"):
        moments = replace(moments, published=published.sha256)
    return moments  # type: ignore[no-any-return]


def warn_if_empty(*moments: Moments) -> None:
    """Warn that none of these moments holds a record: one party may have none, a whole cohort may not.

    Example:
        >>> schema = ps.ClassSchema(2, 2, "NA", clip_norm=1.0)
        >>> import warnings
        >>> one, none = ps.measure(schema, np.ones((1, 2)), [0]), ps.measure(schema, np.ones((0, 2)), [])
        >>> with warnings.catch_warnings(record=True) as said:
        ...     ps.moments.warn_if_empty(one, none)
        ...
        >>> len(said)  # one of the two parties has a record
        0
    """
    if all(each.records == 0 for each in moments):
        warnings.warn(
            "there is no record in X, so every sum is 0 and a release is noise alone; check the loaded data",
            UserWarning,
            stacklevel=3,
        )


def quantize(schema: Schema, X: Any) -> NDArray[np.int64]:
    """The grid vectors that :func:`measure` sums: int64 of shape ``(n, features)``, each of norm at most 2**grid_bits.

    Raises:
        DataError: rows that do not fit the schema.
        SchemaError: ``schema`` is not a schema.

    Example:
        >>> schema = ps.ClassSchema(2, 2, "NA", clip_norm=1.0, grid_bits=4)
        >>> ps.moments.quantize(schema, [[0.5, 0.0], [0.0, 3.0]]).tolist()
        [[8, 0], [0, 15]]
    """
    require_schema(schema, "quantize(schema, X)")
    if schema.appended:
        raise SchemaError(f"the vectors of a {type(schema).__name__} hold more than X; call measure(schema, X, y)")
    rows = check_features(schema, X)
    raw = dense(rows[0 : rows.shape[0]])
    grid = feature_grid(schema)
    if schema.transform:
        grid.require_finite(raw)
        raw = apply(schema.transform, raw.astype(np.float64))
    out = np.empty((len(raw), schema.features))
    grid.quantize(raw, out)
    return out.astype(np.int64)
