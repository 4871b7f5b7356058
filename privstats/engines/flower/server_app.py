"""The app of the coordinator's SuperLink: it connects the host's folder with Flower's grid."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path

from flwr.app import Context
from flwr.serverapp import Grid, ServerApp

from privstats.engines.flower.addresses import HOME
from privstats.engines.flower.grid import GridTransport
from privstats.engines.network.host import Host
from privstats.engines.network.operator_log import configure_log
from privstats.engines.network.round_host import Waiting
from privstats.engines.network.transport import Deadlines
from privstats.errors import PlanError, PrivstatsError

app = ServerApp()


@app.main()
def main(grid: Grid, context: Context) -> None:
    """Run the remaining sessions, and print where the releases are, and how a model is fitted on them.

    Raises:
        PrivstatsError: the session has not ended; Flower shows the run as failed.
    """
    if HOME not in os.environ:
        raise PrivstatsError('no host\'s folder is named: start the SuperLink with "privstats flower serve"')
    configure_log()
    host = Host.open(Path(os.environ[HOME]))
    outcome = host.run(GridTransport(grid), deadlines(context.run_config))
    if isinstance(outcome, Waiting):
        raise PrivstatsError(outcome.sentence)
    for line in filter(None, (outcome.sentence, host.next_step(outcome))):  # last, so that a reader sees them
        sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def deadlines(run_config: Mapping[str, object]) -> Deadlines:
    """Return the times that ``--run-config`` may change, in seconds."""
    standing = Deadlines()
    return Deadlines(
        _seconds(run_config, "open-seconds", standing.open_seconds),
        _seconds(run_config, "step-seconds", standing.step_seconds),
    )


def _seconds(run_config: Mapping[str, object], name: str, standing: float) -> float:
    value = run_config.get(name, standing)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise PlanError(f"{name} must be a number of seconds, not {value!r}")
    return float(value)
