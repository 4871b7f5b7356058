"""Sealed bytes on disk: a file that is replaced atomically, and a log whose last record may be torn.

Each call syncs its writes before it returns. Encrypted and authenticated under the caller's key; a record is bound to
its file and its position, so records cannot be moved, swapped or dropped from the middle. The journals use this module.

A record is ``u64 2**63 + length || 8 bytes of SHA-256(place || that number) || nonce || ciphertext``, so that a damaged
length is not mistaken for the end of a log.
"""

from __future__ import annotations

import io
import os
from collections.abc import Iterator, Sequence
from hashlib import sha256
from pathlib import Path
from typing import BinaryIO

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from privstats.errors import LocalProtocolError, NothingToResumeError
from privstats.system import open_private, sync_folder

__all__ = ["RecordLog", "check_key", "overwrite", "read_sealed", "write_sealed", "write_synced"]

_KEY_BYTES = 32

_NONCE_BYTES = 12
_LENGTH_BYTES = _CHECK_BYTES = 8
_CHECKED = 1 << 63


def check_key(key: object) -> bytes:
    """The key itself; raises ``LocalProtocolError`` unless it is 32 bytes."""
    if not isinstance(key, bytes) or len(key) != _KEY_BYTES:
        got = f"{len(key)}" if isinstance(key, bytes) else f"a {type(key).__name__}"
        raise LocalProtocolError(f"a journal is sealed under a key of {_KEY_BYTES} bytes, got {got}")
    return key


def write_sealed(path: Path, key: bytes, content: bytes) -> None:
    """Replace ``path`` by sealed ``content``: after a crash it holds the old or the new content, never a mixture."""
    nonce = os.urandom(_NONCE_BYTES)
    write_synced(path, nonce, AESGCM(key).encrypt(nonce, content, path.name.encode()))


def write_synced(path: Path, *parts: bytes) -> None:
    """Replace ``path`` by these bytes, unsealed; on disk when this returns."""
    draft = path.with_name(path.name + ".new")
    with os.fdopen(open_private(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), "wb") as file:
        file.writelines(parts)
        file.flush()
        os.fsync(file.fileno())
    draft.replace(path)
    sync_folder(path.parent)


def overwrite(path: Path) -> None:
    """Overwrite a file with zeros on disk, because removal alone leaves its blocks; do nothing if it is missing."""
    if path.exists():
        with path.open("r+b") as file:
            file.write(bytes(os.fstat(file.fileno()).st_size))
            file.flush()
            os.fsync(file.fileno())


def read_sealed(path: Path, key: bytes) -> bytes:
    """The content that :func:`write_sealed` wrote.

    Raises:
        NothingToResumeError: no such file.
        LocalProtocolError: another key, or damage.
    """
    try:
        sealed = path.read_bytes()
        return AESGCM(key).decrypt(sealed[:_NONCE_BYTES], sealed[_NONCE_BYTES:], path.name.encode())
    except FileNotFoundError:
        raise NothingToResumeError(f"{path} holds no session to resume") from None
    except (InvalidTag, ValueError):
        raise LocalProtocolError(f"{path} does not open: it is damaged, or was written under another key") from None


class RecordLog:
    """Append-only records; a record that a crash interrupted counts as never written."""

    def __init__(self, path: Path, key: bytes) -> None:
        self._path, self._cipher = path, AESGCM(key)
        opened = open_private(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        self._file = io.FileIO(opened, "ab")  # no buffer that could be written after a failure
        self._count = 0
        sync_folder(path.parent)

    @property
    def size(self) -> int:
        """Bytes in the file."""
        return os.fstat(self._file.fileno()).st_size

    def append(self, record: bytes) -> None:
        """Write one record and wait until it is on disk."""
        self.append_many((record,))

    def append_many(self, records: Sequence[bytes]) -> None:
        """Write a group of records and wait, once, until all are on disk; if it fails, none was written."""
        before, count = self.size, self._count
        try:
            _write_all(self._file, b"".join(map(self._next, records)))
            os.fsync(self._file.fileno())
        except OSError:
            self._count = count  # they count as never written; the next ones take their positions
            self._file.truncate(before)
            raise

    def _next(self, record: bytes) -> bytes:
        nonce = os.urandom(_NONCE_BYTES)
        sealed = nonce + self._cipher.encrypt(nonce, record, self._place())
        length = (_CHECKED + len(sealed)).to_bytes(_LENGTH_BYTES, "big")
        whole = length + self._check(length) + sealed
        self._count += 1
        return whole

    def records(self) -> Iterator[bytes]:
        """The records so far; a torn record after the last whole one is cut off, so that new ones append to it.

        Raises:
            LocalProtocolError: a whole record, or a whole length, is damaged, of another key, or of another log.
        """
        end = 0
        with self._path.open("rb") as file:
            while (sealed := self._sealed(file)) is not None:
                yield self._opened(sealed)
                end = file.tell()
                self._count += 1
        self._file.truncate(end)
        self._file.seek(end)

    def _sealed(self, file: BinaryIO) -> bytes | None:
        """The next record, still sealed; None if it is torn, or there is none."""
        header = file.read(_LENGTH_BYTES)
        length = int.from_bytes(header, "big")
        if len(header) < _LENGTH_BYTES:
            return None
        check = file.read(_CHECK_BYTES)
        if length < _CHECKED or (len(check) == _CHECK_BYTES and check != self._check(header)):
            raise self._damaged()
        length -= _CHECKED
        sealed = file.read(min(length, os.fstat(file.fileno()).st_size))
        return sealed if len(sealed) == length else None

    def _opened(self, sealed: bytes) -> bytes:
        try:
            return self._cipher.decrypt(sealed[:_NONCE_BYTES], sealed[_NONCE_BYTES:], self._place())
        except (InvalidTag, ValueError):
            raise self._damaged() from None

    def _damaged(self) -> LocalProtocolError:
        return LocalProtocolError(
            f"record {self._count} of {self._path} does not open: it is damaged, or was written under another key or "
            "before the first release of privstats"
        )

    def _check(self, length: bytes) -> bytes:
        return sha256(self._place() + length).digest()[:_CHECK_BYTES]

    def _place(self) -> bytes:
        return self._path.name.encode() + b"\0" + self._count.to_bytes(8, "big")

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def remove(self) -> None:
        """Close and delete the file."""
        self.close()
        self._path.unlink(missing_ok=True)


def _write_all(file: io.FileIO, data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        rest = rest[file.write(rest) or 0 :]
