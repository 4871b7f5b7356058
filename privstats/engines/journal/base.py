"""Shared parts of all journals: the lock, no use after a failed write, and argument checks."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self, cast

from privstats.errors import InUseError, LocalProtocolError, PrivstatsError, ProtocolError
from privstats.files.locks import lock, unlock
from privstats.secagg import Identity, Panel, Roster, UploadParameters
from privstats.secagg.exclusive import Exclusive, exclusive
from privstats.secagg.keys import require_identity
from privstats.secagg.machines import Aggregator, Masking, Peer
from privstats.secagg.protocols import protocol_of

_NOT_WRITTEN = "could not be written, so nothing was sent: repair that, close it and resume"


class JournalBase(Exclusive):
    """A machine with its state on disk under a lock, which the context manager releases."""

    def __init__(self, lock: int, path: Path) -> None:
        self._lock, self._path = lock, path
        self._gone = ""

    @contextmanager
    def _acting(self, refused: type[PrivstatsError] = ProtocolError) -> Iterator[None]:
        """Mark the journal unusable after an interruption; its state on disk stays.

        ``refused`` errors are raised before anything has changed, so they invalidate nothing.
        """
        if self._gone:
            raise LocalProtocolError(f"the journal {self._path} {self._gone}")
        try:
            yield
        except refused:
            raise
        except OSError as error:
            self._give_up(_NOT_WRITTEN)
            raise LocalProtocolError(f"the journal {self._path} {self._gone} ({error.strerror})") from error
        except BaseException:
            self._give_up("was interrupted, so nothing was sent: close it and resume")
            raise

    def _give_up(self, why: str) -> None:
        self._gone = why

    @exclusive
    def close(self) -> None:
        """Release the lock; this object is unusable afterwards. Idempotent."""
        self._let_go()

    def _let_go(self) -> None:
        if self._lock >= 0:
            unlock(self._lock)
        self._lock = -1
        self._give_up("is closed: resume it")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._alone(waiting=True):  # waits for another thread's last call: an error here would keep the lock
            self._let_go()


@contextmanager
def held(path: Path) -> Iterator[int]:
    """Lock a folder or file, or raise ``InUseError``; unlock it if the block fails."""
    try:
        handle = lock(path)
    except BlockingIOError:
        raise InUseError(f"{path} is in use by another process or object: let it end or close it") from None
    except OSError as error:
        raise LocalProtocolError(f"the journal {path} cannot be opened ({error.strerror})") from error
    try:
        yield handle
    except BaseException:
        unlock(handle)
        raise


@contextmanager
def held_briefly(path: Path) -> Iterator[None]:
    """Like :func:`held`, and always unlock after the block."""
    with held(path) as handle:
        yield
    unlock(handle)


@contextmanager
def written(path: Path) -> Iterator[None]:
    """Turn a system error of a journal write into a ``LocalProtocolError``."""
    try:
        yield
    except OSError as error:
        raise LocalProtocolError(f"the journal {path} {_NOT_WRITTEN} ({error.strerror})") from error


def path_of(path: object) -> Path:
    """Return a journal's path, resolved so that folder changes and links do not matter."""
    if not isinstance(path, str | os.PathLike):
        raise LocalProtocolError(f"a journal is kept at a path, got {type(path).__name__}")
    return Path(path).resolve()


def created_directory(path: object) -> Path:
    """Return the directory, created if missing."""
    directory = path_of(path)
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise LocalProtocolError(f"the directory {directory} cannot be made ({error.strerror})") from error
    return directory


@dataclass(frozen=True)
class ServerPlace:
    """Arguments for resuming a server, besides its state."""

    parameters: Masking
    roster: Roster
    identity: Identity
    threads: int

    def __post_init__(self) -> None:
        protocol_of(self.parameters)  # refuses a plan, for example, before anything is on the disk
        require_threads(self.threads)

    def resumed(self, state: bytes, key: bytes) -> Aggregator:
        """Return the machine that was sealed in ``state``."""
        return protocol_of(self.parameters).machines.server.resume(
            state, key, parameters=self.parameters, roster=self.roster, identity=self.identity, threads=self.threads
        )


def require_peer(machine: object) -> Peer:
    """Return the client machine, or raise ``LocalProtocolError``."""
    if not hasattr(machine, "answer"):
        raise LocalProtocolError(f"this journal keeps a client, got {type(machine).__name__}: give session.client(...)")
    return cast("Peer", machine)


def require_aggregator(machine: object) -> Aggregator:
    """Return the server machine, or raise ``LocalProtocolError``."""
    if not hasattr(machine, "end_step"):
        raise LocalProtocolError(f"this journal keeps a server, got {type(machine).__name__}: give session.server(...)")
    return cast("Aggregator", machine)


def require_callable(what: str, given: object) -> None:
    """Raise ``LocalProtocolError`` unless ``given`` is callable."""
    if not callable(given):
        raise LocalProtocolError(f"{what} must be a function, got {type(given).__name__}: give a lambda, for example")


def require_panel(panel: object) -> None:
    """Raise ``LocalProtocolError`` unless ``panel`` is a panel."""
    if not isinstance(panel, Panel):
        raise LocalProtocolError(
            f"a panel is a secagg.Panel, got {type(panel).__name__}: make it of all members' offers"
        )


def require_threads(threads: object) -> None:
    """Raise ``LocalProtocolError`` unless ``threads`` is a positive int."""
    if isinstance(threads, bool) or not isinstance(threads, int) or threads < 1:
        raise LocalProtocolError(f"threads must be an integer of at least 1, got {threads!r:.20}")


def require_member(parameters: object, identity: object) -> UploadParameters:
    """Return the parameters; raise ``LocalProtocolError`` without a panel protocol or an identity."""
    protocol_of(cast("Masking", parameters))  # refuses a plan, for example
    require_identity(identity)
    if not isinstance(parameters, UploadParameters):
        raise LocalProtocolError('there is a panel only under a plan with protocol="split": give its plan.masking')
    return parameters
