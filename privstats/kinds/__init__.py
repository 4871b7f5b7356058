"""The kinds of what is measured, one file each: schema, sums, sensitivity, and the two data sets that attain it.

A file ends in its ``KIND``, the one value that every table asks; ``worst`` is what their pairs of data sets share. The
checker of certificates and the audits define each kind once more, apart from these files and on purpose.
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
"""By the word for the kind in plan files, its ``task``; loaded by the first schema of it."""
