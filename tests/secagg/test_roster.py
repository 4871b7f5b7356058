"""The roster: what it refuses, in one sentence, and what its digest and its run name stand for."""

import dataclasses
import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from privstats.errors import LocalProtocolError
from privstats.files.signing import has_low_order
from privstats.secagg import Identity, Roster
from tests.secagg.interactive.cohorts import stream

SERVER = b"s" * 32
KEYS = tuple(bytes([place]) * 32 for place in range(2, 6))


def identity(label: str = "one") -> Identity:
    return Identity.generate(stream(label))


@pytest.mark.parametrize(
    ("publics", "sentence"),
    [
        ([identity()], r"every public key on a roster must be 32 bytes, got Identity: give identity\.public"),
        (identity(), r"a roster needs a list of public keys, one per client, got Identity"),
        (b"k" * 32, r"a roster needs a list of public keys, one per client, got bytes"),
        ("k" * 32, r"a roster needs a list of public keys, one per client, got str"),
        (None, r"a roster needs a list of public keys, one per client, got NoneType"),
        (["k" * 32], r"every public key on a roster must be 32 bytes, got str"),
        ([b"short"], r"every public key on a roster must be 32 bytes, got 5"),
        ([KEYS[0], KEYS[0]], r"a roster must not list one public key twice"),
        ([KEYS[0], SERVER], r"the server must not be one of the roster's clients"),
    ],
)
def test_what_is_no_list_of_keys_is_refused_in_one_sentence(publics, sentence: str) -> None:
    with pytest.raises(LocalProtocolError, match=sentence):
        Roster(publics, server=SERVER)
    with pytest.raises(LocalProtocolError, match=sentence):
        Roster.numbered(publics, server=SERVER, label="tests", counter=0)


@pytest.mark.parametrize(("server", "what"), [(identity(), "Identity"), (b"short", "5"), (None, "NoneType")])
def test_what_is_no_servers_key_is_refused_in_one_sentence(server, what: str) -> None:
    sentence = f"the server's key on a roster must be 32 bytes, got {what}: give server=identity.public"
    with pytest.raises(LocalProtocolError, match=sentence):
        Roster(KEYS, server=server)


@pytest.mark.parametrize("run", ["text", None, b"x" * 65])
def test_a_run_name_is_at_most_64_bytes(run) -> None:
    assert Roster(KEYS, server=SERVER, run=b"x" * 64).run == b"x" * 64
    with pytest.raises(LocalProtocolError, match="run must be at most 64 bytes"):
        Roster(KEYS, server=SERVER, run=run)


@pytest.mark.parametrize("label", ["", "x" * 256, b"bytes", None, "\ud800"])
def test_a_label_is_a_text_of_1_to_255_bytes(label) -> None:
    with pytest.raises(LocalProtocolError, match="label must have 1 to 255 bytes"):
        Roster.numbered(KEYS, server=SERVER, label=label, counter=0)


@pytest.mark.parametrize("counter", [-1, 1 << 64, 1.0, True, None, "1"])
def test_a_counter_is_a_whole_number_of_8_bytes(counter) -> None:
    with pytest.raises(LocalProtocolError, match="counter must be an integer"):
        Roster.numbered(KEYS, server=SERVER, label="tests", counter=counter)


@pytest.mark.parametrize("private", [b"", b"k" * 31, b"k" * 33, "k" * 32, None])
def test_an_identity_of_another_length_is_refused_in_one_sentence(private) -> None:
    with pytest.raises(LocalProtocolError, match="an identity needs 32 private bytes"):
        Identity(private)


def test_the_run_name_is_the_hash_that_the_page_says() -> None:
    """Nobody chooses it: label, keys and counter fix it."""
    members = b"privstats/secagg/2/members\0" + (4).to_bytes(4, "big") + b"".join(KEYS) + SERVER
    named = hashlib.sha256(members).digest() + (3).to_bytes(4, "big") + b"run" + (7).to_bytes(8, "big")
    roster = Roster.numbered(KEYS, server=SERVER, label="run", counter=7)
    assert roster.run == hashlib.sha256(b"privstats/secagg/2/run\0" + named).digest()
    assert (roster.label, roster.counter) == ("run", 7)
    assert roster.members == hashlib.sha256(members).digest()
    assert roster.digest == hashlib.sha256(b"privstats/secagg/2/roster\0" + roster.members + roster.run).digest()


@given(st.data())
def test_every_field_is_in_the_run_name_and_the_digest(data) -> None:
    key = st.binary(min_size=32, max_size=32).filter(lambda key: not has_low_order(key))
    fields = {
        "publics": st.lists(key, min_size=1, max_size=3, unique=True).map(tuple),
        "server": key,
        "label": st.text(st.characters(codec="ascii"), min_size=1, max_size=9),
        "counter": st.integers(0, 99),
    }
    values = {name: data.draw(field) for name, field in fields.items()}
    if values["server"] in values["publics"]:
        return
    one = Roster.numbered(**values)
    for name, field in fields.items():
        other = data.draw(field.filter(lambda value, name=name: value != values[name]))
        changed = values | {name: other}
        if changed["server"] in changed["publics"]:
            continue
        two = Roster.numbered(**changed)
        assert two.run != one.run
        assert two.digest != one.digest
        assert (two.members == one.members) == (name in ("label", "counter"))


def test_a_run_name_given_by_hand_is_not_numbered_even_if_it_is_the_same() -> None:
    numbered = Roster.numbered(KEYS, server=SERVER, label="run", counter=7)
    by_hand = Roster(KEYS, server=SERVER, run=numbered.run)
    assert (by_hand.label, by_hand.counter) == ("", None)
    assert by_hand.digest == numbered.digest
    assert dataclasses.replace(numbered, run=b"other").counter is None


def test_a_roster_takes_any_list_of_keys() -> None:
    assert Roster(list(KEYS), server=SERVER) == Roster(KEYS, server=SERVER)
    assert len(Roster.numbered(iter(KEYS), server=SERVER, label="run", counter=0)) == 4
