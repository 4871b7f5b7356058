"""``privstats demo``: the whole way of the data on a bundled data set, in under a minute."""

from typing import TYPE_CHECKING

from privstats.lazy_names import lazy_names

if TYPE_CHECKING:
    from privstats.workflows.demo.experiment import Demo as Demo
    from privstats.workflows.demo.experiment import run_demo as run_demo
    from privstats.workflows.demo.experiment import ticks as ticks
    from privstats.workflows.demo.output import show as show
    from privstats.workflows.demo.tasks import TASKS as TASKS
    from privstats.workflows.demo.tasks import Settings as Settings
else:
    __getattr__, __dir__ = lazy_names(__name__)
