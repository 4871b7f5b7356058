"""One process that is loaded once and forks for each task: what the children share with it, and what they do not."""

import os
import socket
import stat
import subprocess
import sys
import threading
import time
from importlib import import_module
from pathlib import Path

import pytest

from privstats.engines.flower import entrypoint_guard, fork_server
from privstats.engines.flower.fork_server import ForkedPrograms
from privstats.engines.flower.polling import IDLE, WAKE_UP_PIPE, PollingClock, WakeUpPipe
from privstats.engines.flower.replaced_names import TESTED
from privstats.errors import PrivstatsError
from tests.threads import lives, until

ROOT = Path(__file__).parents[3]
SCRIPT = """#!{python}
import os, secrets, sys, tempfile, time
sys.path.insert(0, {root!r})
from pathlib import Path
from privstats.engines.flower import entrypoint_guard, fork_server
from privstats.randomness import secure
here = Path({here!r})
entrypoint_guard.guard(here / "shipped")
with (here / "started").open("a") as file:
    file.write(f"{{os.getpid()}} ")
assert sys.argv[1] == fork_server.OPTION
def task(words):
    try:
        (here / "shipped" / "code.py").read_text()
        opened = "opened"
    except PermissionError:
        opened = "not opened"
    command = Path("/proc/self/cmdline").read_text()
    assert "secret" not in command and "token" not in command
    noise = secure().bytes(8).hex()
    if words[0] == "unpacks":
        global folder
        folder = tempfile.TemporaryDirectory(dir=here)
        words = [*words, folder.name]
    text = "\\n".join([opened, str(noise), secrets.token_hex(8), str(os.getppid()), *words])
    (here / f"half-{{words[0]}}").write_text(text)
    os.replace(here / f"half-{{words[0]}}", here / f"task-{{words[0]}}")
    while words[0] == "lingers":
        time.sleep(.02)
fork_server.run_tasks(int(sys.argv[2]), task)
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
    until(path.exists, lambda: f"task {task} was not done")
    return path.read_text().split("\n")


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


@pytest.mark.ci
def test_a_server_that_was_killed_is_started_again_and_ends_with_its_executor(here):
    programs = ForkedPrograms("forked")
    programs.Popen(["forked", "before"])
    (pid,) = {int(told(here, "before")[3])}
    os.kill(pid, 9)
    until(lambda: not lives(pid))
    programs.Popen(["forked", "after"])
    again = int(told(here, "after")[3])
    assert again != pid
    programs.close()
    until(lambda: not lives(again), lambda: "the server outlives its executor")


def test_what_a_task_registered_for_its_end_is_done(here):
    """A party's own script may unpack its records into a temporary folder, which nothing else would remove."""
    programs = ForkedPrograms("forked")
    programs.Popen(["forked", "unpacks"])
    folder = Path(told(here, "unpacks")[-1])
    until(lambda: not folder.exists())
    programs.close()


@pytest.mark.ci
def test_a_task_that_outlives_its_server_does_not_take_the_next_words(here):
    """It holds no end of the socket, on which words would otherwise wait for ever."""
    programs = ForkedPrograms("forked")
    programs.Popen(["forked", "lingers"])
    server = int(told(here, "lingers")[3])
    (task,) = (int(each) for each in Path(f"/proc/{server}/task/{server}/children").read_text().split())
    os.kill(server, 9)
    try:
        until(lambda: not lives(server))
        programs.Popen(["forked", "after"])
        assert int(told(here, "after")[3]) != server
    finally:
        os.kill(task, 9)
        programs.close()


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
    for module, names in TESTED.items():
        for owner, _, name in (each.rpartition(".") for each in names):
            target = import_module(module)
            target = getattr(target, owner) if owner else target
            monkeypatch.setattr(target, name, getattr(target, name))  # put back after the test
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
        fork_server.run_tasks(theirs.detach(), print)
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


@pytest.mark.ci
@pytest.mark.parametrize(
    ("name", "loaded"),
    [
        ("flwr-clientapp", {"privstats.engines.network.party", "privstats.engines.flower.client_app"}),
        ("flwr-serverapp", {"privstats.engines.network.host", "privstats.engines.flower.server_app"}),
    ],
)
def test_a_program_is_loaded_whole_and_draws_nothing_before_it_is_forked(name, loaded):
    """Whatever a task needs is imported once, and no generator exists that two children would share."""
    code = (
        "import gc, sys, threading\n"
        "from privstats.engines.flower import entrypoint_guard\n"
        "from privstats.randomness import Generator\n"
        f"entrypoint_guard._MAINS[{name!r}]()\n"
        "assert threading.active_count() == 1\n"
        "assert not any(isinstance(each, Generator) for each in gc.get_objects())\n"
        f"assert {loaded!r} <= set(sys.modules)\n"
        "import httpx\n"
        "before = set(sys.modules)\n"
        "httpx.Client().close()\n"
        "assert set(sys.modules) == before\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, cwd=ROOT)


def test_a_node_looks_again_soon_after_a_message_and_seldom_when_idle():
    waited = []
    polling = PollingClock(waited.append)
    for _ in range(8):
        polling.sleep(3)
    assert waited[:3] == pytest.approx([0.1, 0.15, 0.225])
    assert sum(waited) < 5
    for _ in range(8):
        polling.sleep(3)
    assert waited[-1] == 3.0
    polling.sleep(0.5)
    polling.sleep(3)
    assert waited[-2:] == [0.05, 0.1]


def test_a_node_rings_for_each_task_before_it_waits_for_the_answer(monkeypatch, tmp_path):
    """Also for one that follows at once, where the node does not sleep between two."""
    from flwr.supernode import start_client_internal

    heard, replaced = [], {}
    monkeypatch.setattr(entrypoint_guard, "_child", lambda *_: None)
    monkeypatch.setattr(entrypoint_guard, "replace", lambda _, names: replaced.update(names))
    monkeypatch.setattr(WakeUpPipe, "wake", lambda self: heard.append(self.path))
    monkeypatch.setattr(
        start_client_internal,
        "_push_messages",
        lambda state, object_store=0, send=0, push_object=0: heard.append(state),
    )
    monkeypatch.setenv(WAKE_UP_PIPE, str(tmp_path / "wake-up"))
    entrypoint_guard._supernode()
    for state in "ab":
        replaced["_push_messages"](state=state)
    assert heard == [tmp_path / "wake-up", "a", tmp_path / "wake-up", "b"]


class TestWakeUpPipe:
    """What wakes a node's executor."""

    def test_it_ends_the_sleep_of_another_process_and_is_not_kept_for_later(self, tmp_path):
        waits = (
            "import sys, time; from pathlib import Path; from privstats.engines.flower.polling import WakeUpPipe\n"
            "pipe = WakeUpPipe(Path(sys.argv[1])); pipe.sleep(0); print(flush=True)\n"
            "pipe.sleep(60); print(flush=True); began = time.monotonic(); pipe.sleep(0.2)\n"
            "assert time.monotonic() - began > 0.15"
        )
        words = [sys.executable, "-c", waits, str(tmp_path / "wake-up")]
        with (
            WakeUpPipe(tmp_path / "wake-up").opened() as pipe,
            subprocess.Popen(words, stdout=subprocess.PIPE, cwd=ROOT) as process,
        ):
            process.stdout.readline()
            pipe.wake()
            process.stdout.readline()
        assert process.returncode == 0
        assert not pipe.path.exists()

    def test_it_never_waits_for_one_who_does_not_listen(self, tmp_path):
        with WakeUpPipe(tmp_path / "wake-up").opened() as pipe:
            sleeper = WakeUpPipe(tmp_path / "wake-up")
            sleeper.sleep(0)
            for _ in range(100_000):
                pipe.wake()
            for _ in range(100):
                sleeper.sleep(0)
            assert _seconds_of(sleeper, 0.1) > 0.05

    def test_it_takes_the_place_of_what_was_there_and_is_its_owners(self, tmp_path):
        (tmp_path / "wake-up").write_text("a file")
        with WakeUpPipe(tmp_path / "wake-up").opened() as pipe:
            pipe.wake()
            mode = pipe.path.stat().st_mode
            assert stat.S_ISFIFO(mode)
            assert stat.S_IMODE(mode) == 0o600

    @pytest.mark.parametrize("there", ["nothing", "a file", "a folder"])
    def test_without_a_pipe_a_sleep_goes_to_its_end(self, tmp_path, monkeypatch, there):
        def no_pipes(*_):
            raise PermissionError

        monkeypatch.setattr(os, "mkfifo", no_pipes)
        with WakeUpPipe(tmp_path / "wake-up").opened() as pipe:
            if there == "a file":
                pipe.path.write_text("")
            if there == "a folder":
                pipe.path.mkdir()
            pipe.wake()
            pipe.sleep(0)
            assert _seconds_of(pipe, 0.1) > 0.05


def _seconds_of(sleeper, seconds):
    began = time.monotonic()
    sleeper.sleep(seconds)
    return time.monotonic() - began


def test_the_longest_sleep_of_a_node_is_a_setting(monkeypatch, tmp_path):
    replaced, waited = {}, []
    monkeypatch.setenv(WAKE_UP_PIPE, str(tmp_path / "wake-up"))
    monkeypatch.setattr(entrypoint_guard, "_child", lambda *_: None)
    monkeypatch.setattr(entrypoint_guard, "replace", lambda _, names: replaced.update(names))
    monkeypatch.setattr(time, "sleep", waited.append)
    monkeypatch.setenv(IDLE, "0.25")
    entrypoint_guard._supernode()
    for _ in range(4):
        replaced["time"].sleep(3)
    assert waited == pytest.approx([0.1, 0.15, 0.225, 0.25])


def test_flowers_node_sleeps_as_long_as_the_polling_clock_knows():
    """The one number by which an idle node is told from one that waits for its own answer."""
    import inspect

    from flwr.supernode import start_client_internal

    source = inspect.getsource(start_client_internal)
    assert source.count("time.sleep(3)") == 1
    assert source.count("time.sleep(0.5)") == 2
    assert source.count("time.") == source.count("time.sleep") + source.count(
        "If set to None, there is no limit to the total time."
    )


@pytest.mark.ci
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
        until(lambda: not entrypoint_guard._lives(number))
