"""Wait for threads, processes and events of a test, with a limit: what hangs fails its test, not the whole run."""

import time
from collections.abc import Callable
from pathlib import Path
from threading import Thread

LIMIT_SECONDS = 120.0


def join(*threads: Thread) -> None:
    """Wait until every thread has ended, and fail if one still runs after the limit."""
    for thread in threads:
        thread.join(LIMIT_SECONDS)
        assert not thread.is_alive(), f"{thread.name} still runs after {LIMIT_SECONDS:g} s"


def until(ready: Callable[[], object], state: Callable[[], object] = str) -> None:
    """Wait until ``ready`` returns something true, and fail with ``state`` after the limit."""
    end = time.monotonic() + LIMIT_SECONDS
    while not ready():
        assert time.monotonic() < end, state()
        time.sleep(0.01)


def lives(pid: int) -> bool:
    """Return whether a process runs: one that has ended does not, though its parent has not waited for it yet."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
