"""Known answers that no one here wrote, through our own wrappers: RFC 7748, 8032, 5869, NIST SP 800-38A, RFC 9591."""

import pytest
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

from privstats.files.signing import verify
from privstats.secagg.keys import Identity, agree, hkdf, public_of
from privstats.secagg.prg import ctr_keystream
from privstats.secagg.scalars import combine, scalar_of, split

unhex = bytes.fromhex


@pytest.mark.parametrize(
    ("scalar", "point", "shared"),
    [
        (
            "a546e36bf0527c9d3b16154b82465edd62144c0ac1fc5a18506a2244ba449ac4",
            "e6db6867583030db3594c1a424b15f7c726624ec26b3353b10a903a6d0ab1c4c",
            "c3da55379de9c6908e94ea4df28d084f32eccf03491c71f754b4075577a28552",
        ),
        (
            "4b66e9d4d1b4673c5ad22691957d6af5c11b6421e0ea01d42ca4169e7918ba0d",
            "e5210f12786811d3f4b7959d0538ae2c31dbe7106fc03c3efc4cd549c715a493",
            "95cbde9476e8907d7aade45cb4b873f88b595a68799fa152e6f8f7647aac7957",
        ),
    ],
)
def test_x25519_rfc_7748_section_5_2(scalar: str, point: str, shared: str) -> None:
    assert agree(X25519PrivateKey.from_private_bytes(unhex(scalar)), unhex(point)) == unhex(shared)


def test_x25519_rfc_7748_section_6_1() -> None:
    alice = unhex("77076d0a7318a57d3c16c17251b26645df4c2f87ebc0992ab177fba51db92c2a")
    bob = unhex("5dab087e624a8a4b79e17f8b83800ee66f3bb1292618b6fd1c2f8b27ff88e0eb")
    assert public_of(alice).hex() == "8520f0098930a754748b7ddcb43ef75a0dbf3a0d26381af4eba4a98eaa9b4e6a"
    assert public_of(bob).hex() == "de9edb7d7b7dc1b4d35b61c2ece435373f8343c85b78674dadfc7e146f882b4f"
    shared = agree(X25519PrivateKey.from_private_bytes(alice), public_of(bob))
    assert shared.hex() == "4a5d9d5ba4ce2de1728e3bf480350f25e07e21c947d19e3376f09b3c1e161742"
    assert shared == agree(X25519PrivateKey.from_private_bytes(bob), public_of(alice))


@pytest.mark.parametrize("point", ["00" * 32, "01" + "00" * 31, "ec" + "ff" * 30 + "7f"])
def test_x25519_refuses_points_of_low_order(point: str) -> None:
    """RFC 7748, section 6.1: the all-zero secret must abort."""
    with pytest.raises(ValueError, match=r".*"):
        agree(X25519PrivateKey.from_private_bytes(b"k" * 32), unhex(point))


@pytest.mark.parametrize(
    ("private", "public", "message", "signature"),
    [
        (
            "9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60",
            "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a",
            "",
            "e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e065224901555f"
            "b8821590a33bacc61e39701cf9b46bd25bf5f0595bbe24655141438e7a100b",
        ),
        (
            "4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb",
            "3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c",
            "72",
            "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da08"
            "5ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00",
        ),
        (
            "c5aa8df43f9f837bedb7442f31dcb7b166d38535076f094b85ce3a2e0b4458f7",
            "fc51cd8e6218a1a38da47ed00230f0580816ed13ba3303ac5deb911548908025",
            "af82",
            "6291d657deec24024827e69c3abe01a30ce548a284743a445e3680d7db5ac3ac18"
            "ff9b538d16f290ae67f760984dc6594a7c15e9716ed28dc027beceea1ec40a",
        ),
    ],
)
def test_ed25519_rfc_8032_section_7_1(private: str, public: str, message: str, signature: str) -> None:
    identity = Identity(unhex(private))
    assert identity.public.hex() == public
    assert identity.sign(unhex(message)).hex() == signature
    assert verify(unhex(public), unhex(signature), unhex(message))
    assert not verify(unhex(public), unhex(signature), unhex(message) + b"!")
    assert not verify(b"\xff" * 32, unhex(signature), unhex(message))
    assert not verify(b"short", unhex(signature), unhex(message))


@pytest.mark.parametrize(
    ("secret", "salt", "info", "expected"),
    [
        (
            "0b" * 22,
            "000102030405060708090a0b0c",
            "f0f1f2f3f4f5f6f7f8f9",
            "3cb25f25faacd57a90434f64d0362f2a2d2d0a90cf1a5a4c5db02d56ecc4c5bf34007208d5b887185865",
        ),
        (
            bytes(range(0x50)).hex(),
            bytes(range(0x60, 0xB0)).hex(),
            bytes(range(0xB0, 0x100)).hex(),
            "b11e398dc80327a1c8e7f78c596a49344f012eda2d4efad8a050cc4c19afa97c59045a99cac7827271cb41c65e590e09"
            "da3275600c2f09b8367793a9aca3db71cc30c58179ec3e87c14c01d5c1f3434f1d87",
        ),
        ("0b" * 22, "", "", "8da4e775a563c18f715f802a063c5a31b8a11f5c5ee1879ec3454e5f3c738d2d9d201395faa4b61a96c8"),
    ],
)
def test_hkdf_rfc_5869_appendix_a(secret: str, salt: str, info: str, expected: str) -> None:
    assert hkdf(unhex(secret), unhex(salt), unhex(info), len(expected) // 2).hex() == expected


def test_keystream_nist_sp_800_38a_f_5_5() -> None:
    key = unhex("603deb1015ca71be2b73aef0857d77811f352c073b6108d72d9810a30914dff4")
    plain = unhex(
        "6bc1bee22e409f96e93d7e117393172aae2d8a571e03ac9c9eb76fac45af8e51"
        "30c81c46a35ce411e5fbc1191a0a52eff69f2445df4f9b17ad2b417be66c3710"
    )
    stream = ctr_keystream(key, unhex("f0f1f2f3f4f5f6f7f8f9fafbfcfdfeff"), 64)
    assert bytes(a ^ b for a, b in zip(plain, stream, strict=True)).hex() == (
        "601ec313775789a5b7a7f504bbf3d228f443e3ca4d62b59aca84e990cacaf5c5"
        "2b0930daa23de94ce87017ba2d84988ddfc9c58db67aada613c2dd08457941a6"
    )


def test_sharing_rfc_9591_appendix_e_1() -> None:
    """FROST(Ed25519, SHA-512): the same field; two of three shares give the group's secret key."""
    secret = scalar_of(unhex("7b1c33d3f5291d85de664833beb1ad469f7fb6025a0ec78b3a790c6e13a98304"))
    coefficient = scalar_of(unhex("178199860edd8c62f5212ee91eff1295d0d670ab4ed4506866bae57e7030b204"))
    shares = [
        scalar_of(unhex(share))
        for share in (
            "929dcc590407aae7d388761cddb0c0db6f5627aea8e217f4a033f2ec83d93509",
            "a91e66e012e4364ac9aaa405fcafd370402d9859f7b6685c07eed76bf409e80d",
            "d3cb090a075eb154e82fdb4b3cb507f110040905468bb9c46da8bdea643a9a02",
        )
    ]
    assert split([[secret, coefficient]], 3)[:, 0].tolist() == shares
    for points in ((1, 2), (1, 3), (3, 2)):
        assert combine(points, [shares[point - 1] for point in points]) == secret
