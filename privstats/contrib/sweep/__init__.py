"""Studies: heads against epsilon, trust model, cohort, skew, clip and more, over data that may be looked at."""

from typing import TYPE_CHECKING

from privstats.lazy_names import lazy_names

if TYPE_CHECKING:
    from privstats.contrib.sweep.axes import Axes as Axes
    from privstats.contrib.sweep.draws import BehindMean as BehindMean
    from privstats.contrib.sweep.draws import behind_means as behind_means
    from privstats.contrib.sweep.experiment import KEPT as KEPT
    from privstats.contrib.sweep.experiment import Study as Study
    from privstats.contrib.sweep.experiment import job_count as job_count
    from privstats.contrib.sweep.experiment import study as study
    from privstats.contrib.sweep.figure import drawn as drawn
    from privstats.contrib.sweep.frame import Frame as Frame
    from privstats.contrib.sweep.grid import Sweep as Sweep
    from privstats.contrib.sweep.grid import cell as cell
    from privstats.contrib.sweep.grid import means as means
    from privstats.contrib.sweep.grid import over_epsilon as over_epsilon
    from privstats.contrib.sweep.grid import sweep as sweep
    from privstats.contrib.sweep.grid import table as table
    from privstats.contrib.sweep.latex_tables import latex as latex
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "privstats.contrib.sweep.axes": ["Axes"],
            "privstats.contrib.sweep.draws": ["BehindMean", "behind_means"],
            "privstats.contrib.sweep.experiment": ["KEPT", "Study", "job_count", "study"],
            "privstats.contrib.sweep.figure": ["drawn"],
            "privstats.contrib.sweep.frame": ["Frame"],
            "privstats.contrib.sweep.grid": ["Sweep", "cell", "means", "over_epsilon", "sweep", "table"],
            "privstats.contrib.sweep.latex_tables": ["latex"],
        },
    )
