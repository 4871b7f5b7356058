"""The executor of a FLARE site: it answers every task with exactly one result, also after an error."""

from __future__ import annotations

import os
from pathlib import Path

from nvflare.apis.executor import Executor
from nvflare.apis.fl_constant import ReturnCode
from nvflare.apis.fl_context import FLContext
from nvflare.apis.shareable import Shareable, make_reply
from nvflare.apis.signal import Signal

from privstats.contrib.nvflare import job
from privstats.engines.carriers import FAILED, PARTY, answer, reason_of
from privstats.errors import PrivstatsError

HOME = "PRIVSTATS_HOME"
"""The variable of the site's environment that names the party's folder: a job never names a path."""

PARTIES = "PRIVSTATS_PARTIES"
"""For FLARE's simulator, the variable that names the folder with one folder per site, under the site's name."""


class PrivstatsExecutor(Executor):
    """Passes each task to the party of the folder that the environment names."""

    def execute(self, task_name: str, shareable: Shareable, fl_ctx: FLContext, abort_signal: Signal) -> Shareable:  # noqa: ARG002 - its signature
        """Answer one message; only a code and the machines' messages leave the site."""
        if task_name != job.TASK:
            return make_reply(ReturnCode.TASK_UNKNOWN)
        try:
            kind, data = job.unpack(shareable, "server")
            home = home_of(fl_ctx.get_identity_name())
            reply = answer(home, kind, data, simulated=HOME not in os.environ)
        except Exception as error:
            PARTY.error("%s", reason_of(error))
            return job.pack(FAILED, b"")
        return job.pack(reply.code, reply.data)


def home_of(site: str) -> Path:
    """Return the party's folder, in a simulation by the site's name."""
    if HOME in os.environ:
        return Path(os.environ[HOME])
    if PARTIES in os.environ and site not in ("", "..") and Path(site).name == site:
        return Path(os.environ[PARTIES]) / site
    raise PrivstatsError(f"no party's folder is named: set {HOME} in the environment of FLARE's client")
