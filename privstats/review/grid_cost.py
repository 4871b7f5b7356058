"""Compute a vector's cost, and the savings of coarser grids.

Every grid bit adds two bits to second moments. Entries above 32 bits are masked in 64-bit lanes with twice the
keystream.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from privstats.encoding.ring import Group, Ring
from privstats.errors import PlanError, SchemaError
from privstats.plan.plan import Plan
from privstats.secagg.prg import TILE, add_masks

_LANE = 32
_COARSEST = 2


@dataclass(frozen=True)
class GridCost:
    """The cost of a vector on one grid.

    Attributes:
        least, most: bits of the narrowest and the widest entry.
        widest: bits of the widest entry except counts.
        mask_bytes: keystream of one mask.
    """

    grid_bits: int
    least: int
    most: int
    widest: int
    upload_bytes: int
    mask_bytes: int

    @property
    def fits(self) -> bool:
        """Whether every entry but counts is masked in a lane of 32 bits."""
        return self.widest <= _LANE


def grid_cost(plan: Plan) -> GridCost:
    """Return the cost of a plan's vector."""
    grown = {row.letter for row in plan.schema.sent if row.degree}
    bits = [each for _, each in plan.ring.segments]
    graded = [each for each, segment in zip(bits, plan.layout.segments, strict=True) if segment.statistic in grown]
    upload = plan.masking.upload_bytes
    return GridCost(plan.schema.grid_bits, min(bits), max(bits), max(graded, default=0), upload, _keystream(plan.ring))


def grid_sentences(plan: Plan) -> list[str]:
    """Explain the vector's cost, the savings of one grid bit less, and the finest grid in 32 bits.

    Grids that the plan refuses are excluded; a schema without a grid has no sentences.
    """
    if plan.schema.grid_bits < _COARSEST:
        return []
    own, coarser = grid_cost(plan), list(_coarser(plan))
    out = [
        f"a vector has {plan.ring.size:,} entries of {own.least} to {own.most} bits: {own.upload_bytes:,} bytes in an "
        f"upload, {own.mask_bytes:,} bytes of keystream in a mask, which takes {_time(own.mask_bytes)} here"
    ]
    if coarser and coarser[0].upload_bytes < own.upload_bytes:
        out.append(
            f"one grid bit less {_saved(own, coarser[0])}, and rounds entries to 1/{1 << coarser[0].grid_bits:,} of "
            f"the clip norm instead of 1/{1 << own.grid_bits:,}"
        )
    narrow = [] if own.fits else [each for each in coarser if each.fits]
    if narrow:
        fits = f"with grid_bits = {narrow[0].grid_bits} every entry but counts fits 32 bits"
        out.append(f"{fits}, which {_saved(own, narrow[0])}")
    return out


def _saved(own: GridCost, other: GridCost) -> str:
    upload, mask = own.upload_bytes - other.upload_bytes, own.mask_bytes - other.mask_bytes
    keystream = f"{mask / own.mask_bytes:.0%} of the keystream ({_time(mask)} a mask)" if mask else "no time of a mask"
    return f"saves {upload:,} bytes of an upload ({upload / own.upload_bytes:.1%}) and {keystream}"


def _time(mask_bytes: int) -> str:
    return f"{1e3 * mask_bytes * _seconds_per_byte():.2g} ms"


@lru_cache(maxsize=1)
def _seconds_per_byte() -> float:
    vector, seconds = Ring(((TILE, 32),)).zeros(), []
    for number in range(3):
        began = time.perf_counter()
        add_masks(vector, plus=[bytes([number]) * 32])
        seconds.append(time.perf_counter() - began)
    return min(seconds) / vector.lanes[0].nbytes


def _coarser(plan: Plan) -> Iterator[GridCost]:
    if "grid_bits" not in plan.tables["schema"]:
        return
    for bits in range(plan.schema.grid_bits - 1, _COARSEST - 1, -1):
        schema: Any = plan.schema
        try:
            cost = grid_cost(replace(plan, schema=replace(schema, grid_bits=bits)))
        except (PlanError, SchemaError):
            return
        yield cost
        if cost.fits:
            return


def _keystream(ring: Group) -> int:
    return sum(size * (4 if bits <= _LANE else 8) for size, bits in ring.segments)
