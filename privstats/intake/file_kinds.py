"""Recognise a file by its first bytes, whatever its name, and open what is compressed.

The head alone decides: a file of text ends with a record, and no record may decide how its file is read.
"""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import re
import sys
import zlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, BinaryIO

from privstats.errors import DataError
from privstats.optional_dependencies import load
from privstats.system import open_plain

HEAD = 512
"""Number of bytes that decide."""
_BLOCK = 1 << 16
CONTROL = rb"[\0-\x08\x0e-\x1f]"
"""A byte that no row of names has, so that a column named ORC or PAR1 is no sign of a file."""

ARRAYS = re.compile(rb"PK\x03\x04.{26}[ -~]+?\.npy|\x93NUMPY", re.DOTALL)
"""Sign of numpy's arrays, alone or in an archive."""

UNREAD: Mapping[re.Pattern[bytes], str] = {
    re.compile(sign, re.DOTALL): what
    for sign, what in (
        (rb"PK\x03\x04.{26}mimetypeapplication/vnd\.oasis", "a document of LibreOffice: save it as .xlsx or CSV"),
        (rb"PK(\x03\x04|\x05\x06)", "a zip archive: unpack it"),
        (rb"\xd0\xcf\x11\xe0", "a workbook of an old Excel: save it as .xlsx, or its sheet as CSV"),
        (rb"\x89HDF", "HDF5: write its records as Parquet or CSV"),
        (rb"PARE" + CONTROL, "an encrypted Parquet file: write it without encryption"),
        (rb"FEA1\0", "Feather of version 1: write it as Feather of version 2, or as Parquet"),
        (rb"\xff\xff\xff\xff.{3}\0", "a stream of Arrow: write it as Feather or Parquet"),
        (rb"Obj\x01", "Avro: write its records as Parquet or CSV"),
        (rb"X\n\0|RD[ABX]\d\n", "a file of R: write its table with write.csv, or as Parquet"),
        (rb"\0\x01\0\0Standard (Jet|ACE) DB", "a data base of Access: export its table as .xlsx or CSV"),
        (rb"ASCII SPSS PORT FILE", "a portable file of SPSS: save it as .sav"),
        (rb"\x80[\x02-\x05]", "a pickle of Python, which may run code: write its table as Parquet or CSV"),
        (rb"%PDF-", "a PDF: export the records behind it as CSV or Parquet"),
        (rb"7z\xbc\xaf|Rar!\x1a", "an archive: unpack it"),
        (rb"(?=[^\n\r]{1,110}\0).{257}ustar", "an archive of tar: unpack it"),
    )
}
"""By sign, what a file is that holds no table that is read here, and what to do.

A sign is in the first line, or has a byte there that no row of names has: no record may decide how a file is read.
"""

_COMPRESSED: Mapping[str, tuple[bytes, Callable[[BinaryIO], Any]]] = {
    "gzip": (rb"\x1f\x8b\x08", lambda file: gzip.GzipFile(fileobj=file, mode="rb")),
    "bzip2": (rb"BZh[1-9](1AY&SY|\x17rE8P\x90)", lambda file: _Streams(file, bz2.BZ2Decompressor)),
    "xz": (rb"\xfd7zXZ\0", lambda file: _Streams(file, lzma.LZMADecompressor)),
    "zstd": (rb"\x28\xb5\x2f\xfd", lambda file: _zstd(file)),
}


def _zstd(file: BinaryIO) -> Any:
    if sys.version_info >= (3, 14):
        from compression import zstd

        return _Streams(file, zstd.ZstdDecompressor)
    arrow = load("pyarrow", by="a file compressed by zstd")
    return arrow.CompressedInputStream(arrow.PythonFile(file), "zstd")


def compression_of(path: Path) -> str:
    """Return the program that compressed a file: "gzip", "bzip2", "xz" or "zstd"; "" for none.

    Raises:
        OSError: as :func:`privstats.system.open_plain`.
    """
    with open_plain(path) as file:
        return _compression_in(file.read(HEAD))


def opened(path: Path) -> BinaryIO:
    """Open a plain file to read its bytes, those of a compressed file unpacked while they are read.

    Raises:
        OSError: as :func:`privstats.system.open_plain`.
        DataError: while reading, if compressed bytes are damaged or end early.

    Example:
        >>> import gzip
        >>> from pathlib import Path
        >>> from privstats.intake.file_kinds import opened
        >>> _ = Path("north.csv.gz").write_bytes(gzip.compress(b"age,ill"))
        >>> with opened(Path("north.csv.gz")) as file:
        ...     file.read()
        ...
        b'age,ill'
    """
    file = open_plain(path)
    try:
        by = _compression_in(file.read(HEAD))
        file.seek(0)
        return io.BufferedReader(_Unpacked(_COMPRESSED[by][1](file), file, path, by)) if by else file
    except BaseException:
        file.close()
        raise


def head_of(path: Path) -> bytes:
    """Return the first bytes of a file, unpacked; raises as :func:`opened`."""
    with opened(path) as file:
        return file.read(HEAD)


def unread_kind(head: bytes) -> str:
    """Return what a file is that holds no table that is read here, and what to do; "" for any other.

    Example:
        >>> from privstats.intake.file_kinds import unread_kind
        >>> unread_kind(b"%PDF-1.7"), unread_kind(b"age,ill")
        ('a PDF: export the records behind it as CSV or Parquet', '')
    """
    return next((what for sign, what in UNREAD.items() if sign.match(head)), "")


def _compression_in(head: bytes) -> str:
    return next((by for by, (sign, _) in _COMPRESSED.items() if re.match(sign, head)), "")


class _Streams:
    """Compressed streams one behind another, and zeros that pad them.

    Python's ``BZ2File`` and ``LZMAFile`` end where the next stream is damaged, and lose its records without an error.
    """

    def __init__(self, file: BinaryIO, new: Callable[[], Any]) -> None:
        self._file, self._new, self._stream = file, new, new()

    def read(self, size: int) -> bytes:
        """Return at least one byte, or none at the end of the file."""
        content = b""
        while not content:
            if self._stream.eof:
                packed = self._stream.unused_data.lstrip(b"\0")
                while not packed and (block := self._file.read(_BLOCK)):
                    packed = block.lstrip(b"\0")
                if not packed:
                    return b""
                self._stream = self._new()
            elif not self._stream.needs_input:
                packed = b""
            elif not (packed := self._file.read(_BLOCK)):
                raise EOFError
            content = self._stream.decompress(packed, size)
        return content

    def close(self) -> None:
        """Do nothing: who opened the file closes it."""


class _Unpacked(io.RawIOBase):
    """The unpacked bytes of a compressed file; an early end is an error, for records would be lost."""

    def __init__(self, stream: Any, file: BinaryIO, path: Path, by: str) -> None:
        self._stream, self._file, self._path, self._by = stream, file, path, by

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        view = memoryview(buffer)
        try:
            content = self._stream.read(len(view))
        except (EOFError, OSError, ValueError, zlib.error, lzma.LZMAError):
            raise DataError(
                f"cannot read {self._path}: its bytes, compressed by {self._by}, are damaged or end early: copy the "
                "file once more"
            ) from None
        view[: len(content)] = content
        return len(content)

    def close(self) -> None:
        if not self.closed:
            self._stream.close()
            self._file.close()
        super().close()
