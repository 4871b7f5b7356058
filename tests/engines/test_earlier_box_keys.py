"""A box key of an earlier version is destroyed and never offered again: its bytes may be on offer as an X25519 key."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from privstats.engines.journal import JournaledHelper, JournaledLeader
from privstats.engines.journal.helper import forget_ended
from privstats.engines.network.party import Party
from privstats.engines.network.roles import HelperRole
from privstats.engines.records import read_sealed, write_sealed
from privstats.errors import LocalProtocolError, NothingToResumeError, SessionEndedError
from privstats.secagg import Panel
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


def store_before(run: Path, offers: Offers, key: bytes = KEY) -> None:
    """Write a member's box key as an earlier version stored it: without its suite."""
    sealing = read_sealed(run / "sealing", key)
    keys = msgspec.msgpack.decode(read_sealed(run / "keys", sealing))
    keys.pop("suite", None)
    keys |= {"offers": offers(keys["place"], keys["private"]), "folder": run.stat().st_ino}
    write_sealed(run / "keys", sealing, msgspec.msgpack.encode(keys))


def secrets_in(run: Path) -> set[str]:
    return {path.name for path in run.iterdir()} & {"keys", "sealing", "log"}


@pytest.fixture
def run() -> Uploads:
    return uploads_of(helpers=2)


def place_of(run: Uploads, place: int) -> dict[str, Any]:
    return {"identity": run.members[place], "parameters": run.parameters, "roster": run.roster}


@pytest.mark.parametrize("offers", [unbound, under_x25519])
def test_a_helper_of_an_earlier_version_ends_without_its_key(run: Uploads, tmp_path: Path, offers: Offers) -> None:
    home, named = tmp_path / "helper", place_of(run, 2)
    JournaledHelper.offer(home, KEY, place=2, **named).close()
    folder = home / run.roster.digest.hex()
    store_before(folder, offers)
    with pytest.raises(SessionEndedError, match=ENDED):
        JournaledHelper.resume(home, KEY, **named)
    assert not secrets_in(folder)
    with JournaledHelper.resume(home, KEY, **named) as helper:
        assert (helper.state, helper.answer) == ("abandoned", b"")
        with pytest.raises(LocalProtocolError, match="its box key is gone"):
            helper.offered  # noqa: B018
    with pytest.raises(LocalProtocolError, match="knows this run"):
        JournaledHelper.offer(home, KEY, place=2, **named)


@pytest.mark.parametrize("offers", [unbound, under_x25519])
def test_a_leader_of_an_earlier_version_ends_without_its_key(run: Uploads, tmp_path: Path, offers: Offers) -> None:
    home, named = tmp_path / "leader", place_of(run, 0)
    JournaledLeader.offer(home, KEY, **named).close()
    folder = home / run.roster.digest.hex()
    store_before(folder, offers)
    with pytest.raises(SessionEndedError, match=ENDED):
        JournaledLeader.resume(home, KEY, **named)
    assert not secrets_in(folder)
    with pytest.raises(NothingToResumeError):
        JournaledLeader.resume(home, KEY, **named)


def test_a_key_that_is_bound_under_x_wing_goes_on(run: Uploads, tmp_path: Path) -> None:
    """Its panel's offers show the suite, so an earlier version's run of a plan with the line loses nothing."""
    leader = JournaledLeader.offer(tmp_path / "leader", KEY, **place_of(run, 0))
    homes = [tmp_path / f"helper {place}" for place in (1, 2)]
    helpers = [
        JournaledHelper.offer(home, KEY, place=place, **place_of(run, place))
        for place, home in enumerate(homes, start=1)
    ]
    panel = Panel(tuple(each.public for each in run.members), (leader.offered, *(each.offered for each in helpers)))
    helpers[0].bind(panel)
    for each in (leader, *helpers):
        each.close()
    encoded = [offer.encode() for offer in panel.offers]
    assert {len(offer) for offer in encoded} == {OFFER_BYTES}
    store_before(homes[0] / run.roster.digest.hex(), lambda place, private: encoded)
    with JournaledHelper.resume(homes[0], KEY, **place_of(run, 1)) as helper:
        assert (helper.state, helper.offered) == ("bound", panel.offers[1])


@pytest.mark.parametrize("offers", [unbound, under_x25519])
def test_whoever_opens_the_folder_destroys_the_key_at_once(run: Uploads, tmp_path: Path, offers: Offers) -> None:
    JournaledHelper.offer(tmp_path / "helper", KEY, place=1, **place_of(run, 1)).close()
    folder = tmp_path / "helper" / run.roster.digest.hex()
    store_before(folder, offers)
    forget_ended(folder, KEY)
    assert not secrets_in(folder)


@pytest.mark.parametrize("offers", [unbound, under_x25519])
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
    if act is HelperRole.greeting:
        with pytest.raises(SessionEndedError, match=ENDED):
            role.greeting()
    else:
        assert role.session_ended() == b""
    assert not secrets_in(folder)
