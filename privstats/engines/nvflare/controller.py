"""The controller of a FLARE job: it connects the host's folder with FLARE's sites.

``network.driver`` runs the session, ``Host`` stores it. A job that is submitted again continues where the last one
ended.
"""

from __future__ import annotations

import os
import time
from pathlib import Path

from nvflare.apis.fl_context import FLContext
from nvflare.apis.impl.controller import Controller
from nvflare.apis.signal import Signal

from privstats.engines.network.host import Host, Waiting
from privstats.engines.network.transport import Deadlines
from privstats.engines.nvflare.transport import FlareTransport
from privstats.errors import PrivstatsError
from privstats.printable import printable

__all__ = ["HOST", "PrivstatsController"]

HOST = "PRIVSTATS_HOST"
"""The variable of the FLARE server's environment that names the host's folder: a job never names a path."""

_PULSE = 0.5


class PrivstatsController(Controller):
    """Runs the session, or every session of the course, or the remaining ones.

    Args:
        open_seconds: how long the first step waits for parties.
        step_seconds: how long every other step waits.

    Example:
        >>> from privstats.engines.nvflare.controller import PrivstatsController  # doctest: +SKIP
        >>> PrivstatsController(open_seconds=600)  # doctest: +SKIP
    """

    def __init__(self, open_seconds: float = 3600.0, step_seconds: float = 600.0) -> None:
        super().__init__()
        self.open_seconds, self.step_seconds = open_seconds, step_seconds

    def start_controller(self, fl_ctx: FLContext) -> None:
        """Do nothing: :meth:`control_flow` opens the folder."""

    def stop_controller(self, fl_ctx: FLContext) -> None:
        """Cancel tasks that no site has accepted."""
        self.cancel_all_tasks(fl_ctx=fl_ctx)

    def control_flow(self, abort_signal: Signal, fl_ctx: FLContext) -> None:
        """Run the session; if it has not ended in a release, the job fails with the reason."""
        try:
            sentence = self._run(FlareTransport(self, fl_ctx, abort_signal))
        except PrivstatsError as error:
            self.system_panic(printable(error), fl_ctx)
            return
        self.log_info(fl_ctx, printable(sentence))

    def _run(self, transport: FlareTransport) -> str:
        if HOST not in os.environ:
            raise PrivstatsError(f"no host's folder is named: set {HOST} in the environment of FLARE's server")
        host = Host.open(Path(os.environ[HOST]))
        outcome = host.run(transport, Deadlines(self.open_seconds, self.step_seconds), sleep=_rest)
        if isinstance(outcome, Waiting):
            raise PrivstatsError(outcome.sentence)
        return outcome.sentence


def _rest(seconds: float) -> None:
    time.sleep(min(seconds, _PULSE))
