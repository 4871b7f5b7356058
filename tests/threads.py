"""Wait for the threads of a test, with a limit: a thread that hangs fails its test and does not hang the run."""

from threading import Thread

LIMIT_SECONDS = 120.0


def join(*threads: Thread) -> None:
    """Wait until every thread has ended, and fail if one still runs after the limit."""
    for thread in threads:
        thread.join(LIMIT_SECONDS)
        assert not thread.is_alive(), f"{thread.name} still runs after {LIMIT_SECONDS:g} s"
