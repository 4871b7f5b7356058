"""Sealed bytes on disk: a file that is replaced atomically, and a log that may have a torn last record.

Each call syncs what it appends before it returns. Encryption and authentication bind a record to its file's name and
position, so within a log records cannot be moved, swapped or dropped from the middle. A record is ``u64 2**63 +
length || 8 bytes of SHA-256(place || that number) || nonce || ciphertext``, so a damaged length does not look like a
log's end.
"""

from __future__ import annotations

import io
import os
from collections.abc import Iterator, Sequence
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import BinaryIO, NamedTuple

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from privstats.errors import LocalProtocolError, NothingToResumeError
from privstats.system import open_plain, open_private, sync_folder

_KEY_BYTES = 32

_NONCE_BYTES = 12
_TAG_BYTES = 16
_LENGTH_BYTES = _CHECK_BYTES = 8
_CHECKED = 1 << 63
# Bytes that are overwritten at a time, so that a file of any size needs little memory.
_ZEROS = 1 << 20
MAX_SEALED = _NONCE_BYTES + (1 << 31) - 1 + _TAG_BYTES
"""Largest sealed record or file, in bytes: the cipher seals at most 2**31 - 1 bytes at once."""


def check_key(key: object) -> bytes:
    """Return the key; raise ``LocalProtocolError`` unless it is 32 bytes."""
    if not isinstance(key, bytes) or len(key) != _KEY_BYTES:
        got = f"{len(key)}" if isinstance(key, bytes) else f"a {type(key).__name__}"
        raise LocalProtocolError(f"a journal is sealed under a key of {_KEY_BYTES} bytes, got {got}")
    return key


def write_sealed(path: Path, key: bytes, content: bytes) -> None:
    """Replace ``path`` by sealed ``content``: a crash leaves the old or the new content, never a mixture.

    Args:
        key: 32 bytes, as ``Folder.key``.

    Example:
        >>> from pathlib import Path
        >>> from privstats.engines.carriers import write_sealed
        >>> write_sealed(Path("answered"), os.urandom(32), b"who has reported")
        >>> b"who" in Path("answered").read_bytes()
        False
    """
    nonce = os.urandom(_NONCE_BYTES)
    write_synced(path, nonce, AESGCM(key).encrypt(nonce, content, path.name.encode()))


def write_synced(path: Path, *parts: bytes) -> None:
    """Replace ``path`` by unsealed bytes; on disk when this returns."""
    draft = path.with_name(path.name + ".new")
    with os.fdopen(open_private(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), "wb") as file:
        file.writelines(parts)
        file.flush()
        os.fsync(file.fileno())
    draft.replace(path)
    sync_folder(path.parent)


def overwrite(path: Path) -> None:
    """Overwrite a file with zeros on disk, because removal alone leaves its blocks."""
    if path.exists():
        with path.open("r+b") as file:
            left = os.fstat(file.fileno()).st_size
            while left:
                left -= file.write(bytes(min(left, _ZEROS)))
            file.flush()
            os.fsync(file.fileno())


def read_sealed(path: Path, key: bytes) -> bytes:
    """Return the content that :func:`write_sealed` wrote.

    Raises:
        NothingToResumeError: no such file.
        LocalProtocolError: another key, or damage.

    Example:
        >>> from pathlib import Path
        >>> from privstats.engines.carriers import read_sealed, write_sealed
        >>> key = os.urandom(32)
        >>> write_sealed(Path("answered"), key, b"who has reported")
        >>> read_sealed(Path("answered"), key)
        b'who has reported'
    """
    try:
        with open_plain(path) as file:
            sealed = _read(file, os.fstat(file.fileno()).st_size)
        return AESGCM(key).decrypt(sealed[:_NONCE_BYTES], sealed[_NONCE_BYTES:], path.name.encode())
    except FileNotFoundError:
        raise NothingToResumeError(f"{path} holds no session to resume") from None
    except (InvalidTag, ValueError):
        raise LocalProtocolError(f"{path} does not open: it is damaged, or was written under another key") from None


def _read(file: BinaryIO, length: int) -> bytes:
    """Return the next ``length`` bytes, or fewer at the file's end; no bytes if ``length`` exceeds MAX_SEALED."""
    size = os.fstat(file.fileno()).st_size
    return file.read(min(length, size)) if length <= MAX_SEALED else b""


class At(NamedTuple):
    """A record's place in its log, and the tag that identifies it."""

    number: int
    offset: int
    tag: bytes


class Tail(NamedTuple):
    """The records and bytes after the known records of a log.

    ``present`` known records exist; ``size`` bytes follow from ``start`` on, beginning with these complete ``records``.
    """

    present: int
    start: int
    records: list[bytes]
    size: int


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

    @property
    def count(self) -> int:
        """Records that were appended or read."""
        return self._count

    def append(self, record: bytes) -> None:
        """Write one record to disk."""
        self.append_many((record,))

    def append_many(self, records: Sequence[bytes]) -> list[At]:
        """Write a group of records with one wait for the disk; if it fails, none was written."""
        before, count = self.size, self._count
        ends = [before]
        group, places = [], []
        for record in records:
            group.append(self._next(record))
            places.append(At(self._count - 1, ends[-1], group[-1][-_TAG_BYTES:]))
            ends.append(ends[-1] + len(group[-1]))
        try:
            _write_all(self._file, b"".join(group))
            os.fsync(self._file.fileno())
        except OSError:
            self._count = count  # they count as never written; the next ones take their positions
            self._file.truncate(before)
            raise
        return places

    def _next(self, record: bytes) -> bytes:
        nonce = os.urandom(_NONCE_BYTES)
        sealed = nonce + self._cipher.encrypt(nonce, record, self._place(self._count))
        length = (_CHECKED + len(sealed)).to_bytes(_LENGTH_BYTES, "big")
        entry = length + self._check(length) + sealed
        self._count += 1
        return entry

    def tail(self, known: int) -> Tail:
        """Return the records after the first ``known`` ones, up to the first damaged one."""
        fresh = []
        with open_plain(self._path) as file:
            present, end = self._skip(file, known), file.tell()
            with suppress(LocalProtocolError):
                while present == known and (sealed := self._sealed(file)) is not None:
                    fresh.append(self._opened(sealed))
                    self._count += 1
        return Tail(present, end, fresh, self.size - end)

    def present(self, known: int) -> int:
        """Return how many of the first ``known`` records exist."""
        with open_plain(self._path) as file:
            return self._skip(file, known)

    def mend(self, known: int) -> None:
        """Rewrite the records after the first ``known`` ones, up to the first damaged one; drop the rest.

        Use it only where peers hold answers to the known records alone.
        """
        tail = self.tail(known)
        if tail.present == known and tail.size:
            self._file.truncate(tail.start)
            self._count = known
            self.append_many(tail.records)

    def records(self) -> Iterator[bytes]:
        """Yield the records so far, and truncate a torn last record.

        Raises:
            LocalProtocolError: a complete record or length is damaged, of another key, or of a log of another name.
        """
        for _, record in self.located():
            yield record

    def located(self) -> Iterator[tuple[At, bytes]]:
        """Yield each record with its place."""
        self._count = end = 0
        with open_plain(self._path) as file:
            while (sealed := self._sealed(file)) is not None:
                yield At(self._count, end, sealed[-_TAG_BYTES:]), self._opened(sealed)
                end = file.tell()
                self._count += 1
        self._file.truncate(end)
        self._file.seek(end)

    def _skip(self, file: BinaryIO, known: int) -> int:
        self._count = 0
        while self._count < known and self._skipped(file):
            pass
        return self._count

    def _skipped(self, file: BinaryIO) -> bool:
        """Go past the next record unread; stay and return False if it is torn or missing."""
        start = file.tell()
        length = self._length(file)
        if length is None or file.tell() + length > self.size:
            file.seek(start)
            return False
        file.seek(length, os.SEEK_CUR)
        self._count += 1
        return True

    def _sealed(self, file: BinaryIO) -> bytes | None:
        length = self._length(file)
        if length is None:
            return None
        if length > MAX_SEALED:
            raise self._damaged()
        sealed = _read(file, length)
        return sealed if len(sealed) == length else None

    def _length(self, file: BinaryIO) -> int | None:
        header = file.read(_LENGTH_BYTES)
        length = int.from_bytes(header, "big")
        if len(header) < _LENGTH_BYTES:
            return None
        check = file.read(_CHECK_BYTES)
        if length < _CHECKED or (len(check) == _CHECK_BYTES and check != self._check(header)):
            raise self._damaged()
        return length - _CHECKED

    def _opened(self, sealed: bytes) -> bytes:
        return _opened(self._path, self._cipher, sealed, self._count)

    def _damaged(self) -> LocalProtocolError:
        return _damaged(self._path, self._count)

    def _check(self, length: bytes) -> bytes:
        return sha256(self._place(self._count) + length).digest()[:_CHECK_BYTES]

    def _place(self, number: int) -> bytes:
        return _place(self._path, number)

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def remove(self) -> None:
        """Close and delete the file."""
        self.close()
        self._path.unlink(missing_ok=True)


def read_record(path: Path, key: bytes, at: At) -> bytes:
    """Return one record of a log, which may be closed, or raise ``LocalProtocolError``."""
    try:
        with open_plain(path) as file:
            file.seek(at.offset)
            header = file.read(_LENGTH_BYTES + _CHECK_BYTES)
            length = max(0, int.from_bytes(header[:_LENGTH_BYTES], "big") - _CHECKED)
            sealed = _read(file, length)
    except OSError:
        raise _damaged(path, at.number) from None
    if sealed[-_TAG_BYTES:] != at.tag:
        raise _damaged(path, at.number)
    return _opened(path, AESGCM(key), sealed, at.number)


def _opened(path: Path, cipher: AESGCM, sealed: bytes, number: int) -> bytes:
    try:
        return cipher.decrypt(sealed[:_NONCE_BYTES], sealed[_NONCE_BYTES:], _place(path, number))
    except (InvalidTag, ValueError):
        raise _damaged(path, number) from None


def _damaged(path: Path, number: int) -> LocalProtocolError:
    return LocalProtocolError(
        f"record {number} of {path} does not open: it is damaged, or was written under another key or "
        "before the first release of privstats"
    )


def _place(path: Path, number: int) -> bytes:
    return path.name.encode() + b"\0" + number.to_bytes(8, "big")


def _write_all(file: io.FileIO, data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        rest = rest[file.write(rest) or 0 :]
