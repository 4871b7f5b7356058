"""A head's own description: its row (the statistics it is built from) and the bounds of its parameters.

Rows and bounds are part of the heads' classes, and the registry finds them there: there is no list of heads to keep.
"""

from privstats.heads.registry.bounds import (
    DEVICE,
    MODULE,
    NONE,
    PRIORS,
    SHRINKAGE,
    SUBSPACE,
    SWITCH,
    TRAINING,
    WEIGHT,
    Bounds,
    Constraints,
    Number,
    Text,
    Whole,
    check_dimension,
    check_parameters,
    check_value,
)
from privstats.heads.registry.entries import HEADS, Entry, Task, able, head_class, named

__all__ = [
    "DEVICE",
    "HEADS",
    "MODULE",
    "NONE",
    "PRIORS",
    "SHRINKAGE",
    "SUBSPACE",
    "SWITCH",
    "TRAINING",
    "WEIGHT",
    "Bounds",
    "Constraints",
    "Entry",
    "Number",
    "Task",
    "Text",
    "Whole",
    "able",
    "check_dimension",
    "check_parameters",
    "check_value",
    "head_class",
    "named",
]
