"""Rollback detection: whether a journal is an older copy of itself, by a counter outside of it and the folder's inode.

If a machine resumes from a backup, another copy of it may have answered another list. The counter stands beside the
folder, in ``<folder>.counts``, and is written after the journal and before anything is sent: no kill makes it larger
than the journal's own count, and a journal that was restored alone has a smaller one. The inode shows that a journal
was copied. Neither detects that a whole disk was restored. The journals of all roles use this module.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import msgspec

from privstats.engines.records import write_synced
from privstats.errors import RestoredError
from privstats.secagg.wire import Unshown
from privstats.system import sync_folder

__all__ = ["Counter", "Mark", "inode_of"]


class Mark(Unshown, msgspec.Struct, frozen=True, omit_defaults=True):
    """A journal's own record: its number of events, and the inode of its folder.

    Both are 0 in a journal of a version that recorded neither; the inode is also 0 if the journal may be in any folder.
    """

    count: int = 0
    folder: int = 0

    @property
    def next(self) -> Mark:
        """The mark after one more event."""
        return Mark(self.count + 1, self.folder)


@dataclass(frozen=True)
class Counter:
    """The counter of one journal, outside of it.

    Attributes:
        folder: the folder whose inode the journal records.
        path: the counter's file.
    """

    folder: Path
    path: Path

    @classmethod
    def of(cls, folder: Path, name: str, *, beside: Path | None = None) -> Counter:
        """The counter ``name`` in a folder beside ``folder``, or beside another one."""
        home = folder if beside is None else beside
        return cls(folder, home.parent / f"{home.name}.counts" / name)

    @property
    def kept(self) -> int:
        """The count when the machine last sent a message; 0 if the file is missing or unreadable."""
        try:
            return int(self.path.read_text())
        except (OSError, ValueError):
            return 0

    def keep(self, count: int) -> None:
        """Write the count, on disk when this returns; called after the journal is written.

        Raises:
            OSError: the file, which the error names, cannot be written.
        """
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
        if mark.count > self.kept:
            self.keep(mark.count)


def inode_of(folder: Path) -> int:
    """The folder's inode number; a copy has another."""
    return folder.stat().st_ino
