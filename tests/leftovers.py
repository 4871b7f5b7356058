"""Find what a test leaves behind in its process: another working directory, environment variables, threads.

Whatever runs next in the same process would meet it, and fail only in some orders of tests.
"""

import os
import threading
import time
from dataclasses import dataclass
from typing import Self

_GRACE_SECONDS = 10.0
_OF_LIBRARIES = (
    "PYTEST_",
    *("BROWSER_USE_", "GRPC_", "RAY_", "PYTHONBREAKPOINT"),  # Flower, when it is imported, and Ray
    "TORCHINDUCTOR_CACHE_DIR",  # torch, at the first compilation
    "_RJEM_MALLOC_CONF",  # polars, when it is imported
    "KMP_",  # scikit-learn, when it is imported
    *(
        "MALLOC_TRIM_THRESHOLD_",
        "MKL_NUM_THREADS",
        "OPENBLAS_NUM_THREADS",
        "PYTHONHASHSEED",
        "__DASK_",
    ),  # Dask, for workers
)
"""How the variables begin that libraries set for the rest of the process."""
_POOL = "ThreadPoolExecutor-"
"""How the names of a pool's threads begin. Dask keeps its pool, and every pool ends with its process."""


@dataclass(frozen=True)
class ProcessState:
    """What tests of one process share.

    Attributes:
        folder: the working directory; empty where it was removed.
        environment: the variables.
        threads: the threads that keep a process from ending, without those of pools.
    """

    folder: str
    environment: dict[str, str]
    threads: frozenset[threading.Thread]

    @classmethod
    def now(cls) -> Self:
        """Read the state of this process."""
        try:
            folder = os.getcwd()
        except FileNotFoundError:
            folder = ""
        running = threading.enumerate()
        alive = frozenset(each for each in running if not each.daemon and not each.name.startswith(_POOL))
        return cls(folder, dict(os.environ), alive)

    def restore(self) -> None:
        """Go back to this working directory and this environment; threads and variables of libraries stay."""
        now = ProcessState.now()
        if self.folder and self.folder != now.folder:
            os.chdir(self.folder)
        for name in self.changed(now):
            if name in self.environment:
                os.environ[name] = self.environment[name]
            else:
                del os.environ[name]

    def changed(self, now: Self) -> list[str]:
        """Return the variables that have other values ``now``, without those of libraries."""
        if now.environment == self.environment:
            return []
        names = {name for name, _ in self.environment.items() ^ now.environment.items()}
        return sorted(name for name in names if not name.startswith(_OF_LIBRARIES))


def left_behind(before: ProcessState) -> list[str]:
    """Return a line for each thing that this process has now and had not ``before``.

    Threads that are ending get ten seconds.
    """
    now, lines = ProcessState.now(), []
    if now.folder != before.folder:
        lines.append(f"the working directory is {now.folder or 'a folder that was removed'}, not {before.folder}")
    if changed := before.changed(now):
        lines.append(f"environment variables changed: {', '.join(changed)}")
    end = time.monotonic() + _GRACE_SECONDS
    for thread in now.threads - before.threads:
        thread.join(max(0.0, end - time.monotonic()))
    alive = sorted(thread.name for thread in now.threads - before.threads if thread.is_alive())
    if alive:
        lines.append(f"threads still run: {', '.join(alive)}")
    return lines
