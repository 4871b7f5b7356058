"""Studies: heads against epsilon, trust model, cohort, skew, clip and more, over data that may be looked at."""

from privstats.workflows.sweep.axes import Axes
from privstats.workflows.sweep.courses import BehindMean, behind_means
from privstats.workflows.sweep.experiment import KEPT, Study, steps, study
from privstats.workflows.sweep.figure import drawn
from privstats.workflows.sweep.frame import Frame
from privstats.workflows.sweep.grid import Sweep, over_epsilon, sweep
from privstats.workflows.sweep.private_descent import (
    PrivateDescent,
    Recipe,
    descents,
)
from privstats.workflows.sweep.table import cell, means, table

__all__ = [
    "KEPT",
    "Axes",
    "BehindMean",
    "Frame",
    "PrivateDescent",
    "Recipe",
    "Study",
    "Sweep",
    "behind_means",
    "cell",
    "descents",
    "drawn",
    "means",
    "over_epsilon",
    "steps",
    "study",
    "sweep",
    "table",
]
