"""Detect rollback: an older copy of a journal is recognised by counters outside of it and by the folder's inode.

If a machine resumes from a backup, another copy of it may have answered another list. One counter is stored next to the
folder, in ``<folder>.counts``, and another in the user's state folder, under the roster's digest, because restoring a
party's folder in place restores the first one too. The order is journal, counter next to it, counter outside, message:
no kill makes a counter larger than the journal's own count, so none locks a party out, and every sent message is
counted. The inode shows that a journal was copied. None of them detects the restoring of a complete disk. The journals
of all roles use this module.
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
from privstats.system import sync_folder

_ROSTER_BYTES, _SHORT, _SERVER = 32, 16, "server"


class Mark(HiddenRepr, msgspec.Struct, frozen=True, omit_defaults=True):
    """A journal's own record: its number of events, and the inode of its folder.

    The inode is 0 if the journal may be in any folder.
    """

    count: int = 0
    folder: int = 0

    @property
    def next(self) -> Mark:
        """The mark after one more event."""
        return Mark(self.count + 1, self.folder)


def require_counted(mark: Mark, place: Path) -> None:
    """Refuse a journal that has counted nothing: no release wrote one, and an older copy of it would go unnoticed.

    Raises:
        LocalProtocolError: naming the journal.
    """
    if not mark.count:
        raise LocalProtocolError(
            f"{place} is a journal from before the first release of privstats and no longer read: end the run, and "
            "begin it anew under another name"
        )


@dataclass(frozen=True)
class Counter:
    """The counters of one journal, outside of it.

    Attributes:
        folder: the folder; the journal records its inode.
        path: the file of the counter next to it.
        outside: the counter in the user's state folder; None for a run without a name, which cannot be distinguished
            from others.
    """

    folder: Path
    path: Path
    outside: Outside | None = None

    @classmethod
    def of(cls, folder: Path, name: str, *, beside: Path | None = None, outside: Outside | None = None) -> Counter:
        """Return the counter ``name`` in a folder next to ``folder``, or next to ``beside``."""
        home = folder if beside is None else beside
        return cls(folder, home.parent / f"{home.name}.counts" / name, outside)

    @property
    def kept(self) -> int:
        """The count when the machine last sent a message; 0 if no counter is there that can be read."""
        return max(self._beside, self._outside)

    @property
    def begun(self) -> bool:
        """Whether the counter outside shows that a machine at this index of the roster has acted before."""
        return self._outside > 0

    @property
    def _beside(self) -> int:
        try:
            return int(self.path.read_text())
        except (OSError, ValueError):
            return 0

    @property
    def _outside(self) -> int:
        try:
            return int((self.outside and self.outside.read()) or 0)
        except ValueError:
            return 0

    def keep(self, count: int) -> None:
        """Write the count, on disk when this returns; called after the journal is written, before anything is sent.

        Raises:
            OSError: a file, which the error names, cannot be written.
        """
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
        """The mark for a journal that is written now: its count exceeds every earlier one."""
        return Mark(max(mark.count, self.kept) + 1, inode_of(self.folder))

    def is_older(self, mark: Mark) -> bool:
        """Whether a journal with this mark has a smaller count than the counter, or was written in another folder."""
        return mark.folder not in (0, inode_of(self.folder)) or mark.count < self.kept

    def require_newest(self, mark: Mark, place: Path, role: str, since: str) -> None:
        """Refuse a journal that was restored or copied; write the count that a kill kept from being written.

        Args:
            mark: the journal's mark.
            place: its path, for the error.
            role: its machine's role, for the error.
            since: the event after which it must not be restored, for the error.

        Raises:
            RestoredError: it was restored or copied.
            OSError: the count cannot be written.
        """
        if self.is_older(mark):
            raise RestoredError(
                f"{place} was restored from a backup or copied after {since}, so another copy of this {role} may have "
                "answered: end the run, or, if you know that no copy has answered, resume with restored=True"
            )
        self.catch_up(mark.count)

    def catch_up(self, count: int) -> None:
        """Write the count of a journal where a kill kept it from being written; raises as :meth:`keep`.

        Every journal that may go on, or repeat an answer, does so first: else an older copy would be let in later.
        """
        if count > self._beside or (self.outside is not None and count > self._outside):
            self.keep(count)

    def require_new(self, place: Path, role: str) -> None:
        """Refuse to begin where a machine at this index of the roster began before, and its journal is missing.

        Raises:
            RestoredError: the counter outside shows it.
        """
        if self.begun and self.outside is not None:
            raise RestoredError(
                f"{place} holds nothing, and a {role} of this run began on this machine before, as {self.outside.path} "
                f"says: its folder was restored from a backup, and another {role} under one run name reveals single "
                "vectors; bring the newest folder back, or name another run"
            )


def outside_of(role: str, session: bytes, who: bytes = b"") -> Outside | None:
    """Return where one machine stores its counter in the user's state folder; None for a session without a name.

    Args:
        role: the machine's role.
        session: as :func:`~privstats.secagg.machines.session_id` names it.
        who: distinguishes the machines of one role.
    """
    if not session:
        return None
    name = sha256(session[_ROSTER_BYTES:] + who).hexdigest()[:_SHORT]
    return Outside(("counts", session[:_ROSTER_BYTES].hex(), f"{role}.{name}"))


def server_outside(parameters: Masking, roster: Roster) -> Outside | None:
    """Return where a session's server, or its leader, stores its counter in the user's state folder.

    A fresh server is never refused: clients and helpers answer the server that they know, so a second one gets no sum.
    """
    return outside_of(_SERVER, session_id(parameters, roster))


def inode_of(folder: Path) -> int:
    """The folder's inode number; a copy has another."""
    return folder.stat().st_ino
