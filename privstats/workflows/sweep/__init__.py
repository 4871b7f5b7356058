"""Studies: heads against epsilon, trust model, cohort, skew, clip and more, over data that may be looked at."""

from typing import TYPE_CHECKING

from privstats.lazy_names import lazy_names

if TYPE_CHECKING:
    from privstats.workflows.sweep.axes import Axes as Axes
    from privstats.workflows.sweep.draws import BehindMean as BehindMean
    from privstats.workflows.sweep.draws import behind_means as behind_means
    from privstats.workflows.sweep.experiment import KEPT as KEPT
    from privstats.workflows.sweep.experiment import Study as Study
    from privstats.workflows.sweep.experiment import steps as steps
    from privstats.workflows.sweep.experiment import study as study
    from privstats.workflows.sweep.figure import drawn as drawn
    from privstats.workflows.sweep.frame import Frame as Frame
    from privstats.workflows.sweep.grid import Sweep as Sweep
    from privstats.workflows.sweep.grid import cell as cell
    from privstats.workflows.sweep.grid import means as means
    from privstats.workflows.sweep.grid import over_epsilon as over_epsilon
    from privstats.workflows.sweep.grid import sweep as sweep
    from privstats.workflows.sweep.grid import table as table
else:
    __getattr__, __dir__ = lazy_names(__name__)
