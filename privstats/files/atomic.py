"""Write files atomically, and read them with bounds on size and kind."""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from privstats.errors import PrivstatsError
from privstats.system import open_plain, open_private

MOST_BYTES = 64 << 20
"""Maximum size of a document: a plan, a roster, a key, a state."""
_UNSIZED = 1 << 20
MOST_SIGNED = 4 << 30
"""Maximum size of a file that is read as bytes, to sign, send or compare it."""


@contextmanager
def opened(path: str | os.PathLike[str], error: type[PrivstatsError]) -> Iterator[BinaryIO]:
    """Open a plain file to read it; ``error`` is raised for other files, and while it cannot be read.

    Example:
        >>> import os
        >>> from privstats.files.atomic import opened
        >>> os.mkfifo("pipe")
        >>> with opened("pipe", ps.DataError):
        ...     pass
        Traceback (most recent call last):
            ...
        privstats.errors.DataError: cannot read pipe: it is not a plain file
    """
    try:
        file = open_plain(path)
    except OSError as failure:
        raise error(f"cannot read {path}: {failure.strerror}") from failure
    except ValueError:
        raise error("the path must not hold a null character; check it") from None
    with file:
        try:
            yield file
        except OSError as failure:
            raise error(f"cannot read {path}: {failure.strerror}") from failure


def read_bounded(
    path: str | os.PathLike[str], error: type[PrivstatsError], writer: str, most: int = MOST_BYTES
) -> bytes:
    """Return the bytes of a plain file of at most ``most`` bytes, or raise ``error``; ``writer`` is for the remedy.

    Example:
        >>> from privstats.files.atomic import atomic_write, read_bounded
        >>> atomic_write("study.bin", b"whole")
        >>> read_bounded("study.bin", ps.ReleaseError, writer="Release.save")
        b'whole'
        >>> read_bounded("study.bin", ps.ReleaseError, writer="Release.save", most=4)
        Traceback (most recent call last):
            ...
        privstats.errors.ReleaseError: study.bin has more than 4 bytes; give a file written by Release.save
        >>> read_bounded("absent.bin", ps.ReleaseError, writer="Release.save")
        Traceback (most recent call last):
            ...
        privstats.errors.ReleaseError: cannot read absent.bin: No such file or directory
    """
    with opened(path, error) as file:
        return read_open(file, path, error, writer, most)


def read_open(
    file: BinaryIO, path: str | os.PathLike[str], error: type[PrivstatsError], writer: str, most: int
) -> bytes:
    """Return the bytes of an open file from its beginning, as :func:`read_bounded`.

    Example:
        >>> from privstats.files.atomic import opened, read_open
        >>> _ = open("study.bin", "wb").write(b"whole")
        >>> with opened("study.bin", ps.DataError) as file:
        ...     read_open(file, "study.bin", ps.DataError, "an editor", most=5)
        b'whole'
    """
    file.seek(0)
    size = os.fstat(file.fileno()).st_size
    # A system's own files have no size; a file that grows meanwhile is refused.
    limit = min(most, max(size, _UNSIZED))
    data = b"" if size > most else file.read(limit + 1)
    if size > most or len(data) > limit:
        raise error(f"{path} has more than {most:,} bytes; give a file written by {writer}")
    return data


def require_place(path: str | os.PathLike[str]) -> None:
    """Refuse a file that could not be written, before work begins.

    Example:
        >>> from privstats.files.atomic import require_place
        >>> require_place("study.html")
        >>> require_place("pages/study.html")
        Traceback (most recent call last):
            ...
        privstats.errors.PrivstatsError: cannot write pages/study.html: there is no folder pages; make it, or name ...
    """
    if Path(path).is_dir():
        raise PrivstatsError(f"cannot write {path}: it is a folder; name a file")
    require_folder(Path(path).parent, f"cannot write {path}")


def require_folder(folder: Path, what: str) -> None:
    """Refuse a missing or unwritable folder; ``what`` fails then, in words.

    Example:
        >>> from pathlib import Path
        >>> from privstats.files.atomic import require_folder
        >>> require_folder(Path("."), "cannot write the results")
        >>> require_folder(Path("none"), "cannot write the results")
        Traceback (most recent call last):
            ...
        privstats.errors.PrivstatsError: cannot write the results: there is no folder none; make it, or name ...
    """
    if not folder.is_dir():
        raise PrivstatsError(f"{what}: there is no folder {folder}; make it, or name another place")
    if not os.access(folder, os.W_OK | os.X_OK):
        raise PrivstatsError(f"{what}: this account may not write to {folder}; name another place")


def atomic_write(path: str | os.PathLike[str], data: bytes, *, shared: bool = False, durable: bool = True) -> None:
    """Write ``data`` to ``path`` atomically: readers see the old file or the new one, never a part.

    Args:
        shared: others may read it, as the umask permits; otherwise its owner alone.
        durable: wait until the bytes are on disk; without it a power failure may lose or empty the file.

    Raises:
        PrivstatsError: it cannot be written; the old file stays.

    Example:
        >>> from privstats.files.atomic import atomic_write
        >>> atomic_write("study.bin", b"first")
        >>> atomic_write("study.bin", b"second")  # a reader sees the first or the second, never a part
        >>> open("study.bin", "rb").read()
        b'second'
    """
    _write(Path(path), data, lambda name, target: name.replace(target), shared=shared, durable=durable)


def write_new(path: str | os.PathLike[str], data: bytes) -> None:
    """Write ``data`` to a new file that only its owner may read (mode 0600); refuse an existing one.

    Example:
        >>> from privstats.files.atomic import write_new
        >>> write_new("key.bin", b"secret")
        >>> write_new("key.bin", b"another")
        Traceback (most recent call last):
            ...
        privstats.errors.PrivstatsError: key.bin exists; name another file, or move that one away first
    """
    _write(Path(path), data, lambda name, target: target.hardlink_to(name), shared=False, durable=True)


def _write(target: Path, data: bytes, settle: Callable[[Path, Path], object], *, shared: bool, durable: bool) -> None:
    try:
        beside = target.with_name(f".{target.name}.{secrets.token_hex(8)}")
        handle = open_private(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666 if shared else 0o600)
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(data)
                if durable:
                    file.flush()
                    os.fsync(file.fileno())
            settle(beside, target)
        finally:
            with suppress(OSError):
                beside.unlink()
    except FileExistsError:
        raise PrivstatsError(f"{target} exists; name another file, or move that one away first") from None
    except OSError as error:
        raise PrivstatsError(f"cannot write {target}: {error.strerror}; nothing was written") from error
    except ValueError:
        raise PrivstatsError("the path must name a file and hold no null character; check it") from None
