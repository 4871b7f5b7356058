"""The files of a client's journal: one sealed file that is replaced atomically, and its counter outside of it.

Independent of the machine: the client's journal uses it, and functions that change a journal without its machine.

A client keeps its last answer after its end, and nothing else. Its secrets are gone before that answer leaves, so a
server that is killed while last answers are on their way would have lost the session. The kept answer is sealed for
the server, and sent only for the message that it answers.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Self

import msgspec

from privstats.engines.journal.base import held, held_briefly, path_of, written
from privstats.engines.journal.rollback import Counter, Mark, outside_of, require_counted
from privstats.engines.records import check_key, read_sealed, write_sealed
from privstats.files.outside import Outside
from privstats.secagg.wire import HiddenRepr


class Saved(HiddenRepr, msgspec.Struct, frozen=True, omit_defaults=True):
    """A client's sealed state; without a state the client has ended, and its last answer may remain.

    ``receipt`` and ``agreement`` stay: neither is secret. A report that was sent is useless from ``until`` on, when the
    box keys end that it is sealed to. ``charged`` marks a client whose ``on_upload``, of the machine or of
    :meth:`JournaledClient.create`, must be called before an upload is sent; if an older privstats wrote the file, the
    machine's own flag decides. ``mark`` identifies this copy. ``known_noise`` marks a vector whose noise others may
    know, a simulation's.
    """

    state: bytes
    question: bytes = b""
    answer: bytes = b""
    receipt: bytes = b""
    agreement: dict[int, bytes] = {}
    until: int = 0
    charged: bool = False
    mark: Mark = Mark()
    known_noise: bool = False

    @property
    def ended(self) -> bool:
        """Whether only the permanent fields are still needed."""
        return not self.state or 0 < self.until <= time.time()

    def kept(self) -> Saved:
        """The permanent fields alone."""
        return Saved(b"", receipt=self.receipt, agreement=self.agreement)


class ClientFile:
    """The file of one client's journal; a journal makes it with :meth:`held`.

    Args:
        path: the file.
        key: 32 bytes under which it is sealed.
        lock: a handle that holds its lock; -1 while it is only read, or is locked briefly.
        outside: the counter in the user's state folder, see :func:`client_outside`.
    """

    def __init__(self, path: Path, key: bytes, lock: int = -1, *, outside: Outside | None = None) -> None:
        self.path, self.key, self.lock = path, key, lock
        self._counter, self._mark = Counter.of(path.parent, path.name, outside=outside), Mark()

    @classmethod
    @contextmanager
    def held(cls, path: object, key: bytes, outside: Outside | None = None) -> Iterator[Self]:
        """Lock the file against every other process and object; unlock it if the block fails.

        Raises:
            InUseError: another process or object holds the lock.
            LocalProtocolError: ``path`` is not a path, or ``key`` not 32 bytes; or the lock cannot be made.
        """
        place = path_of(path)
        check_key(key)
        with held(_lock_of(place)) as lock:
            yield cls(place, key, lock, outside=outside)

    def read(self) -> Saved:
        """The content of the file, without a rollback check.

        Raises:
            NothingToResumeError: there is no journal.
            LocalProtocolError: another key, or damage; or no release wrote it.
        """
        saved = msgspec.msgpack.decode(read_sealed(self.path, self.key), type=Saved)
        require_counted(saved.mark, self.path)
        self._mark = saved.mark
        return saved

    def require_newest(self) -> None:
        """Refuse a journal that was restored or copied; raises as :meth:`Counter.require_newest`."""
        self._counter.require_newest(self._mark, self.path, "client", "it was written")

    def catch_up(self) -> None:
        """Count a client that has ended, where a kill kept that from being written; raises as :meth:`Counter.keep`."""
        self._counter.catch_up(self._mark.count)

    def require_new(self) -> None:
        """Refuse to begin where this client began before; raises as :meth:`Counter.require_new`."""
        self._counter.require_new(self.path, "client")

    def replace(self, saved: Saved) -> None:
        """Replace the content, so that every existing copy becomes an older one; on disk when this returns.

        Raises:
            OSError: the file could not be written.
        """
        self._mark = self._counter.after(self._mark)
        mark = self._mark if saved.state else Mark(self._mark.count)  # ended: it may be copied, and is only counted
        marked = msgspec.structs.replace(saved, mark=mark)
        write_sealed(self.path, self.key, msgspec.msgpack.encode(marked))
        self._counter.keep(self._mark.count)


def client_outside(session: bytes, index: int) -> Outside | None:
    """Return where a session's client stores its counter in the user's state folder; None for a session without a
    name."""
    return outside_of("client", session, index.to_bytes(8, "big"))


def _lock_of(path: Path) -> Path:
    """Return the path of a lock file next to the journal, because the journal itself is replaced at every save."""
    return path.with_name(path.name + ".lock")


def forget_answer(path: str | os.PathLike[str], key: bytes) -> None:
    """Remove the last answer of an ended client, or a report after its panel's end; otherwise do nothing.

    Raises:
        NothingToResumeError: there is no journal.
        LocalProtocolError: another key, damage, or another process or object uses it; or it cannot be written.
    """
    place = path_of(path)
    with held_briefly(_lock_of(place)), written(place):
        file = ClientFile(place, key)
        saved = file.read()
        if saved.ended:
            file.replace(saved.kept())


def never(path: str | os.PathLike[str], key: bytes, outside: Outside | None = None) -> None:
    """Prevent any client from starting here: if there is no journal, write that of an ended client.

    Args:
        path: the client's file.
        key: 32 bytes under which it is sealed.
        outside: as for :class:`ClientFile`: it keeps one from starting in an older copy of the folder, too.

    Raises:
        InUseError: another process or object is making one.
        LocalProtocolError: it cannot be written.
    """
    place = path_of(path)
    with held_briefly(_lock_of(place)), written(place):
        if not place.exists():
            ClientFile(place, key, outside=outside).replace(Saved(b""))


def left_by(path: str | os.PathLike[str], key: bytes) -> tuple[bytes, dict[int, bytes]]:
    """Receipt and agreement of a client that ended at any earlier time; both empty if it has not ended or has none.

    Raises:
        NothingToResumeError: there is no journal.
        LocalProtocolError: another key, or damage.
    """
    saved = ClientFile(path_of(path), key).read()
    return (b"", {}) if saved.state else (saved.receipt, saved.agreement)
