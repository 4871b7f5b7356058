"""Whether a run's folder is an older copy of itself: a count outside of the home, and which folder it is.

A helper that goes on from a backup has a twin that may have answered another list. The count stands beside the home, in
``<home>.counts``, so it shows where the home alone was put back; the folder's number shows where it was copied. A
machine that is put back whole, disk and all, shows neither. Under the helper's journal.
"""

from __future__ import annotations

from pathlib import Path

from privstats.files import write_whole

__all__ = ["count_of", "identity_of", "is_restored", "keep_count"]


def identity_of(run: Path) -> int:
    """The number that the file system gave the folder; a copy has another."""
    return run.stat().st_ino


def count_of(run: Path) -> int:
    """How much had happened in a run when something last left it; 0 where nothing is known, or can be read."""
    try:
        return int(_beside(run).read_text())
    except (OSError, ValueError):
        return 0


def keep_count(run: Path, count: int) -> None:
    """Keep what has happened by now, on disk when this returns; called after the journal and before anything leaves.

    Raises:
        PrivstatsError: it cannot be written.
    """
    _beside(run).parent.mkdir(mode=0o700, exist_ok=True)
    write_whole(_beside(run), f"{count}\n".encode())


def is_restored(run: Path, identity: int, count: int) -> bool:
    """Whether the folder is not the one that was bound, or has seen less than was kept.

    Args:
        run: the folder.
        identity: what :func:`identity_of` gave when the box key was bound; 0 for a journal of an earlier version.
        count: what has happened according to the journal.
    """
    return identity not in (0, identity_of(run)) or count < count_of(run)


def _beside(run: Path) -> Path:
    home = run.parent
    return home.with_name(f"{home.name}.counts") / run.name
