"""The anchor of a ledger: its head in a small file beside it, which exposes an older copy of the ledger.

A chain inside one file cannot show that its end is missing. The anchor can, unless it is restored together with the
ledger; a head that the caller keeps elsewhere always can. ``ledger_file`` uses this module, which has no rule about
budgets.
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
    """Read the head beside the ledger at ``path``; None where that file is missing.

    Raises:
        LedgerError: the file cannot be read or does not hold a head.
    """
    beside = head_path(path)
    try:
        with beside.open("rb") as file:
            text = file.read(_MOST_BYTES)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise LedgerError(f"cannot read {beside}: {error.strerror}; it holds the ledger's head") from None
    return Head.parse(text.decode("ascii", "replace"), f"what is in {beside}")


def keep_head(path: Path, head: Head) -> None:
    """Write ``head``, unless the file holds a longer one.

    Raises:
        LedgerError: the file cannot be written; nothing may be spent then.
    """
    kept = kept_head(path)
    if kept is not None and kept.length >= head.length:
        return
    try:
        atomic_write(head_path(path), f"{head}\n".encode())
        head_path(path).chmod(path.stat().st_mode & 0o777)  # a user of the ledger needs both files
    except (PrivstatsError, OSError) as error:
        raise LedgerError(f"{error}; nothing was spent") from None


def refuse_lost(path: Path) -> None:
    """Refuse a new ledger where the head of a lost one is: it would be a fresh budget for spent data.

    Raises:
        LedgerError: there is a head and no ledger.
    """
    kept = kept_head(path)
    if kept is not None and kept.length and not path.exists():
        raise LedgerError(
            f"a ledger of {kept.length} records was at {path} and is gone: restore it, because what it held is spent; "
            f"only if it belonged to other data, remove {head_path(path)}"
        )


def check_head(path: Path, heads: Sequence[Head], kept: Head | None, expected: Head | None, *, old: bool) -> None:
    """Verify that the ledger contains both heads that were kept of it.

    Args:
        path: the ledger.
        heads: its head after each of its records, starting with that of none.
        kept: the head beside it.
        expected: the head that the caller kept.
        old: the file has format 1, which kept no head.

    Raises:
        LedgerError: it is an older copy or another ledger; or there is no head to compare with.
    """
    if kept is None and expected is None and not old:
        raise LedgerError(
            f"{head_path(path)} is missing, which shows that ledger {path} is no older copy: restore it, or give the "
            "head that was last printed as expected_head"
        )
    if kept is not None and not _reached(heads, kept):
        raise LedgerError(
            f"ledger {path} has {len(heads) - 1} records and {head_path(path).name} beside it says {kept.length}, or "
            "other ones: this is an older copy or another ledger; restore the newest, because later spends are "
            "missing here"
        )
    if expected is not None and not _reached(heads, expected):
        raise LedgerError(
            f"ledger {path} does not contain the head given as expected_head, of {expected.length} records: this is "
            "an older copy or another ledger; restore the newest"
        )


def _reached(heads: Sequence[Head], head: Head) -> bool:
    return head.length < len(heads) and heads[head.length] == head
