"""Whole sessions from fixed randomness, message by message: known answers for a second implementation.

``python -m tests.secagg.interactive.transcripts`` prints them; ``vectors/transcripts.json``, beside this
room, holds what it printed when the wire format was fixed. A change there is a new protocol version.
"""

import hashlib
import json
import sys
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from itertools import count

import numpy as np

from privstats.encoding import Ring
from privstats.secagg import Client, Identity, Parameters, Roster, Server, kem
from privstats.secagg.interactive import messages
from privstats.secagg.interactive.state import STEPS
from tests.secagg import mlkem
from tests.secagg.interactive.inside import inside

PLAN = hashlib.sha256(b"frozen transcripts").digest()
LABEL, COUNTER, RUN = "frozen", 3, b"a run named by hand"


@dataclass(frozen=True)
class Script:
    """What happens in one session: who vanishes when, whose box does not open at whom, where the server gives up."""

    parameters: Parameters
    dropouts: dict[str, set[int]] = field(default_factory=dict)
    spoilt: tuple[int, int] | None = None
    left_out: tuple[int, tuple[int, ...]] = (-1, ())
    abandoned: str = ""


SESSIONS = {
    "version 4, client 2 vanishes before masking, client 0 before unmasking, one box does not open": Script(
        Parameters(5, 3, 3, 0, 4, Ring(((2, 12), (9, 33), (1, 64), (8, 29))), PLAN),
        {"mask": {2}, "unmask": {0}},
        spoilt=(1, 3),
    ),
    "version 4, two boxes of client 4 do not open, and it is left out": Script(
        Parameters(6, 4, 4, 1, 5, Ring(((3, 17),)), PLAN), left_out=(4, (0, 2))
    ),
    "version 4 with layers of noise, one box does not open, and the server gives up before the clients unmask": Script(
        Parameters(5, 4, 4, 1, 4, Ring(((3, 20),)), PLAN, levels=(4, 5)),
        spoilt=(1, 3),
        abandoned="unmask",
    ),
    "version 4 with layers of noise": Script(Parameters(4, 3, 3, 1, 3, Ring(((3, 20),)), PLAN, levels=(3, 4))),
}
"""In ``vectors/transcripts.json``: ciphertexts are made from fixed randomness, in order of the calls."""

RANDOM_GRAPH = {
    "random graph, clients 1 and 5 vanish, one of them before sharing, one box does not open": Script(
        Parameters(13, 6, 7, 0, 10, Ring(((3, 32),)), PLAN),
        {"share": {1}, "mask": {5}},
        spoilt=(2, 3),
    ),
}
LAYERED = {
    "layers of noise, all clients stay, one box does not open": Script(
        Parameters(6, 4, 4, 1, 5, Ring(((2, 14), (5, 33))), PLAN, levels=(4, 5, 6)), spoilt=(1, 3)
    ),
    "layers of noise, client 2 vanishes before masking, client 0 before unmasking": Script(
        Parameters(6, 4, 4, 1, 5, Ring(((3, 20),)), PLAN, levels=(4, 5, 6)), {"mask": {2}, "unmask": {0}}
    ),
}
"""Sessions of plans in which clients take excess noise back. Like those on a random graph these are in no file, as they
have a megabyte of messages: they are played and compared with the second implementation."""


def fixed(label: str, size: int = 32) -> bytes:
    """The secret that stands behind a label."""
    return hashlib.shake_256(label.encode()).digest(size)


def replies(*parts: bytes) -> Callable[[int], bytes]:
    """Entropy that gives these parts in turn."""
    source: Iterator[bytes] = iter(parts)
    return lambda _: next(source)


COMMITTEE = {
    "random graph of 1,100 clients, a committee signs, every ninth client vanishes before masking": Script(
        Parameters.solve(
            clients=1100, min_survivors=950, colluders=20, ring=Ring(((3, 32),)), plan_digest=PLAN, graph="robust"
        ),
        {"mask": set(range(0, 1100, 9))},
    ),
}
"""A hundred megabytes of messages: played by night, and compared at a few clients."""


def record(name: str, kept: Collection[int] | None = None) -> dict:
    """Play one session and write down everything, or the messages to and from the ``kept`` clients."""
    script = {**SESSIONS, **LAYERED, **RANDOM_GRAPH, **COMMITTEE}[name]
    return _record(name, script, range(script.parameters.clients) if kept is None else kept)


def randomness() -> Callable[[], bytes]:
    """What encapsulations of a frozen session draw, in order."""
    calls = count()
    return lambda: fixed(f"encapsulation {next(calls)}")


@contextmanager
def encapsulating(random: Callable[[], bytes]) -> Iterator[None]:
    """``kem`` encapsulates from this randomness: with the second implementation, as the library takes none."""
    drawn = kem.encapsulate
    kem.encapsulate = lambda public: mlkem.encapsulate(public, random())
    try:
        yield
    finally:
        kem.encapsulate = drawn


def _record(name: str, script: Script, kept: Collection[int]) -> dict:
    parameters = script.parameters
    places = range(parameters.clients)
    identities = [fixed(f"identity {i}") for i in places]
    roots = [fixed(f"root {i}") for i in places]
    aggregator = Identity(fixed("identity server"))
    publics = tuple(Identity(private).public for private in identities)
    roster = Roster(publics, server=aggregator.public, run=RUN)
    if not parameters.complete:
        roster = Roster.numbered(publics, server=aggregator.public, label=LABEL, counter=COUNTER)
    values = [[(-1) ** i * (i + 1) * (entry + 1) for entry in range(parameters.ring.size)] for i in places]
    clients = [
        Client(
            parameters,
            parameters.ring.encode(np.array(values[i], np.int64)),
            index=i,
            identity=Identity(identities[i]),
            roster=roster,
            entropy=replies(roots[i]),
            noise_root=fixed(f"noise {i}") if parameters.levels else b"",
        )
        for i in places
    ]
    session, server_key = fixed("session"), fixed("server key")
    server = Server(parameters, roster=roster, identity=aggregator, entropy=replies(session, server_key))
    told = [each for each in played(script, server, clients, kept) if {each["from"], each["to"]} & set(kept)]
    total, survivors = server.result if server.step == "done" else (parameters.ring.zeros(), ())
    return {
        "name": name,
        **described(parameters, roster, identities, roots),
        "session": session.hex(),
        "server_key": server_key.hex(),
        "vectors": values,
        "messages": told,
        "survivors": list(survivors),
        "total": total.lift().tolist(),
        **(_layers(server) if parameters.levels else {}),
    }


def described(parameters: Parameters, roster: Roster, identities: list[bytes], roots: list[bytes]) -> dict:
    """What a session's clients know before it begins."""
    return {
        "clients": parameters.clients,
        "threshold": parameters.threshold,
        "min_survivors": parameters.min_survivors,
        "colluders": parameters.colluders,
        "neighbours": parameters.neighbours,
        "ring": [list(segment) for segment in parameters.ring.segments],
        "plan_digest": PLAN.hex(),
        "label": roster.label,
        "counter": roster.counter,
        "run": roster.run.hex(),
        "server_identity": fixed("identity server").hex(),
        "identities": [private.hex() for private in identities],
        "roots": [root.hex() for root in roots],
    }


def _layers(server: Server) -> dict:
    """What clients with layers of noise say more."""
    opened = {str(client): [each.left_for, [s.hex() for s in each.seeds]] for client, each in server.openings.items()}
    roots = [fixed(f"noise {i}").hex() for i in range(server.parameters.clients)]
    return {"levels": list(server.parameters.levels), "noise_roots": roots, "opened": opened}


def played(script: Script, server: Server, clients: list[Client], kept: Collection[int]) -> Iterator[dict]:
    """Every message of the session, in the order of sending; the ``kept`` clients encapsulate from fixed randomness."""
    outbox, gone, random = dict(server.start()), set(), randomness()
    for step in STEPS:
        gone |= script.dropouts.get(step, set())
        if step == script.abandoned:
            for client, message in server.abandon():
                yield {"step": step, "from": "server", "to": client, "bytes": message.hex()}
                clients[client].receive(message)
            return
        following = {}
        for client, message in outbox.items():
            yield {"step": step, "from": "server", "to": client, "bytes": message.hex()}
            if client not in gone:
                with encapsulating(random) if client in kept else nullcontext():
                    ((_, answer),) = clients[client].receive(message)
                yield {"step": step, "from": client, "to": "server", "bytes": answer.hex()}
                following = dict(server.receive(client, answer)) or following
            if script.spoilt is not None and (step, client) == ("share", script.spoilt[0]):
                spoil(server, *script.spoilt)
            if (step, client) == ("share", script.left_out[0]):
                for holder in script.left_out[1]:
                    spoil(server, client, holder)
        outbox = following if server.step != step else dict(server.end_step())


def spoil(server: Server, owner: int, holder: int) -> None:
    """Damage the owner's box for one holder, in the server's hands."""
    size = messages.BOX_BYTES
    inside(server).inbox(holder)[size * inside(server).receivers(holder).index(owner)] ^= 1


if __name__ == "__main__":
    json.dump([record(name) for name in SESSIONS], sys.stdout, indent=1)
