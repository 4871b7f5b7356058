"""What a call gives in a forked child: for the tests of what must not be doubled by a fork."""

from __future__ import annotations

import os
from collections.abc import Callable

__all__ = ["in_a_fork"]


def in_a_fork(call: Callable[[], object]) -> str:
    """What ``call`` gives in a forked child, as text; the name of its error and its words where it raises."""
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        try:
            answer = str(call())
        except Exception as error:
            answer = f"{type(error).__name__}: {error}"
        os.write(writing, answer.encode())
        os._exit(0)
    os.close(writing)
    os.waitpid(child, 0)
    with os.fdopen(reading, "rb") as pipe:
        return pipe.read().decode()
