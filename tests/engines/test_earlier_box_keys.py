"""A box key of an earlier version is destroyed and never offered again: its bytes may be on offer as an X25519 key."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from privstats.engines.journal import JournaledHelper, JournaledLeader
from privstats.engines.journal.helper import forget_ended
from privstats.engines.network.party import Party
from privstats.engines.network.roles import HelperRole
from privstats.engines.network.statements import Header
from privstats.engines.records import read_sealed, write_sealed
from privstats.errors import LocalProtocolError, SessionEndedError
from privstats.files.decoding import from_msgpack
from privstats.secagg.keys import public_of
from privstats.secagg.upload.suite import OFFER_BYTES
from tests.engines.network.fake import study_of
from tests.engines.test_journal_uploads import KEY
from tests.secagg.upload.cohorts import Uploads, uploads_of

ENDED = "began under an earlier version, whose keys are refused: its box key is destroyed; start a new run"
Offers = Callable[[int, bytes], list[bytes]]


def unbound(place: int, private: bytes) -> list[bytes]:
    return []


def under_x25519(place: int, private: bytes) -> list[bytes]:
    """Three offers as an earlier version encoded them: place, identity, X25519 key, end and signature."""
    each = [bytes([number]) + bytes(32) + public_of(bytes([number]) * 32) + bytes(72) for number in range(3)]
    each[place] = each[place][:33] + public_of(private) + each[place][65:]
    assert {len(offer) for offer in each} == {137}
    return each


def under_x_wing(place: int, private: bytes) -> list[bytes]:
    """Three offers of today's length: the same roster may have had offers under X25519 before the plan had the line."""
    return [bytes([number]) + bytes(OFFER_BYTES - 1) for number in range(3)]


class EarlierKeys(msgspec.Struct, frozen=True):
    """A member's box key as an earlier version stored it, ``private`` without the suite that offers it."""

    place: int
    private: bytes
    until: int
    offers: tuple[bytes, ...] = ()
    folder: int = 0


BEFORE: list[Offers] = [unbound, under_x25519, under_x_wing]


def stored_in(run: Path, key: bytes) -> tuple[bytes, bytes]:
    """Return a run's sealing key and its encoded box key."""
    sealing = read_sealed(run / "sealing", key)
    return sealing, read_sealed(run / "keys", sealing)


def store_before(run: Path, offers: Offers, key: bytes = KEY) -> None:
    """Write a member's box key as an earlier version stored it."""
    sealing, encoded = stored_in(run, key)
    keys = msgspec.msgpack.decode(encoded)
    private, bound = keys["seed"], run.stat().st_ino
    before = EarlierKeys(keys["place"], private, keys["until"], tuple(offers(keys["place"], private)), bound)
    write_sealed(run / "keys", sealing, msgspec.msgpack.encode(before))


def secrets_in(run: Path) -> set[str]:
    return {path.name for path in run.iterdir()} & {"keys", "sealing", "log"}


@pytest.fixture
def run() -> Uploads:
    return uploads_of(helpers=2)


def place_of(run: Uploads, place: int) -> dict[str, Any]:
    return {"identity": run.members[place], "parameters": run.parameters, "roster": run.roster}


@pytest.mark.parametrize("offers", BEFORE)
def test_a_helper_of_an_earlier_version_ends_without_its_key(run: Uploads, tmp_path: Path, offers: Offers) -> None:
    home, named = tmp_path / "helper", place_of(run, 2)
    JournaledHelper.offer(home, KEY, place=2, **named).close()
    folder = home / run.roster.digest.hex()
    store_before(folder, offers)
    with pytest.raises(SessionEndedError, match=ENDED):
        JournaledHelper.resume(home, KEY, **named)
    assert not secrets_in(folder)
    with pytest.raises(SessionEndedError, match=ENDED):  # a restart does not hide it
        JournaledHelper.resume(home, KEY, **named)
    with pytest.raises(LocalProtocolError, match="knows this run"):
        JournaledHelper.offer(home, KEY, place=2, **named)


@pytest.mark.parametrize("offers", BEFORE)
def test_a_leader_of_an_earlier_version_ends_without_its_key(run: Uploads, tmp_path: Path, offers: Offers) -> None:
    home, named = tmp_path / "leader", place_of(run, 0)
    JournaledLeader.offer(home, KEY, **named).close()
    folder = home / run.roster.digest.hex()
    store_before(folder, offers)
    with pytest.raises(SessionEndedError, match=ENDED):
        JournaledLeader.resume(home, KEY, **named)
    assert not secrets_in(folder)
    with pytest.raises(SessionEndedError, match=ENDED):
        JournaledLeader.resume(home, KEY, **named)
    with pytest.raises(LocalProtocolError, match="knows this run"):  # a second key in one run
        JournaledLeader.offer(home, KEY, **named)


@pytest.mark.parametrize("offers", [unbound, under_x_wing])
def test_an_earlier_version_reads_no_key_of_this_one(run: Uploads, tmp_path: Path, offers: Offers) -> None:
    """It ignored a field that it did not know, offered the same bytes under X25519, and left the field in place."""
    JournaledHelper.offer(tmp_path, KEY, place=1, **place_of(run, 1)).close()
    folder = tmp_path / run.roster.digest.hex()
    keys = msgspec.msgpack.decode(stored_in(folder, KEY)[1]) | {"offers": offers(1, bytes(32))}
    with pytest.raises(msgspec.ValidationError, match="missing required field `private`"):
        from_msgpack(msgspec.msgpack.encode(keys), EarlierKeys)
    store_before(folder, offers)
    assert from_msgpack(stored_in(folder, KEY)[1], EarlierKeys).private == keys["seed"]


@pytest.mark.parametrize("offers", BEFORE)
def test_whoever_opens_the_folder_destroys_the_key_at_once(run: Uploads, tmp_path: Path, offers: Offers) -> None:
    JournaledHelper.offer(tmp_path / "helper", KEY, place=1, **place_of(run, 1)).close()
    folder = tmp_path / "helper" / run.roster.digest.hex()
    store_before(folder, offers)
    assert ENDED in forget_ended(folder, KEY)
    assert not secrets_in(folder)
    assert forget_ended(folder, KEY) == ""
    with pytest.raises(SessionEndedError, match=ENDED):
        JournaledHelper.resume(tmp_path / "helper", KEY, **place_of(run, 1))


@pytest.mark.parametrize("offers", BEFORE)
@pytest.mark.parametrize("act", [HelperRole.greeting, HelperRole.session_ended])
def test_a_party_over_flower_offers_no_key_of_an_earlier_version(
    tmp_path: Path, offers: Offers, act: Callable[[HelperRole], bytes]
) -> None:
    study = study_of(tmp_path, "split")
    role = Party.open(study.home(5)).first.role
    assert isinstance(role, HelperRole)
    first = role.greeting()
    assert len(first) == OFFER_BYTES
    folder = study.home(5) / "sessions" / study.roster.digest.hex()
    store_before(folder, offers, role._folder.key)
    for _ in range(2):
        if act is HelperRole.greeting:
            with pytest.raises(SessionEndedError, match=ENDED):
                role.greeting()
        else:
            assert role.session_ended() == b""
        assert not secrets_in(folder)


def test_a_partys_operator_reads_that_the_run_is_of_an_earlier_version(tmp_path: Path) -> None:
    """At each of the server's messages, and once if the folder has another roster by now."""
    study = study_of(tmp_path, "split")
    hello = Header.of(study.plan, study.roster).encode()
    said: list[str] = []
    party = Party.open(study.home(5), said.append).first
    assert party.answer("hello", hello).code == "ok"
    folder, key = study.home(5) / "sessions" / study.roster.digest.hex(), party.folder.key
    store_before(folder, unbound, key)
    old = folder.with_name("0" * 64)
    shutil.copytree(folder, old)
    assert {party.answer("hello", hello).code for _ in range(2)} == {"over"}
    assert len(said) == 2
    assert all(ENDED in line for line in said)
    for _ in range(2):
        Party.open(study.home(5), said.append)
    assert said[2:] == [f"sessions/{old.name}: this run {ENDED}"]
    assert not secrets_in(old)
