"""The files of a client's journal: one sealed file that is replaced atomically, and its counter outside of it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Self

import msgspec

from privstats.engines.journal.base import held, held_briefly, path_of, written
from privstats.engines.journal.expiry import forget_look, look
from privstats.engines.journal.rollback import Counter, Mark, outside_of, require_counted
from privstats.engines.records import check_key, read_sealed, write_sealed
from privstats.files.decoding import from_msgpack
from privstats.files.outside import Outside
from privstats.secagg.wire import HiddenRepr


class Saved(HiddenRepr, msgspec.Struct, frozen=True, omit_defaults=True):
    """A client's sealed state; without a state the client has ended, and its last answer may remain.

    ``receipt`` and ``agreement`` are not secret and stay. After ``until`` a sent report's box keys have ended.
    ``charged`` requires ``on_upload`` before an upload. ``mark`` identifies this copy. ``known_noise`` marks noise that
    others may know.
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

    def permanent(self) -> Saved:
        """Return the permanent fields alone."""
        return Saved(b"", receipt=self.receipt, agreement=self.agreement)


class ClientFile:
    """The file of one client's journal.

    Args:
        lock: a handle that holds its lock; -1 without one.
        outside: the counter in the user's state folder.
    """

    def __init__(self, path: Path, key: bytes, lock: int = -1, *, outside: Outside | None = None) -> None:
        self.path, self.key, self.lock = path, key, lock
        self._counter, self._mark = Counter.of(path.parent, path.name, outside=outside), Mark()

    @classmethod
    @contextmanager
    def held(cls, path: object, key: bytes, outside: Outside | None = None) -> Iterator[Self]:
        """Lock the file, or raise ``InUseError``; unlock it if the block fails."""
        place = path_of(path)
        check_key(key)
        with held(_lock_of(place)) as lock:
            yield cls(place, key, lock, outside=outside)

    def read(self) -> Saved:
        """Return the file's content, without a rollback check.

        Raises as :func:`~privstats.engines.records.read_sealed`.
        """
        saved = from_msgpack(read_sealed(self.path, self.key), Saved)
        if saved.state:  # 0.2.0 counted no ended client, whose copies repeat one answer
            require_counted(saved.mark, self.path)
        self._mark = saved.mark
        return saved

    def is_expired(self, saved: Saved) -> bool:
        """Return whether the report that is stored can no longer be opened, confirmed by a second look a day later."""
        return bool(saved.state and saved.until) and look(saved.until, self.path) == "passed"

    def require_newest(self) -> None:
        """See :meth:`Counter.require_newest`."""
        self._counter.require_newest(self._mark, self.path, "client", "it was written")

    def catch_up(self) -> None:
        """Write the count of an ended client where a kill prevented that."""
        self._counter.catch_up(self._mark.count)

    def require_new(self) -> None:
        """See :meth:`Counter.require_new`."""
        self._counter.require_new(self.path, "client")

    def replace(self, saved: Saved) -> None:
        """Replace the content on disk, so that every existing copy becomes an older one."""
        self._mark = self._counter.after(self._mark)
        mark = self._mark if saved.state else Mark(self._mark.count)  # ended: it may be copied, and is only counted
        marked = msgspec.structs.replace(saved, mark=mark)
        write_sealed(self.path, self.key, msgspec.msgpack.encode(marked))
        self._counter.keep(self._mark.count)


def client_outside(session: bytes, index: int) -> Outside | None:
    """Return a client's counter in the user's state folder; None for a session without a name."""
    return outside_of("client", session, index.to_bytes(8, "big"))


def _lock_of(path: Path) -> Path:
    """Return the path of the lock file."""
    # The journal cannot be the lock, because saves replace it.
    return path.with_name(path.name + ".lock")


def forget_answer(path: str | os.PathLike[str], key: bytes) -> None:
    """Remove an ended client's last answer, or a report after its panel's end; raises as :meth:`ClientFile.read`."""
    place = path_of(path)
    with held_briefly(_lock_of(place)), written(place):
        file = ClientFile(place, key)
        saved = file.read()
        if not saved.state or file.is_expired(saved):
            file.replace(saved.permanent())
            forget_look(place)


def never(path: str | os.PathLike[str], key: bytes, outside: Outside | None = None) -> None:
    """Prevent any client from starting here, also in an older copy of the folder: write an ended client's journal."""
    place = path_of(path)
    with held_briefly(_lock_of(place)), written(place):
        if not place.exists():
            ClientFile(place, key, outside=outside).replace(Saved(b""))


def receipt_and_agreement(path: str | os.PathLike[str], key: bytes) -> tuple[bytes, dict[int, bytes]]:
    """Return an ended client's receipt and agreement, otherwise both empty; raises as :meth:`ClientFile.read`."""
    saved = ClientFile(path_of(path), key).read()
    return (b"", {}) if saved.state else (saved.receipt, saved.agreement)
