"""A whole aggregation in one process, over real bytes: for trying a plan before anyone deploys it."""

from privstats.workflows.simulate.partition import dirichlet_partition
from privstats.workflows.simulate.run import Run, run, simulate

__all__ = ["Run", "dirichlet_partition", "run", "simulate"]
