"""A whole aggregation in one process, over real bytes: for trying a plan before anyone deploys it."""

from privstats.workflows.simulate.run import Run, run, simulate
from privstats.workflows.simulate.summed import dirichlet_partition

__all__ = ["Run", "dirichlet_partition", "run", "simulate"]
