"""Read the levels and bins of a plan: the rows of their records, and the direction that singles each out."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import combinations, product
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from privstats.estimates.denoise import Array
from privstats.inference.hidden_levels import DeclaredLevels, Level
from privstats.inference.releases import interactions_of, map_columns
from privstats.kinds import HazardSchema, ScoreSchema
from privstats.transforms import Interactions
from privstats.transforms.interactions import owners_of

_EXACT = 1e-9  # largest error of x'v in a direction that singles out a level
_MAX_ROWS = 4096  # combinations of the values of columns with products

_Pairs = Sequence[tuple[int, int]]


class _Column(NamedTuple):
    """A declared column: its places in a row, and their entries for each of its values, ``(values, places)``."""

    name: str
    values: tuple[str, ...]
    places: list[int]
    entries: Array


def declared_levels(schema: ScoreSchema | HazardSchema) -> DeclaredLevels:
    """Return the levels of columns that ``Levels`` declares, and the bins of a hazard.

    Where two such columns have products, each pair of their values is a level.
    """
    products = interactions_of(schema.transform)
    pairs = () if products is None else products.pairs
    hazard = schema if isinstance(schema, HazardSchema) else None
    constants = _constants(schema, 1 if hazard is None else hazard.periods * hazard.baselines)
    width, columns = schema.sizes["feature"], schema.sizes["feature"] - len(constants)
    parts = [constants if len(constants) else np.zeros((1, width))]
    levels = [] if hazard is None else _bins(hazard, constants)
    for group in _groups(_columns(schema, columns - len(pairs)), pairs):
        codes = np.array(list(product(*(range(len(each.values)) for each in group))))
        rows = _rows(group, codes, pairs, columns - len(pairs), width)
        levels += _levels(group, codes, rows, pairs, constants, len(parts))
        parts.append(np.rint(rows * schema.scale) / schema.scale)  # as sums hold them
    others = (np.arange(width) < columns) & ~np.any([part.any(axis=0) for part in parts], axis=0)
    return DeclaredLevels(tuple(parts), tuple(levels), others, schema.clip_norm, 2 / schema.scale)


def _constants(schema: ScoreSchema | HazardSchema, count: int) -> Array:
    """Return the rows' constants, one row for each of the ``count`` that a record can have, ``(count, width)``."""
    width, constant = schema.sizes["feature"], schema.constant
    if constant is None:
        return np.zeros((0, width))
    return np.asarray(schema.on_grid(constant) * np.eye(width)[width - count :])


def _bins(schema: HazardSchema, constants: Array) -> list[Level]:
    time, cells = schema.bins.name, schema.bins.cells
    names = [(f"{time}: {cell}", "") for cell in cells]
    if schema.strata is not None:
        names = [(f"{schema.strata.name}: {each}", f"{time} {cell}") for each in schema.strata.cells for cell in cells]
    if schema.entry is not None and schema.times == "discrete":  # nobody is at risk in the first bin, by design
        names = [("", "") if place % len(cells) == 0 else name for place, name in enumerate(names)]
    alone = np.eye(len(names), dtype=np.bool_)
    return [
        Level(*name, False, 0, members, direction)
        for name, members, direction in zip(names, alone, np.linalg.pinv(constants).T, strict=True)
    ]


def _columns(schema: ScoreSchema | HazardSchema, own: int) -> list[_Column]:
    levels = schema.reading.levels
    if levels is None:
        return []
    scale, shift = map_columns([each for each in schema.transform if not isinstance(each, Interactions)], own)
    owners = owners_of(schema.feature_names or (), levels)
    columns = []
    for each in levels.columns:
        places = [place for place, owner in enumerate(owners) if owner == each.name]
        codes = np.eye(len(each.values))[:, 1:]
        columns.append(_Column(each.name, tuple(map(str, each.values)), places, codes * scale[places] + shift[places]))
    return columns


def _groups(columns: Sequence[_Column], pairs: _Pairs) -> list[list[_Column]]:
    """Return the columns by groups that products connect, without groups of very many combinations."""
    groups = [[column] for column in columns]
    for pair in pairs:
        joined = [group for group in groups if any(place in column.places for column in group for place in pair)]
        groups = [group for group in groups if not any(group is each for each in joined)]
        groups += [[column for group in joined for column in group]] if joined else []
    return [group for group in groups if math.prod(len(each.values) for each in group) <= _MAX_ROWS]


def _rows(group: Sequence[_Column], codes: NDArray[np.intp], pairs: _Pairs, own: int, width: int) -> Array:
    """Return the entries of every combination of values, products of two of these columns included."""
    rows = np.zeros((len(codes), width))
    for column, values in zip(group, codes.T, strict=True):
        rows[:, column.places] = column.entries[values]
    places = {place for column in group for place in column.places}
    for product_place, (a, b) in enumerate(pairs, own):
        if a in places and b in places:
            rows[:, product_place] = rows[:, a] * rows[:, b]
    return rows


def _levels(
    group: Sequence[_Column], codes: NDArray[np.intp], rows: Array, pairs: _Pairs, constants: Array, part: int
) -> list[Level]:
    """Return the levels that a direction singles out: of one column, or of each two with products."""
    alone, levels = len(group) == 1, list[Level]()
    for chosen in combinations(range(len(group)), 1 if alone else 2):
        if not alone and not any(_are(pair, *(group[each] for each in chosen)) for pair in pairs):
            continue
        for values in product(*(range(len(group[each].values)) for each in chosen)):
            members = (codes[:, list(chosen)] == values).all(axis=1)
            direction = _direction(members, rows, constants)
            if direction is not None:
                names = (f"{group[k].name}: {group[k].values[value]}" for k, value in zip(chosen, values, strict=True))
                levels.append(Level(", ".join(names), "", alone and values == (0,), part, members, direction))
    return levels


def _are(pair: tuple[int, int], first: _Column, second: _Column) -> bool:
    return any(a in first.places and b in second.places for a, b in (pair, pair[::-1]))


def _direction(members: NDArray[np.bool_], rows: Array, constants: Array) -> Array | None:
    """Return v with x'v = 1 for rows of the members and 0 for all others, or None."""
    one = np.linalg.pinv(constants).sum(axis=1) if len(constants) else np.zeros(rows.shape[1])
    places = np.flatnonzero(rows.any(axis=0))
    entries = np.column_stack([rows[:, places], np.full(len(rows), float(len(constants) > 0))])
    found = np.linalg.lstsq(entries, members.astype(np.float64), rcond=None)[0]
    if np.abs(entries @ found - members).max() > _EXACT:
        return None
    direction = one * found[-1]
    direction[places] += found[:-1]
    return np.asarray(direction)
