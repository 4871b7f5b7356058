"""A run whose bundle is hostile, as one of Flower's own programs meets it; the tests start it as a program of its own.

    python -m tests.engines.flower.shipped clientapp|serverapp plain|pinned|hook FOLDER

Everything of Flower's is the installed one but the connection: the bundle, the message and the answer go through files.
``plain`` is Flower as it comes, ``entrypoint_guard`` is ours, ``hook`` is ours with the replacements left out.
"""

import json
import os
import sys
from importlib import import_module
from pathlib import Path
from queue import Queue
from types import SimpleNamespace

RAN = "ran"
SAID = "said.json"

CODE = """
from pathlib import Path
Path({ran!r}).write_text("the shipped code ran")
from flwr.clientapp import ClientApp
from flwr.serverapp import ServerApp
client = ClientApp()
server = ServerApp()
@client.query("privstats")
def answer(message, context):
    return message
@server.main()
def main(grid, context):
    pass
"""
PROJECT = """
[project]
name = "privstats-app"
version = "1.0.0"
description = "hostile"
license = "Apache-2.0"
[tool.flwr.app]
publisher = "privstats"
[tool.flwr.app.components]
serverapp = "hostile.app:server"
clientapp = "hostile.app:client"
[tool.flwr.app.config]
open-seconds = 3600
step-seconds = 600
"""


def bundle(folder: Path) -> bytes:
    from flwr.cli.build import build_fab_from_files

    files = {
        "pyproject.toml": PROJECT.encode(),
        "hostile/__init__.py": b"",
        "hostile/app.py": CODE.format(ran=str(folder / RAN)).encode(),
    }
    return build_fab_from_files(files)[0]


def say(folder: Path, **said: object) -> None:
    (folder / SAID).write_text(json.dumps(said))


class Quiet:
    """What stands for a connection, a heartbeat or a log: it takes everything and does nothing."""

    def __init__(self, *_: object, **__: object) -> None:
        self.is_running = False

    def __getattr__(self, name: str) -> object:
        return lambda *_, **__: None


def task(shipped: bytes) -> tuple[object, object, object]:
    import hashlib

    from flwr.app import Context, RecordDict
    from flwr.supercore.fab import Fab
    from flwr.supercore.run import Run
    from flwr.supercore.task_identity import TaskIdentity

    TaskIdentity.task_id, TaskIdentity.run_id, TaskIdentity.node_id = 1, 1, 1
    fab = Fab(hashlib.sha256(shipped).hexdigest(), shipped, {})
    run = Run.create_empty(1)
    run.fab_id, run.fab_version, run.fab_hash = "privstats/privstats-app", "1.0.0", fab.hash_str
    return fab, run, Context(run_id=1, node_id=1, node_config={}, state=RecordDict(), run_config={})


def as_client(folder: Path) -> None:
    from flwr.app import Message

    from privstats.engines.flower import records

    module = import_module("flwr.supernode.runtime.run_clientapp")
    fab, run, context = task(bundle(folder))
    message = Message(records.pack("step", b"what a machine said"), 1, records.MESSAGE_TYPE)

    def push(_: object, reply: Message, __: object) -> None:
        if reply.has_error():
            say(folder, error=reply.error.reason)
        else:
            say(folder, code=records.unpack(reply.content, 0)[0])

    module.RuntimeHttpClient = SimpleNamespace(from_server_address=lambda **_: Quiet())
    module.HeartbeatSender, module.push_task_output = Quiet, lambda **_: None
    module.make_task_heartbeat_fn_http = lambda *_: None
    module.pull_task_input, module.push_message = lambda _: (message, context, run, fab), push
    module.run_clientapp("127.0.0.1:1", "token", insecure=True)


def as_server(folder: Path) -> None:
    module = import_module("flwr.superlink.runtime.run_serverapp")
    fab, run, context = task(bundle(folder))
    pulled = SimpleNamespace(task_id=1, run=SimpleNamespace(run_id=1), context=SimpleNamespace(node_id=1), fab=None)

    class Grid(Quiet):
        _retry_invoker = SimpleNamespace(max_tries=0)
        _runtime_client = SimpleNamespace(
            PullTaskInput=lambda _: pulled,
            PushTaskOutput=lambda request: say(folder, status=request.sub_status, details=request.details),
        )

    module.HttpGrid, module.HeartbeatSender = Grid, Quiet
    module.make_task_heartbeat_fn_http = lambda *_: None
    module.start_log_uploader = lambda **_: None
    module.context_from_proto, module.run_from_proto, module.fab_from_proto = (
        lambda _: context,
        lambda _: run,
        lambda _: fab,
    )
    module.run_serverapp("127.0.0.1:1", Queue(), "token", insecure=True)


def main(program: str, way: str, folder: Path) -> None:
    from privstats.engines.flower import entrypoint_guard

    if way != "plain":
        entrypoint_guard.guard(Path(os.environ["FLWR_HOME"]))
    if way == "pinned":
        {"clientapp": entrypoint_guard.pin_client, "serverapp": entrypoint_guard.pin_server}[program]()
    {"clientapp": as_client, "serverapp": as_server}[program](folder)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], Path(sys.argv[3]))
