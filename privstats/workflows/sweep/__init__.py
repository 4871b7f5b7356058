"""Utility against epsilon: many noise draws over sums that are measured once."""

from privstats.workflows.sweep.grid import Sweep, sweep
from privstats.workflows.sweep.table import cell, table

__all__ = ["Sweep", "cell", "sweep", "table"]
