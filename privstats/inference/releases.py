"""Check releases before a reader computes: their kind, records and maps."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from privstats.course.base import Releases
from privstats.course.positions import in_places
from privstats.dp import Privacy
from privstats.errors import ReleaseError
from privstats.estimates.denoise import Array
from privstats.heads.provenance import behind_counts, behind_cut_points
from privstats.kinds import RidgeSchema
from privstats.plan import Plan
from privstats.release import Release
from privstats.schema import Schema
from privstats.transforms import Centre, ConstantFeature, Interactions, Levels, Scale, Transform

_MOST_ALPHA = 0.5
_SURE = 3.0  # standard deviations of the noise in a count of persons that reckoned_sigma allows for


def present_releases(releases: Sequence[Release | None]) -> list[Release]:
    """Return the releases with a sum; raises as :func:`all_sessions`."""
    return [require_records(release) for release in all_sessions(releases) if release is not None]


def all_sessions(releases: Sequence[Release | None]) -> list[Release | None]:
    """Return the releases of every session from the first on, with None for one without a sum.

    Raises:
        ReleaseError: no list, or releases of several courses or out of order.
    """
    if isinstance(releases, Release) or not isinstance(releases, Sequence):
        raise ReleaseError("pass the list of all releases of the course, in order")
    return in_places(releases)


def counted_before(releases: Sequence[Release | None]) -> tuple[tuple[Plan | None, ...], Releases]:
    """Return the plan of each count session of a ``Binned`` course, and the releases behind them.

    The counts' noise is independent of the sums', so estimated cut points serve as well as public ones.
    A session without a sum has spent its part: it counts at a count session's price, which all of them share. Its plan
    is None if no count session had a sum.

    Raises:
        ReleaseError: the sums were measured behind other cut points.
    """
    counts, rest = behind_counts(releases := all_sessions(releases))
    lost = len(releases) - len(rest) - len(counts)
    known: tuple[Plan | None, ...] = tuple(each.plan for each in counts)
    return (*known, *(known[:1] or (None,)) * lost), rest


def last_of(release: Release | Releases) -> tuple[tuple[Plan | None, ...], Release]:
    """Return the counts' plans, and the last release."""
    if not isinstance(release, list | tuple):
        return (), require_records(release)
    if ranged := _behind_ranges(all_sessions(release)):
        return ranged
    last = require_records(behind_cut_points(release)[1])
    return counted_before(release)[0], last


def _behind_ranges(releases: Any) -> tuple[tuple[Plan, ...], Release] | None:
    # The ranges' noise is independent of the sums'.
    if len(releases) != 2 or not all(isinstance(each, Release) for each in releases):
        return None
    first, last = releases
    original, ranged = first.plan.schema, last.plan.schema
    if not (isinstance(original, RidgeSchema) and isinstance(ranged, RidgeSchema)):
        return None
    from privstats.course.standardised import behind_ranges

    if behind_ranges(replace(original, folds=ranged.folds), first) != ranged:
        raise ReleaseError(
            "these sums were not measured with the first release's ranges: pass both releases of one Standardised "
            "course, in order, or the last one alone"
        )
    return (first.plan,), require_records(last)


def require_records(release: object) -> Release:
    """Return the release if its sums are over full records or persons' averages.

    Averages vary no more than one row drawn per person, so a variance estimated from the sums overstates theirs
    (docs/proofs/persons.md).

    Raises:
        ReleaseError: not a release, or its plan clips clients or persons.
    """
    if not isinstance(release, Release):
        raise ReleaseError(f"release must be a Release, got {type(release).__name__}; load one with Release.load")
    privacy = release.plan.privacy
    if isinstance(privacy, Privacy) and privacy.unit == "person" and not privacy.averaged:
        raise ReleaseError(
            "the plan clips persons with several rows, which are not independent, so no interval is valid; release "
            "with person_clip='average', or measure one row per person and promise records"
        )
    if isinstance(privacy, Privacy) and privacy.client_clip is not None:
        raise ReleaseError(
            "the plan clips whole clients (client_clip), so its sums may not be sums of records and no interval is "
            "valid; release without client_clip"
        )
    return release


def require_gaussian(release: Release) -> None:
    """Refuse Laplace noise, under which these intervals miss more often than stated."""
    privacy = release.plan.privacy
    if isinstance(privacy, Privacy) and privacy.pure:
        raise ReleaseError(
            "intervals are proved for Gaussian noise, and a release with delta = 0 has Laplace noise: read its sums in "
            "release.moments, or release under a delta above 0"
        )


def column_names(schema: Schema, columns: int) -> tuple[str, ...]:
    """Return the columns' names, or x0, x1, ..., then those of products, such as ``"arm x sex"``."""
    products = interactions_of(schema.transform)
    if schema.feature_names is None:
        names = tuple(f"x{j}" for j in range(columns if products is None else products.takes(columns)))
    else:
        levels = schema.reading.levels
        names = schema.feature_names if levels is None else levels.named(schema.feature_names)
    return names if products is None else products.named(names)


def interactions_of(transform: Sequence[Transform]) -> Interactions | None:
    """Return the plan's products of columns, or None."""
    return next((map_ for map_ in transform if isinstance(map_, Interactions)), None)


def chosen_columns(names: Sequence[str], columns: Sequence[str | int] | None) -> list[int]:
    """Return the columns' indices; refuse unknown or repeated ones."""
    if columns is None:
        return list(range(len(names)))
    if isinstance(columns, str) or not isinstance(columns, Sequence) or not columns:
        raise ReleaseError("columns must be a list of column names or numbers, such as ['age', 'dose']")
    numbers = [_number(names, each) for each in columns]
    if len(set(numbers)) < len(numbers):
        raise ReleaseError("columns names a column twice; name each once")
    return numbers


def _number(names: Sequence[str], column: object) -> int:
    if isinstance(column, str) and column in names:
        return names.index(column)
    if isinstance(column, bool) or not isinstance(column, int) or not 0 <= column < len(names):
        raise ReleaseError(f"columns: {column!r} is no column of the release; it has {', '.join(names)}")
    return column


def map_columns(transform: Sequence[Transform], columns: int) -> tuple[Array, Array]:
    """Return ``(scale, shift)`` of u = scale x + shift; refuse maps that mix columns."""
    for place, map_ in enumerate(transform):  # all before any arithmetic: other maps change the number of columns
        last = isinstance(map_, ConstantFeature) and place == len(transform) - 1
        if not last and not isinstance(map_, Centre | Scale | Levels):
            raise ReleaseError(
                f"the plan maps records by {map_.kind!r}, after which a coefficient belongs to no column; use "
                "Centre, Scale and a last ConstantFeature only"
            )
    scale, shift = np.ones(columns), np.zeros(columns)
    for map_ in transform:
        match map_:
            case Centre(centre):
                shift = shift - np.array(centre)
            case Scale(per):
                scale, shift = scale / np.array(per), shift / np.array(per)
            case _:  # a column of texts is 0 and 1 then
                pass
    return scale, shift


def raw_slopes(transform: Sequence[Transform], columns: int) -> tuple[Array, Array]:
    """Return ``(slopes, level)``: weights w of the mapped columns mean raw slopes ``slopes @ w``.

    ``level @ w`` is what they add to a raw intercept. A product of two mapped columns is
    ``(s_a x_a + t_a)(s_b x_b + t_b)``, so its weight belongs to ``x_a x_b`` by ``s_a s_b``, to ``x_a`` by ``s_a t_b``,
    to ``x_b`` by ``t_a s_b``, and to the intercept by ``t_a t_b``.

    Args:
        columns: number of mapped columns, products included, without a constant.

    Raises:
        ReleaseError: another map, or products that are not behind ``Centre`` and ``Scale``.
    """
    products = interactions_of(transform)
    if products is None:
        scale, shift = map_columns(transform, columns)
        return np.diag(scale), shift
    *before, last = [map_ for map_ in transform if not isinstance(map_, ConstantFeature)]
    if last is not products:
        raise ReleaseError(
            "Interactions must follow Centre and Scale, and come before a last ConstantFeature only: otherwise a "
            "product belongs to no pair of columns"
        )
    own = products.takes(columns)
    scale, shift = map_columns(before, own)
    slopes, level = np.zeros((columns, columns)), np.zeros(columns)
    slopes[:own, :own], level[:own] = np.diag(scale), shift
    for place, (a, b) in enumerate(products.pairs, own):
        slopes[place, place] = scale[a] * scale[b]
        slopes[a, place], slopes[b, place] = scale[a] * shift[b], shift[a] * scale[b]
        level[place] = shift[a] * shift[b]
    return slopes, level


def require_both_columns(transform: Sequence[Transform], names: Sequence[str], chosen: Sequence[int]) -> None:
    """Refuse a chosen product without both its columns: its raw coefficient then follows from no fit."""
    products = interactions_of(transform)
    if products is None:
        return
    own = len(names) - len(products.pairs)
    for place, pair in enumerate(products.pairs, own):
        lacking = [names[each] for each in pair if each not in chosen]
        if place in chosen and lacking:
            raise ReleaseError(f"columns names the product {names[place]!r} without {lacking[0]!r}: name both columns")


def require_level(alpha: float) -> None:
    """Refuse a level out of (0, .5]."""
    if isinstance(alpha, bool) or not isinstance(alpha, int | float) or not 0 < alpha <= _MOST_ALPHA:
        raise ReleaseError(f"alpha must be above 0 and at most {_MOST_ALPHA}, got {alpha!r}; 0.05 is usual")


def averages_persons(release: Release) -> bool:
    """Return whether the sums are of persons' averages."""
    return isinstance(release.plan.privacy, Privacy) and release.plan.privacy.averaged


def reckoned_sigma(release: Release) -> Mapping[str, float]:
    """Return the standard deviation by letter, in real units, that an interval adds to sampling error.

    For records it is the noise. A person's average is truncated toward zero to an integer step: n persons lose up to n
    steps of every entry, all in one direction. The loss counts as a deviation of n steps. At a level of 5 % or less, an
    interval of a normal estimate with variance s^2 and bias at most b misses no more often with s^2 + b^2 than with s^2
    and no bias.
    """
    if not averages_persons(release):
        return release.sigma
    schema, persons = release.plan.schema, _max_persons(release)
    return {letter: math.hypot(sigma, persons / schema.scale_of(letter)) for letter, sigma in release.sigma.items()}


def _max_persons(release: Release) -> float:
    most = float(release.plan.cohort.max_records)
    counts = next((letter for letter in ("N", "T") if letter in release.sigma), None)
    if counts is None:
        return most
    cells = np.asarray(getattr(release.moments, counts), np.float64).reshape(-1)
    return min(most, max(float(cells.sum()), 0.0) + _SURE * release.sigma[counts] * math.sqrt(cells.size))
