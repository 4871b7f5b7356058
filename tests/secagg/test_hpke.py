"""HPKE against vectors that nobody here wrote, and against the implementation in ``cryptography``, both ways."""

import hmac
import itertools
import os

import pytest
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from privstats.secagg import hpke
from privstats.secagg.keys import agree, public_of

INFO = bytes.fromhex("4f6465206f6e2061204772656369616e2055726e")
TEXT = bytes.fromhex("4265617574792069732074727574682c20747275746820626561757479")
LOW_ORDER = [bytes(32), b"\x01" + bytes(31), bytes.fromhex("ecffffff" + "ff" * 27 + "7f")]

# RFC 9180, A.1.1: DHKEM(X25519, HKDF-SHA256), HKDF-SHA256, AES-128-GCM, base mode
A_1_1 = {
    "skEm": "52c4a758a802cd8b936eceea314432798d5baf2d7e9235dc084ab1b9cfa2f736",
    "skRm": "4612c550263fc8ad58375df3f557aac531d26850903e55a9f23f21d8534e8ac8",
    "pkRm": "3948cfe0ad1ddb695d780e59077195da6c56506b027329794ab02bca80815c4d",
    "enc": "37fda3567bdbd628e88668c3c8d7e97d1d1253b6d4ea6d44c150f741f1bf4431",
    "shared_secret": "fe0e18c9f024ce43799ae393c7e8fe8fce9d218875e8227b0187c04e7d2ea1fc",
    "key": "4531685d41d65f03dc48f6b8302c05b0",
    "base_nonce": "56d890e5accaaf011cff4b7d",
    "ct": "f938558b5d72f1a23810b4be2ab4f84331acc02fc97babc53a52ae8218a355a96d8770ac83d07bea87e13c512a",
}

# The RFC's own file of vectors, base mode, the same KEM and KDF with AES-256-GCM: our suite
AES_256 = {
    "ikmE": "2cd7c601cefb3d42a62b04b7a9041494c06c7843818e0ce28a8f704ae7ab20f9",
    "skRm": "497b4502664cfea5d5af0b39934dac72242a74f8480451e1aee7d6a53320333d",
    "pkRm": "430f4b9859665145a6b1ba274024487bd66f03a2dd577d7753c68d7d7d00c00c",
    "enc": "6c93e09869df3402d7bf231bf540fadd35cd56be14f97178f0954db94b7fc256",
    "ct": "e5d84cd531cfb583096e7cfa9641bd3079cf3a91cda813c52deb5f512be9931980a41de125a925cdad859d5b7a",
}


def private(raw: bytes) -> X25519PrivateKey:
    return X25519PrivateKey.from_private_bytes(raw)


def derived_key(ikm: bytes) -> bytes:
    """DeriveKeyPair, RFC 9180, 7.1.3: the protocol has no use for it, the vector gives nothing else."""
    suite = b"KEM" + bytes([0, 0x20])
    prk = hmac.digest(b"", b"HPKE-v1" + suite + b"dkp_prk" + ikm, "sha256")
    return hmac.digest(prk, bytes([0, 32]) + b"HPKE-v1" + suite + b"sk" + b"\1", "sha256")


def test_the_key_schedule_is_that_of_rfc_9180_a_1_1() -> None:
    given = {name: bytes.fromhex(value) for name, value in A_1_1.items()}
    assert public_of(given["skEm"]) == given["enc"]
    for mine, theirs in ((given["skEm"], given["pkRm"]), (given["skRm"], given["enc"])):
        shared = hpke.encapsulate(agree(private(mine), theirs), given["enc"], given["pkRm"])
        assert shared == given["shared_secret"]
    keys = hpke.schedule(shared, INFO, hpke.AES_128_GCM)
    assert (keys.key, keys.nonce) == (given["key"], given["base_nonce"])
    assert AESGCM(keys.key).encrypt(keys.nonce, TEXT, b"Count-0") == given["ct"]
    assert given["key"].hex() not in repr(keys)


def test_our_suite_gives_the_rfcs_ciphertext() -> None:
    given = {name: bytes.fromhex(value) for name, value in AES_256.items()}
    ephemeral = derived_key(given["ikmE"])
    shared = hpke.encapsulate(agree(private(ephemeral), given["pkRm"]), public_of(ephemeral), given["pkRm"])
    keys = hpke.schedule(shared, INFO)
    assert public_of(ephemeral) == given["enc"]
    assert AESGCM(keys.key).encrypt(keys.nonce, TEXT, b"Count-0") == given["ct"]
    box = hpke.seal(given["pkRm"], ephemeral, TEXT, INFO)
    assert box[: hpke.ENC_BYTES] == given["enc"]
    assert hpke.open_box(private(given["skRm"]), box, INFO) == TEXT
    assert box == hpke.seal(given["pkRm"], ephemeral, TEXT, INFO)


def test_both_directions_with_the_hpke_of_cryptography() -> None:
    theirs = pytest.importorskip("cryptography.hazmat.primitives.hpke", reason="cryptography has it from version 47 on")
    suite = theirs.Suite(theirs.KEM.X25519, theirs.KDF.HKDF_SHA256, theirs.AEAD.AES_256_GCM)
    for size in (0, 32, 10_000):
        raw, content, info = os.urandom(32), os.urandom(size), os.urandom(40)
        public = public_of(raw)
        sealed = suite.encrypt(content, X25519PublicKey.from_public_bytes(public), info)
        assert hpke.open_box(private(raw), sealed, info) == content
        ours = hpke.seal(public, os.urandom(32), content, info)
        assert suite.decrypt(ours, private(raw), info) == content
        assert len(ours) == size + hpke.OVERHEAD


@pytest.mark.parametrize("place", [0, 31, 32, 40, 63])
def test_a_box_with_one_flipped_bit_does_not_open(place: int) -> None:
    raw = os.urandom(32)
    box = bytearray(hpke.seal(public_of(raw), os.urandom(32), b"seed" * 8, INFO))
    box[place] ^= 1
    with pytest.raises(hpke.UnopenedError):
        hpke.open_box(private(raw), bytes(box), INFO)


def test_a_box_opens_under_its_own_info_only() -> None:
    raw = os.urandom(32)
    box = hpke.seal(public_of(raw), os.urandom(32), b"", INFO)
    with pytest.raises(hpke.UnopenedError):
        hpke.open_box(private(raw), box, INFO + b"!")


@pytest.mark.parametrize("enc", LOW_ORDER)
def test_an_encapsulated_key_of_low_order_does_not_open_and_raises_nothing_else(enc: bytes) -> None:
    """The exchange refuses it with ValueError, which is not what a wrong tag raises."""
    with pytest.raises(hpke.UnopenedError):
        hpke.open_box(private(os.urandom(32)), enc + bytes(48), INFO)


@pytest.mark.parametrize("size", [0, 1, 31, 32, 47])
def test_a_box_that_is_too_short_does_not_open(size: int) -> None:
    with pytest.raises(hpke.UnopenedError):
        hpke.open_box(private(os.urandom(32)), bytes([9]) * size, INFO)


def test_nothing_is_sealed_to_a_key_of_low_order() -> None:
    with pytest.raises(ValueError, match="shared"):
        hpke.seal(bytes(32), os.urandom(32), b"", INFO)


def test_a_box_that_is_sealed_piece_by_piece_is_the_box() -> None:
    receiver, once, content = private(b"\x07" * 32), b"\x08" * 32, os.urandom(1000)
    public = receiver.public_key().public_bytes_raw()
    for cuts in ((), (0,), (1, 16, 17, 999)):
        ends = (0, *cuts, len(content))
        pieces = (memoryview(content)[a:b] for a, b in itertools.pairwise(ends))
        out = bytearray(len(content) + hpke.OVERHEAD)
        hpke.seal_into(memoryview(out), *hpke.towards(public, once, INFO), pieces)
        assert bytes(out) == hpke.seal(public, once, content, INFO)
    for size in (len(content) + hpke.OVERHEAD - 1, len(content) + hpke.OVERHEAD + 1):
        with pytest.raises(ValueError, match=r"."):
            hpke.seal_into(memoryview(bytearray(size)), *hpke.towards(public, once, INFO), [memoryview(content)])
