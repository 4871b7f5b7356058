"""Public maps in front of the clip, bit-identical for every party."""

from typing import TYPE_CHECKING

from privstats.lazy_names import lazy_names

if TYPE_CHECKING:
    from privstats.intake.declared.categories import Categories as Categories
    from privstats.intake.declared.columns import Column as Column
    from privstats.intake.declared.columns import Dates as Dates
    from privstats.intake.declared.columns import Numeric as Numeric
    from privstats.intake.declared.columns import Truth as Truth
    from privstats.transforms.base import Transform as Transform
    from privstats.transforms.base import apply as apply
    from privstats.transforms.base import from_builtins as from_builtins
    from privstats.transforms.base import input_features as input_features
    from privstats.transforms.base import maps_of as maps_of
    from privstats.transforms.base import output_features as output_features
    from privstats.transforms.base import to_builtins as to_builtins
    from privstats.transforms.cells import Cells as Cells
    from privstats.transforms.interactions import Interactions as Interactions
    from privstats.transforms.levels import Levels as Levels
    from privstats.transforms.random_maps import GaussianProjection as GaussianProjection
    from privstats.transforms.random_maps import OrthogonalProjection as OrthogonalProjection
    from privstats.transforms.random_maps import RandomFourier as RandomFourier
    from privstats.transforms.random_maps import RandomReLU as RandomReLU
    from privstats.transforms.random_maps import SparseProjection as SparseProjection
    from privstats.transforms.rowwise import ByArm as ByArm
    from privstats.transforms.rowwise import Centre as Centre
    from privstats.transforms.rowwise import CentreRows as CentreRows
    from privstats.transforms.rowwise import ConstantFeature as ConstantFeature
    from privstats.transforms.rowwise import Scale as Scale
    from privstats.transforms.rowwise import UnitNorm as UnitNorm
    from privstats.transforms.rowwise import of_unit_norm as of_unit_norm
    from privstats.transforms.transport import Transport as Transport
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "privstats.intake.declared.categories": ["Categories"],
            "privstats.intake.declared.columns": ["Column", "Dates", "Numeric", "Truth"],
            "privstats.transforms.base": [
                "Transform",
                "apply",
                "from_builtins",
                "input_features",
                "maps_of",
                "output_features",
                "to_builtins",
            ],
            "privstats.transforms.cells": ["Cells"],
            "privstats.transforms.interactions": ["Interactions"],
            "privstats.transforms.levels": ["Levels"],
            "privstats.transforms.random_maps": [
                "GaussianProjection",
                "OrthogonalProjection",
                "RandomFourier",
                "RandomReLU",
                "SparseProjection",
            ],
            "privstats.transforms.rowwise": [
                "ByArm",
                "Centre",
                "CentreRows",
                "ConstantFeature",
                "Scale",
                "UnitNorm",
                "of_unit_norm",
            ],
            "privstats.transforms.transport": ["Transport"],
        },
    )
