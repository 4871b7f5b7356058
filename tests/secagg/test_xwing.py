"""X-Wing against the vectors of its draft and against thirty lines that share nothing with the library's HPKE."""

import json
import os
from pathlib import Path

import pytest
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import hpke
from cryptography.hazmat.primitives.asymmetric.mlkem import MLKEM768PrivateKey, MLKEM768PublicKey
from cryptography.hazmat.primitives.ciphers.aead import AESGCM, ChaCha20Poly1305

from privstats.errors import LocalProtocolError
from privstats.secagg import xwing
from privstats.secagg.body_cipher import UnopenedError
from tests.secagg.upload.second_implementation import schedule, xwing_open, xwing_secret

VECTORS = [
    {name: bytes.fromhex(value) for name, value in vector.items()}
    for vector in json.loads((Path(__file__).parent / "vectors" / "xwing.json").read_text())["vectors"]
]
HPKE_PQ = json.loads((Path(__file__).parent / "vectors" / "hpke_pq.json").read_text())
INFO, TEXT = b"whom it is for", b"32 bytes of a seed or a body key"


@pytest.mark.parametrize("vector", VECTORS)
def test_keys_and_encapsulations_are_those_of_the_draft(vector: dict[str, bytes]) -> None:
    """Of the library's HPKE no shared secret is told, but it opens what is sealed under the draft's."""
    assert xwing.public_of(vector["seed"]) == vector["pk"]
    assert xwing_secret(vector["seed"], vector["ct"]) == vector["ss"]
    key, nonce = schedule(vector["ss"], INFO)
    box = vector["ct"] + AESGCM(key).encrypt(nonce, TEXT, None)
    assert xwing.open_box(xwing.private_of(vector["seed"]), box, INFO) == TEXT


def test_the_key_schedule_is_that_of_the_working_groups_draft() -> None:
    """``cryptography`` takes no associated data, so its part is a box under the draft's key: same suite, empty data."""
    told = {name: bytes.fromhex(value) for name, value in HPKE_PQ.items() if name not in ("source", "aead")}
    assert xwing.public_of(told["seed"]) == told["pk"]
    assert xwing_secret(told["seed"], told["enc"]) == told["ss"]
    key, nonce = schedule(told["ss"], told["info"], HPKE_PQ["aead"])
    assert (key, nonce) == (told["key"], told["nonce"])
    cipher = ChaCha20Poly1305(key)
    assert cipher.decrypt(nonce, told["ct"], told["aad"]) == told["pt"]
    suite = hpke.Suite(hpke.KEM.MLKEM768_X25519, hpke.KDF.HKDF_SHA256, hpke.AEAD.CHACHA20_POLY1305)
    box = told["enc"] + cipher.encrypt(nonce, TEXT, None)
    assert suite.decrypt(box, xwing.private_of(told["seed"]), told["info"]) == TEXT


def test_a_box_of_the_library_opens_by_what_is_written_here_and_is_another_each_time() -> None:
    seed = os.urandom(32)
    one, other = (xwing.seal(xwing.public_of(seed), TEXT, INFO) for _ in range(2))
    assert one != other
    assert len(one) == xwing.ENC_BYTES + len(TEXT) + 16 == 1168
    assert xwing_open(seed, one, INFO) == xwing_open(seed, other, INFO) == TEXT


@pytest.mark.parametrize("place", [0, 1087, 1088, 1119, 1120, 1167])
def test_a_box_with_one_flipped_bit_does_not_open(place: int) -> None:
    seed = os.urandom(32)
    box = bytearray(xwing.seal(xwing.public_of(seed), TEXT, INFO))
    box[place] ^= 1
    with pytest.raises(UnopenedError):
        xwing.open_box(xwing.private_of(seed), box, INFO)


def test_a_box_opens_for_its_owner_under_its_info_and_whole() -> None:
    seed = os.urandom(32)
    box, private = xwing.seal(xwing.public_of(seed), TEXT, INFO), xwing.private_of(seed)
    low = box[:1088] + bytes(32) + box[1120:]
    for key, spoilt, info in (
        (xwing.private_of(os.urandom(32)), box, INFO),
        (private, box, INFO + b"!"),
        *((private, each, INFO) for each in (low, box[:-1], box[:1120], b"")),
    ):
        with pytest.raises(UnopenedError):
            xwing.open_box(key, spoilt, info)


@pytest.mark.parametrize("bad", [lambda key: key[:1184] + bytes(32), lambda key: b"\xff" * 1184 + key[1184:]])
def test_nothing_is_sealed_to_a_key_with_a_bad_half(bad) -> None:
    with pytest.raises(ValueError, match=r"shared|ML-KEM"):
        xwing.seal(bad(xwing.public_of(bytes(32))), TEXT, INFO)


def test_a_machine_without_ml_kem_refuses_by_name_and_never_falls_back(monkeypatch) -> None:
    def unsupported(_: bytes) -> None:
        raise UnsupportedAlgorithm("ML-KEM-768 is not supported by this backend.")

    public = xwing.public_of(bytes(32))
    for kind, name in ((MLKEM768PrivateKey, "from_seed_bytes"), (MLKEM768PublicKey, "from_public_bytes")):
        monkeypatch.setattr(kind, name, unsupported)
    for attempt in (xwing.private_of, xwing.public_of, lambda _: xwing.seal(public, TEXT, INFO)):
        with pytest.raises(LocalProtocolError, match="needs ML-KEM, which this machine's cryptography lacks"):
            attempt(bytes(32))
