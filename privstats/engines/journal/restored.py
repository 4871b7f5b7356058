"""Whether a journal is an older copy of itself: a count outside of it, and the number of the folder that it lies in.

A machine that goes on from a backup has a twin that may have answered another list. The count stands beside the folder,
in ``<folder>.counts``, and is written after the journal and before anything leaves: no kill makes it larger than the
journal's own, and a journal that was put back alone has less. The folder's number shows where it was copied. A disk
that is put back whole shows neither. Under the journals of all roles.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import msgspec

from privstats.engines.records import write_synced
from privstats.errors import RestoredError
from privstats.secagg.wire import Unshown
from privstats.system import sync_folder

__all__ = ["Counter", "Mark", "identity_of"]


class Mark(Unshown, msgspec.Struct, frozen=True, omit_defaults=True):
    """What a journal knows of itself: how much has happened in it, and the number of its folder.

    Both are 0 in a journal of a version that kept neither; the folder's is also 0 where any folder will do.
    """

    count: int = 0
    folder: int = 0

    @property
    def next(self) -> Mark:
        """The mark after one thing more."""
        return Mark(self.count + 1, self.folder)


@dataclass(frozen=True)
class Counter:
    """The count of one journal, outside of it.

    Attributes:
        folder: the folder whose number the journal keeps.
        path: the file of the count.
    """

    folder: Path
    path: Path

    @classmethod
    def of(cls, folder: Path, name: str, *, beside: Path | None = None) -> Counter:
        """The count ``name`` in a folder beside ``folder``, or beside another one."""
        home = folder if beside is None else beside
        return cls(folder, home.parent / f"{home.name}.counts" / name)

    @property
    def kept(self) -> int:
        """How much had happened when something last left; 0 where nothing is known, or can be read."""
        try:
            return int(self.path.read_text())
        except (OSError, ValueError):
            return 0

    def keep(self, count: int) -> None:
        """Keep what has happened by now, on disk when this returns; called after the journal is written.

        Raises:
            OSError: it cannot be written; it names the file.
        """
        try:
            if not self.path.parent.exists():
                self.path.parent.mkdir(mode=0o700, exist_ok=True)
                sync_folder(self.path.parent.parent)
            write_synced(self.path, f"{count}\n".encode())
        except OSError as error:
            raise OSError(error.errno, f"{error.strerror}: {self.path}") from None

    def after(self, mark: Mark) -> Mark:
        """The mark of a journal that is written here and now: more than anything that was kept or written before."""
        return Mark(max(mark.count, self.kept) + 1, identity_of(self.folder))

    def is_older(self, mark: Mark) -> bool:
        """Whether a journal with this mark has seen less than was kept, or was written in another folder."""
        return mark.folder not in (0, identity_of(self.folder)) or mark.count < self.kept

    def require_newest(self, mark: Mark, place: Path, role: str, since: str) -> None:
        """Refuse a journal that was put back or copied; keep the count where a kill came before that.

        Args:
            mark: the journal's.
            place: where it is, for the sentence.
            role: whose journal it is, for the sentence.
            since: after what it must not be put back, for the sentence.

        Raises:
            RestoredError: it was.
            OSError: the count cannot be written.
        """
        if self.is_older(mark):
            raise RestoredError(
                f"{place} was put back or copied after {since}, so a twin of this {role} may have answered: let the "
                "run be given up, or, if you know that it has not, resume with restored=True"
            )
        if mark.count > self.kept:
            self.keep(mark.count)


def identity_of(folder: Path) -> int:
    """The number that the file system gave the folder; a copy has another."""
    return folder.stat().st_ino
