"""One process that is loaded once and forks for each task: what the children share with it, and what they do not."""

import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from privstats.engines.flower import entrypoint_guard, fork_server
from privstats.engines.flower.fork_server import ForkedPrograms
from privstats.engines.flower.pauses import IDLE, Pauses
from privstats.errors import PrivstatsError

ROOT = Path(__file__).parents[3]
SCRIPT = """#!{python}
import os, secrets, sys
sys.path.insert(0, {root!r})
from pathlib import Path
from privstats.engines.flower import entrypoint_guard, fork_server
from privstats.randomness import secure
here = Path({here!r})
entrypoint_guard.guard(here / "shipped")
with (here / "started").open("a") as file:
    file.write(f"{{os.getpid()}} ")
words = fork_server.next_task(int(sys.argv[2]))
assert sys.argv[1] == fork_server.OPTION
try:
    (here / "shipped" / "code.py").read_text()
    opened = "opened"
except PermissionError:
    opened = "not opened"
command = Path("/proc/self/cmdline").read_text()
assert "secret" not in command and "token" not in command
noise = secure().bytes(8).hex()
text = "\\n".join([opened, str(noise), secrets.token_hex(8), str(os.getppid()), *words])
(here / f"half-{{words[0]}}").write_text(text)
os.replace(here / f"half-{{words[0]}}", here / f"task-{{words[0]}}")
"""


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path / "programs"))
    (tmp_path / "programs").mkdir()
    (tmp_path / "shipped").mkdir()
    (tmp_path / "shipped" / "code.py").write_text("harm()")
    program = tmp_path / "programs" / "forked"
    program.write_text(SCRIPT.format(python=sys.executable, root=str(ROOT), here=str(tmp_path)))
    program.chmod(0o700)
    return tmp_path


def told(here, task):
    """What the child of one task wrote."""
    path = here / f"task-{task}"
    until = time.monotonic() + 100
    while not path.exists():
        assert time.monotonic() < until, f"task {task} was not done"
        time.sleep(0.02)
    return path.read_text().split("\n")


def alive(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().split()[2] != "Z"
    except OSError:
        return False


def test_each_task_is_a_child_of_one_process_that_was_loaded_once(here):
    programs = ForkedPrograms("forked")
    try:
        for task in "abc":
            programs.Popen(["forked", task, "--token", "secret with a space"])
        answers = [told(here, task) for task in "abc"]
        started = (here / "started").read_text().split()
        assert len(started) == 1
        assert {answer[3] for answer in answers} == set(started)
        assert [answer[4:] for answer in answers] == [
            [task, "--token", "secret with a space"] for task in ("a", "b", "c")
        ]
        assert len({answer[1] for answer in answers} | {answer[2] for answer in answers}) == 6, "shared randomness"
        assert {answer[0] for answer in answers} == {"not opened"}, "the guard did not reach a child"
    finally:
        programs.close()


def test_a_server_that_was_killed_is_started_again_and_ends_with_its_executor(here):
    programs = ForkedPrograms("forked")
    programs.Popen(["forked", "before"])
    (pid,) = {int(told(here, "before")[3])}
    fork_server.os.kill(pid, 9)
    until = time.monotonic() + 30
    while alive(pid) and time.monotonic() < until:
        time.sleep(0.02)
    programs.Popen(["forked", "after"])
    again = int(told(here, "after")[3])
    assert again != pid
    programs.close()
    while alive(again):
        assert time.monotonic() < until, "the server outlives its executor"
        time.sleep(0.02)


def test_other_programs_are_started_as_they_were(here):
    programs = ForkedPrograms("forked")
    child = programs.Popen([sys.executable, "-c", "raise SystemExit(7)"], stdout=programs.DEVNULL)
    assert child.wait() == 7
    programs.close()


def test_flowers_own_executor_sends_the_words_that_it_would_start(here, monkeypatch):
    from flwr.supercore.constant import TaskType
    from flwr.supercore.superexec.executor import subprocess_executor
    from flwr.supercore.superexec.executor.types import ExecutionSpec

    (here / "programs" / "flwr-clientapp").write_text((here / "programs" / "forked").read_text())
    (here / "programs" / "flwr-clientapp").chmod(0o700)
    monkeypatch.setenv(fork_server.PROGRAM, "flwr-clientapp")
    monkeypatch.setattr(subprocess_executor, "subprocess", subprocess_executor.subprocess)
    entrypoint_guard._MAINS["flower-superexec"]()
    spec = ExecutionSpec(TaskType.CLIENT_APP, "127.0.0.1:1", "secret", True, None, False, 4, False, 5)
    assert subprocess_executor.SubprocessExecutor().launch(spec).status == "accepted"
    words = ["--runtime-api-address", "127.0.0.1:1", "--token", "secret", "--insecure", "--parent-pid", "4"]
    assert told(here, "--runtime-api-address")[4:] == words
    subprocess_executor.subprocess.close()


def test_a_program_with_threads_is_not_forked():
    stop = threading.Event()
    threading.Thread(target=stop.wait, daemon=True).start()
    ours, theirs = socket.socketpair()
    with ours, theirs, pytest.raises(PrivstatsError, match="a program with threads is not forked"):
        fork_server.next_task(theirs.fileno())
    stop.set()


@pytest.mark.parametrize("line", [b'{"a": 1}\n', b"[1]\n", b'"word"\n'])
def test_what_is_no_list_of_words_is_refused(line):
    with pytest.raises(PrivstatsError, match="a task is a list of words"):
        fork_server._words(line)


def test_a_task_of_too_many_words_is_refused_before_it_is_sent(here):
    programs = ForkedPrograms("forked")
    with pytest.raises(PrivstatsError, match="at most 65536 are taken"):
        programs.Popen(["forked", "x" * (1 << 16)])
    programs.close()


def test_the_program_that_answers_is_loaded_whole_and_draws_nothing_before_it_is_forked():
    """Whatever a message needs is imported once, and no generator exists that two children would share."""
    import subprocess

    code = (
        "import gc, sys, threading\n"
        "from privstats.engines.flower import entrypoint_guard\n"
        "from privstats.randomness import Generator\n"
        "entrypoint_guard._client()\n"
        "assert threading.active_count() == 1\n"
        "assert not any(isinstance(each, Generator) for each in gc.get_objects())\n"
        "assert {'privstats.engines.network.party', 'privstats.engines.flower.client_app'} <= set(sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, cwd=ROOT)


def test_a_node_looks_again_soon_after_a_message_and_seldom_when_idle():
    waited = []
    pauses = Pauses(waited.append)
    for _ in range(8):
        pauses.sleep(3)
    assert waited == [0.1, 0.2, 0.4, 0.8, 1.6, 3.0, 3.0, 3.0]
    pauses.sleep(0.5)
    pauses.sleep(3)
    assert waited[-2:] == [0.05, 0.1]


def test_the_longest_sleep_of_a_node_is_a_setting(monkeypatch):
    replaced, waited = {}, []
    monkeypatch.setattr(entrypoint_guard, "_child", lambda *_: None)
    monkeypatch.setattr(entrypoint_guard, "replace", lambda _, names: replaced.update(names))
    monkeypatch.setattr(time, "sleep", waited.append)
    monkeypatch.setenv(IDLE, "0.25")
    entrypoint_guard._supernode()
    for _ in range(4):
        replaced["time"].sleep(3)
    assert waited == [0.1, 0.2, 0.25, 0.25]


def test_flowers_node_sleeps_as_long_as_the_pauses_know():
    """The one number by which an idle node is told from one that waits for its own answer."""
    import inspect

    from flwr.supernode import start_client_internal

    source = inspect.getsource(start_client_internal)
    assert source.count("time.sleep(3)") == 1
    assert source.count("time.sleep(0.5)") == 2
    assert source.count("time.") == source.count("time.sleep") + source.count(
        "If set to None, there is no limit to the total time."
    )


def test_a_program_that_waits_for_a_lock_ends_with_its_parent():
    """It waits where no signal is noticed, and was started by a shell that ignores SIGINT for it."""
    waiting = (
        "import os, signal, threading; from privstats.engines.flower.entrypoint_guard import end_with\n"
        "signal.signal(signal.SIGINT, signal.SIG_IGN); end_with(os.getppid(), 0.1); print(os.getpid(), flush=True)\n"
        "lock = threading.Lock(); lock.acquire(); lock.acquire()"
    )
    parent = f"import subprocess, sys; p = subprocess.Popen([sys.executable, '-c', {waiting!r}]); sys.stdin.read()"
    with subprocess.Popen([sys.executable, "-c", parent], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        number = int(process.stdout.readline())
        assert entrypoint_guard._lives(number)
        process.kill()  # a zombie, until the block ends
        until = time.monotonic() + 30
        while entrypoint_guard._lives(number) and time.monotonic() < until:
            time.sleep(0.05)
        assert not entrypoint_guard._lives(number)
