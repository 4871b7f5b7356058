"""The programs that Flower starts by name: Flower's own entry points, with our app in place of any shipped code.

Otherwise the code in a run's bundle would run with the rights of the node, or of the SuperLink. Two guards are each
sufficient: replaced loaders (a missing name stops the program), and an audit hook that refuses to open, import or
execute anything below ``FLWR_HOME``. The hook covers the event ``import``, because loading a compiled module opens no
file that Python sees.
"""

from __future__ import annotations

import importlib
import logging
import os
import shlex
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

from privstats.engines.flower import addresses, fork_server, node_memory
from privstats.engines.flower.polling import IDLE, IDLE_SECONDS, WAKE_UP_PIPE, PollingClock, WakeUpPipe, once_a_second
from privstats.engines.flower.pulse import WORKING, Signs, WatchedExecutor, retried
from privstats.engines.flower.replaced_names import check_version, replace
from privstats.errors import PrivstatsError
from privstats.files.atomic import atomic_write
from privstats.printable import Printable, printable

REFUSED = ("flwr-agentapp", "flwr-clientapp", "flwr-connector", "flwr-model", "flwr-serverapp", "flwr-simulation")
"""All programs that Flower's executor may start; each refuses, except the one that the node or SuperLink runs."""

_EXECUTOR, _NODE = "flower-superexec", "flower-supernode"
_leave = os._exit
_MONITOR = "start_parent_process_monitor"
_LOOK_SECONDS, _LEAVE_SECONDS = 0.2, 2.0
_TRANSPORT = "httpcore"
_CALLS = "flwr.supercore.protobuf.client"
_READING = frozenset({"open", "import", "ctypes.dlopen", "os.exec", "os.posix_spawn", "subprocess.Popen"})


def guard(folder: Path) -> None:
    """Forbid this process to open, import or run any file below ``folder``; this cannot be undone.

    Guarantee: this process runs no code that was shipped and unpacked there, whichever of Flower's functions requests
    it, because Python calls its audit hooks before it opens, imports or executes a file.
    """
    sys.addaudithook(_hook(os.path.realpath(folder)))


def _hook(forbidden: str) -> Callable[[str, tuple[Any, ...]], None]:
    def hook(event: str, arguments: tuple[Any, ...]) -> None:
        if event in _READING and any(_below(each, forbidden) for each in _paths(event, arguments)):
            raise PermissionError("only installed code runs here: what a run ships is not opened")

    return hook


def _paths(event: str, arguments: tuple[Any, ...]) -> Sequence[Any]:
    """Only a compiled module's import has a path."""
    if event == "import":
        return arguments[1:2]
    return arguments[:1] if event == "open" else arguments


def _below(value: object, folder: str) -> bool:
    if isinstance(value, list | tuple):
        return any(_below(each, folder) for each in value)
    if not isinstance(value, str | bytes | os.PathLike):
        return False
    path = os.path.realpath(os.fsdecode(value))
    return path == folder or path.startswith(folder + os.sep)


def end_with(parent: int, seconds: float = _LEAVE_SECONDS) -> None:
    """End this process when another one has ended: by SIGINT, and by SIGKILL ``seconds`` later.

    A program that waits for a lock or connection never notices SIGINT. A kill loses nothing: states are on disk before
    anything is sent.
    """
    child = os.getppid() == parent  # without a waiting parent it stays a zombie, and its children get another parent

    def watch() -> None:
        while _lives(parent) and (not child or os.getppid() == parent):
            time.sleep(_LOOK_SECONDS)
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(seconds)
        os.kill(os.getpid(), signal.SIGKILL)

    threading.Thread(target=watch, daemon=True).start()


def _lives(process: int) -> bool:
    try:
        os.kill(process, 0)
    except OSError as error:
        return isinstance(error, PermissionError)
    return True


def write_programs(folder: Path, runs: str) -> None:
    """Write the only folder on the ``PATH`` of a node or a SuperLink, so that no other program is found by name.

    Args:
        folder: readable by its owner only; other files in it are removed, and each program is replaced atomically.
        runs: ``"flwr-clientapp"`` or ``"flwr-serverapp"``; all others of ``REFUSED`` end at once with exit code 1.
    """
    lines = dict.fromkeys(REFUSED, "exit 1")
    lines |= {name: f'exec {shlex.join(command(name))} "$@"' for name in (_EXECUTOR, runs)}
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        folder.chmod(0o700)
        for path in folder.iterdir():
            if path.name not in lines:
                path.unlink()
        for name, line in lines.items():
            _write(folder / name, f"#!/bin/sh\n{line}\n")
    except OSError as error:
        raise PrivstatsError(f"cannot write {folder}: {error.strerror}; nothing was started") from None


def command(name: str) -> list[str]:
    """Return the command line that starts a program of this module."""
    return [sys.executable, "-P", "-m", "privstats.engines.flower.entrypoint_guard", name]


def _write(path: Path, text: str) -> None:
    half = path.with_name(f".{path.name}")
    atomic_write(half, text.encode())
    half.chmod(0o700)
    half.replace(path)


def pin_client() -> Callable[[], None]:
    """Return Flower's client program with our app; the bundle is not unpacked and not loaded."""
    replace(
        "flwr.supernode.runtime.run_clientapp",
        {"install_from_fab": _nothing, "get_load_client_app_fn": _load_client_app, _MONITOR: end_with},
    )
    main: Callable[[], None] = importlib.import_module("flwr.supernode.cli.flwr_clientapp").flwr_clientapp
    return main


def pin_server() -> Callable[[], None]:
    """Return Flower's server program with our app; the bundle supplies only ``--run-config`` overrides."""
    module = "flwr.superlink.runtime.run_serverapp"
    run = importlib.import_module(module).run_
    replace(
        module,
        {
            "install_from_fab": _nothing,
            "get_project_config": _project_config,
            "get_fused_config_from_dir": _overrides,
            "run_": partial(_run_server_app, run),
            _MONITOR: end_with,
        },
    )
    logging.getLogger("flwr").addFilter(_one_sentence)
    main: Callable[[], None] = importlib.import_module("flwr.superlink.cli.flwr_serverapp").flwr_serverapp
    return main


def _nothing(*_: object, **__: object) -> None:
    """Do nothing, in place of the function that unpacks a bundle."""


def _load_client_app(*_: object, **__: object) -> Callable[..., object]:
    app = importlib.import_module("privstats.engines.flower.client_app").app
    return lambda *_, **__: app


def _project_config(*_: object, **__: object) -> dict[str, Any]:
    return {"tool": {"flwr": {"app": {"components": {"serverapp": "privstats.engines.flower.server_app:app"}}}}}


def _overrides(_: object, override_config: dict[str, Any]) -> dict[str, Any]:
    return dict(override_config)


def _run_server_app(run: Callable[..., Any], *, grid: Any, context: Any, **_: object) -> Any:
    app = importlib.import_module("privstats.engines.flower.server_app").app
    return run(grid=grid, context=context, server_app_dir="", loaded_server_app=app)


def _one_sentence(record: logging.LogRecord) -> bool:
    raised = record.exc_info[1] if record.exc_info else None
    if isinstance(raised, PrivstatsError):
        record.msg, record.args = str(raised), None
        record.exc_info = record.exc_text = None  # an earlier filter has written the traceback into the latter
    return True


def _flower(module: str, name: str) -> Callable[[], None]:
    main: Callable[[], None] = getattr(importlib.import_module(module), name)
    return main


def _client() -> Callable[[], None]:
    """Skip the node's program: its imports are a third of the start time.

    Our app and httpx's imports are loaded before the program is forked for a message.
    """
    node = ModuleType("flwr.supernode.cli.flower_supernode")
    node.__dict__["flower_supernode"] = _nothing
    sys.modules.setdefault(node.__name__, node)
    main = pin_client()
    _load_client_app()
    importlib.import_module(_TRANSPORT)
    return main


def _server() -> Callable[[], None]:
    main = pin_server()
    _retry_lines()
    importlib.import_module("privstats.engines.flower.server_app")
    importlib.import_module(_TRANSPORT)
    return main


def _executor() -> Callable[[], None]:
    node_memory.unbind_memory()
    _retry_lines()
    name, pipe = os.environ.get(fork_server.PROGRAM), os.environ.get(WAKE_UP_PIPE)
    sleeper = {} if pipe is None else {"time": WakeUpPipe(Path(pipe))}
    replace("flwr.supercore.superexec.run_superexec", {_MONITOR: end_with, **sleeper})
    if name is not None:
        programs = fork_server.ForkedPrograms(name)
        replace("flwr.supercore.superexec.executor.subprocess_executor", {"subprocess": programs})
    return _flower("flwr.supercore.cli.flower_superexec", "flower_superexec")


def _supernode() -> Callable[[], None]:
    main = _child("flwr.supernode.cli.flower_supernode", "flower_supernode")
    signs, executor = Signs.inherited(), WatchedExecutor()

    def waits(for_a_task: bool) -> None:
        executor.require()
        if for_a_task:
            signs.give(WORKING)

    local = "flwr.supernode.main"
    create = importlib.import_module(local).create_app
    replace(local, {"create_app": partial(_with_secret, create, executor.secret)})
    _retry_lines()
    replace(_CALLS, {"ProtobufClient._unary_unary": signs.of_calls(_protobuf_client()._unary_unary)})
    module = "flwr.supernode.start_client_internal"
    clock = PollingClock(time.sleep, float(os.environ.get(IDLE, IDLE_SECONDS)), waits)
    replaced: dict[str, object] = {"time": clock, "subprocess": executor}
    if WAKE_UP_PIPE in os.environ:
        answer = importlib.import_module(module)._push_messages  # waits for the answer to a task that was just made
        replaced["_push_messages"] = WakeUpPipe(Path(os.environ[WAKE_UP_PIPE])).waking_before(answer)
    replace(module, replaced)
    return main


def _protobuf_client() -> Any:
    return importlib.import_module(_CALLS).ProtobufClient


def _retry_lines() -> None:
    """Let a fault of a TLS line be passing, for this process."""
    replace(_CALLS, {"ProtobufClient._send": retried(_protobuf_client()._send)})


def _child(module: str, name: str) -> Callable[[], None]:
    """Return one of Flower's mains that ends when ``join``, or ``serve``, ends."""
    end_with(os.getppid())
    return _flower(module, name)


def _superlink() -> Callable[[], None]:
    name = "flwr.superlink.cli.flower_superlink"
    main = _child(name, "flower_superlink")
    fleet, home = os.environ[addresses.FLEET_ADDRESS], Path(os.environ[addresses.HOME])
    replace(name, {"_run_superlink_http_api": partial(addresses.serve_both, fleet, home)})
    remembered = importlib.import_module("privstats.engines.flower.node_authentication").remembered
    signed = "flwr.superlink.routers.fleet.node_auth"
    replace(signed, {"verify_signature": remembered(importlib.import_module(signed).verify_signature)})
    around = "flwr.superlink.main"
    replace(around, {"_get_middleware": partial(addresses.layers, importlib.import_module(around)._get_middleware)})
    tasks, look = "flwr.supercore.corestate.sql_corestate", "_cleanup_expired_task_tokens"
    state = importlib.import_module(tasks).SqlCoreState
    replace(tasks, {f"{state.__name__}.{look}": once_a_second(getattr(state, look))})
    return main


_MAINS: Mapping[str, Callable[[], Callable[[], None]]] = {
    "flower-superlink": _superlink,
    _NODE: _supernode,
    _EXECUTOR: _executor,
    "flwr-clientapp": _client,
    "flwr-serverapp": _server,
}


def main(words: Sequence[str]) -> None:
    """Run one program: its name, then Flower's own options."""
    name, *options = words
    logging.getLogger("flwr").addFilter(Printable())  # Flower logs text from the other end of a connection
    try:
        check_version()
        if name in REFUSED:
            utils = importlib.import_module("flwr.supercore.utils")
            guard(utils.get_flwr_home())
        program = _MAINS[name]()
    except (PrivstatsError, KeyError, ImportError, AttributeError) as error:
        sys.exit(printable(f"{name} was not started: {error}"))
    if options[:1] == [fork_server.OPTION]:
        program = partial(fork_server.run_tasks, int(options[1]), partial(_run, name, program))
    if name == _NODE:
        node_memory.bind_memory()
        _leave_with(partial(_run, name, program, options))
    else:
        _run(name, program, options)


def _with_secret(create: Callable[..., object], secret: bytes, *given: object, **named: object) -> object:
    """Make the node's local interface, which gives tasks to nobody but the node's own executor."""
    return create(*given, **{**named, "superexec_auth_secret": secret})


def _leave_with(main: Callable[[], None]) -> None:
    """End this process with its main function: a thread of Flower's would keep it alive without a main loop."""
    code = 1
    try:
        main()
        code = 0
    except SystemExit as ending:
        if isinstance(ending.code, int | None):
            code = ending.code or 0
        else:
            sys.stderr.write(f"{ending.code}\n")
    except MemoryError:
        sys.stderr.write(f"{node_memory.FILLED}\n")
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        _leave(code)


def _run(name: str, program: Callable[[], None], options: Sequence[str]) -> None:
    sys.argv = [name, *options]
    try:
        program()
    except PrivstatsError as error:
        sys.exit(printable(f"{name} ended: {error}"))


if __name__ == "__main__":
    main(sys.argv[1:])
