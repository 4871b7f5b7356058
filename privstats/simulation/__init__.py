"""A whole aggregation in one process, over real bytes: for trying a plan before anyone deploys it."""

from privstats.simulation.partition import dirichlet_partition
from privstats.simulation.run import Run, run, simulate

__all__ = ["Run", "dirichlet_partition", "run", "simulate"]
