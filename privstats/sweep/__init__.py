"""Utility against epsilon: many noise draws over sums that are measured once."""

from privstats.sweep.grid import Point, Sweep, sweep
from privstats.sweep.table import cell, table

__all__ = ["Point", "Sweep", "cell", "sweep", "table"]
