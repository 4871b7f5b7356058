"""Codes, links and the page's digest against frozen cases that clients in other languages read too.

The cases were written by the second derivation below, which uses hashlib and hmac alone.
"""

import hmac
import json
from base64 import b32encode
from hashlib import sha256
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from privstats.contrib.http.invitations import Invitation, draw_code, identity_of, study_of
from privstats.errors import LocalProtocolError

CASES = json.loads((Path(__file__).parent / "vectors" / "invitations.json").read_text())
CODES = st.builds(Invitation, st.integers(0, 2**32 - 1), st.binary(min_size=16, max_size=16))


def seed_of(code: bytes) -> bytes:
    """RFC 5869 with an empty salt, one block."""
    extracted = hmac.digest(bytes(32), code, "sha256")
    return hmac.digest(extracted, b"privstats/devices/1/identity\x01", "sha256")


def fragment_of(index: int, code: bytes) -> str:
    said = f"1.{index}.{b32encode(code).decode()[:26]}"
    return said + "." + b32encode(sha256(b"privstats/devices/1/link\0" + said.encode()).digest()).decode()[:4]


@pytest.mark.parametrize("case", CASES["codes"], ids=lambda case: case["fragment"][:12])
def test_a_code_gives_the_frozen_key_and_link(case):
    code = bytes.fromhex(case["code"])
    assert seed_of(code).hex() == case["seed"]
    assert identity_of(code).public.hex() == case["public"]
    invitation = Invitation(case["index"], code)
    assert invitation.letters == case["letters"]
    assert invitation.fragment == case["fragment"] == fragment_of(case["index"], code)
    for spelling in (*case["spellings"], invitation.link("https://survey.example/answer")):
        assert Invitation.read(spelling) == invitation


@pytest.mark.parametrize("fragment", CASES["refused"], ids=range(len(CASES["refused"])))
def test_what_is_no_invitation_is_refused_and_not_repeated(fragment):
    with pytest.raises(LocalProtocolError, match=r"^this is no invitation, or a letter of it is wrong") as refused:
        Invitation.read(fragment)
    assert not fragment or fragment not in str(refused.value)


@pytest.mark.parametrize("case", CASES["studies"], ids=lambda case: case["study"][:8])
def test_a_study_has_the_frozen_digest(case):
    run, plan, roster = (bytes.fromhex(case[name]) for name in ("run", "plan", "roster"))
    said = b"privstats/devices/1/study\0" + bytes([len(run)]) + run + plan + roster
    assert study_of(run, plan, roster) == case["study"] == sha256(said).hexdigest()


@given(CODES)
def test_a_link_is_read_back(invitation):
    assert Invitation.read(invitation.link("https://survey.example/")) == invitation
    assert Invitation.read(invitation.fragment.lower().replace(".", " . ")) == invitation


@given(CODES, st.data())
def test_one_wrong_letter_of_a_fragment_is_found(invitation, data):
    """A check of 20 bits misses one in a million; the version and the index are under it too."""
    fragment = invitation.fragment
    place = data.draw(st.integers(0, len(fragment) - 1))
    other = data.draw(st.sampled_from("ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789."))
    wrong = fragment[:place] + other + fragment[place + 1 :]
    try:
        assert Invitation.read(wrong) == invitation
        assert wrong == fragment
    except LocalProtocolError:
        assert wrong != fragment


def test_no_repr_shows_a_code_or_a_place():
    invitation = Invitation(12345, draw_code())
    for text in (repr(invitation), repr(invitation.identity)):
        assert invitation.letters not in text
        assert invitation.code.hex() not in text
        assert "12345" not in text


REFUSED = {
    "a short code": (lambda: identity_of(b"short"), "a code has 16 bytes"),
    "a code that is text": (lambda: identity_of("a" * 16), "a code has 16 bytes"),
    "an invitation without a code": (lambda: Invitation(1, b""), "a code has 16 bytes"),
    "a negative place": (lambda: Invitation(-1, bytes(16)), "index is an integer from 0"),
    "a place that is true": (lambda: Invitation(True, bytes(16)), "index is an integer from 0"),
    "a place that no message can name": (lambda: Invitation(2**32, bytes(16)), "index is an integer from 0"),
    "a page in plain HTTP": (lambda: Invitation(1, bytes(16)).link("http://survey.example/"), "begin with https://"),
    "a page with a query": (lambda: Invitation(1, bytes(16)).link("https://survey.example/?a=1"), "neither # nor"),
    "a page with a fragment": (lambda: Invitation(1, bytes(16)).link("https://survey.example/#a"), "neither # nor"),
    "no run": (lambda: study_of(b"", bytes(32), bytes(32)), "a run's name has 1 to 255 bytes"),
    "a plan's digest in hex": (lambda: study_of(b"r", bytes(64), bytes(32)), "have 32 bytes each"),
    "poor entropy": (lambda: draw_code(lambda size: bytes(size - 1)), "must return 16 bytes, got 15"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_wrong_arguments_are_refused(case):
    call, words = REFUSED[case]
    with pytest.raises(LocalProtocolError, match=words):
        call()
