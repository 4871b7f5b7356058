"""A machine that is not POSIX, as far as it can be had here: what Windows lacks is gone, and its locks are a double.

    python -P -m tests.elsewhere modules | session FOLDER

To be run as a process of its own, because nothing that is taken away comes back.
"""

import importlib
import os
import pkgutil
import signal
import sys
from pathlib import Path
from types import ModuleType

MODULES = ("fcntl", "grp", "pwd", "resource", "termios")
NAMES = {
    os: ("chown", "fchmod", "fork", "forkpty", "getegid", "geteuid", "getgid", "getuid", "killpg", "setsid", "sysconf"),
    signal: ("SIGALRM", "SIGHUP", "SIGKILL", "SIGQUIT", "SIGUSR1", "pthread_sigmask"),
}


class Locks(ModuleType):
    """``msvcrt``: a byte of a file, locked for one handle of this process."""

    LK_NBLCK, LK_UNLCK = 2, 0

    def __init__(self) -> None:
        super().__init__("msvcrt")
        self.held: dict[tuple[int, int], int] = {}

    def locking(self, handle: int, mode: int, size: int) -> None:
        status = os.fstat(handle)
        assert size == 1
        assert os.lseek(handle, 0, os.SEEK_CUR) == 0, "the byte that is locked is the one at the handle's position"
        file = (status.st_dev, status.st_ino)
        if mode == self.LK_UNLCK:
            assert self.held.pop(file) == handle
        elif self.held.setdefault(file, handle) != handle:
            raise PermissionError(13, "Permission denied")


def leave_posix() -> None:
    """Take away what Windows has not, and give it its locks; a folder cannot be opened either."""
    for name in MODULES:
        sys.modules[name] = None  # type: ignore[assignment]
    for module, names in NAMES.items():
        for name in names:
            if hasattr(module, name):
                delattr(module, name)
    sys.modules["msvcrt"] = Locks()
    importlib.import_module("privstats.system")
    del sys.modules["msvcrt"]  # by which other libraries would tell that this is Windows
    plain = os.open

    def opened(path: os.PathLike[str] | str, flags: int, mode: int = 0o777, **named: int) -> int:
        if Path(path).is_dir():
            raise PermissionError(13, "Permission denied", os.fspath(path))
        return plain(path, flags, mode, **named)

    os.open = opened  # type: ignore[assignment]


def modules() -> None:
    """Import everything whose extras are installed; say what is missing on standard error."""
    from privstats.errors import MissingExtraError

    for package in ("privstats", "threat_models"):
        root = importlib.import_module(package)
        for found in pkgutil.walk_packages(root.__path__, f"{package}."):
            if ".template." in found.name or found.name.endswith("__main__") or ".nvflare." in found.name:
                continue  # FLARE asks the real system, which is POSIX
            try:
                importlib.import_module(found.name)
            except MissingExtraError as missing:
                sys.stderr.write(f"{missing}\n")
    sys.stdout.write("all imported\n")


def session(place: Path) -> None:
    """A session of journaled machines, with a second object that is kept out, and one that is resumed."""
    import numpy as np

    from privstats.engines import loopback
    from privstats.engines.journal import JournaledClient, JournaledServer
    from privstats.errors import InUseError
    from tests.secagg.interactive.cohorts import cohort_of

    cohort, key = cohort_of(), bytes(32)
    where = {"parameters": cohort.parameters, "roster": cohort.roster}
    server = JournaledServer.create(place / "server", key, cohort.server)
    clients = [
        JournaledClient.create(place / f"client-{index}", key, client) for index, client in enumerate(cohort.clients)
    ]
    for resume in (
        lambda: JournaledServer.resume(place / "server", key, identity=cohort.aggregator, **where),
        lambda: JournaledClient.resume(place / "client-0", key, index=0, identity=cohort.identities[0], **where),
    ):
        try:
            resume()
        except InUseError:
            continue
        raise AssertionError("two objects are at one journal")
    clients[0].close()
    clients[0] = JournaledClient.resume(place / "client-0", key, index=0, identity=cohort.identities[0], **where)
    loopback.run(server, clients)
    total, survivors = server.result
    assert np.array_equal(total.lift(), cohort.sum_over(survivors))
    for machine in (server, *clients):
        machine.close()
    sys.stdout.write(f"exact over {len(survivors)}\n")


def main(words: list[str]) -> None:
    leave_posix()
    if words[0] == "modules":
        modules()
        return
    session(Path(words[1]))
    sys.argv = ["privstats", "--help"]
    importlib.import_module("privstats.cli").main()


if __name__ == "__main__":
    main(sys.argv[1:])
