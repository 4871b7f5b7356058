"""Compare ML-KEM-768 in ``kem`` with vectors of Wycheproof and ACVP and a second implementation of the standard."""

import json
from hashlib import sha3_256
from operator import itemgetter
from pathlib import Path

import pytest
from cryptography.exceptions import UnsupportedAlgorithm

from privstats.errors import LocalProtocolError
from privstats.secagg import kem
from tests.secagg import mlkem

VECTORS = json.loads((Path(__file__).parent / "vectors" / "mlkem_768.json").read_text())
ACVP = json.loads((Path(__file__).parent / "vectors" / "mlkem_768_acvp.json").read_text())


def named(rows: list[dict]) -> list:
    return [pytest.param(row, id=f"{row['tcId']} {row['comment'][:30]}") for row in rows]


@pytest.mark.parametrize("row", named(VECTORS["decapsulation"]))
def test_decapsulation_agrees_with_wycheproof(row: dict) -> None:
    """Valid, random and damaged ciphertexts give the secret of the vector; those of another length are refused."""
    seed, ciphertext = bytes.fromhex(row["seed"]), bytes.fromhex(row["c"])
    if row["result"] == "valid":
        secret = bytes.fromhex(row["K"])
        assert kem.decapsulate(kem.private_key(seed), ciphertext) == mlkem.decapsulate(seed, ciphertext) == secret
        return
    with pytest.raises(ValueError, match="ciphertext"):
        kem.decapsulate(kem.private_key(seed), ciphertext)
    with pytest.raises(ValueError, match="ciphertext"):
        mlkem.decapsulate(seed, ciphertext)


@pytest.mark.parametrize("row", named(VECTORS["encapsulation"]))
def test_keys_that_wycheproof_refuses_are_refused(row: dict) -> None:
    """And the second implementation encapsulates to the vector's bytes: the library takes no randomness."""
    public = bytes.fromhex(row["ek"])
    if row["result"] == "valid":
        kem.parsed(public)
        assert [part.hex() for part in mlkem.encapsulate(public, bytes.fromhex(row["m"]))] == [row["K"], row["c"]]
        return
    for refuses in (kem.parsed, kem.encapsulate, lambda key: mlkem.encapsulate(key, bytes(32))):
        with pytest.raises(ValueError, match="key"):
            refuses(public)


@pytest.mark.parametrize("row", ACVP["keyGen"], ids=itemgetter("tcId"))
def test_a_key_of_acvp_is_generated_alike(row: dict) -> None:
    seed = bytes.fromhex(row["d"] + row["z"])
    public = kem.public_of(kem.private_key(seed))
    assert sha3_256(public).hexdigest() == row["H(ek)"]
    assert mlkem.keys_of(seed)[0] == public
    assert "H(dk)" not in row or sha3_256(mlkem.expanded(seed)).hexdigest() == row["H(dk)"]


@pytest.mark.parametrize("row", ACVP["encapsulation"], ids=itemgetter("tcId"))
def test_the_library_encapsulates_to_the_key_of_acvp(row: dict) -> None:
    """The library draws the randomness itself, so the second implementation opens its ciphertext and gives ACVP's."""
    dk, ciphertext = bytes.fromhex(row["dk"]), bytes.fromhex(row["c"])
    public = dk[384 * mlkem.K : -64]
    assert kem.parsed(public).public_bytes_raw() == public
    secret, fresh = kem.encapsulate(public)
    assert mlkem.opened(dk, fresh) == secret
    assert [part.hex() for part in mlkem.encapsulate(public, bytes.fromhex(row["m"]))] == [row["K"], row["c"]]
    assert mlkem.opened(dk, ciphertext).hex() == row["K"]


@pytest.mark.parametrize("row", ACVP["decapsulation"]["tests"], ids=itemgetter("tcId"))
def test_the_second_implementation_decapsulates_as_acvp(row: dict) -> None:
    """Half of the ciphertexts are modified. The library reads no expanded key: it is held to Wycheproof's seeds."""
    dk = bytes.fromhex(ACVP["decapsulation"]["dk"])
    assert mlkem.opened(dk, bytes.fromhex(row["c"])).hex() == row["K"]


@pytest.mark.parametrize("number", range(4))
def test_the_library_and_the_second_implementation_open_each_others_secrets(number: int) -> None:
    seed = bytes([number]) * kem.SEED_BYTES
    private, public = kem.private_key(seed), mlkem.keys_of(seed)[0]
    assert kem.public_of(private) == public
    assert len(public) == kem.PUBLIC_BYTES
    secret, ciphertext = kem.encapsulate(public)
    assert mlkem.decapsulate(seed, ciphertext) == secret
    assert (len(secret), len(ciphertext)) == (kem.SECRET_BYTES, kem.CIPHERTEXT_BYTES)
    told, sent = mlkem.encapsulate(public, bytes([number + 1]) * 32)
    assert kem.decapsulate(private, sent) == told
    assert kem.decapsulate(private, sent[:-1] + bytes([sent[-1] ^ 1])) != told


def test_a_machine_without_mlkem_is_told_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    kem.require_support()

    def unsupported(_: bytes) -> None:
        raise UnsupportedAlgorithm("ML-KEM is not supported by this version of OpenSSL")

    monkeypatch.setattr(kem.MLKEM768PrivateKey, "from_seed_bytes", unsupported)
    kem.require_support.cache_clear()
    with pytest.raises(LocalProtocolError, match="cryptography 48"):
        kem.require_support()
