"""The app of the coordinator's SuperLink: the host's folder on one side, Flower's grid on the other.

It decides nothing: ``conduct`` runs the session, ``Host`` keeps it. A run of it goes on where the last one ended.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from flwr.app import Context
from flwr.serverapp import Grid, ServerApp

from privstats.engines.flower.conduct import Deadlines
from privstats.engines.flower.grid import GridMailbox
from privstats.engines.flower.host import Host
from privstats.errors import PlanError, PrivstatsError

__all__ = ["HOME", "app", "deadlines"]

HOME = "PRIVSTATS_HOME"
"""Names the host's folder in the SuperLink's environment."""

app = ServerApp()


@app.main()
def main(grid: Grid, context: Context) -> None:
    """Run the session, or what is left of it."""
    if HOME not in os.environ:
        raise PrivstatsError('no host\'s folder is named: start the SuperLink with "privstats flower serve"')
    host = Host.open(Path(os.environ[HOME]))
    host.run(GridMailbox(grid), deadlines(context.run_config))


def deadlines(run_config: Mapping[str, object]) -> Deadlines:
    """The times that ``--run-config`` may change, in seconds.

    Raises:
        PlanError: one is no number.
    """
    given = {name.replace("-", "_"): run_config[name] for name in ("open-seconds", "step-seconds") if name in run_config}
    for name, value in given.items():
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise PlanError(f'{name.replace("_", "-")} must be a number of seconds, not {value!r}')
    return Deadlines(**{name: float(value) for name, value in given.items()})  # type: ignore[arg-type]
