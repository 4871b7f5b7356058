"""Detect an older copy of a ledger by its head in a file next to it, and in the user's state folder.

A chain inside one file cannot show that its end is missing. The guarantee of :class:`~privstats.dp.Ledger` states what
each head shows. Each commit writes ledger, head next to it, head outside, so no crash makes a head longer than the
ledger.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from privstats.dp.ledger.records import Head
from privstats.errors import LedgerError, PrivstatsError
from privstats.files.atomic import atomic_write
from privstats.files.outside import Outside
from privstats.printable.command_line import command_line
from privstats.system import open_plain

_MOST_BYTES = 200


def head_path(path: Path) -> Path:
    """Return the path of the head file next to the ledger."""
    return path.with_name(path.name + ".head")


def stored_head(path: Path) -> Head | None:
    """Read the head next to the ledger, if any."""
    beside = head_path(path)
    try:
        with open_plain(beside) as file:
            text = file.read(_MOST_BYTES)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise LedgerError(f"cannot read {beside}: {error.strerror}; it holds the ledger's head") from error
    return Head.parse(text.decode("ascii", "replace"), f"what is in {beside}")


def keep_head(path: Path, head: Head) -> None:
    """Write ``head``, unless the file holds a longer one; on failure nothing may be spent."""
    stored = stored_head(path)
    if stored is not None and stored.length >= head.length:
        return
    try:
        atomic_write(head_path(path), f"{head}\n".encode())
        head_path(path).chmod(path.stat().st_mode & 0o777)  # a user of the ledger needs both files
    except OSError as error:
        raise LedgerError(f"cannot write {head_path(path)}: {error.strerror}; nothing was spent") from error
    except PrivstatsError as error:
        raise LedgerError(f"{error}; nothing was spent") from error.__cause__


def stored_outside(ledger: str) -> Head | None:
    """Return this ledger's head in the user's state folder, if any."""
    try:
        value = _outside(ledger).read()
    except OSError as error:
        raise LedgerError(f"cannot read the ledger's head outside its folder: {error.strerror}") from error
    if value is None:
        return None
    try:
        return Head.parse(value.decode("ascii", "replace"), "what it holds")
    except LedgerError as error:
        raise LedgerError(
            f"{_outside(ledger).path} is damaged: it must hold the ledger's newest head, <records>-<64 hex digits>, "
            "without which an older copy goes unnoticed. Write the head that was last printed there, or, if you know "
            "that no newer copy of the ledger has spent, remove that file"
        ) from error


def keep_outside(ledger: str, head: Head, *, replace: bool = False) -> None:
    """Write ``head`` outside, unless a longer one is not to be replaced; on failure nothing may be spent."""
    stored = None if replace else stored_outside(ledger)
    if not head.length or (stored is not None and stored.length >= head.length):
        return
    try:
        _outside(ledger).write(f"{head}\n".encode())
    except OSError as error:
        raise LedgerError(
            f"cannot write the ledger's head outside its folder: {error.strerror}; nothing was spent"
        ) from error


@contextmanager
def held_outside(path: Path, ledger: str, timeout: float) -> Iterator[None]:
    """Hold the lock of the head outside from its check until it is replaced, so copies of a ledger spend in turn."""
    with ExitStack() as stack:
        try:
            stack.enter_context(_outside(ledger).held(timeout))
        except BlockingIOError as error:
            raise LedgerError(
                f"another copy of ledger {path} is being written: keep one copy, and try again; nothing was spent"
            ) from error
        except OSError as error:
            raise LedgerError(
                f"cannot write the ledger's head outside its folder: {error.strerror}; nothing was spent"
            ) from error
        yield


def check_outside(path: Path, heads: Sequence[Head], stored: Head | None, ledger: str) -> None:
    """Refuse an older copy, restored with its folder, or a ledger with other records."""
    if stored is not None and not reached(heads, stored):
        raise LedgerError(
            f"ledger {path} has {len(heads) - 1} records and {_outside(ledger).path} says {stored.length}, or others: "
            "its folder was restored from a backup, or copied, and later spends are missing here. Bring the newest "
            "back; only if nothing was ever sent under them, go on with this one by "
            f"`{command_line('ledger', 'restored', path)}`"
        )


def _outside(ledger: str) -> Outside:
    return Outside(("ledgers", ledger))


def refuse_lost(path: Path) -> None:
    """Refuse a new ledger where a lost one's head remains: it would be a fresh budget for spent data."""
    stored = stored_head(path)
    if stored is not None and stored.length and not (path.exists() and path.stat().st_size):
        raise LedgerError(
            f"a ledger of {stored.length} records was at {path} and is gone: restore it, because what it held is "
            f"spent; only if it belonged to other data, remove {head_path(path)}"
        )


def check_head(path: Path, heads: Sequence[Head], stored: Head | None, expected: Head | None) -> None:
    """Refuse an older copy, another ledger, and one without a head.

    ``heads`` are the ledger's after each record, ``stored`` is next to it, ``expected`` is the caller's.
    """
    if stored is None and expected is None:
        raise LedgerError(
            f"{head_path(path)} is missing, which shows that ledger {path} is no older copy: restore it, or give the "
            "head that was last printed as expected_head"
        )
    if stored is not None and not reached(heads, stored):
        raise LedgerError(
            f"ledger {path} has {len(heads) - 1} records and {head_path(path).name} beside it says {stored.length}, or "
            "other ones: this is an older copy or another ledger; restore the newest, because later spends are "
            "missing here"
        )
    if expected is not None and not reached(heads, expected):
        raise LedgerError(
            f"ledger {path} does not contain the head given as expected_head, of {expected.length} records: this is "
            "an older copy or another ledger; restore the newest"
        )


def reached(heads: Sequence[Head], head: Head) -> bool:
    """Return whether a ledger with these heads contains ``head``."""
    return head.length < len(heads) and heads[head.length] == head
