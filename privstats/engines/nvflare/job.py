"""The job that a coordinator submits to FLARE: two class names and two times, no code and no path."""

from __future__ import annotations

import os
from pathlib import Path

from privstats.engines.nvflare import tasks
from privstats.errors import PrivstatsError
from privstats.files.atomic import write_new
from privstats.files.jsonable import json_text

__all__ = ["write_job"]

_ROOM = "privstats.engines.nvflare"


def write_job(
    path: str | os.PathLike[str], *, open_seconds: float = 3600.0, step_seconds: float = 600.0, name: str = "privstats"
) -> Path:
    """Write a job's folder, for ``nvflare simulator`` or FLARE's console.

    Args:
        path: a folder that does not exist.
        open_seconds: how long the first step waits for parties.
        step_seconds: how long every other step waits.
        name: the job's name.

    Raises:
        PrivstatsError: the folder exists, or cannot be written.

    Example:
        >>> from privstats.engines.nvflare.job import write_job  # doctest: +SKIP
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
            "executors": [{"tasks": [tasks.TASK], "executor": {"path": f"{_ROOM}.executor.PrivstatsExecutor"}}],
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
