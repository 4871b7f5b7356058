"""A locked identity: what a guess at its passphrase costs, and files of before, which are read and rewritten."""

import os
import subprocess
from pathlib import Path

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from hypothesis import given, settings
from hypothesis import strategies as st

from privstats.errors import LocalProtocolError, PrivstatsError
from privstats.files import locked_key
from privstats.files.locked_key import COST, is_stretched, is_weakly_locked, locked_pem
from privstats.secagg import Identity
from tests.faults import full_disk

SEED = bytes(range(32))
ME = Identity(SEED)
WORDS = "correct horse"


def locked_as_before(path: Path) -> Path:
    """As privstats 0.2 wrote it: 2,048 rounds of PBKDF2."""
    key = Ed25519PrivateKey.from_private_bytes(SEED)
    form = serialization.PrivateFormat.PKCS8
    lock = serialization.BestAvailableEncryption(WORDS.encode())
    path.write_bytes(key.private_bytes(serialization.Encoding.PEM, form, lock))
    path.chmod(0o600)
    return path


def facts_of(path: Path) -> str:
    """What another program reads in the file."""
    return subprocess.run(
        ["openssl", "asn1parse", "-in", path], capture_output=True, text=True, check=True, timeout=20
    ).stdout


def test_a_guess_costs_scrypt_with_128_mebibytes(tmp_path: Path) -> None:
    ME.save(tmp_path / "me.pem", WORDS)
    assert 128 * 8 * COST == 128 << 20
    data = (tmp_path / "me.pem").read_bytes()
    named = facts_of(tmp_path / "me.pem")
    assert all(word in named for word in (":PBES2", ":scrypt", ":020000", ":08", ":01", ":aes-256-cbc"))
    assert is_stretched(data)
    loaded = serialization.load_pem_private_key(data, WORDS.encode())
    assert isinstance(loaded, Ed25519PrivateKey)
    assert loaded.private_bytes_raw() == SEED


@pytest.fixture
def cheap(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same form at a cost that a test of many keys can pay."""
    monkeypatch.setattr(locked_key, "COST", 16)


@settings(max_examples=10)
@given(st.binary(min_size=1, max_size=400), st.text(min_size=1, max_size=40))
def test_what_is_locked_is_what_openssl_parses(key: bytes, words: str) -> None:
    """At every length: the lengths of DER have one byte or two."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(locked_key, "COST", 16)
        pem = locked_pem(key, words.encode())
        assert is_stretched(pem)
        assert not is_stretched(pem[:-60])
        patch.setattr(locked_key, "COST", 32)
        assert not is_stretched(pem), "a lower cost than today's"
    parsed = subprocess.run(["openssl", "asn1parse"], input=pem, capture_output=True, check=False, timeout=20)
    assert parsed.returncode == 0, parsed.stderr


@pytest.mark.usefixtures("cheap")
def test_two_files_of_one_key_and_passphrase_share_nothing(tmp_path: Path) -> None:
    bodies = set()
    for name in ("one", "two"):
        ME.save(tmp_path / name, WORDS)
        bodies |= set((tmp_path / name).read_text().splitlines()[2:-1])
    assert len(bodies) == 2 * len((tmp_path / "one").read_text().splitlines()[2:-1])


@pytest.mark.usefixtures("cheap")
def test_a_file_of_before_is_read_and_rewritten_on_request(tmp_path: Path) -> None:
    path = locked_as_before(tmp_path / "me.pem")
    before = path.read_bytes()
    assert Identity.load(path, WORDS).public == ME.public
    assert is_weakly_locked(path, LocalProtocolError)
    with pytest.raises(LocalProtocolError, match="the passphrase is wrong"):
        Identity.relock(path, "battery")
    with pytest.raises(LocalProtocolError, match="is locked: give its passphrase"):
        Identity.relock(path, new="battery")
    with full_disk(), pytest.raises(PrivstatsError, match="nothing was written"):
        Identity.relock(path, WORDS)
    assert path.read_bytes() == before, "a refusal leaves it as it is"
    Identity.relock(path, WORDS)
    assert not is_weakly_locked(path, LocalProtocolError)
    assert path.stat().st_mode & 0o777 == 0o600
    assert Identity.load(path, WORDS).public == ME.public
    Identity.relock(path, WORDS, "battery staple")
    assert Identity.load(path, "battery staple").public == ME.public
    assert os.listdir(tmp_path) == ["me.pem"]


@pytest.mark.usefixtures("cheap")
def test_an_open_file_is_locked_and_a_link_stays_one(tmp_path: Path) -> None:
    ME.save(tmp_path / "me.pem")
    (tmp_path / "link.pem").symlink_to("me.pem")
    with pytest.raises(LocalProtocolError, match="is not locked: give the passphrase to lock it with"):
        Identity.relock(tmp_path / "link.pem")
    Identity.relock(tmp_path / "link.pem", new=WORDS)
    assert (tmp_path / "link.pem").is_symlink()
    assert Identity.load(tmp_path / "me.pem", WORDS).public == ME.public
    assert SEED not in (tmp_path / "me.pem").read_bytes()


@pytest.mark.usefixtures("cheap")
def test_the_command_rewrites_a_file_and_show_says_which_one_needs_it(privstats, tmp_path: Path) -> None:
    locked_as_before(tmp_path / "me.pem")
    (tmp_path / "words").write_text(f"{WORDS}\n")
    (tmp_path / "others").write_text("battery staple\n")
    shown = privstats("identity", "show", "me.pem", "--passphrase-file", "words", cwd=tmp_path)
    assert shown.stdout == f"{ME.public.hex()}\n"
    assert "fast to guess; lock it anew: privstats identity lock" in shown.stderr
    done = privstats("identity", "lock", "me.pem", "--passphrase-file", "words", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "locked me.pem; older copies are unchanged\n")
    shown = privstats("identity", "show", "me.pem", "--passphrase-file", "words", cwd=tmp_path)
    assert (shown.stdout, shown.stderr) == (f"{ME.public.hex()}\n", "")
    words = ["--passphrase-file", "words", "--new-passphrase-file", "others"]
    assert privstats("identity", "lock", "me.pem", *words, cwd=tmp_path).returncode == 0
    assert Identity.load(tmp_path / "me.pem", "battery staple").public == ME.public


@pytest.mark.parametrize("text", ["", "no key", "-----BEGIN ENCRYPTED PRIVATE KEY-----\nAAAA", "\xff"])
def test_what_is_no_locked_key_is_not_stretched(text: str) -> None:
    assert not is_stretched(text.encode("latin-1"))
