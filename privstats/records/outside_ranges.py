"""Count a file's values outside the ranges that a plan declares for its columns."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import numpy as np

from privstats.intake.columns import read
from privstats.intake.record_files import RecordFile
from privstats.records.reading import Reading
from privstats.transforms import Centre, Levels, Scale

_ROUNDING = 1e-9


def declared_ranges(reading: Reading) -> dict[str, tuple[float, float]]:
    """Return the range of each column of numbers, which the plan's first shift and division state.

    Example:
        >>> from privstats.records.outside_ranges import declared_ranges
        >>> schema = ps.EffectSchema.of({"age": (20, 90)}, treatment="arm", outcome=(0, 1), probability=0.5)
        >>> declared_ranges(schema.reading)["age"]
        (20.0, 90.0)
    """
    own = [map_ for map_ in reading.maps if not isinstance(map_, Levels)]
    texts = {column.name for map_ in reading.maps if isinstance(map_, Levels) for column in map_.columns}
    first = next(pairwise(own), None)
    if reading.names is None or first is None:
        return {}
    centre, scale = first
    if not isinstance(centre, Centre) or not isinstance(scale, Scale):
        return {}
    ends = zip(reading.names, centre.centre, scale.per, strict=False)
    return {name: (middle - half, middle + half) for name, middle, half in ends if name not in texts}


def outside_remarks(file: RecordFile, reading: Reading) -> Iterator[str]:
    """Yield a warning for the data holder about each column with values outside its declared range; none of arrays.

    They hold exact numbers, so they belong in no release, log or message.
    """
    ranges = declared_ranges(reading)
    if not ranges or not file.is_table:
        return
    table = file.table(tuple(ranges))
    for name, (low, high) in ranges.items():
        numbers = read(table.values(name)).numbers
        known = numbers[np.isfinite(numbers)]
        slack = _ROUNDING * (high - low)
        beyond = known[(known < low - slack) | (known > high + slack)]
        if not len(beyond):
            continue
        values, counts = np.unique(beyond, return_counts=True)
        most = int(counts.argmax())
        yield (
            f"{len(beyond):,} of {len(known):,} values of {name} lie outside its declared range {low:g} to {high:g}, "
            f"most often {values[most]:g} ({counts[most]:,}), and are clipped as measurements. If that is a gap code, "
            "empty those fields, so that they count as missing; this number is exact, so do not share it"
        )
