"""Who may open a session: the server on the roster, and nobody else; whatever else arrives does a client no harm."""

import msgspec
import numpy as np
import pytest

from privstats.errors import LocalProtocolError, RemoteProtocolError
from privstats.secagg import Identity, Roster, Server
from privstats.secagg.interactive import messages
from privstats.secagg.interactive.messages import context_of, open_statement
from tests.secagg.interactive.cohorts import Cohort, cohort_of, finish, play_until, read, stream
from tests.secagg.interactive.inside import inside

VICTIM = 0


def refuses_and_goes_on(cohort: Cohort, forged: bytes, code: str) -> None:
    """The forgery changes nothing; the good opening is still welcome, and the session ends in the exact sum."""
    outbox, victim = dict(cohort.server.start()), cohort.clients[VICTIM]
    before = msgspec.msgpack.encode(inside(victim).state)
    with pytest.raises(RemoteProtocolError) as refusal:
        victim.receive(forged)
    assert (refusal.value.peer, refusal.value.step, refusal.value.code) == ("server", "advertise", code)
    inside(victim).state.reply_to = b""
    assert msgspec.msgpack.encode(inside(victim).state) == before
    total, survivors = finish(cohort, outbox)
    assert survivors == (0, 1, 2, 3, 4, 5)
    assert np.array_equal(total, cohort.sum_over(survivors))


def opening_of(cohort: Cohort) -> messages.Open:
    twin = cohort_of()
    return read(cohort, VICTIM, dict(twin.server.start())[VICTIM], messages.Open)


def test_whoever_reaches_the_clients_is_not_the_server(cohort: Cohort) -> None:
    """Plan and roster are public, so anybody can run this machine; only the key behind the roster's server opens."""
    anybody = Identity.generate(stream("anybody"))
    context = context_of(
        inside(cohort.server).graph, b"s" * 32, inside(cohort.server).public, inside(cohort.server).kem_key
    )
    digests = cohort.parameters.digest, cohort.roster.digest
    keys = inside(cohort.server).public, inside(cohort.server).kem_key
    forged = messages.Open(b"s" * 32, *digests, *keys, anybody.sign(open_statement(context)))
    refuses_and_goes_on(cohort, bytes(messages.encode(forged)), "bad_signature")


@pytest.mark.parametrize("place", [VICTIM, 1])
def test_a_client_on_the_roster_cannot_open_a_session(cohort: Cohort, place: int) -> None:
    opening = opening_of(cohort)
    signature = cohort.identities[place].sign(open_statement(inside(cohort.server).context))
    forged = msgspec.structs.replace(opening, signature=signature)
    refuses_and_goes_on(cohort, bytes(messages.encode(forged)), "bad_signature")


@pytest.mark.parametrize(
    ("field", "code"),
    [
        ("session", "bad_signature"),
        ("parameters", "wrong_plan"),
        ("roster", "wrong_roster"),
        ("server_key", "bad_signature"),
        ("signature", "bad_signature"),
    ],
)
@pytest.mark.parametrize("bit", [0, 255])
def test_a_mutated_field(cohort: Cohort, field: str, code: str, bit: int) -> None:
    opening = opening_of(cohort)
    value = bytearray(getattr(opening, field))
    value[bit // 8] ^= 1 << bit % 8
    forged = msgspec.structs.replace(opening, **{field: bytes(value)})
    refuses_and_goes_on(cohort, bytes(messages.encode(forged)), code)


@pytest.mark.parametrize("change", ["label", "counter", "server", "client"])
def test_an_opening_of_another_run_or_roster(cohort: Cohort, change: str) -> None:
    """An old opening, honestly signed, is of no use to whoever recorded it: the roster's digest binds all of this."""
    other = Identity.generate(stream("other"))
    aggregator = other if change == "server" else cohort.aggregator
    publics = (*cohort.roster.publics[:-1], other.public) if change == "client" else cohort.roster.publics
    roster = Roster.numbered(
        publics,
        server=aggregator.public,
        label="other" if change == "label" else "tests",
        counter=1 if change == "counter" else 0,
    )
    old = Server(cohort.parameters, roster=roster, identity=aggregator, entropy=stream("old"))
    refuses_and_goes_on(cohort, dict(old.start())[VICTIM], "wrong_roster")


@pytest.mark.parametrize("version", [1, 2, 3])
def test_a_message_of_an_earlier_version_is_refused_by_name(cohort: Cohort, version: int) -> None:
    outbox = dict(cohort.server.start())
    old = bytes([version]) + outbox[VICTIM][1:]
    words = f"wrong_version .a message of version {version}; this .* version 4 only"
    with pytest.raises(RemoteProtocolError, match=words):
        cohort.clients[VICTIM].receive(old)
    ((_, answer),) = cohort.clients[VICTIM].receive(outbox[VICTIM])
    with pytest.raises(RemoteProtocolError, match=words):
        cohort.server.receive(VICTIM, bytes([version]) + answer[1:])
    assert cohort.server.receive(VICTIM, answer) is not None


def test_a_server_without_the_rosters_key_is_not_resumed(cohort: Cohort) -> None:
    play_until(cohort, "mask")
    place = cohort.place() | {"identity": cohort.identities[0]}
    with pytest.raises(LocalProtocolError, match="not the server's on the roster"):
        Server.resume(cohort.server.export(b"k" * 32), b"k" * 32, **place)
