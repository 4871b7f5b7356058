"""Public maps in front of the clip, named by a small definition and bit-identical for every party."""

from privstats.transforms.base import Transform, apply, from_builtins, output_features, to_builtins
from privstats.transforms.rowwise import CentreRows, ConstantFeature, UnitNorm

__all__ = [
    "CentreRows",
    "ConstantFeature",
    "Transform",
    "UnitNorm",
    "apply",
    "from_builtins",
    "output_features",
    "to_builtins",
]
