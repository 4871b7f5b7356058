"""The job that a coordinator submits to FLARE, and a machine's message in the form of its tasks.

A job is two class names and two times, without code or path. A task holds a kind of request and bytes; a result, a
status code and bytes.
"""

from __future__ import annotations

import os
from pathlib import Path

from nvflare.apis.shareable import Shareable

from privstats.errors import PrivstatsError, RemoteProtocolError
from privstats.extend.support import json_text, write_new

TASK = "privstats"
"""The name of the only kind of task."""

MOST_BYTES = (512 << 20) + (1 << 20)
"""The most bytes that a site accepts in one message: the largest upload and its overhead."""

_WORD, _DATA = "word", "data"
_MOST_WORD = 32
_ROOM = "privstats.contrib.nvflare"


def write_job(
    path: str | os.PathLike[str], *, open_seconds: float = 3600.0, step_seconds: float = 600.0, name: str = "privstats"
) -> Path:
    """Write a job's folder, for ``nvflare simulator`` or FLARE's console.

    Args:
        open_seconds, step_seconds: as for ``PrivstatsController``.

    Example:
        >>> from privstats.contrib.nvflare.job import write_job  # doctest: +SKIP
        >>> write_job("job", open_seconds=600)  # doctest: +SKIP
        PosixPath('job')
    """
    folder = Path(path)
    server = {"open_seconds": open_seconds, "step_seconds": step_seconds}
    files: dict[str, dict[str, object]] = {
        "meta.json": {"name": name, "min_clients": 1, "deploy_map": {"app": ["@ALL"]}},
        "app/config/config_fed_server.json": {
            "format_version": 2,
            "workflows": [{"id": name, "path": f"{_ROOM}.controller.PrivstatsController", "args": server}],
        },
        "app/config/config_fed_client.json": {
            "format_version": 2,
            "executors": [{"tasks": [TASK], "executor": {"path": f"{_ROOM}.executor.PrivstatsExecutor"}}],
        },
    }
    try:
        (folder / "app" / "config").mkdir(parents=True)
    except FileExistsError:
        raise PrivstatsError(f"{folder} exists; name another folder") from None
    except OSError as error:
        raise PrivstatsError(f"cannot make {folder}: {error.strerror}") from None
    for relative, content in files.items():
        write_new(folder / relative, json_text(content).encode())
    return folder


def pack(word: str, data: bytes) -> Shareable:
    """Return a task's data, or its result."""
    return Shareable({_WORD: word, _DATA: bytes(data)})


def unpack(shareable: Shareable, sender: str, most: int = MOST_BYTES) -> tuple[str, bytes]:
    """Return the word and bytes of an untrusted task or result; ``sender`` is for the error.

    Raises:
        RemoteProtocolError: code ``malformed``, or ``too_large`` beyond ``most`` bytes.
    """
    word, data = shareable.get(_WORD), shareable.get(_DATA)
    if not isinstance(word, str) or not 0 < len(word) <= _MOST_WORD or not isinstance(data, bytes):
        raise RemoteProtocolError(sender, "transport", "malformed", "not a short word and bytes")
    if len(data) > most:
        raise RemoteProtocolError(sender, "transport", "too_large", f"{len(data)} bytes, at most {most}")
    return word, data
