"""Store small values outside a folder that may be restored from a backup.

They are in ``$XDG_STATE_HOME/privstats``, by default ``~/.local/state/privstats``, on Windows
``%LOCALAPPDATA%\\privstats``. A missing value proves nothing: where the state folder does not outlive its machine, a
restored folder is not detected.
"""

from __future__ import annotations

import errno
import os
import secrets
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from privstats.errors import PrivstatsError
from privstats.files.locks import lock, unlock
from privstats.system import open_plain, open_private, sync_folder

VARIABLE = "XDG_STATE_HOME"
"""Names the folder in which programs keep their state."""

_MOST_BYTES = 200
_LOOK_SECONDS = 0.01
_LOCAL = "LOCALAPPDATA"
_ANOTHER = "may name another folder, one that is not restored together with this one"


def state_folder() -> Path:
    """Return the folder of these values, which need not exist."""
    for name in (VARIABLE, _LOCAL):
        if Path(os.environ.get(name, "")).is_absolute():  # a relative one is ignored, as its specification says
            return Path(os.environ[name]) / "privstats"
    try:
        return Path.home() / ".local" / "state" / "privstats"
    except RuntimeError:
        raise OSError(errno.ENOENT, f"there is no home folder for counters: name one in {VARIABLE}") from None


def require_state_folder() -> Path:
    """Create the folder of these values if missing."""
    try:
        folder = state_folder()
        _make(folder)
        if not os.access(folder, os.W_OK | os.X_OK):
            raise OSError(errno.EACCES, f"{os.strerror(errno.EACCES)}: {folder}")
    except OSError as error:
        why = error.strerror if error.filename is None else f"{error.strerror}: {error.filename}"
        raise PrivstatsError(f"cannot keep counters outside the folder: {why}. {VARIABLE} {_ANOTHER}") from None
    return folder


@dataclass(frozen=True)
class Outside:
    """One value; ``parts`` is its path in the state folder.

    Example:
        >>> from privstats.files.outside import Outside
        >>> counter = Outside(("counts", "june"))
        >>> counter.read()
        >>> counter.write(b"3")
        >>> counter.read()
        b'3'
    """

    parts: tuple[str, ...]

    @property
    def path(self) -> Path:
        """The value's file; raises as :func:`state_folder`."""
        return state_folder().joinpath(*self.parts)

    def read(self) -> bytes | None:
        """Return the value; None where it is missing.

        Raises:
            OSError: it exists and cannot be read, so an older copy might go unnoticed; the error names the file.
        """
        try:
            with open_plain(self.path) as file:
                return file.read(_MOST_BYTES)
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            raise OSError(error.errno, f"{error.strerror}: {self.path}") from None

    @contextmanager
    def held(self, timeout: float) -> Iterator[None]:
        """Hold the value's lock: one process at a time, on this machine, compares the value and replaces it.

        Raises:
            BlockingIOError: another process holds it for longer than ``timeout`` seconds.
            OSError: the state folder cannot be written; the error names the remedy.
        """
        place = self.path.with_name(f".{self.path.name}.lock")
        deadline = time.monotonic() + timeout
        try:
            _make(place.parent)
            handle = _locked(place, deadline)
        except BlockingIOError:
            raise
        except OSError as error:
            raise OSError(error.errno, f"{error.strerror}: {place}; {VARIABLE} {_ANOTHER}") from None
        try:
            yield
        finally:
            unlock(handle)

    def write(self, value: bytes) -> None:
        """Replace the value; on disk when this returns.

        Raises:
            OSError: it cannot be written; the error names the file and the remedy.
        """
        path = self.path
        draft = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
        try:
            _make(path.parent)
            with os.fdopen(open_private(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL), "wb") as file:
                file.write(value)
                file.flush()
                os.fsync(file.fileno())
            draft.replace(path)
            sync_folder(path.parent)
        except OSError as error:
            why = f"{error.strerror}: {path}; {VARIABLE} {_ANOTHER}"
            raise OSError(error.errno, why) from None
        finally:
            with suppress(OSError):
                draft.unlink()


def _locked(path: Path, deadline: float) -> int:
    while True:
        try:
            return lock(path)
        except BlockingIOError:
            if time.monotonic() >= deadline:
                raise
            time.sleep(_LOOK_SECONDS)


def _make(folder: Path) -> None:
    if not folder.exists():
        _make(folder.parent)
        folder.mkdir(mode=0o700, exist_ok=True)
        sync_folder(folder.parent)
