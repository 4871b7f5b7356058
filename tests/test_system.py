"""What differs between systems: a machine without POSIX imports everything, shows its help, and runs a session."""

import os
import platform
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from privstats import system
from privstats.engines.door import ports
from privstats.engines.flower import launch
from privstats.errors import PrivstatsError
from privstats.files import locks
from privstats.secagg import Identity

ROOT = Path(__file__).parents[1]


def elsewhere(*words):
    """A process on a machine that is not POSIX."""
    return subprocess.run(
        [sys.executable, "-P", "-m", "tests.elsewhere", *map(str, words)],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=300,
    )


@pytest.mark.nightly
def test_every_module_is_imported_everywhere():
    ended = elsewhere("modules")
    assert ended.stdout == "all imported\n", ended.stderr
    missing = [line for line in ended.stderr.splitlines() if "; install with: pip" in line]
    assert all(" needs nvflare;" in line for line in missing), missing  # the night has every other extra


@pytest.mark.ci
def test_a_session_with_journals_runs_under_windowss_locks_and_the_help_is_shown(tmp_path):
    ended = elsewhere("session", tmp_path)
    assert ended.stdout.startswith("exact over 6\n"), ended.stderr
    assert "flower" in ended.stdout
    assert (ended.returncode, ended.stderr) == (0, "")


@pytest.fixture
def windows(monkeypatch):
    """This process, as far as the one module that asks is concerned, on Windows."""
    monkeypatch.setattr(system, "fcntl", None)


@pytest.mark.parametrize("program", ["join", "serve"])
def test_what_needs_posix_says_so_in_one_sentence(windows, tmp_path, program):
    start = {
        "join": lambda: launch.join(tmp_path, superlink="a:1", root_certificates=tmp_path, key=tmp_path),
        "serve": lambda: launch.serve(tmp_path, certificates=tmp_path, address="a:1"),
    }[program]
    with pytest.raises(PrivstatsError, match=f"^privstats flower {program} needs a POSIX system: run it on Linux"):
        start()


def test_a_system_without_any_lock_is_refused(windows, monkeypatch, tmp_path):
    monkeypatch.setattr(system, "msvcrt", None)
    with pytest.raises(PrivstatsError, match="this system has no locks that go with their process"):
        locks.lock(tmp_path)


def test_where_modes_mean_nothing_nobody_is_refused_for_one(monkeypatch, tmp_path):
    path = tmp_path / "identity.pem"
    Identity.generate(os.urandom).save(path)
    path.chmod(0o644)
    with pytest.raises(PrivstatsError, match="others can read"):
        Identity.load(path)
    assert system.others_can_read(path)
    assert not system.others_can_write(path)
    monkeypatch.setattr(system, "fcntl", None)
    assert Identity.load(path).public
    assert not system.others_can_read(path)


def test_a_look_at_a_lock_refuses_none_who_takes_it_then(tmp_path):
    """A process asks without a pause whether the folder is in use, as a monitor may; each start gets its lock."""
    place = tmp_path / ".joined.lock"
    locks.unlock(locks.lock(place))
    asking = "import sys; from pathlib import Path; from privstats.files.locks import is_locked\nprint(flush=True)\n"
    asking += "while True: is_locked(Path(sys.argv[1]))"
    with subprocess.Popen([sys.executable, "-c", asking, place], stdout=subprocess.PIPE) as process:
        process.stdout.readline()
        try:
            for _ in range(200):
                locks.unlock(locks.lock(place))
        finally:
            process.kill()


def test_a_lock_that_is_held_is_seen_and_refused_at_once(tmp_path):
    handle = locks.lock(tmp_path)
    assert locks.is_locked(tmp_path)
    began = time.monotonic()
    with pytest.raises(BlockingIOError):
        locks.lock(tmp_path)
    assert time.monotonic() - began < 5
    locks.unlock(handle)
    assert not locks.is_locked(tmp_path)
    assert not locks.is_locked(tmp_path / "nothing")


FAULTS = """
import resource
import numpy as np
import privstats as ps
{}
def of_a_tile():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    arrays = [np.ones(1 << 18) for _ in range(4)]
    del arrays
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before
print(min(of_a_tile() for _ in range(4)))
"""
MEASURE = "ps.measure(ps.ClassSchema(2, 2, 'NA', clip_norm=1.0), [[0.5, 0.0]], [0])"


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="only this allocator returns a tile's memory")
@pytest.mark.parametrize(("limits", "kept"), [({}, True), ({"MALLOC_TRIM_THRESHOLD_": "65536"}, False)])
def test_a_process_that_measured_keeps_a_tile_s_memory_unless_its_environment_sets_a_limit(limits, kept):
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("MALLOC_", "GLIBC_"))}
    words = [sys.executable, "-c", FAULTS.format(MEASURE)]
    done = subprocess.run(words, env=environment | limits, capture_output=True, text=True, check=True)
    assert (int(done.stdout) < 20) is kept  # of 2,048 pages


class TestOpenFiles:
    """A process raises its own limit of open files, as far as the system lets it, and never lowers it."""

    @pytest.mark.parametrize(
        ("soft", "hard", "most"), [(1024, 4096, 4096), (1024, -1, 65536), (1024, 1 << 20, 65536), (4096, 4096, 4096)]
    )
    def test_as_far_as_the_system_lets_it(self, monkeypatch, soft, hard, most):
        limits = self.limits(monkeypatch, soft, hard)
        assert ports.raise_open_files() == most
        assert limits == [(soft, hard), *([(most, hard)] if most > soft else [])]

    @pytest.mark.parametrize(("soft", "hard", "most"), [(1 << 20, 1 << 20, 1 << 20), (-1, -1, 65536)])
    def test_a_higher_one_stays(self, monkeypatch, soft, hard, most):
        limits = self.limits(monkeypatch, soft, hard)
        assert ports.raise_open_files() == most
        assert limits == [(soft, hard)]

    def test_a_system_that_refuses_is_believed(self, monkeypatch):
        self.limits(monkeypatch, 1024, -1, refuses=ValueError("current limit exceeds maximum limit"))
        assert ports.raise_open_files() == 1024

    def test_windows_has_no_such_limit(self, monkeypatch):
        monkeypatch.setattr(system, "resource", None)
        assert ports.raise_open_files() == 65536

    def limits(self, monkeypatch, soft, hard, refuses=None):
        """A system with these limits, and the list of what they were."""
        known = [(soft, hard)]

        def set_to(_, both):
            if refuses:
                raise refuses
            known.append(both)

        made = SimpleNamespace(RLIMIT_NOFILE=7, RLIM_INFINITY=-1, getrlimit=lambda _: known[-1], setrlimit=set_to)
        monkeypatch.setattr(system, "resource", made)
        return known
