"""Flower's programs as ours start them, with marks of how far they are and gates that hold them.

    python -P -m tests.engines.flower.observed NAME OPTIONS

for the names of ``entrypoint_guard``, and for ``join`` and ``serve``. What is observed is done by the real code. A mark
is a file in the folder that ``OBSERVED`` names, a gate one that a test puts there and takes away; so a test waits for
what has happened and never for a time.
"""

import atexit
import inspect
import os
import signal
import sys
import time
from collections.abc import Callable, Sequence
from hashlib import sha256
from pathlib import Path

from privstats.engines.flower import entrypoint_guard

OBSERVED = "OBSERVED"
LINE = "OBSERVED_LINE"
"""The variable that names the ``HOST:PORT`` at which a coordinator's programs reach the SuperLink, if not its own."""


def folder() -> Path:
    return Path(os.environ[OBSERVED])


def mark(name: str, text: object = "") -> None:
    """Write a mark whole."""
    half = folder() / f".{name}.{os.getpid()}"
    half.write_text(str(text))
    half.replace(folder() / name)


def pause(gate: str) -> None:
    """Stay here for as long as the gate is shut."""
    while (folder() / f"{gate}.gate").exists():
        time.sleep(0.05)


def command(name: str) -> list[str]:
    """In place of ``entrypoint_guard.command``: the same program, observed."""
    return [sys.executable, "-P", "-m", "tests.engines.flower.observed", name]


def replace(owner: object, name: str, double: Callable[..., object]) -> None:
    """Put a double in the place of a function, whose parameters it must have: nothing but the night would see that it
    lacks one, after minutes, in the log of another process."""
    wanted, given = (list(inspect.signature(each).parameters.values()) for each in (getattr(owner, name), double))
    differ = [(one.name, one.kind) for one in wanted] != [(one.name, one.kind) for one in given]
    if differ:
        raise TypeError(f"{name} takes ({', '.join(map(str, wanted))}), its double ({', '.join(map(str, given))})")
    setattr(owner, name, double)


def number_of(home: str, data: bytes) -> int:
    """Which message of the session this is: the same bytes have the same number, in whatever process they arrive."""
    kept = folder() / f"{home}.seen"
    seen = kept.read_text().split() if kept.exists() else []
    digest = sha256(data).hexdigest()
    if digest not in seen:
        seen.append(digest)
        kept.write_text(" ".join(seen))
    return seen.index(digest)


def observe_party() -> None:
    """Mark, for each message of a session, that it was asked and that it was answered, and at its end the processor
    seconds of the program that answered; keep what is summed."""
    from privstats.engines.network import party
    from privstats.engines.network.statements import Envelope
    from privstats.session import machines

    answer, as_contribution = party.answer, machines.as_contribution

    def answered(home, kind, data, *, simulated):
        if Envelope.decode(data).kind not in ("open", "step"):
            return answer(home, kind, data, simulated=simulated)
        name = Path(home).name
        number = number_of(name, data)
        mark(f"{name}.{number}.asked", os.getpid())
        atexit.register(lambda: mark(f"{name}.{number}.seconds", time.process_time()))
        pause(f"{name}.{number}")
        said = answer(home, kind, data, simulated=simulated)
        mark(f"{name}.{number}.answered", said.code)
        return said

    def kept(plan, part, rng, index):
        mine = as_contribution(plan, part, rng, index)
        place = Path(os.environ["PATH"]).parent.name
        (folder() / f"{place}.vector").write_bytes(mine.vector.pack())
        return mine

    replace(party, "answer", answered)
    replace(machines, "as_contribution", kept)


def observe_host() -> None:
    """Mark how many answers the server has taken, and hold it at its transport."""
    from privstats.engines.flower.grid import GridTransport

    pull_many, taken = GridTransport.pull_many, set()  # a repeated answer is the same bytes, and counts once

    def observed(self, messages, most):
        mark("server.taken", f"{os.getpid()} {len(taken)}")
        if (folder() / "server.gate").exists():
            mark("server.held")
        pause("server")
        for name, reply in pull_many(self, messages, most):
            if reply.code == "ok":
                taken.add(reply.data)
            yield name, reply

    replace(GridTransport, "pull_many", observed)


def shift_clock(seconds: float) -> None:
    """Let the node sign with a clock that is off."""
    from datetime import timedelta
    from importlib import import_module

    module = import_module("flwr.supernode.node_auth_http_interceptor")
    now = module.now
    replace(module, "now", lambda: now() + timedelta(seconds=seconds))


def spoil_replies(how: str) -> None:
    """Let the node announce replies and never send them ("never"), or send 20 bytes of another class ("class")."""
    from importlib import import_module

    from flwr.proto.message_pb2 import ObjectTree
    from flwr.supercore.inflatable.inflatable_object import get_object_id

    module = import_module("flwr.supernode.start_client_internal")
    push, other = module._push_messages, b"ConfigRecord  0\0"

    def spoiled(state, object_store, send, push_object):
        def announce(message, tree, seconds):
            message.metadata.__dict__["_message_id"] = get_object_id(other)
            _, session = send(message, ObjectTree(object_id=get_object_id(other)), seconds)
            push_object(message.metadata.run_id, session, get_object_id(other), other)
            mark(f"spoiled.{how}")
            return set(), session

        def withhold(run_id, session, name, content):
            mark(f"spoiled.{how}")

        if how == "never":
            push(state, object_store, send, withhold)
        else:
            push(state, object_store, announce, push_object)

    replace(module, "_push_messages", spoiled)


def by_line(words: Sequence[str], line: str) -> list[str]:
    """The words of an executor that calls another address, as do the programs that it starts."""
    place = words.index("--runtime-api-address") + 1
    return [*words[:place], line, *words[place + 1 :]]


def main(words: Sequence[str]) -> None:
    name, *options = words
    replace(entrypoint_guard, "command", command)
    if name in ("join", "serve"):
        supervise(name, options)
    if name in ("flower-supernode", "flower-superlink"):
        mark(f"{Path(os.environ['PATH']).parent.name}.pid", os.getpid())
    if name == "flower-supernode":
        shift_clock(float(os.environ.get("OBSERVED_CLOCK", "0")))
        if how := os.environ.get("OBSERVED_REPLIES"):
            spoil_replies(how)
    if name == "flwr-clientapp":
        observe_party()
    if name == "flwr-serverapp":
        observe_host()
    if name == "flower-superexec" and LINE in os.environ:
        words = by_line(words, os.environ[LINE])
    entrypoint_guard.main(words)


def supervise(name: str, options: Sequence[str]) -> None:
    """``privstats flower join``, or ``serve``, that ends at SIGINT, which a shell lets its background jobs ignore."""
    from privstats.cli import main as privstats

    signal.signal(signal.SIGINT, signal.default_int_handler)
    sys.argv = ["privstats", "flower", name, *options]
    privstats()


if __name__ == "__main__":
    main(sys.argv[1:])
