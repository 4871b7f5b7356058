"""``privstats demo``: the whole way of the data on a bundled data set, in under a minute."""

from privstats.workflows.demo.experiment import Demo, run_demo, ticks
from privstats.workflows.demo.show import show
from privstats.workflows.demo.tasks import TASKS, Settings

__all__ = ["TASKS", "Demo", "Settings", "run_demo", "show", "ticks"]
