"""Run a plan between the rounds of another Flower app: its own ``ServerApp``, ``ClientApp`` and nodes.

The app carries messages of the type ``query.privstats``; its mods see what the server sees.

Not protected: the messages of the app's own rounds, which no masks cover and no ledger counts; and a party with a node
that runs code shipped by others (``flwr run``), because that code can read the party's folder and its records.
``privstats flower join`` runs installed code only.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TypeAlias

from flwr.app import Context, Message
from flwr.clientapp import ClientApp
from flwr.serverapp import Grid

from privstats.course import Releases
from privstats.engines.flower import records
from privstats.engines.flower.addresses import HOME
from privstats.engines.flower.client_app import answered, folder_of
from privstats.engines.flower.grid import GridTransport
from privstats.engines.network import operator_log
from privstats.engines.network.host import Host, named_home, run_releases
from privstats.engines.network.transport import Deadlines
from privstats.errors import PlanError, PrivstatsError, SessionEndedError
from privstats.printable import printable
from privstats.release import Release

Home: TypeAlias = str | os.PathLike[str] | Callable[[Context], str | os.PathLike[str]]
"""A party's folder: its absolute path, or a function of Flower's context that returns it.

Read ``context.node_config`` there, the operator's, and never ``context.run_config``, which whoever starts a run sends.
"""

Mod: TypeAlias = Callable[[Message, Context, Callable[[Message, Context], Message]], Message]
"""Flower's form of a mod."""

_AGAIN = "call it again, and the session goes on"


def join(app: ClientApp, home: Home | None = None) -> None:
    """Let a ``ClientApp`` answer for a party's folder, in addition to its own handlers.

    An error of the folder is logged here and only its code leaves, so it ends no handler of the app. The first message
    measures the records, unless ``privstats flower check`` did.

    Args:
        app: made without a ``client_fn``; for one with it see :func:`party_mod`.
        home: the party's folder. By default the node's setting ``privstats-home`` (``flower-supernode --node-config
            'privstats-home="/srv/party"'``), or for a simulated node the folder ``partition-id`` in the folder that the
            variable ``PRIVSTATS_PARTIES`` names.

    Raises:
        PrivstatsError: the app has joined, or uses a ``client_fn``.

    Example:
        >>> from flwr.clientapp import ClientApp
        >>> from privstats.engines import flower
        >>> app = ClientApp()
        >>> flower.join(app, "/srv/party")
        >>> flower.join(app, "/srv/party")
        Traceback (most recent call last):
            ...
        privstats.errors.PrivstatsError: this ClientApp takes no handler of ours: join it once, or give an app that is
        made of a client_fn mods=[party_mod()]
    """

    def answer(message: Message, context: Context) -> Message:
        return answered(message, context, partial(_folder, home, context))

    try:
        app.query(records.ACTION)(answer)
    except ValueError:
        raise PrivstatsError(
            "this ClientApp takes no handler of ours: join it once, or give an app that is made of a client_fn "
            "mods=[party_mod()]"
        ) from None


def party_mod(home: Home | None = None) -> Mod:
    """Return a mod that answers for a party's folder: ``ClientApp(client_fn, mods=[party_mod()])``.

    Args:
        home: as for :func:`join`.

    Example:
        >>> from flwr.clientapp import ClientApp
        >>> from privstats.engines import flower
        >>> app = ClientApp(lambda context: None, mods=[flower.party_mod("/srv/party")])
        >>> callable(app)
        True
    """

    def mod(message: Message, context: Context, call_next: Callable[[Message, Context], Message]) -> Message:
        if message.metadata.message_type != records.MESSAGE_TYPE:
            return call_next(message, context)
        return answered(message, context, partial(_folder, home, context))

    return mod


def run_plan(
    grid: Grid, home: str | os.PathLike[str] | None = None, *, open_seconds: float = 3600.0, step_seconds: float = 600.0
) -> Release:
    """Run the session of a plan, or the rest of it, and return its release; blocks until it has ended.

    A session that ended before is not run again: its release is read from the folder.

    Args:
        home: the server's folder; by default that of the variable ``PRIVSTATS_HOME``.
        open_seconds, step_seconds: seconds that the first step, and every other step, waits for parties; at least 120.

    Raises:
        PlanError: the folder holds a course, or a time is too short.
        TooFewAnswersError: a deadline passed with too few answers; nothing is lost, and the next call continues.
        AggregationError: the session ended without a sum.
        SessionEndedError: it ended before without a release.
        PrivstatsError: a file cannot be read or written, or another process runs the session.

    Example:
        >>> from privstats.engines import flower
        >>> flower.run_plan(None, "study/host")
        Traceback (most recent call last):
            ...
        privstats.errors.PrivstatsError: a folder is named by an absolute path, got 'study/host': give
        Path(...).absolute()
    """
    host = Host.open(named_home(home, os.environ, HOME))
    if not host.folder.kind.single:
        raise PlanError(f"{host.folder.home.name} holds a course: call run_course, which returns a release per round")
    (release,) = _run(host, grid, Deadlines(open_seconds, step_seconds))
    if release is None:
        raise SessionEndedError(f"the session of {host.folder.home.name} ended without a release")
    return release


def run_course(
    grid: Grid, home: str | os.PathLike[str] | None = None, *, open_seconds: float = 3600.0, step_seconds: float = 600.0
) -> Releases:
    """Run a course's remaining sessions; return a release per round, None without a sum.

    Arguments and errors as for :func:`run_plan`; ``home`` may hold a plan too.

    Example:
        >>> from privstats.engines import flower
        >>> flower.run_course(None)
        Traceback (most recent call last):
            ...
        privstats.errors.PrivstatsError: no folder is named: give its path, or set PRIVSTATS_HOME
        before the server starts
    """
    return _run(Host.open(named_home(home, os.environ, HOME)), grid, Deadlines(open_seconds, step_seconds))


def _run(host: Host, grid: Grid, deadlines: Deadlines) -> Releases:
    return run_releases(host, GridTransport(grid), deadlines, again=_AGAIN, say=_say)


def _say(line: str) -> None:
    level = logging.WARNING if isinstance(line, operator_log.WarningLine) else logging.INFO
    logging.getLogger("flwr").log(level, "privstats: %s", printable(line))


def _folder(home: Home | None, context: Context) -> Path:
    named = home(context) if callable(home) else home
    if named is not None:
        return named_home(named, {}, "")
    folder = folder_of(context.node_config, os.environ)
    if folder is None:
        raise PrivstatsError(
            "the node names no folder: give join() its path, or start the node with --node-config "
            "'privstats-home=\"/srv/party\"'"
        )
    return folder
