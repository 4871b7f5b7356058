"""Write files atomically, and read them with bounds on size and kind."""

from __future__ import annotations

import os
import secrets
import stat
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from privstats.errors import PrivstatsError
from privstats.system import open_private

_MOST_BYTES = 16 << 30


def read_bounded(path: str | os.PathLike[str], error: type[PrivstatsError], writer: str) -> bytes:
    """Return the bytes of a plain file of at most 16 GiB, or raise ``error``; ``writer`` is for the remedy.

    Example:
        >>> from privstats.files.atomic import atomic_write, read_bounded
        >>> atomic_write("study.bin", b"whole")
        >>> read_bounded("study.bin", ps.ReleaseError, writer="Release.save")
        b'whole'
        >>> read_bounded("absent.bin", ps.ReleaseError, writer="Release.save")
        Traceback (most recent call last):
            ...
        privstats.errors.ReleaseError: cannot read absent.bin: No such file or directory
    """
    try:
        status = Path(path).stat()
        if not stat.S_ISREG(status.st_mode) or status.st_size > _MOST_BYTES:
            raise error(f"{path} is not a plain file of a sensible size; give a file written by {writer}")
        return Path(path).read_bytes()
    except OSError as failure:
        raise error(f"cannot read {path}: {failure.strerror}") from None
    except ValueError as failure:
        if isinstance(failure, PrivstatsError):
            raise
        raise error("the path must not hold a null character; check it") from None


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
        raise PrivstatsError(f"cannot write {target}: {error.strerror}; nothing was written") from None
    except ValueError:
        raise PrivstatsError("the path must name a file and hold no null character; check it") from None
