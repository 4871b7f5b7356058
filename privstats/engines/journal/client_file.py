"""What a client leaves on the disk: one sealed file that is replaced whole, and its count outside of it.

Knows no machine. Under the client's journal, and what others do to a journal without its machine.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Self

import msgspec

from privstats.engines.journal.lock import held, held_briefly, path_of
from privstats.engines.journal.rollback import Counter, Mark
from privstats.engines.records import check_key, read_sealed, write_sealed
from privstats.secagg.wire import Unshown

__all__ = ["ClientFile", "Saved", "forget_answer", "left_by", "never"]


class Saved(Unshown, msgspec.Struct, frozen=True, omit_defaults=True):
    """A client's sealed state; without one the client has ended, and may be left with its last answer.

    What says which upload was its own, and who signed the list that it is on, stay for good: neither is secret. A
    report that has left is of no use from ``until`` on, when the box keys end that it is sealed to. ``charged`` says
    that somebody must be told before an upload leaves, the machine's own or :meth:`JournaledClient.create`'s; where an
    older privstats wrote the file, the machine says so. ``mark`` says which of its copies this is.
    """

    state: bytes
    question: bytes = b""
    answer: bytes = b""
    receipt: bytes = b""
    agreement: dict[int, bytes] = {}
    until: int = 0
    charged: bool = False
    mark: Mark = Mark()

    @property
    def ended(self) -> bool:
        """Whether nothing of it is needed any more but what stays for good."""
        return not self.state or 0 < self.until <= time.time()

    def kept(self) -> Saved:
        """What stays for good."""
        return Saved(b"", receipt=self.receipt, agreement=self.agreement)


class ClientFile:
    """The file of one client's journal. Made with :meth:`held` by whoever keeps it.

    Args:
        path: where it is.
        key: 32 bytes that it is sealed under.
        lock: a handle that holds its lock; none while it is only read, or is held briefly.
    """

    def __init__(self, path: Path, key: bytes, lock: int = -1) -> None:
        self.path, self.key, self.lock = path, key, lock
        self._counter, self._mark = Counter.of(path.parent, path.name), Mark()

    @classmethod
    @contextmanager
    def held(cls, path: object, key: bytes) -> Iterator[Self]:
        """The file against every other process and object; let go of if the block fails.

        Raises:
            InUseError: somebody holds it.
            LocalProtocolError: ``path`` is no path, or ``key`` not 32 bytes; or the lock cannot be made.
        """
        place = path_of(path)
        check_key(key)
        with held(_lock_of(place)) as lock:
            yield cls(place, key, lock)

    def read(self) -> Saved:
        """What is in it, whether or not that is the newest.

        Raises:
            NothingToResumeError: there is no journal.
            LocalProtocolError: another key, or damage.
        """
        saved = msgspec.msgpack.decode(read_sealed(self.path, self.key), type=Saved)
        self._mark = saved.mark
        return saved

    def require_newest(self) -> None:
        """Refuse a journal that was restored or copied; raises as :meth:`Counter.require_newest`."""
        self._counter.require_newest(self._mark, self.path, "client", "it was written")

    def replace(self, saved: Saved) -> None:
        """Replace what is there, and make every copy of it an older one; on disk when this returns.

        Raises:
            OSError: it could not be written.
        """
        self._mark = self._counter.after(self._mark)
        marked = msgspec.structs.replace(saved, mark=self._mark) if saved.state else saved  # ended, any copy is as good
        write_sealed(self.path, self.key, msgspec.msgpack.encode(marked))
        self._counter.keep(self._mark.count)


def _lock_of(path: Path) -> Path:
    """A file beside the journal, because the journal itself is replaced at every save."""
    return path.with_name(path.name + ".lock")


def forget_answer(path: str | os.PathLike[str], key: bytes) -> None:
    """Remove the last answer of a client that has ended, or a report whose panel has; another one is left as it is.

    Raises:
        NothingToResumeError: there is no journal.
        LocalProtocolError: another key, damage, or somebody is at it.
    """
    place = path_of(path)
    with held_briefly(_lock_of(place)):
        file = ClientFile(place, key)
        saved = file.read()
        if saved.ended:
            file.replace(saved.kept())


def never(path: str | os.PathLike[str], key: bytes) -> None:
    """Make sure that no client begins here: where there is no journal, leave that of one that has ended.

    Raises:
        InUseError: somebody is making one.
        LocalProtocolError: it cannot be written.
    """
    place = path_of(path)
    with held_briefly(_lock_of(place)):
        if not place.exists():
            ClientFile(place, key).replace(Saved(b""))


def left_by(path: str | os.PathLike[str], key: bytes) -> tuple[bytes, dict[int, bytes]]:
    """Receipt and agreement of a client that has ended, however long ago; both empty where it has not, or has none.

    Raises:
        NothingToResumeError: there is no journal.
        LocalProtocolError: another key, or damage.
    """
    saved = ClientFile(path_of(path), key).read()
    return (b"", {}) if saved.state else (saved.receipt, saved.agreement)
