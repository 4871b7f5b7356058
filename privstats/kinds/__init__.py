"""Define each kind of measurement: schema, sums, sensitivity, and the two data sets that the certificate compares.

The certificate checker and the audits define each kind again, independently.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from privstats.tables import LazyRows

if TYPE_CHECKING:
    from privstats.schema.kinds import Kind

KINDS: Mapping[str, Kind] = LazyRows(
    {
        "classes": "privstats.kinds.classes:KIND",
        "ridge": "privstats.kinds.ridge:KIND",
        "counts": "privstats.kinds.counts:KIND",
        "scoring": "privstats.kinds.scoring:KIND",
        "sites": "privstats.kinds.sites:KIND",
        "score": "privstats.kinds.score:KIND",
        "hazard": "privstats.kinds.hazard:KIND",
        "effect": "privstats.kinds.effect.sums:KIND",
        "gradients": "privstats.kinds.gradients:KIND",
        "calibration": "privstats.kinds.calibration:KIND",
        "mean": "privstats.kinds.mean:KIND",
        "within": "privstats.kinds.within:KIND",
        "gaussians": "privstats.kinds.gaussians:KIND",
        "party-softmax": "privstats.kinds.party:KIND",
        "party-update": "privstats.kinds.party:UPDATE",
    }
)
"""Each kind by its ``task`` in plan files; a kind is loaded when it is first looked up."""
