"""The head of a ledger, kept in a small file beside it: what tells an older copy from the ledger itself.

A chain inside one file cannot tell that its end is missing. This file can, as long as it is not put back together with
the ledger; a head that the caller keeps elsewhere can always. Below ``ledger_file``; it decides nothing about budgets.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from privstats.dp.ledger_records import Head
from privstats.errors import LedgerError, PrivstatsError
from privstats.files.atomic import atomic_write

__all__ = ["check_head", "head_path", "keep_head", "kept_head", "refuse_lost"]

_MOST_BYTES = 200


def head_path(path: Path) -> Path:
    """The file beside the ledger."""
    return path.with_name(path.name + ".head")


def kept_head(path: Path) -> Head | None:
    """The head beside the ledger at ``path``; None where that file is missing.

    Raises:
        LedgerError: the file cannot be read or holds something else.
    """
    beside = head_path(path)
    try:
        with beside.open("rb") as file:
            text = file.read(_MOST_BYTES)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise LedgerError(f"cannot read {beside}: {error.strerror}; it says how far the ledger has come") from None
    return Head.parse(text.decode("ascii", "replace"), f"what is in {beside}")


def keep_head(path: Path, head: Head) -> None:
    """Keep ``head``, unless a longer one is kept.

    Raises:
        LedgerError: the folder does not admit it; nothing may be spent then.
    """
    kept = kept_head(path)
    if kept is not None and kept.length >= head.length:
        return
    try:
        atomic_write(head_path(path), f"{head}\n".encode())
        head_path(path).chmod(path.stat().st_mode & 0o777)  # whoever may use the ledger needs both
    except (PrivstatsError, OSError) as error:
        raise LedgerError(f"{error}; nothing was spent") from None


def refuse_lost(path: Path) -> None:
    """A head without its ledger says that a ledger was lost: a new one would be a fresh budget for spent data.

    Raises:
        LedgerError: that is so.
    """
    kept = kept_head(path)
    if kept is not None and kept.length and not path.exists():
        raise LedgerError(
            f"a ledger of {kept.length} records was at {path} and is gone: restore it, because what it held is spent; "
            f"only if it belonged to other data, remove {head_path(path)}"
        )


def check_head(path: Path, heads: Sequence[Head], kept: Head | None, expected: Head | None, *, old: bool) -> None:
    """Whether the ledger has come at least as far as the heads that were kept of it.

    Args:
        path: the ledger.
        heads: its head after each of its records, beginning with none.
        kept: the head beside it.
        expected: the head that the caller kept.
        old: the file is of format 1, which kept no head.

    Raises:
        LedgerError: it is older, or another one; or nothing was kept that could tell.
    """
    if kept is None and expected is None and not old:
        raise LedgerError(
            f"{head_path(path)} is missing, which tells ledger {path} from an older copy of it: put it back, or give "
            "the head that was last printed as expected_head"
        )
    if kept is not None and not _reached(heads, kept):
        raise LedgerError(
            f"ledger {path} has {len(heads) - 1} records and {head_path(path).name} beside it says {kept.length}, or "
            "other ones: this is an older copy or another ledger; restore the newest, because what was spent since "
            "is missing here"
        )
    if expected is not None and not _reached(heads, expected):
        raise LedgerError(
            f"ledger {path} does not contain the head given as expected_head, of {expected.length} records: this is "
            "an older copy or another ledger; restore the newest"
        )


def _reached(heads: Sequence[Head], head: Head) -> bool:
    return head.length < len(heads) and heads[head.length] == head
