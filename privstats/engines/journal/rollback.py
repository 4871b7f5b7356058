"""Detect rollback: an older copy of a journal is recognised by counters outside of it and by the folder's inode.

One counter is next to the folder, in ``<folder>.counts``; another, in the user's state folder, survives a restored
party folder. Writes go journal, near counter, outer counter, message: no kill makes a counter exceed the journal's
count, and every sent message is counted. Restoring a complete disk is not detected.
"""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

import msgspec

from privstats.engines.records import write_synced
from privstats.errors import LocalProtocolError, RestoredError
from privstats.files.outside import Outside
from privstats.secagg import Roster
from privstats.secagg.machines import Masking, session_id
from privstats.secagg.wire import HiddenRepr
from privstats.system import open_plain, sync_folder

_ROSTER_BYTES, _SHORT, _SERVER = 32, 16, "server"


class Mark(HiddenRepr, msgspec.Struct, frozen=True, omit_defaults=True):
    """A journal's own record: its number of events, and its folder's inode, 0 for any folder."""

    count: int = 0
    folder: int = 0

    @property
    def next(self) -> Mark:
        """The mark after one more event."""
        return Mark(self.count + 1, self.folder)


def require_counted(mark: Mark, path: Path) -> None:
    """Refuse a journal with count 0: an older copy of it would go unnoticed."""
    if not mark.count:
        raise LocalProtocolError(
            f"{path} is a journal from before the first release of privstats and no longer read: end the run, and "
            "begin it anew under another name"
        )


_MOST_DIGITS = 40


@dataclass(frozen=True)
class Counter:
    """The counters of one journal, outside of it.

    Attributes:
        folder: the journal records its inode.
        path: the counter's file next to the folder.
        outside: the outer counter; None for a run without a name.
    """

    folder: Path
    path: Path
    outside: Outside | None = None

    @classmethod
    def of(cls, folder: Path, name: str, *, beside: Path | None = None, outside: Outside | None = None) -> Counter:
        """Return the counter ``name``, stored next to ``beside`` or else next to ``folder``."""
        home = folder if beside is None else beside
        return cls(folder, home.parent / f"{home.name}.counts" / name, outside)

    @property
    def stored(self) -> int:
        """The count when the machine last sent a message; 0 without a counter.

        Raises:
            OSError: a counter exists and cannot be read.
            LocalProtocolError: a counter is damaged.
        """
        return max(self._beside, self._outside)

    @property
    def begun(self) -> bool:
        """Whether a machine at this index acted before, by the outer counter."""
        return self._outside > 0

    @property
    def _beside(self) -> int:
        try:
            with open_plain(self.path) as file:
                return _number(file.read(_MOST_DIGITS), self.path)
        except FileNotFoundError:
            return 0
        except OSError as error:
            raise OSError(error.errno, f"{error.strerror}: {self.path}") from None

    @property
    def _outside(self) -> int:
        value = None if self.outside is None else self.outside.read()
        return 0 if self.outside is None or value is None else _number(value, self.outside.path)

    def keep(self, count: int) -> None:
        """Write the count to disk; call it after writing the journal, before sending."""
        self._keep_beside(count)
        if self.outside is not None:
            self.outside.write(f"{count}\n".encode())

    def _keep_beside(self, count: int) -> None:
        try:
            if not self.path.parent.exists():
                self.path.parent.mkdir(mode=0o700, exist_ok=True)
                sync_folder(self.path.parent.parent)
            write_synced(self.path, f"{count}\n".encode())
        except OSError as error:
            raise OSError(error.errno, f"{error.strerror}: {self.path}") from None

    def after(self, mark: Mark) -> Mark:
        """Return the mark for a journal written now; its count exceeds all earlier ones."""
        return Mark(max(mark.count, self.stored) + 1, inode_of(self.folder))

    def is_older(self, mark: Mark) -> bool:
        """Return whether this mark's count is below the counter, or its folder is another one."""
        return mark.folder not in (0, inode_of(self.folder)) or mark.count < self.stored

    def require_newest(self, mark: Mark, path: Path, role: str, since: str) -> None:
        """Refuse a restored or copied journal by ``RestoredError``; write the count that a kill prevented.

        ``path``, ``role`` and ``since`` are for the error.
        """
        if self.is_older(mark):
            raise RestoredError(
                f"{path} was restored from a backup or copied after {since}, so another copy of this {role} may have "
                "answered: end the run, or, if you know that no copy has answered, resume with restored=True"
            )
        self.catch_up(mark.count)

    def catch_up(self, count: int) -> None:
        """Write a journal's count where a kill prevented it.

        Otherwise an older copy would be accepted later.
        """
        if count > self._beside or (self.outside is not None and count > self._outside):
            self.keep(count)

    def require_new(self, path: Path, role: str) -> None:
        """Refuse to begin where a machine at this roster index began before and its journal is missing."""
        try:
            begun = self.begun
        except OSError as error:
            raise LocalProtocolError(f"{path} cannot begin: its counter is unreadable ({error.strerror})") from error
        if begun and self.outside is not None:
            raise RestoredError(
                f"{path} holds nothing, and a {role} of this run began on this machine before, as {self.outside.path} "
                f"says: its folder was restored from a backup, and another {role} under one run name reveals single "
                "vectors; bring the newest folder back, or name another run"
            )


def _number(written: bytes, path: Path) -> int:
    """Parse a counter. Each is replaced as a whole, so no kill or full disk leaves part of one."""
    digits = written.removesuffix(b"\n")
    if not digits.isdigit():
        raise LocalProtocolError(
            f"{path} is damaged: it must hold the number of this machine's messages, without which an older copy of "
            "its folder goes unnoticed. End the run and begin it under another name, or, if you know that no copy "
            "of the folder has answered, remove that file and resume"
        )
    return int(digits)


def outside_of(role: str, session: bytes, who: bytes = b"") -> Outside | None:
    """Return one machine's counter in the user's state folder; None for a session without a name.

    ``who`` distinguishes the machines of one role.
    """
    if not session:
        return None
    name = sha256(session[_ROSTER_BYTES:] + who).hexdigest()[:_SHORT]
    return Outside(("counts", session[:_ROSTER_BYTES].hex(), f"{role}.{name}"))


def server_outside(parameters: Masking, roster: Roster) -> Outside | None:
    """Return a server's or leader's counter in the user's state folder.

    A fresh server is never refused: clients and helpers answer only the server they know.
    """
    return outside_of(_SERVER, session_id(parameters, roster))


def inode_of(folder: Path) -> int:
    """Return the folder's inode number; a copy has another."""
    return folder.stat().st_ino
