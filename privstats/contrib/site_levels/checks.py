"""Refuse releases whose site columns are not an exclusive 0 and 1 for every record."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from scipy.special import chdtri

from privstats.errors import ReleaseError
from privstats.extend.support import Array
from privstats.kinds import RidgeSchema, ScoreSchema

_APART = 5.5  # noise deviations beyond which an entry is not 0
_SHORTENED = 4.0  # noise deviations of the rows' energy
_ALIKE = 1e-6  # share of left-out sites that pass as a column with records in the named ones


def check_site_columns(
    schema: RidgeSchema | ScoreSchema, G: Array, sigma: float, names: Sequence[str], at: list[int], left_out: list[int]
) -> None:
    """Refuse records in two sites or in none, and shortened rows, where the sums show them.

    Args:
        G: sum of products of columns, or information; ``sigma`` is its diagonal's noise.
        at: indices of the site columns; left_out: of other columns that are no regressors and may be sites.
    """
    _check_exclusive(G, sigma, names, at)
    _check_left_out(G, sigma, names, at, left_out)
    _check_length(schema, G, sigma, at)


def _check_exclusive(G: Array, sigma: float, names: Sequence[str], at: list[int]) -> None:
    """A record adds 0 to the product of two site columns; noise has ``sigma_G / sqrt 2`` there."""
    shared = np.abs(np.triu(G[np.ix_(at, at)], 1))
    s, t = np.unravel_index(int(shared.argmax()), shared.shape)
    if shared[s, t] > _APART * sigma / math.sqrt(2):
        raise ReleaseError(
            f"sites {names[at[s]]!r} and {names[at[t]]!r} share records: the sum of the product of their columns is "
            f"{G[at[s], at[t]]:.3g}, not 0; measure 1 in exactly one site column of each record and 0 in the "
            "others"
        )


def _check_left_out(G: Array, sigma: float, names: Sequence[str], at: list[int], left_out: list[int]) -> None:
    """A site that is not named has a count, and products with the named ones that are noise alone."""
    most = float(chdtri(len(at), _ALIKE)) * sigma**2 / 2
    for j in left_out:
        if G[j, j] > _APART * sigma and np.square(G[j, at]).sum() <= most:
            raise ReleaseError(
                f"column {names[j]!r} is in neither sites nor columns, and its records are in none of the sites as far "
                "as the sums show; name it in sites if it is a site, in columns otherwise"
            )


def _check_length(schema: RidgeSchema | ScoreSchema, G: Array, sigma: float, at: list[int]) -> None:
    """Rows with one unshortened 1 have a mean squared norm of at most R^2, apart from noise and the grid's rounding.

    Clipping shortens a record's 1 as well, so that the squares of the site columns count fewer records.
    """
    one, square, squares = schema.on_grid(1.0), schema.clip_norm**2, np.diag(G)
    records, energy = float(squares[at].sum()) / one**2, float(squares.sum())
    weights = np.ones(len(squares))
    weights[at] -= square / one**2
    noise = _SHORTENED * sigma * float(np.linalg.norm(weights))
    if energy > square * records * (1 + 2 * math.sqrt(len(squares)) / schema.grid_steps) + noise:
        raise ReleaseError(
            f"rows were shortened to clip_norm {schema.clip_norm:g}, or site columns are not 0 and 1: the rows' mean "
            f"squared norm is {energy / max(records, 1e-9):.3g}, more than clip_norm squared, by the sites' counts of "
            "1; measure with a clip_norm above the longest row, the site's 1 included, and 0 and 1 in site columns"
        )
