"""What each head says of itself: its row (what it is built from) and the bounds of its parameters.

No list of heads to keep, and no head: rows and bounds stand in the heads' own classes and are found by looking.
"""

from privstats.heads.registry.bounds import (
    DEVICE,
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
