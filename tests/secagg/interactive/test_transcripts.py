"""The wire format is what it was when it was frozen, and a second implementation agrees with it to the byte."""

import json
from pathlib import Path

import pytest

from tests.secagg.interactive.second_hybrid import SecondHybridClient
from tests.secagg.interactive.second_implementation import SecondClient, chain
from tests.secagg.interactive.transcripts import HYBRID_SESSIONS, LAYERED, RANDOM_GRAPH, SESSIONS, randomness, record

ABORT = 10
ALL = {**SESSIONS, **LAYERED, **HYBRID_SESSIONS}
FROZEN = {
    session["name"]: session
    for vectors in ("transcripts.json", "noise_layers.json", "hybrid.json")
    for session in json.loads((Path(__file__).parents[1] / "vectors" / vectors).read_text())
}


@pytest.mark.parametrize("name", list(ALL))
def test_a_frozen_session_replays_to_the_byte(name: str) -> None:
    assert record(name) == FROZEN[name]


@pytest.mark.parametrize("name", list(ALL))
def test_a_frozen_total_is_the_plain_sum(name: str) -> None:
    session = FROZEN[name]
    columns = zip(*(session["vectors"][survivor] for survivor in session["survivors"]), strict=True)
    assert session["total"] == ([sum(column) for column in columns] or [0, 0, 0])


@pytest.mark.ci
@pytest.mark.parametrize("name", [*ALL, *RANDOM_GRAPH])
def test_a_second_implementation_sends_the_same_bytes(name: str) -> None:
    script = {**ALL, **RANDOM_GRAPH}[name]
    session = FROZEN[name] if name in ALL else record(name)
    clients = [SecondClient(session, index) for index in range(session["clients"])]
    if script.parameters.hybrid:
        random = randomness()
        clients = [SecondHybridClient(session, index, random=random) for index in range(session["clients"])]
    expected = {(message["step"], message["from"]): message["bytes"] for message in session["messages"]}
    compared = aborts = 0
    for message in session["messages"]:
        if message["from"] != "server":
            continue
        if bytes.fromhex(message["bytes"])[2] == ABORT:
            assert clients[message["to"]].answer(bytes.fromhex(message["bytes"])) == b""
            aborts += 1
        elif (message["step"], message["to"]) in expected:
            answer = clients[message["to"]].answer(bytes.fromhex(message["bytes"]))
            assert answer.hex() == expected[message["step"], message["to"]]
            compared += 1
    assert aborts == (session["clients"] if script.abandoned else 0)
    assert compared == sum(1 for message in session["messages"] if message["from"] != "server")


@pytest.mark.parametrize("name", list(LAYERED))
def test_the_seeds_that_the_server_gets_are_those_of_the_second_implementations_chain(name: str) -> None:
    session = FROZEN[name]
    levels, listed = session["levels"], session["survivors"]
    damaged = {3: {1}} if LAYERED[name].spoilt else {}
    vanished = LAYERED[name].dropouts.get("unmask", set())
    assert set(session["opened"]) == {str(client) for client in listed if client not in vanished}
    for client, (left_for, seeds) in session["opened"].items():
        proven = len(set(listed) - damaged.get(int(client), set()))
        opened = max(place for place, level in enumerate(levels) if level <= proven)
        assert left_for == levels[opened]
        root = bytes.fromhex(session["noise_roots"][int(client)])
        assert [bytes.fromhex(seed) for seed in seeds] == chain(root, len(levels) - 1)[1][:opened]
