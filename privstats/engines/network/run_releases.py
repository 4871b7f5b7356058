"""The server's run as a call of somebody else's program: releases come back, also where the run ended before.

A program that is killed between our release and its own next line calls again and gets the same release: nothing is
run twice. The carriers' engines call it.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import TypeAlias

from privstats.engines.network.driver import Say, Sleep
from privstats.engines.network.folder import RELEASE, Folder
from privstats.engines.network.host import Host, Waiting
from privstats.engines.network.operator_log import log_line
from privstats.engines.network.session_end import file_digest
from privstats.engines.network.session_history import SessionHistory
from privstats.engines.network.transport import Deadlines, Transport
from privstats.errors import PrivstatsError, SessionEndedError, TooFewAnswersError
from privstats.release import Release

__all__ = ["Releases", "named_home", "run_releases"]

Releases: TypeAlias = tuple[Release | None, ...]
"""The releases of a run, one per round in order; None for a round that ended without a sum."""


def run_releases(
    host: Host,
    transport: Transport,
    deadlines: Deadlines,
    *,
    again: str,
    say: Say | None = None,
    sleep: Sleep = time.sleep,
) -> Releases:
    """Run a host's session or course to its end, or read the releases of one that ended before.

    Args:
        host: the server's folder.
        transport: carries messages.
        deadlines: the seconds of a step.
        again: what the operator does where too few have answered.
        say: called with a line per step and per refusal; by default they are logged as ``privstats.host``.
        sleep: waits so many seconds.

    Raises:
        TooFewAnswersError: a deadline passed with too few answers; the next call goes on.
        SessionEndedError: the session of a plan alone ended before, without a release, or its file was moved away.
        AggregationError: it ends now, without a sum.
        PrivstatsError: as for :meth:`Host.run`.
    """
    say = say or log_line
    try:
        outcome = host.run(transport, deadlines, sleep=sleep, say=say)
    except SessionEndedError as ended:
        before = _released(host.folder)
        if before is None:
            raise
        say(str(ended))
        return before
    if isinstance(outcome, Waiting):
        raise TooFewAnswersError(f"{outcome.what}. Nothing is lost: {again}")
    say(outcome.sentence)
    return outcome.releases


def named_home(home: str | os.PathLike[str] | None, environment: Mapping[str, str], variable: str) -> Path:
    """The folder that a program names, or its environment where the program names none.

    Raises:
        PrivstatsError: neither names one, or its path is relative: a carrier runs a program in a folder of its own.
    """
    named = environment.get(variable) if home is None else home
    if named is None:
        raise PrivstatsError(f"no folder is named: give its path, or set {variable} before the server starts")
    if not Path(named).is_absolute():
        raise PrivstatsError(
            f"a folder is named by an absolute path, got {os.fspath(named)!r}: give Path(...).absolute()"
        )
    return Path(named)


def _released(folder: Folder) -> Releases | None:
    """The outcomes of a run that has ended; None where it has no release, or another file lies in its place."""
    if not folder.kind.single:
        return tuple(folder.releases_so_far())
    session = folder.round(0)
    ended = SessionHistory(session.home).of(session.session)
    path = session.home / RELEASE
    if ended is None or not path.exists() or file_digest(path) != ended.release:
        return None
    return (folder.release(0),)
