"""Bound the memory of a node: a server that sends without end ends its own node, not what else the machine runs.

Flower's node holds each message, each run's bundle and the list of runs, all as large as the server makes them.
"""

from __future__ import annotations

import os

from privstats.system import resource

MOST_BYTES = 4 << 30
"""The largest message that a party accepts has 513 MiB, and a node holds it a few times."""

FILLED = (
    "the node needed more than 4 GiB of memory, so it ends: no plan needs that, so the server sent too much. What it "
    "held is dropped, and it is started again"
)

_BEFORE = "PRIVSTATS_MEMORY_BEFORE"


def bind_memory(most: int = MOST_BYTES) -> None:
    """Let this process allocate at most ``most`` bytes, if the system counts them, as Linux does.

    A program that it starts is bound too, until it calls :func:`unbind_memory`.
    """
    if resource is None:
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_DATA)
    os.environ[_BEFORE] = str(soft)
    if soft == resource.RLIM_INFINITY or soft > most:
        resource.setrlimit(resource.RLIMIT_DATA, (most, hard))


def unbind_memory() -> None:
    """Take back :func:`bind_memory` of the process that started this one: records may need any memory."""
    before = os.environ.pop(_BEFORE, None)
    if resource is not None and before is not None:
        resource.setrlimit(resource.RLIMIT_DATA, (int(before), resource.getrlimit(resource.RLIMIT_DATA)[1]))
