"""List every kind by its ``task``: the one table that a new kind joins."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from privstats.tables import LazyRows

if TYPE_CHECKING:
    from privstats.kinds.base import Kind

KINDS: Mapping[str, type[Kind]] = LazyRows(
    {
        "classes": "privstats.kinds.classes:ClassSchema",
        "ridge": "privstats.kinds.ridge:RidgeSchema",
        "counts": "privstats.kinds.counts:CountSchema",
        "scoring": "privstats.kinds.scoring:ScoringSchema",
        "sites": "privstats.kinds.sites:SitesSchema",
        "score": "privstats.kinds.score:ScoreSchema",
        "hazard": "privstats.kinds.hazard:HazardSchema",
        "effect": "privstats.kinds.effect.schema:EffectSchema",
        "gradients": "privstats.kinds.gradients:GradientSchema",
        "calibration": "privstats.kinds.calibration:CalibrationSchema",
        "mean": "privstats.kinds.mean:MeanSchema",
        "within": "privstats.kinds.within:WithinSchema",
        "gaussians": "privstats.kinds.gaussians:GaussianSchema",
        "party-softmax": "privstats.kinds.party:PartySchema",
        "party-update": "privstats.kinds.party:PartyUpdateSchema",
    }
)
"""The class of each kind by its ``task`` in plan files; a class is loaded when it is first looked up."""
