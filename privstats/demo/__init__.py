"""``privstats demo``: the whole way of the data on a bundled data set, in under a minute."""

from privstats.demo.experiment import Outcome, Point, run_demo
from privstats.demo.show import show
from privstats.demo.tasks import TASKS, Settings

__all__ = ["TASKS", "Outcome", "Point", "Settings", "run_demo", "show"]
