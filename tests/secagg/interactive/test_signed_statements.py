"""Everything that is signed, hashed or authenticated says what it is about: another field makes another statement."""

from collections.abc import Callable

import pytest
from cryptography.exceptions import InvalidTag
from hypothesis import given
from hypothesis import strategies as st

from privstats.secagg import Parameters, Roster
from privstats.secagg.interactive import messages as said
from privstats.secagg.interactive.client_secrets import ClientSecrets
from privstats.secagg.interactive.graph import Graph
from privstats.secagg.interactive.messages import KnownAdvertise
from privstats.secagg.kem import public_of
from tests.secagg.interactive.cohorts import RING
from tests.secagg.interactive.inside import inside

b32 = st.binary(min_size=32, max_size=32)
index = st.integers(0, 2**24 - 1)
kind = st.sampled_from([b"s", b"k"])

STATEMENTS: dict[str, tuple[Callable[..., bytes], list[st.SearchStrategy]]] = {
    "advertise": (said.advert_statement, [b32, index, b32, b32, b32]),
    "box": (said.box_context, [b32, index, index]),
    "dealing": (said.dealing_challenge, [b32, kind, index, st.binary(max_size=200)]),
    "share commitment": (said.share_commitment, [b32, kind, index, index, b32, b32]),
    "survivors": (said.survivors_statement, [b32, st.binary(max_size=40)]),
    "transcript": (said.transcript_of, [b32, b32]),
}


@pytest.mark.parametrize("name", list(STATEMENTS))
@given(data=st.data())
def test_every_field_is_in_the_statement(name: str, data) -> None:
    statement, fields = STATEMENTS[name]
    values = [data.draw(field) for field in fields]
    for place, field in enumerate(fields):
        other = data.draw(field.filter(lambda value, place=place: value != values[place]))
        assert statement(*values) != statement(*values[:place], other, *values[place + 1 :])


def test_no_two_purposes_share_a_statement() -> None:
    """Each starts with a label of its own, so a signature for one purpose is none for another."""
    session, one = bytes(32), b"1" * 32
    labelled = [
        said.advert_statement(session, 1, one, one, one),
        said.box_context(session, 1, 2),
        said.dealing_challenge(session, b"s", 1, b""),
        said.survivors_statement(session, b"\x01"),
    ]
    assert len({statement.split(b"\0")[0] for statement in labelled}) == 4


def test_the_context_stands_for_plan_roster_session_and_server_keys() -> None:
    def context(plan: int = 0, first: int = 0, session: int = 0, key: int = 0, kem: int = 0) -> bytes:
        publics = tuple((10 * first + place + 2).to_bytes(32, "big") for place in range(4))
        graph = Graph(Parameters(4, 3, 3, 0, 3, RING, plan.to_bytes(32, "big")), Roster(publics, server=b"s" * 32))
        return said.context_of(graph, session.to_bytes(32, "big"), key.to_bytes(32, "big"), kem.to_bytes(1184, "big"))

    changed = (context(**{name: 1}) for name in ("plan", "first", "session", "key", "kem"))
    assert len({context(), *changed}) == 6


@pytest.mark.parametrize("change", ["session", "sender", "receiver", "transcript"])
def test_a_box_opens_only_where_it_was_meant_to(change: str) -> None:
    """Replay, redirection and two rosters, tried on the box itself."""
    graph = Graph(
        Parameters(4, 3, 3, 0, 3, RING, bytes(32)), Roster(tuple(bytes([i]) * 32 for i in b"abcd"), server=b"s" * 32)
    )
    alice, bob = ClientSecrets(b"a" * 32, graph, 1), ClientSecrets(b"b" * 32, graph, 2)
    session, transcript = b"s" * 32, b"t" * 32

    def advert(secrets: ClientSecrets, place: int, session: bytes = session) -> KnownAdvertise:
        return KnownAdvertise(session, place, secrets.box_public, public_of(inside(secrets).kem), bytes(32), bytes(64))

    box = alice.seal_box(b"shares", 1, advert(bob, 2), transcript)
    assert bob.open_box(box, 2, advert(alice, 1), transcript) == b"shares"
    with pytest.raises(InvalidTag):
        bob.open_box(
            box,
            3 if change == "receiver" else 2,
            advert(alice, 3 if change == "sender" else 1, b"S" * 32 if change == "session" else session),
            b"T" * 32 if change == "transcript" else transcript,
        )
