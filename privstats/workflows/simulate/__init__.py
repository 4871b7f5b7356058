"""A whole aggregation in one process, over real bytes: for trying a plan before anyone deploys it."""

from typing import TYPE_CHECKING

from privstats.lazy_names import lazy_names

if TYPE_CHECKING:
    from privstats.workflows.simulate.simulation import Run as Run
    from privstats.workflows.simulate.simulation import run as run
    from privstats.workflows.simulate.simulation import simulate as simulate
    from privstats.workflows.simulate.summed import dirichlet_partition as dirichlet_partition
else:
    __getattr__, __dir__ = lazy_names(__name__)
