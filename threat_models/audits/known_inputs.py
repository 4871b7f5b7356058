"""The parties' inputs from an .npz file, for the audit of a release whose inputs are known.

Per client either records, ``X_<client>`` and ``y_<client>``, or exact moments, ``N_<client>``, ``A_<client>`` and so on
as ``measure`` gives them. Arrays only: nothing in the file is executed.
"""

from __future__ import annotations

import re
from collections import defaultdict
from os import PathLike
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privstats.errors import DataError
from privstats.files.arrays import read_arrays
from privstats.kinds import kind_of
from privstats.moments import Moments, exact_moments
from privstats.schema import Schema

_NAME = re.compile(r"([A-Za-z])_(\d{1,7})")
_FORM = "arrays X_<client> and y_<client>, or N_<client>, A_<client>, ... as measure gives them"


def known_inputs(path: str | PathLike[str], schema: Schema) -> dict[int, Moments]:
    """The moments of every client in the file.

    Raises:
        DataError: not an .npz of plain arrays, unknown names, or arrays that do not fit the schema.
    """
    by_client: defaultdict[int, dict[str, NDArray[Any]]] = defaultdict(dict)
    for name, array in read_arrays(path).items():
        parts = _NAME.fullmatch(name)
        if parts is None:
            raise DataError(f"{path} holds an array {name[:40]!r}; name them {_FORM}")
        by_client[int(parts[2])][parts[1]] = array
    if not by_client:
        raise DataError(f"{path} is empty; store {_FORM}")
    return {client: _moments(schema, client, arrays) for client, arrays in by_client.items()}


def _moments(schema: Schema, client: int, arrays: dict[str, NDArray[Any]]) -> Moments:
    if set(arrays) == {"X", "y"}:
        return exact_moments(schema, arrays["X"], arrays["y"])
    if set(arrays) != set(schema.statistics):
        wanted = ", ".join(f"{statistic}_{client}" for statistic in schema.statistics)
        raise DataError(f"client {client} has {', '.join(sorted(arrays))}; give X_{client} and y_{client}, or {wanted}")
    if any(array.dtype != np.int64 for array in arrays.values()):
        raise DataError(f"the moments of client {client} must be int64 in grid steps, as measure gives them")
    return kind_of(schema).exact(arrays)
