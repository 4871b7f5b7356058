"""Locks of journals: one process at a time, and no further use after a failed write.

The operating system holds the lock, so it ends with the process in every case. The journaled machines use this module;
it does not depend on what they write.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

from privstats.engines.journal.argument_checks import require_threads
from privstats.errors import InUseError, LocalProtocolError, PrivstatsError, ProtocolError
from privstats.secagg import Identity, Roster
from privstats.secagg.exclusive import Exclusive, exclusive
from privstats.secagg.machines import Aggregator, Masking
from privstats.secagg.protocols import protocol_of
from privstats.system import lock, unlock

__all__ = [
    "JournalBase",
    "ServerPlace",
    "held",
    "held_briefly",
    "made_directory",
    "path_of",
    "remove_logs",
    "written",
]


_NOT_WRITTEN = "could not be written, so nothing was sent: repair that, close it and resume"


class JournalBase(Exclusive):
    """A machine whose state is on disk under a lock; as a context manager it releases the lock.

    Args:
        lock: a handle that holds the lock, from :func:`held`.
        place: file or directory, for messages.
    """

    def __init__(self, lock: int, place: Path) -> None:
        self._lock, self._place = lock, place
        self._gone = ""

    @contextmanager
    def _acting(self, refused: type[PrivstatsError] = ProtocolError) -> Iterator[None]:
        """Guard a step: if it is interrupted, the state in memory is invalid and the state on disk stays valid.

        An error of the class ``refused`` invalidates nothing: it is raised before anything has changed.
        """
        if self._gone:
            raise LocalProtocolError(f"the journal {self._place} {self._gone}")
        try:
            yield
        except refused:
            raise
        except OSError as error:
            self._give_up(_NOT_WRITTEN)
            raise LocalProtocolError(f"the journal {self._place} {self._gone} ({error.strerror})") from error
        except BaseException:
            self._give_up("was interrupted, so nothing was sent: close it and resume")
            raise

    def _give_up(self, why: str) -> None:
        self._gone = why

    @exclusive
    def close(self) -> None:
        """Release the lock, so that another process can resume; this object is unusable afterwards. Idempotent."""
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
def held(place: Path) -> Iterator[int]:
    """Lock a folder or a file against every other process and object; unlock it if the block fails.

    Raises:
        InUseError: another process or object holds the lock.
        LocalProtocolError: the folder or file cannot be opened.
    """
    try:
        handle = lock(place)
    except BlockingIOError:
        raise InUseError(f"{place} is in use by another process or object: let it end or close it") from None
    except OSError as error:
        raise LocalProtocolError(f"the journal {place} cannot be opened ({error.strerror})") from None
    try:
        yield handle
    except BaseException:
        unlock(handle)
        raise


@contextmanager
def held_briefly(place: Path) -> Iterator[None]:
    """Like :func:`held`, and always unlock at the end of the block."""
    with held(place) as handle:
        yield
    unlock(handle)


@contextmanager
def written(place: Path) -> Iterator[None]:
    """Turn a system error, while a journal is written before its machine acts, into one sentence.

    Raises:
        LocalProtocolError: a write failed; its cause is the system's error.
    """
    try:
        yield
    except OSError as error:
        raise LocalProtocolError(f"the journal {place} {_NOT_WRITTEN} ({error.strerror})") from error


def path_of(path: object) -> Path:
    """The resolved path of a journal, which does not depend on the current folder or on links.

    Raises:
        LocalProtocolError: ``path`` is not a path.
    """
    if not isinstance(path, str | os.PathLike):
        raise LocalProtocolError(f"a journal is kept at a path, got {type(path).__name__}")
    return Path(path).resolve()


def made_directory(path: object) -> Path:
    """The directory at ``path``, created if it does not exist; raises ``LocalProtocolError`` if that fails."""
    directory = path_of(path)
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise LocalProtocolError(f"the directory {directory} cannot be made ({error.strerror})") from None
    return directory


def remove_logs(directory: Path, keep: int | None) -> None:
    """Remove stale logs of a process that died between a snapshot and the removal of the previous log."""
    for stale in set(directory.glob("log.*")) - {directory / f"log.{keep}"}:
        stale.unlink()


@dataclass(frozen=True)
class ServerPlace:
    """The arguments for resuming a server, beside its saved state."""

    parameters: Masking
    roster: Roster
    identity: Identity
    threads: int

    def __post_init__(self) -> None:
        protocol_of(self.parameters)  # refuses a plan, for example, before anything is on the disk
        require_threads(self.threads)

    def resumed(self, state: bytes, key: bytes) -> Aggregator:
        """The machine that was sealed in ``state``."""
        return protocol_of(self.parameters).machines.server.resume(
            state,
            key,
            parameters=self.parameters,
            roster=self.roster,
            identity=self.identity,
            threads=self.threads,
        )
