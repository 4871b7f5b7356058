"""Store objects for the sums of settled parts, in a folder or bucket that fsspec names.

An object is one part's bodies, ciphertexts for the leader's box key; the store learns sizes and times, never the keys
that open them. A reader verifies all bytes under a key that the store never has (GMAC, NIST SP 800-38D).
"""

from __future__ import annotations

import hmac
import os
import posixpath
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

from cryptography.hazmat.primitives.ciphers import AEADEncryptionContext, Cipher, algorithms, modes

from privstats.errors import PrivstatsError
from privstats.extend.support import optional_dependencies

_BY = "sums of settled parts by others"
_KEY_BYTES, _NONCE_BYTES = 32, 12


class StoreError(PrivstatsError):
    """An object is unreadable, unwritable or changed."""


@dataclass(frozen=True)
class StoredPart:
    """One object in a store.

    Attributes:
        url: its address, perhaps with a password.
        key: 32 bytes, of this object's tag alone.
        tag: GMAC of all its bytes.
    """

    url: str = field(repr=False)
    size: int
    key: bytes = field(repr=False)
    tag: bytes

    @property
    def name(self) -> str:
        """Run and part, without address."""
        return "/".join(self.url.split("/")[-2:])


class PartStore:
    """The objects of one run.

    Args:
        url: a folder for this purpose alone, ``s3://bucket/folder`` or a path.
        run: the run's name, in hex.
    """

    def __init__(self, url: str, run: str) -> None:
        with _in_a_sentence(f"a store of {url.partition('://')[0]} cannot be used"):
            self._files, path = _core().url_to_fs(url)
        self._home = posixpath.join(path, run)
        full = self._files.unstrip_protocol(path)  # absolute, so that every process finds the folder
        self._url = posixpath.join(full if full.startswith("file:") else url, run)

    def put(self, number: int, pieces: Iterable[bytes | memoryview]) -> StoredPart:
        """Write a part's object under a new name."""
        name = f"{number}-{os.urandom(8).hex()}"
        size, key = 0, os.urandom(_KEY_BYTES)
        tag = _tagged(key)
        with _in_a_sentence(f"part {number} cannot be stored"):
            self._files.makedirs(self._home, exist_ok=True)
            with self._files.open(posixpath.join(self._home, name), "wb") as file:
                for piece in pieces:
                    file.write(piece)
                    tag.authenticate_additional_data(piece)
                    size += len(piece)
            tag.finalize()
            return StoredPart(posixpath.join(self._url, name), size, key, tag.tag)

    def remove(self, part: StoredPart) -> None:
        """Remove an object if it exists; ignore refusals."""
        with suppress(Exception):
            self._files.rm_file(posixpath.join(self._home, part.name.partition("/")[2]))

    def clear(self) -> None:
        """Remove all objects of the run."""
        with suppress(Exception):
            self._files.rm(self._home, recursive=True)


def content_of(part: StoredPart) -> bytes:
    """Return an object's bytes; raise ``StoreError`` where missing or changed."""
    with _in_a_sentence(f"object {part.name} cannot be read"):
        files, path = _core().url_to_fs(part.url)
        with files.open(path, "rb") as file:
            content: bytes = file.read(part.size + 1)
    if len(content) != part.size:
        raise StoreError(f"object {part.name} does not have the {part.size} bytes that were written")
    tag = _tagged(part.key)
    tag.authenticate_additional_data(content)
    tag.finalize()
    if not hmac.compare_digest(tag.tag, part.tag):
        raise StoreError(f"object {part.name} holds other bytes than were written")
    return content


def _tagged(key: bytes) -> AEADEncryptionContext:
    return Cipher(algorithms.AES256(key), modes.GCM(bytes(_NONCE_BYTES))).encryptor()


def _core() -> Any:
    return optional_dependencies.load("fsspec.core", by=_BY)


@contextmanager
def _in_a_sentence(what: str) -> Iterator[None]:
    try:
        yield
    except PrivstatsError:
        raise
    except Exception as error:
        raise StoreError(f"{what}: {type(error).__name__}") from error
