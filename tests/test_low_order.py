"""Keys of low order, for which any party can sign, are refused wherever a key is taken, in every form."""

import os
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

from privstats.errors import LocalProtocolError, PlanError, ReleaseError
from privstats.files.locked_key import read_public
from privstats.files.signing import has_low_order, public_key, public_pem
from privstats.secagg import Identity, Roster, xwing
from privstats.secagg.keys import agree
from privstats.secagg.upload.panel import Offer, Panel
from privstats.secagg.upload.suite import check_box_key
from tests.plan.test_split import PANEL, plan_of
from tests.secagg.edwards import decoded, low_order_encodings, order, x25519_low_order_encodings

ENCODINGS = low_order_encodings()
OF_X25519 = x25519_low_order_encodings()
WORDS = "low order, for which any party can sign"
every_encoding = pytest.mark.parametrize("key", ENCODINGS.values(), ids=ENCODINGS)


def test_the_list_is_whole() -> None:
    """Eight points; a second y below 2^255 for two of the five values; two signs each."""
    assert sorted({order(decoded(key)) for key in ENCODINGS.values()}) == [1, 2, 4, 8]
    assert len({decoded(key) for key in ENCODINGS.values()}) == 8
    assert len(set(ENCODINGS.values())) == 14


@every_encoding
def test_it_is_told_from_an_honest_key(key: bytes) -> None:
    assert has_low_order(key)
    assert not any(has_low_order(Identity.generate(os.urandom).public) for _ in range(5))


def test_anybody_signs_for_the_neutral_point() -> None:
    """Why: the verification that everybody uses takes an invented signature over anything."""
    Ed25519PublicKey.from_public_bytes(b"\1" + bytes(31)).verify(b"\1" + bytes(63), b"a survivor list")


@every_encoding
def test_rosters_refuse_it(key: bytes) -> None:
    honest = [Identity.generate(os.urandom).public for _ in range(2)]
    with pytest.raises(LocalProtocolError, match=WORDS):
        Roster((*honest, key), server=honest[0][::-1])
    with pytest.raises(LocalProtocolError, match=WORDS):
        Roster(honest, server=key)
    with pytest.raises(LocalProtocolError, match=WORDS):
        Roster.numbered((*honest, key), server=honest[0][::-1], label="x", counter=0)


@every_encoding
def test_a_rosters_file_refuses_it(key: bytes) -> None:
    honest = [Identity.generate(os.urandom).public for _ in range(3)]
    text = Roster(honest[:2], server=honest[2]).to_toml()
    with pytest.raises(LocalProtocolError, match=WORDS):
        Roster.from_toml(text.replace(honest[1].hex(), key.hex()))


@every_encoding
def test_plans_and_panels_refuse_it(key: bytes) -> None:
    with pytest.raises(PlanError, match=rf"panel\[1\] is a point of {WORDS}"):
        plan_of(panel=(PANEL[0], key.hex()))
    identities = (b"i" * 32, key)
    offers = tuple(
        Offer(place, identity, xwing.public_of(bytes([place]) * 32), 1 << 40, bytes(64))
        for place, identity in enumerate(identities)
    )
    with pytest.raises(LocalProtocolError, match=f"^the identity of panel member 1 is a point of {WORDS}"):
        Panel(identities, offers)


@every_encoding
@pytest.mark.parametrize("form", [bytes, bytes.hex, public_pem, Ed25519PublicKey.from_public_bytes])
def test_verifiers_of_files_refuse_it_in_every_form(key: bytes, form) -> None:
    with pytest.raises(ReleaseError, match=f"signed_by is a point of {WORDS}"):
        public_key(form(key), "signed_by", ReleaseError)


@every_encoding
def test_a_file_with_it_is_refused(key: bytes, tmp_path: Path) -> None:
    (tmp_path / "key.pem").write_text(public_pem(key))
    with pytest.raises(LocalProtocolError, match=WORDS):
        read_public(tmp_path / "key.pem", LocalProtocolError)


def test_the_list_of_x25519_is_whole() -> None:
    """Five values of u, of which two have a second form below 2^255; two highest bits each."""
    assert len(set(OF_X25519.values())) == 14


@pytest.mark.parametrize("key", OF_X25519.values(), ids=OF_X25519)
def test_no_secret_is_agreed_with_a_point_of_low_order(key: bytes) -> None:
    """Every private key has the zero secret with it, in a channel, in a box and as half of a box key."""
    with pytest.raises(ValueError, match=r".*"):
        agree(X25519PrivateKey.generate(), key)
    honest = xwing.public_of(bytes(32))
    check_box_key(honest)
    with pytest.raises(ValueError, match=r".*"):
        check_box_key(honest[:-32] + key)
    with pytest.raises(ValueError, match=r".*"):
        xwing.seal(honest[:-32] + key, bytes(32), b"")
