"""Weigh persons with another cause for subdistribution hazards, as Fine and Gray (1999) do.

Such a person stays at risk until the last bin, with the weight of who would not have left by then: published G of later
cells over G of the person's own cell.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from privstats.errors import PlanError, SchemaError
from privstats.schema.public_values import Values

if TYPE_CHECKING:
    from privstats.kinds.hazard import HazardSchema

__all__ = ["cells_of", "check_ratios", "check_staying", "staying_parts"]


def check_ratios(schema: HazardSchema) -> None:
    """Refuse other ratios, and subdistribution ratios of a schema without causes, times or robust errors."""
    if schema.ratios is None:
        return
    if schema.ratios != "subdistribution":
        raise SchemaError(
            f"ratios must be 'subdistribution', or omitted for cause-specific ratios, got {schema.ratios!r}"
        )
    if len(schema.causes) < 2 or schema.times is None or schema.entry is not None or schema.errors != "robust":
        raise SchemaError(
            "ratios='subdistribution' needs times, an event of three or more texts (Levels: none, the event, other "
            "causes), errors='robust' and no entry"
        )


def check_staying(G: Values, strata: int, bits: int) -> None:
    """Refuse published G that does not fall from at most 1, or reaches 0, in any stratum."""
    shares = G.integers.reshape(strata, -1)
    falling = (np.diff(shares, axis=1) <= 0).all() and (shares >= 1).all() and (shares <= 1 << bits).all()
    if G.exponent != bits or not falling:
        raise PlanError(f"published G must fall from at most 1 and stay above 0, in steps of 2**-{bits}")


def cells_of(schema: HazardSchema, times: NDArray[np.float64]) -> NDArray[np.intp]:
    """Return the count cell of each person's time, ``(n,)``."""
    return np.clip(np.searchsorted(schema.marks, times, side="right") - 1, 0, len(schema.in_bin) - 1)


def staying_parts(schema: HazardSchema, values: Mapping[str, Values]) -> NDArray[np.float64]:
    """Return the part of each bin's hazard that remains after a time, ``(cells, bins)``, rounded down to G's steps.

    For the cell of a person's time it is the sum over a bin's cells of the clock's part times G over the person's G.
    Exact integers: a part and G have 17 bits each, so their products over a bin's cells stay below 2**53.
    """
    G, of, one = values["G"].integers, schema.in_bin, 1 << values["G"].exponent
    starts = np.searchsorted(of, np.arange(schema.periods))
    passed = values["c"].integers if "c" in values else np.full(len(of), one)
    widths = passed - np.where(np.isin(np.arange(len(of)), starts), 0, np.r_[0, passed[:-1]])
    cells = np.arange(len(of))
    later = cells[None, :] > cells[:, None]
    each = widths * np.where(later, np.minimum(G, G[:, None]), G[:, None])
    parts = np.add.reduceat(each, starts, axis=1) // G[:, None]
    return np.asarray(np.minimum(parts, one) / one)
