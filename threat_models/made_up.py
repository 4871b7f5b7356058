"""Measure records that an audit or an attack made up, without warnings that ask somebody to correct them."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from privstats.errors import ClippedWarning, UnreadableRecordsWarning
from privstats.moments import Moments, exact_moments

_OF_RECORDS = (ClippedWarning, UnreadableRecordsWarning)
"""Warnings for the holder of records: nobody holds these."""


@contextmanager
def made_up_records() -> Iterator[None]:
    """Ignore warnings for the holder of records, while made-up ones are measured."""
    with warnings.catch_warnings():
        for category in _OF_RECORDS:
            warnings.simplefilter("ignore", category)
        yield


def sums_of(schema: Any, *records: Any, **terms: Any) -> Moments:
    """Return ``exact_moments`` of made-up records; arguments and errors are the same.

    Records of a search lie at the edge of the domain on purpose: clipped, unreadable, all alike.

    Example:
        >>> import warnings
        >>> from threat_models.made_up import sums_of
        >>> with warnings.catch_warnings(action="error"):
        ...     sums_of(ps.ClassSchema(2, 1, "NA", clip_norm=1.0), [[9.0]] * 20, [0, 1] * 10).N
        array([10, 10])
    """
    with made_up_records():
        return exact_moments(schema, *records, **terms)
