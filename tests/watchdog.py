"""What a process of tests has started ends with it, however it ends: ``timeout`` sends SIGTERM, which no block notices.

    watchdog.watch()

A small process beside it looks for its end, and then kills every process whose environment holds its token, whatever
sessions and groups they have made for themselves. Where there is no ``/proc``, nothing is watched.
"""

import os
import secrets
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

TOKEN = "PRIVSTATS_WATCHED"
_PROCESSES = Path("/proc")
_LOOK_SECONDS, _LEAVE_SECONDS, _ROUNDS = 0.2, 1.0, 25
_watching: dict[int, subprocess.Popen[bytes]] = {}


def watch() -> str:
    """The token of this process, in the environment of whatever it starts from now on; once watched, it stays so."""
    if os.getpid() not in _watching and (_PROCESSES / "self" / "environ").exists():
        os.environ[TOKEN] = secrets.token_hex(16)
        words = [sys.executable, "-I", "-S", __file__, os.environ[TOKEN], str(os.getpid())]
        silent = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        bare: dict[str, str] = {}  # without a token of its own or of whoever started us: nobody ends it
        _watching[os.getpid()] = subprocess.Popen(words, env=bare, cwd="/", start_new_session=True, **silent)
    return os.environ.get(TOKEN, "")


def started(token: str) -> list[int]:
    """The processes that run with this token in their environment."""
    found = []
    for path in _PROCESSES.glob("[0-9]*"):
        with suppress(OSError):  # it has ended, or is another user's
            if f"{TOKEN}={token}\0".encode() in (path / "environ").read_bytes():
                found.append(int(path.name))
    return found


def main(token: str, parent: str) -> None:
    """Wait until the parent has ended, and end what it has started, and what that starts meanwhile."""
    while os.getppid() == int(parent):
        time.sleep(_LOOK_SECONDS)
    time.sleep(_LEAVE_SECONDS)  # for those that end by themselves
    for _ in range(_ROUNDS):
        if not (left := started(token)):
            break
        for process in left:
            with suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
        time.sleep(_LOOK_SECONDS)


if __name__ == "__main__":
    main(*sys.argv[1:])
