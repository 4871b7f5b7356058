"""The state of a folder's session on disk, ``status.json``: for the operator's questions, and for no decision.

The file holds no message content, and the session continues if it cannot be written. One process per folder holds a
lock (``.joined``, ``.served``) that ends with it.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Literal, TypeAlias, TypeVar

import msgspec
from msgspec.structs import replace

from privstats.engines.network.operator_log import HOST, PARTY
from privstats.engines.network.transport import OK
from privstats.errors import InUseError, LocalProtocolError, PrivstatsError
from privstats.files.atomic import atomic_write, read_bounded
from privstats.files.decoding import from_json
from privstats.files.locks import is_locked, lock, unlock

STATUS = "status.json"

ASKED, OFFLINE, UNSEEN = "asked", "offline", "unseen"
"""Why an answer is missing, where the peer has sent no code: it was asked; its node is offline; no node is known."""

SILENT_SECONDS = 120.0
"""Without an answered poll for so long, a node counts as stopped: its supervisor ends it and starts another."""

T = TypeVar("T")
_WORK_SECONDS = 5.0
_CONNECTIONS = ".connections"

Task: TypeAlias = Literal["joined", "served"]
"""A use of the folder, which also names its files."""


@dataclass(frozen=True)
class StepProgress:
    """The state of one step, as the loop sees it.

    Attributes:
        answered: indices, in increasing order.
        missing: reason per missing index: a code of ``transport.CODES``, or of this module.
        sent, received: bytes so far, in this run.
        closed_after: the step's seconds; None while open.
    """

    step: str
    answered: tuple[int, ...]
    missing: Mapping[int, str]
    sent: int
    received: int
    refusals: Mapping[str, int]
    closed_after: float | None = None


class MissingPeer(msgspec.Struct, frozen=True):
    """A peer with a missing answer, the reason, and since when (Unix)."""

    place: int
    why: str
    since: float


class ClosedStep(msgspec.Struct, frozen=True):
    """A closed step: its round, the peers, its seconds and its bytes."""

    place: int
    step: str
    answered: tuple[int, ...]
    missing: tuple[int, ...]
    seconds: float
    sent: int
    received: int


class ServerStatus(msgspec.Struct, frozen=True):
    """The server's state of a session.

    Attributes:
        run: the course's run name, in hex.
        process: id of the server's loop, possibly ended.
        updated: time of this state (Unix).
        step, answered, missing, sent, received, refusals: see :class:`StepProgress`.
        since: when the step opened (Unix).
    """

    run: str
    place: int
    process: int
    updated: float
    step: str = ""
    since: float = 0.0
    answered: tuple[int, ...] = ()
    missing: tuple[MissingPeer, ...] = ()
    sent: int = 0
    received: int = 0
    closed: tuple[ClosedStep, ...] = ()
    refusals: dict[str, int] = {}


class PartyStatus(msgspec.Struct, frozen=True):
    """A party's or a helper's state of a session.

    Attributes:
        updated: time of the last answer (Unix).
        place: round of the last message; -1 without one.
        kind, code: of the last message, and of its answer.
    """

    run: str
    updated: float
    place: int = -1
    step: str = ""
    kind: str = ""
    code: str = ""
    answers: int = 0
    sent: int = 0
    received: int = 0
    refusals: dict[str, int] = {}


class Watch:
    """Updates the server folder's state during one round's session, writing only changes.

    Args:
        run: another name restarts the numbers.
    """

    def __init__(self, home: Path, run: str, place: int, now: Callable[[], float] = time.time) -> None:
        self._home, self._now = home, now
        known = read_status(home, ServerStatus)
        begun = known if known is not None and known.run == run else ServerStatus(run, place, 0, 0.0)
        same = begun if begun.place == place else _between(begun)
        self._status, self._earlier = replace(same, place=place, process=os.getpid()), begun.refusals
        self._written = False

    def progress(self, progress: StepProgress) -> None:
        """Store the current step's state, or that it was closed."""
        old, now = self._status, self._now()
        begins = old.step != progress.step
        before = {} if begins else {(each.place, each.why): each.since for each in old.missing}
        waits = sorted(progress.missing.items())
        status = replace(
            old,
            step=progress.step,
            since=now if begins else old.since,
            answered=progress.answered,
            missing=tuple(MissingPeer(place, why, before.get((place, why), now)) for place, why in waits),
            sent=progress.sent,
            received=progress.received,
            refusals=_added(self._earlier, progress.refusals),
        )
        self._keep(_closed(status, progress.closed_after) if progress.closed_after is not None else status)

    def _keep(self, status: ServerStatus) -> None:
        if not self._written or status != self._status:
            self._written, self._status = True, status
            _write(self._home, replace(status, updated=self._now()), HOST.warning)


def _between(status: ServerStatus) -> ServerStatus:
    return replace(status, step="", since=0.0, answered=(), missing=(), sent=0, received=0)


def _closed(status: ServerStatus, seconds: float) -> ServerStatus:
    missing = tuple(each.place for each in status.missing)
    step = ClosedStep(status.place, status.step, status.answered, missing, seconds, status.sent, status.received)
    return _between(replace(status, closed=(*status.closed, step)))


def noted(home: Path, answer: PartyStatus) -> None:
    """Add one answer to the state of a party's folder; another run restarts the numbers."""
    known = read_status(home, PartyStatus)
    before = known if known is not None and known.run == answer.run else PartyStatus(answer.run, 0.0)
    refusals = before.refusals if answer.code == OK else _added(before.refusals, {answer.code: 1})
    _write(
        home,
        replace(
            answer,
            step=answer.step or (before.step if before.place == answer.place else ""),
            answers=before.answers + 1,
            sent=before.sent + answer.sent,
            received=before.received + answer.received,
            refusals=refusals,
        ),
        PARTY.warning,
    )


def read_status(home: Path, kind: type[T]) -> T | None:
    """Return the state in a folder's ``status.json``; None if missing, damaged or of another kind.

    Args:
        kind: the ``msgspec.Struct`` that was written.

    Example:
        >>> from pathlib import Path
        >>> from privstats.engines.carriers import ConnectionStatus, read_status, write_status
        >>> write_status(Path("."), ConnectionStatus(nodes=3))
        >>> read_status(Path("."), ConnectionStatus).nodes
        3
    """
    return read_json(home / STATUS, kind)


def write_status(home: Path, status: msgspec.Struct) -> None:
    """Replace a folder's ``status.json``: for the operator's questions, and for no decision.

    Raises:
        PrivstatsError: the file cannot be written.

    Example:
        >>> from pathlib import Path
        >>> from privstats.engines.carriers import ConnectionStatus, write_status
        >>> write_status(Path("."), ConnectionStatus(nodes=3))
        >>> "nodes" in Path("status.json").read_text()
        True
    """
    atomic_write(home / STATUS, msgspec.json.format(msgspec.json.encode(status)), durable=False)


def read_json(path: Path, kind: type[T]) -> T | None:
    """Return a JSON file's value; None if missing, damaged or of another kind."""
    with suppress(LocalProtocolError, msgspec.DecodeError):
        return from_json(read_bounded(path, LocalProtocolError, "privstats flower"), kind)
    return None


def _added(counts: Mapping[str, int], more: Mapping[str, int]) -> dict[str, int]:
    return {code: counts.get(code, 0) + more.get(code, 0) for code in sorted({*counts, *more})}


def _write(home: Path, status: msgspec.Struct, warn: Callable[[str], None]) -> None:
    try:
        write_status(home, status)
    except PrivstatsError as error:
        warn(f"{error}; the session continues, and {STATUS} stays as it was")


class ConnectionStatus(msgspec.Struct, frozen=True):
    """Open and refused connections at the address for parties, since the server started.

    Attributes:
        nodes: open connections on which a registered node has signed.
        unsigned: open connections without a known signature.
        closed: closed connections or refused requests, by reason.

    Example:
        >>> from privstats.engines.carriers import ConnectionLimiter, Limits
        >>> limiter = ConnectionLimiter(Limits(of_address=1))
        >>> _ = limiter.arrive("192.0.2.7")
        >>> limiter.status
        ConnectionStatus(nodes=0, unsigned=1, closed={})
    """

    nodes: int = 0
    unsigned: int = msgspec.field(default=0, name="strangers")
    closed: Mapping[str, int] = {}


def keep_connections(home: Path, status: ConnectionStatus) -> None:
    """Replace the file, if it can be written."""
    with suppress(PrivstatsError):
        atomic_write(home / _CONNECTIONS, msgspec.json.encode(status), durable=False)


def read_connections(home: Path) -> ConnectionStatus | None:
    """Return the last stored counts, if any."""
    return read_json(home / _CONNECTIONS, ConnectionStatus)


@contextmanager
def connections_forgotten(home: Path) -> Iterator[None]:
    """Remove the file after this block."""
    try:
        yield
    finally:
        with suppress(OSError):
            (home / _CONNECTIONS).unlink(missing_ok=True)


class Supervision(msgspec.Struct, frozen=True):
    """The process that holds a folder.

    Attributes:
        since: the time at which it began (Unix).
        address: ``HOST:PORT`` of the joined server, or of this one.
        connected: whether the server answered the node's last request.
        changed: the time since which ``connected`` has its value (Unix).
        worked: the time of the last work, up to ``_WORK_SECONDS`` early (Unix); 0 without any. Work is an answered
            poll, or a step of the node's own task.
        certificate_ends: when its TLS certificates end (Unix); 0 without them.

    Example:
        >>> from privstats.engines.carriers import Supervision
        >>> Supervision(process=7, since=0.0, address="", connected=True, worked=100.0).works(now=130.0)
        True
    """

    process: int
    since: float
    address: str
    connected: bool = False
    changed: float = 0.0
    worked: float = 0.0
    certificate_ends: float = 0.0

    def works(self, now: float) -> bool:
        """Return whether the node is connected and its last work is recent, whatever its process does."""
        return self.connected and now - self.worked <= SILENT_SECONDS

    def stands_since(self, now: float) -> float:
        """Return the time since which :meth:`works` has its value."""
        return self.worked if self.connected and not self.works(now) else self.changed or self.since


@contextmanager
def supervised(
    home: Path, task: Task, address: str, certificate_ends: datetime | None = None
) -> Iterator[Callable[[bool], None]]:
    """Reserve a folder for this process in the block; call the value at each sign of work, or of a lost connection.

    Args:
        task: ``"served"`` for the server's process, ``"joined"`` for a party's or a helper's.
        address: of this server, or of the server that the node joins; operators read it.

    Raises:
        InUseError: another process has the folder.

    Example:
        >>> from pathlib import Path
        >>> from privstats.engines.carriers import supervised, supervision
        >>> with supervised(Path("."), "joined", "192.0.2.7:8443") as connected:
        ...     connected(True)
        ...     supervision(Path("."), "joined").address
        '192.0.2.7:8443'
    """
    ends = 0.0 if certificate_ends is None else certificate_ends.timestamp()
    place, own = _lock_of(home, task), Supervision(os.getpid(), time.time(), address, certificate_ends=ends)
    try:
        handle = lock(place)
    except BlockingIOError:
        raise InUseError(f"{home} is {task} already by {_holder(home, task)}: end it first") from None
    except OSError as error:
        raise PrivstatsError(f"cannot write {place}: {error.strerror}; nothing was started") from None

    def keep(connected: bool) -> None:
        nonlocal own
        now = time.time()
        known = connected == own.connected
        if known and (not connected or 0 <= now - own.worked < _WORK_SECONDS):
            return
        last = now if connected else own.worked
        own = replace(own, connected=connected, changed=own.changed if known else now, worked=last)
        with suppress(PrivstatsError):  # a full disk ends no node
            _keep_standing(home, task, own)

    try:
        _keep_standing(home, task, own)
        yield keep
    finally:
        _file_of(home, task).unlink(missing_ok=True)
        unlock(handle)


def supervision(home: Path, task: Task) -> Supervision | None:
    """Return the live process that holds a folder for ``task``, if any.

    Example:
        >>> from pathlib import Path
        >>> from privstats.engines.carriers import supervision
        >>> supervision(Path("."), "served") is None
        True
    """
    return _standing(home, task) if is_locked(_lock_of(home, task)) else None


def _lock_of(home: Path, task: Task) -> Path:
    return home / f".{task}.lock"


def _file_of(home: Path, task: Task) -> Path:
    return home / f".{task}"  # a separate file: on Windows no process can read a file that another has locked


def _keep_standing(home: Path, task: Task, held: Supervision) -> None:
    atomic_write(_file_of(home, task), msgspec.json.encode(held), durable=False)


def _standing(home: Path, task: Task) -> Supervision | None:
    return read_json(_file_of(home, task), Supervision)


def _holder(home: Path, task: Task) -> str:
    """The holder writes its id just after it locks, so it may be unknown."""
    held = _standing(home, task)
    return "another process" if held is None else f"process {held.process}"
