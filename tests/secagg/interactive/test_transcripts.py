"""The wire format is what it was when it was frozen, and a second implementation agrees with it to the byte."""

import json
from pathlib import Path

import pytest

from privstats.encoding import Ring
from privstats.secagg import Identity, Parameters, Roster
from privstats.secagg.interactive.graph import Graph
from tests.secagg.interactive.second_implementation import SecondClient, chain
from tests.secagg.interactive.transcripts import (
    COMMITTEE,
    COUNTER,
    LABEL,
    LAYERED,
    PLAN,
    RANDOM_GRAPH,
    SESSIONS,
    described,
    fixed,
    randomness,
    record,
)

ABORT = 10
PLAYED = {**LAYERED, **RANDOM_GRAPH}
FROZEN = {
    session["name"]: session
    for session in json.loads((Path(__file__).parents[1] / "vectors" / "transcripts.json").read_text())
}


@pytest.mark.parametrize("name", list(SESSIONS))
def test_a_frozen_session_replays_to_the_byte_and_its_total_is_the_plain_sum(name: str) -> None:
    session = FROZEN[name]
    assert record(name) == session
    columns = zip(*(session["vectors"][survivor] for survivor in session["survivors"]), strict=True)
    assert session["total"] == ([sum(column) for column in columns] or [0, 0, 0])


@pytest.mark.ci
@pytest.mark.parametrize("name", [*SESSIONS, *PLAYED])
def test_a_second_implementation_sends_the_same_bytes(name: str) -> None:
    script = {**SESSIONS, **PLAYED}[name]
    session, random = FROZEN[name] if name in SESSIONS else record(name), randomness()
    clients = {index: SecondClient(session, index, random=random) for index in range(session["clients"])}
    aborts, compared = answered_alike(session, clients)
    assert aborts == (session["clients"] if script.abandoned else 0)
    assert compared == sum(1 for message in session["messages"] if message["from"] != "server")


def answered_alike(session: dict, clients: dict[int, SecondClient]) -> tuple[int, int]:
    """How many messages these clients got that abort, and how many they answered as the session's clients did."""
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
    return aborts, compared


@pytest.mark.nightly
def test_a_second_implementation_sends_the_same_bytes_where_a_committee_signs() -> None:
    """Of these clients some sign in the committee, one does not, and one vanishes before masking."""
    (name,), few = COMMITTEE, (0, 1, 2, 3)
    script, session = COMMITTEE[name], record(name, kept=few)
    random = randomness()
    clients = {index: SecondClient(session, index, random=random) for index in few}
    _, compared = answered_alike(session, clients)
    assert compared == sum(1 for message in session["messages"] if message["from"] != "server") == 3 * 6 + 3
    assert session["survivors"] == [index for index in range(1100) if index not in script.dropouts["mask"]]
    columns = zip(*(session["vectors"][survivor] for survivor in session["survivors"]), strict=True)
    assert session["total"] == [sum(column) for column in columns]


@pytest.mark.parametrize(("clients", "colluders"), [(300, 3), (1025, 0), (1100, 20), (3000, 300)])
def test_a_second_implementation_has_the_same_committee(clients: int, colluders: int) -> None:
    parameters = Parameters.solve(
        clients=clients, min_survivors=clients - clients // 20, colluders=colluders, ring=Ring(((3, 32),)),
        plan_digest=PLAN, graph="robust",
    )  # fmt: skip
    identities = [fixed(f"identity {client}") for client in range(clients)]
    publics = tuple(Identity(private).public for private in identities)
    server = fixed("identity server")
    roster = Roster.numbered(publics, server=Identity(server).public, label=LABEL, counter=COUNTER)
    second = SecondClient(described(parameters, roster, identities, [bytes(32)] * clients), 0)
    second.seeded()
    assert second.committee == Graph(parameters, roster).committee
    assert second.majority == parameters.signatures


@pytest.mark.parametrize("name", list(LAYERED))
def test_the_seeds_that_the_server_gets_are_those_of_the_second_implementations_chain(name: str) -> None:
    session = record(name)
    levels, listed = session["levels"], session["survivors"]
    damaged = {3: {1}, 1: {3}} if LAYERED[name].spoilt else {}
    vanished = LAYERED[name].dropouts.get("unmask", set())
    assert set(session["opened"]) == {str(client) for client in listed if client not in vanished}
    for client, (left_for, seeds) in session["opened"].items():
        proven = len(set(listed) - damaged.get(int(client), set()))
        opened = max(place for place, level in enumerate(levels) if level <= proven)
        assert left_for == levels[opened]
        root = bytes.fromhex(session["noise_roots"][int(client)])
        assert [bytes.fromhex(seed) for seed in seeds] == chain(root, len(levels) - 1)[1][:opened]
