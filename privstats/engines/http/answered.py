"""Whose report is on the leader's disk: a hash for each sender, in memory while reports come, in a file after the end.

A device whose answer was lost sends its report again, perhaps after the journal has gone with the run: the file says
that it arrived. It holds hashes alone, sealed under the folder's key, and no run without a release has one.
"""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path

from privstats.engines.records import read_sealed, write_sealed
from privstats.errors import NothingToResumeError
from privstats.secagg.wire import SIGNATURE_BYTES

__all__ = ["Answered", "named"]

_FILE = "answered"
_SENDER_BYTES, _HASH_BYTES = 4, 32


def named(report: bytes | bytearray) -> bytes:
    """What tells a report from another one of its sender: SHA-256 of its last 64 bytes.

    Example:
        >>> from privstats.engines.http.answered import named
        >>> named(b"a body" + bytes(64)) == named(bytes(64))
        True
    """
    return sha256(report[-SIGNATURE_BYTES:]).digest()


class Answered:
    """The senders whose report is here; read from any thread, changed by one.

    Args:
        home: the folder of the run.
        key: 32 bytes under which the file is sealed.
    """

    def __init__(self, home: Path, key: bytes) -> None:
        self._path, self._key = home / _FILE, key
        self._names: dict[int, bytes] = {}

    def __len__(self) -> int:
        return len(self._names)

    def of(self, sender: int) -> bytes | None:
        """The name of this sender's report; None where none is here."""
        return self._names.get(sender)

    def add(self, sender: int, report: bytes | bytearray) -> bool:
        """Note a report; False where it was noted before."""
        before, self._names[sender] = self._names.get(sender), named(report)
        return before != self._names[sender]

    def take(self, tails: Mapping[int, bytes]) -> None:
        """Begin with what a journal has: the last 64 bytes of each report."""
        self._names = {sender: named(tail) for sender, tail in tails.items()}

    def keep(self) -> None:
        """Write the file; on disk when this returns, and the same after a kill."""
        rows = (sender.to_bytes(_SENDER_BYTES, "big") + name for sender, name in sorted(self._names.items()))
        write_sealed(self._path, self._key, b"".join(rows))

    def read(self) -> None:
        """Begin with the file, if there is one.

        Raises:
            LocalProtocolError: it is damaged, or of another key.
        """
        try:
            data, row = read_sealed(self._path, self._key), _SENDER_BYTES + _HASH_BYTES
        except NothingToResumeError:
            return
        rows = (data[start : start + row] for start in range(0, len(data), row))
        self._names = {int.from_bytes(each[:_SENDER_BYTES], "big"): each[_SENDER_BYTES:] for each in rows}

    def forget(self) -> None:
        """Note nobody: a run without a sum leaves no list of who sent."""
        self._names = {}
