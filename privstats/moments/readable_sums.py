"""Measure a kind on readable records alone."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from privstats.moments.readable import LeftOut, Noted, Readable

if TYPE_CHECKING:
    from privstats.schema.kinds import Kind
    from privstats.schema.public_values import Values

Measured: TypeAlias = "Callable[[Any, Any, Any, Mapping[str, Values], bool], Any]"
Measurement: TypeAlias = "Callable[[Any, Any, Any, Mapping[str, Values], bool], tuple[Any, LeftOut]]"
"""A :data:`Measured` that also returns the unreadable records."""


def of_readable(measured: Measured, *, noted: Noted = lambda *_: None) -> Measurement:
    """Return a kind's ``measured``, restricted to readable records.

    Args:
        noted: receives which records are readable.
    """

    def run(schema: Any, X: Any, y: Any, values: Mapping[str, Values], progress: bool) -> tuple[Any, LeftOut]:
        readable = Readable(schema.reading, noted)
        return measured(schema, readable.of(X, y), None, values, progress), readable.left_out

    return run


def terms_of_readable(terms: Measured) -> Measurement:
    """Return a function for each readable record's contribution."""

    def run(schema: Any, X: Any, y: Any, values: Mapping[str, Values], progress: bool) -> tuple[Any, LeftOut]:
        fine: list[NDArray[np.bool_]] = []
        readable = Readable(schema.reading, lambda each, *_: fine.append(each))
        added = terms(schema, readable.of(X, y), None, values, progress)
        return added.among(np.concatenate(fine)), readable.left_out

    return run


def readable_of(kind: Kind) -> Measurement:
    """Return the function by which a kind measures records that may be unreadable."""
    return kind.readable or of_readable(kind.measure)


def by_record(kind: Kind) -> Kind | None:
    """Return this kind with ``terms`` as its ``measure``; None without ``terms``."""
    if kind.terms is None:
        return None
    return replace(kind, measure=kind.terms, readable=kind.terms_of_readable or terms_of_readable(kind.terms))
