"""The controller of a FLARE job: it connects the host's folder with FLARE's sites; a resubmitted job resumes."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from functools import partial
from math import ceil
from pathlib import Path
from threading import Lock

from nvflare.apis.client import Client
from nvflare.apis.controller_spec import ClientTask, Task
from nvflare.apis.fl_constant import ReturnCode
from nvflare.apis.fl_context import FLContext
from nvflare.apis.impl.controller import Controller
from nvflare.apis.shareable import Shareable
from nvflare.apis.signal import Signal

from privstats.contrib.nvflare import job
from privstats.course import Releases
from privstats.engines.carriers import Deadlines, Host, MessageKind, Reply, run_releases
from privstats.errors import PrivstatsError, RemoteProtocolError
from privstats.printable import printable

HOST = "PRIVSTATS_HOST"
"""The variable of the FLARE server's environment that names the host's folder: a job never names a path."""

RELEASES = "privstats_releases"
"""The private property of FLARE's context with the releases, one per round, for the workflows behind this one."""

_AGAIN = "submit the job again, and the session goes on"
_PULSE = 0.5
_UNAVAILABLE = "error:5"


class PrivstatsController(Controller):
    """Runs the session, or every (remaining) session of the course.

    Later workflows find the releases in FLARE's context (``fl_ctx.get_prop(RELEASES)``). An ended run is not repeated:
    its releases come from the folder.

    Args:
        open_seconds: how long the first step waits for parties.
        step_seconds: how long every other step waits.

    Example:
        >>> from privstats.contrib.nvflare.controller import PrivstatsController  # doctest: +SKIP
        >>> PrivstatsController(open_seconds=600)  # doctest: +SKIP
    """

    def __init__(self, open_seconds: float = 3600.0, step_seconds: float = 600.0) -> None:
        super().__init__()
        self.open_seconds, self.step_seconds = open_seconds, step_seconds

    def start_controller(self, fl_ctx: FLContext) -> None:
        """Do nothing: :meth:`control_flow` opens the folder."""

    def stop_controller(self, fl_ctx: FLContext) -> None:
        """Cancel unaccepted tasks."""
        self.cancel_all_tasks(fl_ctx=fl_ctx)

    def control_flow(self, abort_signal: Signal, fl_ctx: FLContext) -> None:
        """Run the session; without a release, fail the job."""
        try:
            releases = self._run(FlareTransport(self, fl_ctx, abort_signal), partial(self._say, fl_ctx))
        except PrivstatsError as error:
            self.system_panic(printable(error), fl_ctx)
            return
        fl_ctx.set_prop(RELEASES, releases, private=True, sticky=True)

    def _run(self, transport: FlareTransport, say: Callable[[str], None]) -> Releases:
        if HOST not in os.environ:
            raise PrivstatsError(f"no host's folder is named: set {HOST} in the environment of FLARE's server")
        host = Host.open(Path(os.environ[HOST]))
        deadlines = Deadlines(self.open_seconds, self.step_seconds)
        return run_releases(host, transport, deadlines, again=_AGAIN, say=say, sleep=_rest)

    def _say(self, fl_ctx: FLContext, line: str) -> None:
        self.log_info(fl_ctx, printable(line))


def _rest(seconds: float) -> None:
    time.sleep(min(seconds, _PULSE))


class FlareTransport:
    """The transport that ``driver`` uses, over FLARE's tasks.

    A node is a site, numbered as first seen.

    Args:
        aborted: set when an operator aborts the job.
    """

    def __init__(self, controller: Controller, context: FLContext, aborted: Signal) -> None:
        self._controller, self._context, self._aborted = controller, context, aborted
        self._sites: list[str] = []
        self._lock = Lock()
        self._replies: dict[str, Shareable | None] = {}
        self._count = 0

    def online(self) -> Sequence[int]:
        """Return connected sites' numbers."""
        self._go_on()
        clients: list[Client] = list(self._context.get_engine().get_clients())
        names = sorted(client.name for client in clients)
        self._sites.extend(name for name in names if name not in self._sites)
        away = self._controller.get_client_disconnect_time
        return [self._sites.index(name) for name in names if away(name) is None]

    def push(self, node: int, kind: MessageKind, data: bytes, *, ttl: float) -> str:
        """Send one task and return its name.

        Args:
            ttl: seconds after which FLARE drops it.
        """
        self._go_on()
        self._count += 1
        name = str(self._count)
        task = Task(
            job.TASK,
            job.pack(kind, data),
            timeout=ceil(ttl),
            result_received_cb=partial(self._result, name),
            task_done_cb=partial(self._done, name),
        )
        self._controller.send(task, self._context, targets=[self._sites[node]])
        return name

    def pull(self, message: str, most: int) -> Reply | None:
        """Return the result of one task, once; None before it has arrived.

        An undelivered task returns ``error:5``, an invalid result ``malformed`` or ``too_large``.
        """
        with self._lock:
            if message not in self._replies:
                return None
            result = self._replies.pop(message)
        if result is None or result.get_return_code() != ReturnCode.OK:
            return Reply(_UNAVAILABLE)
        try:
            return Reply(*job.unpack(result, "a site", most))
        except RemoteProtocolError as refusal:
            return Reply(refusal.code)

    def name(self, node: int) -> str:
        """Return the site's name."""
        return self._sites[node]

    def _result(self, name: str, client_task: ClientTask, fl_ctx: FLContext) -> None:  # noqa: ARG002 - its signature
        """Called by FLARE in its own thread."""
        with self._lock:
            self._replies.setdefault(name, client_task.result)

    def _done(self, name: str, task: Task, fl_ctx: FLContext) -> None:  # noqa: ARG002 - its signature
        if not any(each.result_received_time for each in task.client_tasks):
            with self._lock:
                self._replies.setdefault(name, None)

    def _go_on(self) -> None:
        if self._aborted.triggered:
            raise PrivstatsError("the job was aborted; nothing is lost: submit it again, and the session goes on")
