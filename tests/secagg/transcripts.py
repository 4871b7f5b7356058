"""Whole sessions from fixed randomness, message by message: known answers for a second implementation.

``python -m tests.secagg.transcripts`` prints them; ``vectors/transcripts.json`` holds what it printed when the wire
format was fixed. A change there is a new protocol version.
"""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Callable, Iterator

import numpy as np

from privstats.encoding import Ring
from privstats.secagg import Client, Identity, Parameters, Roster, Server
from privstats.secagg.steps import STEPS

PLAN = hashlib.sha256(b"frozen transcripts").digest()
SESSIONS = {
    "complete graph, client 2 vanishes before masking, client 0 before unmasking": (
        Parameters(5, 3, 3, 0, 4, Ring(((2, 12), (19, 33), (1, 64), (8, 29))), PLAN),
        {"mask": {2}, "unmask": {0}},
    ),
    "sparse graph, clients 1 and 5 vanish, one of them before sharing": (
        Parameters(9, 4, 6, 0, 6, Ring(((3, 32),)), PLAN),
        {"share": {1}, "mask": {5}},
    ),
}


def fixed(label: str, size: int = 32) -> bytes:
    """The secret that stands behind a label."""
    return hashlib.shake_256(label.encode()).digest(size)


def replies(*parts: bytes) -> Callable[[int], bytes]:
    """Entropy that gives these parts in turn."""
    source: Iterator[bytes] = iter(parts)
    return lambda _: next(source)


def record(name: str) -> dict:
    """Play one session and write down everything."""
    parameters, dropouts = SESSIONS[name]
    places = range(parameters.clients)
    identities = [fixed(f"identity {i}") for i in places]
    roots = [fixed(f"root {i}") for i in places]
    roster = Roster(tuple(Identity(private).public for private in identities))
    values = [[(-1) ** i * (i + 1) * (entry + 1) for entry in range(parameters.ring.size)] for i in places]
    clients = [
        Client(
            parameters,
            parameters.ring.encode(np.array(values[i], np.int64)),
            index=i,
            identity=Identity(identities[i]),
            roster=roster,
            entropy=replies(roots[i]),
        )
        for i in places
    ]
    session, server_key = fixed("session"), fixed("server key")
    server = Server(parameters, roster=roster, entropy=replies(session, server_key))
    messages, outbox, gone = [], server.start(), set()
    for step in STEPS:
        gone |= dropouts.get(step, set())
        for client, message in outbox:
            messages.append({"step": step, "from": "server", "to": client, "bytes": message.hex()})
            if client not in gone:
                ((_, answer),) = clients[client].receive(message)
                messages.append({"step": step, "from": client, "to": "server", "bytes": answer.hex()})
                server.receive(client, answer)
        outbox = server.end_step()
    total, survivors = server.result
    return {
        "name": name,
        "clients": parameters.clients,
        "threshold": parameters.threshold,
        "min_survivors": parameters.min_survivors,
        "colluders": parameters.colluders,
        "neighbours": parameters.neighbours,
        "ring": [list(segment) for segment in parameters.ring.segments],
        "plan_digest": PLAN.hex(),
        "identities": [private.hex() for private in identities],
        "roots": [root.hex() for root in roots],
        "session": session.hex(),
        "server_key": server_key.hex(),
        "vectors": values,
        "messages": messages,
        "survivors": list(survivors),
        "total": total.lift().tolist(),
    }


if __name__ == "__main__":
    json.dump([record(name) for name in SESSIONS], sys.stdout, indent=1)
