"""What a run ships does not run: neither on a node nor on the SuperLink, whichever of the two guards is left."""

import importlib.util
import json
import logging
import os
import runpy
import shutil
import stat
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

from privstats.engines.flower import entrypoint_guard, node_memory, replaced_names
from privstats.errors import PrivstatsError
from privstats.printable import Printable
from tests.engines.flower import shipped

ROOT = Path(__file__).parents[3]
PROGRAMS = pytest.mark.parametrize(
    "program",
    [pytest.param("clientapp", marks=pytest.mark.ci), pytest.param("serverapp", marks=pytest.mark.nightly)],
)


def child(*words, folder, **environment):
    """A Python program in this repository, with a Flower folder of its own."""
    return subprocess.run(
        [sys.executable, *words],
        cwd=ROOT,
        env={
            **os.environ,
            "FLWR_HOME": str(folder / "flower"),
            "FLWR_TELEMETRY_ENABLED": "0",
            "PYTHONPATH": str(ROOT),
            **environment,
        },
        capture_output=True,
        text=True,
        timeout=120,
    )


def meet(program, way, folder):
    ended = child("-m", "tests.engines.flower.shipped", program, way, str(folder), folder=folder)
    assert (folder / shipped.SAID).exists(), ended.stderr
    return json.loads((folder / shipped.SAID).read_text()), (folder / shipped.RAN).exists()


@pytest.mark.slow
class TestShippedCode:
    """The attack of the bundle: it succeeds against Flower as it comes, and against neither guard."""

    @PROGRAMS
    def test_it_runs_on_plain_flower(self, program, tmp_path):
        _, ran = meet(program, "plain", tmp_path)
        assert ran

    @pytest.mark.ci
    def test_it_does_not_run_on_our_node(self, tmp_path):
        said, ran = meet("clientapp", "pinned", tmp_path)
        assert not ran
        assert said == {"code": "failed"}, "our app answered, of a node without a folder"
        assert not (tmp_path / "flower" / "apps").exists()

    @pytest.mark.ci
    def test_it_does_not_run_on_our_superlink(self, tmp_path):
        said, ran = meet("serverapp", "pinned", tmp_path)
        assert not ran
        assert "no host's folder is named" in said["details"], "our app ran, without a host's folder"

    @PROGRAMS
    def test_it_does_not_run_where_the_replacement_is_left_out(self, program, tmp_path):
        said, ran = meet(program, "hook", tmp_path)
        assert not ran
        assert "only installed code runs here" in said["error" if program == "clientapp" else "details"]


WAYS = """
import ctypes, importlib, json, os, runpy, subprocess, sys
from pathlib import Path
from privstats.engines.flower import entrypoint_guard, replaced_names
folder, guarded, compiled = Path(sys.argv[1]), sys.argv[2] == "guarded", sys.argv[3]
if guarded:
    entrypoint_guard.guard(folder)
sys.path.insert(0, str(folder))
sys.dont_write_bytecode = True
ways = {
    "open": lambda: open(folder / "shipped.py").read(),
    "by its descriptor": lambda: os.close(os.open(bytes(folder / "shipped.py"), os.O_RDONLY)),
    "through a link": lambda: open(folder.parent / "link" / "shipped.py").read(),
    "through a relative path": lambda: (os.chdir(folder.parent), open("apps/../apps/shipped.py").read()),
    "import": lambda: importlib.import_module("shipped"),
    "import of a compiled module": lambda: importlib.import_module(compiled),
    "as a script": lambda: runpy.run_path(str(folder / "shipped.py")),
    "as a program": lambda: subprocess.run([str(folder / "shipped.sh")], check=True),
    "as a program's argument": lambda: subprocess.run(["/bin/sh", str(folder / "shipped.sh")], check=True),
    "as a library": lambda: ctypes.CDLL(next(str(path) for path in folder.glob(compiled + "*"))),
}
result = {}
for name, way in ways.items():
    try:
        way()
        result[name] = "done"
    except PermissionError:
        result[name] = "refused"
print(json.dumps(result))
"""


@pytest.fixture
def unpacked(tmp_path):
    """A folder as Flower unpacks bundles into it, with Python, a program and a compiled module."""
    apps = tmp_path / "apps"
    apps.mkdir()
    (tmp_path / "link").symlink_to(apps)
    (apps / "shipped.py").write_text("")
    (apps / "shipped.sh").write_text("#!/bin/sh\nexit 0\n")
    (apps / "shipped.sh").chmod(0o700)
    compiled = Path(importlib.util.find_spec("_cffi_backend").origin)
    shutil.copy(compiled, apps)
    return apps, "_cffi_backend"


def tried(unpacked, how):
    ended = child("-c", WAYS, str(unpacked[0]), how, unpacked[1], folder=unpacked[0].parent)
    assert ended.returncode == 0, ended.stderr
    return json.loads(ended.stdout)


def test_without_the_hook_every_way_in_is_open(unpacked):
    assert set(tried(unpacked, "open").values()) == {"done"}


def test_with_the_hook_every_way_in_is_shut(unpacked):
    found = tried(unpacked, "guarded")
    assert set(found.values()) == {"refused"}, found
    assert len(found) == 10


class TestHook:
    """What ``WAYS`` does not try, by hand: a hook that is set cannot be removed again."""

    @pytest.fixture
    def hook(self, tmp_path, monkeypatch):
        kept = []
        monkeypatch.setattr(entrypoint_guard.sys, "addaudithook", kept.append)
        entrypoint_guard.guard(tmp_path / "apps")
        (hook,) = kept
        return hook

    def test_it_refuses_the_folder_itself_and_a_program_in_place_of_this_one(self, hook, tmp_path):
        for event, place in (("open", tmp_path / "apps"), ("os.exec", tmp_path / "apps" / "app.py")):
            with pytest.raises(PermissionError):
                hook(event, (str(place), None, None))

    def test_it_lets_everything_else_pass(self, hook, tmp_path):
        hook("open", (str(tmp_path / "apps-of-others"), "r", 0))
        hook("open", (7, "r", 0))
        hook("import", ("apps", None, ["apps"], None, None))
        hook("os.listdir", (str(tmp_path / "apps"),))
        hook("subprocess.Popen", ("/bin/sh", ["/bin/sh", "-c", "true"], None, {"A": "b"}))


class TestReplacedNames:
    @pytest.mark.parametrize("pin", [entrypoint_guard.pin_client, entrypoint_guard.pin_server])
    def test_they_exist_in_the_installed_flower(self, pin, monkeypatch):
        replaced = []

        def look(module, names):
            found = import_module(module)
            replaced.extend((module, name) for name in names)
            assert all(callable(getattr(found, name)) for name in names)

        monkeypatch.setattr(entrypoint_guard, "replace", look)
        assert callable(pin())
        assert len(replaced) >= 2

    def test_each_is_what_installed_code_says(self, monkeypatch):
        from privstats.engines.flower import client_app, server_app

        ours, ran = {}, {}
        monkeypatch.setattr(
            import_module("flwr.superlink.runtime.run_serverapp"), "run_", lambda **given: ran.update(given) or "run"
        )
        monkeypatch.setattr(entrypoint_guard, "replace", lambda _, names: ours.update(names))
        monkeypatch.setattr(logging.getLogger("flwr"), "filters", [])
        entrypoint_guard.pin_client()
        entrypoint_guard.pin_server()
        load = ours["get_load_client_app_fn"](default_app_ref="", app_path=None, multi_app=True)
        assert load("privstats/app", "1.0.0", "hash") is client_app.app
        assert ours["install_from_fab"](b"a bundle", skip_prompt=True) is None
        named = ours["get_project_config"]("folder")["tool"]["flwr"]["app"]["components"]["serverapp"]
        assert named == f"{server_app.__name__}:app"
        assert ours["get_fused_config_from_dir"]("folder", {"step-seconds": 900}) == {"step-seconds": 900}
        assert ours["run_"](grid="grid", context="context", server_app_dir="shipped", server_app_attr="x:y") == "run"
        assert ran == {"grid": "grid", "context": "context", "server_app_dir": "", "loaded_server_app": server_app.app}

    def test_a_name_that_is_gone_stops_the_program(self, monkeypatch):
        module = import_module("flwr.supernode.runtime.run_clientapp")
        before = module.install_from_fab
        monkeypatch.delattr(module, "get_load_client_app_fn")
        with pytest.raises(
            PrivstatsError, match="has no get_load_client_app_fn as in .* to be replaced: nothing was st"
        ):
            entrypoint_guard.pin_client()
        assert module.install_from_fab is before, "all of them, or none"

    def test_a_module_that_became_a_function_is_looked_up_as_a_module(self, monkeypatch):
        """``from flwr.superlink.runtime import run_serverapp`` is a function: to set a name on it did nothing."""
        import flwr.superlink.runtime

        name = "flwr.superlink.runtime.run_serverapp"
        monkeypatch.setattr(import_module(name), "run_", import_module(name).run_)  # put back after the test
        replaced_names.replace(name, {"run_": "ours"})
        assert import_module(name).run_ == "ours"
        assert flwr.superlink.runtime.run_serverapp is not import_module(name)

    def test_every_task_that_flower_may_start_is_one_of_ours_or_refused(self):
        from flwr.supercore.constant import TASK_TYPE_TO_COMMAND

        assert set(TASK_TYPE_TO_COMMAND.values()) == set(entrypoint_guard.REFUSED)


@pytest.mark.parametrize("name", ["flwr-clientapp", "flwr-serverapp", "flower-superexec", "flwr-agentapp", "no-such"])
def test_a_program_that_cannot_be_pinned_is_not_started(name, monkeypatch):
    monkeypatch.setattr(replaced_names.importlib.metadata, "version", lambda _: "1.43.0")
    monkeypatch.setattr(sys, "argv", list(sys.argv))
    with pytest.raises(SystemExit, match=f"{name} was not started: flwr 1.43.0 is installed"):
        entrypoint_guard.main([name])


class TestPrograms:
    def test_the_folder_holds_seven_names_and_two_of_them_start_something(self, tmp_path):
        programs = tmp_path / "programs"
        entrypoint_guard.write_programs(programs, "flwr-clientapp")
        assert {path.name for path in programs.iterdir()} == {*entrypoint_guard.REFUSED, "flower-superexec"}
        starting = {path.name for path in programs.iterdir() if "exit 1" not in path.read_text()}
        assert starting == {"flower-superexec", "flwr-clientapp"}
        assert all(stat.S_IMODE(path.stat().st_mode) == 0o700 for path in (programs, *programs.iterdir()))

    def test_the_others_end_at_once(self, tmp_path):
        programs = tmp_path / "programs"
        entrypoint_guard.write_programs(programs, "flwr-serverapp")
        refused = [name for name in entrypoint_guard.REFUSED if name != "flwr-serverapp"]
        assert len(refused) == 5
        for name in refused:
            assert subprocess.run([name], env={"PATH": str(programs)}, check=False).returncode == 1

    def test_what_lay_there_before_is_gone(self, tmp_path):
        programs = tmp_path / "programs"
        programs.mkdir()
        (programs / "uv").write_text("#!/bin/sh\n")
        entrypoint_guard.write_programs(programs, "flwr-clientapp")
        assert not (programs / "uv").exists()

    def test_a_second_start_leaves_no_moment_without_programs(self, tmp_path, monkeypatch):
        """Two nodes were given one folder: the second start must not take the programs from under the first."""
        programs = tmp_path / "programs"
        entrypoint_guard.write_programs(programs, "flwr-clientapp")
        names = sorted(path.name for path in programs.iterdir())
        replaced, real = [], Path.replace

        def replace(half, target):
            replaced.append(sorted(path.name for path in programs.iterdir() if path.name != half.name))
            return real(half, target)

        monkeypatch.setattr(Path, "replace", replace)
        entrypoint_guard.write_programs(programs, "flwr-clientapp")
        assert all(set(names) <= set(seen) for seen in replaced)
        assert replaced

    @pytest.mark.parametrize("what", ["a file", "a folder inside"])
    def test_a_place_that_cannot_be_written_is_one_sentence(self, tmp_path, what):
        programs = tmp_path / "programs"
        if what == "a file":
            programs.write_text("")
        else:
            (programs / "inside").mkdir(parents=True)
        with pytest.raises(PrivstatsError, match=r"cannot write .*programs: .*; nothing was started"):
            entrypoint_guard.write_programs(programs, "flwr-clientapp")

    def test_a_path_with_spaces_and_quotes_is_started(self, tmp_path, monkeypatch):
        odd = tmp_path / "it's a folder"
        monkeypatch.setattr(entrypoint_guard, "command", lambda name: ["/bin/echo", str(odd), name])
        entrypoint_guard.write_programs(odd, "flwr-clientapp")
        said = subprocess.run([odd / "flwr-clientapp", "--token", "a b"], capture_output=True, text=True, check=True)
        assert said.stdout == f"{odd} flwr-clientapp --token a b\n"


class TestMain:
    @pytest.fixture(autouse=True)
    def words(self, monkeypatch):
        """``main`` sets the words that Flower's own mains read, and bounds the memory of a node's process."""
        monkeypatch.setattr(sys, "argv", list(sys.argv))
        monkeypatch.setattr(node_memory, "bind_memory", lambda: None)

    def test_an_app_is_guarded_before_it_is_pinned_and_started(self, monkeypatch, tmp_path):
        done = []
        monkeypatch.setenv("FLWR_HOME", str(tmp_path))
        monkeypatch.setattr(entrypoint_guard, "guard", lambda folder: done.append(("guarded", folder)))
        monkeypatch.setattr(
            entrypoint_guard,
            "_MAINS",
            {"flwr-clientapp": lambda: done.append("pinned") or (lambda: done.append(sys.argv))},
        )
        entrypoint_guard.main(["flwr-clientapp", "--token", "t"])
        assert done == [("guarded", tmp_path), "pinned", ["flwr-clientapp", "--token", "t"]]

    @pytest.mark.parametrize("name", ["flower-supernode", "flower-superlink"])
    def test_what_supervises_a_program_is_watched_by_it(self, name, monkeypatch):
        watched, started = [], []
        monkeypatch.setattr(entrypoint_guard, "end_with", watched.append)
        monkeypatch.setattr(entrypoint_guard, "_leave", lambda code: code or started.append("left"))
        monkeypatch.setattr(entrypoint_guard, "_flower", lambda module, main: lambda: started.append((module, main)))
        monkeypatch.setattr(entrypoint_guard, "replace", lambda *_: None)
        monkeypatch.setenv("PRIVSTATS_FLEET_ADDRESS", "127.0.0.1:8000")
        monkeypatch.setenv("PRIVSTATS_HOME", "study/host")
        entrypoint_guard.main([name])
        assert watched == [os.getppid()]
        begun, *left = started
        assert begun == (f"flwr.super{name[12:]}.cli.{name.replace('-', '_')}", name.replace("-", "_"))
        assert left == ["left"] * (name == "flower-supernode")

    @pytest.mark.parametrize(
        ("ends", "code", "said"),
        [
            ("pass", 0, ""),
            ("raise SystemExit(3)", 3, ""),
            ("raise SystemExit('gone')", 1, "gone\n"),
            ("raise PrivstatsError('no folder')", 1, "flower-supernode ended: no folder\n"),
            ("raise KeyError('ssl')", 1, "KeyError: 'ssl'\n"),
            ("raise MemoryError", 1, f"{node_memory.FILLED}\n"),
        ],
    )
    def test_attack_a_thread_of_flowers_keeps_no_node_alive_without_its_main_loop(self, ends, code, said, tmp_path):
        """Before, such a node stayed, and join waited for its end."""
        source = (
            "import threading, time\n"
            "from privstats.engines.flower import entrypoint_guard\n"
            "from privstats.errors import PrivstatsError\n"
            f"def main():\n    threading.Thread(target=time.sleep, args=(100,)).start()\n    {ends}\n"
            "entrypoint_guard._MAINS = {'flower-supernode': lambda: main}\n"
            "entrypoint_guard.main(['flower-supernode'])\n"
        )
        ended = child("-c", source, folder=tmp_path)
        assert ended.returncode == code
        assert ended.stderr.endswith(said)

    def test_it_is_a_program(self, monkeypatch):
        monkeypatch.setattr(sys, "argv", ["pinned.py", "no-such-program"])
        with pytest.raises(SystemExit, match="no-such-program was not started"):
            runpy.run_path(entrypoint_guard.__file__, run_name="__main__")

    def test_the_executor_is_flowers_own(self, monkeypatch):
        from flwr.supercore.cli import flower_superexec as package  # noqa: F401

        module = import_module("flwr.supercore.cli.flower_superexec")
        monkeypatch.setattr(module, "flower_superexec", lambda: pytest.fail("started too early"))
        monkeypatch.setattr(entrypoint_guard, "replace", lambda *_: None)
        assert entrypoint_guard._MAINS["flower-superexec"]() is module.flower_superexec

    def test_the_client_program_leaves_the_nodes_out(self, monkeypatch):
        """A database and a web server, which are a third of its start and would stay in memory."""
        module = "flwr.supernode.cli.flower_supernode"
        monkeypatch.delitem(sys.modules, module, raising=False)
        monkeypatch.setattr(entrypoint_guard, "pin_client", lambda: "pinned")
        assert entrypoint_guard._MAINS["flwr-clientapp"]() == "pinned"
        assert sys.modules[module].flower_supernode() is None
        monkeypatch.delitem(sys.modules, module)


@pytest.mark.parametrize("filters", [(), (Printable().filter,)], ids=["alone", "in the program"])
def test_an_error_of_ours_is_logged_as_its_sentence(filters):
    """The filter of `main` stores the traceback, which then followed the sentence of a missed deadline."""

    def logged(error):
        try:
            raise error
        except Exception:
            record = logging.LogRecord(
                "flwr", logging.ERROR, "", 0, "%s raised an exception", ("ServerApp",), sys.exc_info()
            )
        assert all(each(record) for each in (*filters, entrypoint_guard._one_sentence))
        return logging.Formatter().format(record)

    assert logged(PrivstatsError("step mask: 3 of 5 answered")) == "step mask: 3 of 5 answered"
    assert "Traceback" in logged(ValueError("unforeseen"))
    assert entrypoint_guard._one_sentence(logging.LogRecord("flwr", logging.INFO, "", 0, "100 % done", None, None))
