"""Public maps in front of the clip, named by a small definition and bit-identical for every party."""

from privstats.transforms.base import (
    Transform,
    apply,
    from_builtins,
    input_features,
    output_features,
    steps_of,
    to_builtins,
)
from privstats.transforms.orthogonal import OrthogonalProjection
from privstats.transforms.random_maps import GaussianProjection, RandomFourier, RandomReLU, SparseProjection
from privstats.transforms.rowwise import Centre, CentreRows, ConstantFeature, Scale, UnitNorm
from privstats.transforms.transport import Transport

__all__ = [
    "Centre",
    "CentreRows",
    "ConstantFeature",
    "GaussianProjection",
    "OrthogonalProjection",
    "RandomFourier",
    "RandomReLU",
    "Scale",
    "SparseProjection",
    "Transform",
    "Transport",
    "UnitNorm",
    "apply",
    "from_builtins",
    "input_features",
    "output_features",
    "steps_of",
    "to_builtins",
]
