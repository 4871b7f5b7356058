"""Keys in every form that people hold them in, and the one file that holds a private one."""

import os
import shutil
import subprocess

import pytest
from cryptography.hazmat.primitives import serialization as forms
from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, generate_private_key
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from privstats.errors import LocalProtocolError, PrivstatsError, ReleaseError
from privstats.files.locked_key import read_public
from privstats.files.signing import Named, Signs, public_key, signing_key, verify
from privstats.secagg import Identity

SEED = bytes(range(32))
KEY = Ed25519PrivateKey.from_private_bytes(SEED)
ME = Identity(SEED)
OTHER = generate_private_key(SECP256R1())


def pem(key) -> bytes:
    return key.public_key().public_bytes(forms.Encoding.PEM, forms.PublicFormat.SubjectPublicKeyInfo)


@pytest.mark.parametrize(
    "form",
    [
        ME,
        KEY.public_key(),
        ME.public,
        bytearray(ME.public),
        ME.public.hex(),
        ME.public.hex().upper() + "\n",
        ME.public_pem,
        ME.public_pem.encode(),
        "St. Mary's key:\n" + ME.public_pem,
    ],
)
def test_every_form_of_a_public_key_is_the_same_key(form) -> None:
    assert public_key(form, "signed_by", ReleaseError) == ME.public


@pytest.mark.parametrize(
    ("form", "got"),
    [
        (KEY, "Ed25519PrivateKey"),
        (b"short", "5 bytes"),
        ("ab" * 31, "str"),
        ("words", "str"),
        ("kö" * 16, "str"),
        (b"\xff" * 33, "33 bytes"),
        (None, "NoneType"),
        (pem(OTHER).decode(), "str"),
        (ME.public_pem[:60], "str"),
        (ME.public_pem.replace("A", "B", 9), "str"),
        (Identity, "type"),
    ],
    ids=["private", "short", "hex", "words", "letters", "long", "nothing", "curve", "cut", "damaged", "class"],
)
def test_what_is_no_public_key_is_refused_in_one_sentence(form, got: str) -> None:
    with pytest.raises(ReleaseError, match=f"signed_by must be an Ed25519 public key or its 32 bytes.*got {got}; give"):
        public_key(form, "signed_by", ReleaseError)


@pytest.mark.parametrize("key", [ME, KEY, SEED, bytearray(SEED)])
def test_every_form_of_a_private_key_signs_the_same(key) -> None:
    assert verify(ME.public, signing_key(key, "signer", ReleaseError).sign(b"statement"), b"statement")


@pytest.mark.parametrize("key", [b"short", "ab" * 32, None, KEY.public_key(), ME.public_pem])
def test_what_cannot_sign_is_refused_without_saying_what_it_is(key) -> None:
    with pytest.raises(ReleaseError, match="signer must be an Ed25519 private key or its 32 bytes, got") as refusal:
        signing_key(key, "signer", ReleaseError)
    assert "ab" * 8 not in str(refusal.value)


def test_an_identity_signs_and_is_named() -> None:
    assert isinstance(ME, Signs)
    assert isinstance(ME, Named)


@pytest.mark.parametrize("passphrase", [None, "correct horse"])
def test_an_identity_comes_back_from_its_file(tmp_path, passphrase) -> None:
    path = tmp_path / "identity.pem"
    ME.save(path, passphrase)
    assert path.stat().st_mode & 0o777 == 0o600
    assert Identity.load(path, passphrase).public == ME.public
    assert (b"ENCRYPTED" in path.read_bytes()) == (passphrase is not None)
    assert os.listdir(tmp_path) == ["identity.pem"]
    assert SEED not in path.read_bytes()


def test_an_identity_is_never_overwritten(tmp_path) -> None:
    path = tmp_path / "identity.pem"
    ME.save(path)
    with pytest.raises(PrivstatsError, match=r"identity\.pem exists; name another file"):
        Identity.generate(os.urandom).save(path)
    assert Identity.load(path).public == ME.public
    assert os.listdir(tmp_path) == ["identity.pem"]


def test_an_identity_that_others_can_read_is_refused(tmp_path) -> None:
    path = tmp_path / "identity.pem"
    ME.save(path)
    for mode in (0o640, 0o604, 0o620, 0o602, 0o777):
        path.chmod(mode)
        with pytest.raises(LocalProtocolError, match="others can read the private key in .*chmod 600"):
            Identity.load(path)
    path.chmod(0o400)
    assert Identity.load(path).public == ME.public


def refused(path, sentence: str, passphrase=None) -> None:
    with pytest.raises(LocalProtocolError, match=sentence) as refusal:
        Identity.load(path, passphrase)
    assert passphrase is None or str(passphrase) == "" or str(passphrase) not in str(refusal.value)


def test_a_passphrase_too_few_too_many_or_wrong_is_one_sentence(tmp_path) -> None:
    ME.save(tmp_path / "locked", "correct horse")
    ME.save(tmp_path / "open")
    refused(tmp_path / "locked", "locked is locked: give its passphrase")
    refused(tmp_path / "locked", "the passphrase is wrong, or it is damaged", "battery staple")
    refused(tmp_path / "open", "open is not locked: leave the passphrase out", "correct horse")
    for passphrase in ("", b"bytes", 5):
        refused(tmp_path / "open", "a passphrase must be a text that is not empty", passphrase)
        with pytest.raises(LocalProtocolError, match="a passphrase must be a text that is not empty"):
            ME.save(tmp_path / "new", passphrase)
    assert not (tmp_path / "new").exists()


def test_a_file_that_is_no_identity_is_one_sentence(tmp_path) -> None:
    path = tmp_path / "file"
    path.touch(0o600)
    pkcs8 = (forms.Encoding.PEM, forms.PrivateFormat.PKCS8, forms.NoEncryption())
    for data, sentence in (
        (b"", "file holds no private key; give the file that Identity.save"),
        (b"\xff" * 99, "file holds no private key"),
        (ME.public_pem.encode(), "file holds a public key; give the file that Identity.save"),
        (b"-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n", "cannot be read as a private key: it is"),
        (OTHER.private_bytes(*pkcs8), "file holds a private key of another kind"),
        (b"x" * 20_000, "file has 20000 bytes, which no key has"),
    ):
        path.write_bytes(data)
        refused(path, sentence)
    refused(tmp_path / "missing", "cannot read .*missing: No such file")
    refused(tmp_path, "Is a directory")
    refused(b"path", "a key is kept in a file, got bytes")
    refused("a\0b", "must not hold a null character")


@pytest.mark.parametrize("spoil", [lambda text: text + b"\0\0", lambda text: b"\xef\xbb\xbf" + text])
@pytest.mark.parametrize("form", ["pem", "hex", "private"])
def test_a_null_behind_a_key_and_a_byte_order_mark_are_refused(form, spoil, tmp_path) -> None:
    identity, path = Identity.generate(os.urandom), tmp_path / "key"
    identity.save(path)
    text = {"pem": identity.public_pem.encode(), "hex": identity.public.hex().encode(), "private": path.read_bytes()}
    path.write_bytes(spoil(text[form]))
    read = Identity.load if form == "private" else (lambda path: read_public(path, LocalProtocolError))
    with pytest.raises(PrivstatsError, match="holds a character that no key's text has"):
        read(path)


def test_a_public_key_is_read_from_its_pem_or_its_hex(tmp_path) -> None:
    path = tmp_path / "key"
    for text in (ME.public_pem, ME.public.hex(), f"{ME.public.hex()}\n"):
        path.write_text(text)
        assert read_public(path, ReleaseError) == ME.public
    path.write_bytes(KEY.private_bytes(forms.Encoding.PEM, forms.PrivateFormat.PKCS8, forms.NoEncryption()))
    with pytest.raises(ReleaseError, match="key holds a private key: keep it, and give what `privstats identity show"):
        read_public(path, ReleaseError)
    path.write_text("words")
    with pytest.raises(ReleaseError, match="key holds no Ed25519 public key; ask its owner"):
        read_public(path, ReleaseError)


@pytest.mark.skipif(shutil.which("openssl") is None, reason="needs the openssl program")
def test_openssl_reads_what_is_written_and_writes_what_is_read(tmp_path, monkeypatch) -> None:
    def openssl(*words: str, data: bytes = b"") -> bytes:
        return subprocess.run(["openssl", *words], input=data, capture_output=True, check=True, cwd=tmp_path).stdout

    ME.save(tmp_path / "costly.pem", "correct horse")
    with pytest.raises(subprocess.CalledProcessError):  # docs/operating.md says it: its limit for scrypt is 32 MiB
        openssl("pkey", "-in", "costly.pem", "-passin", "pass:correct horse", "-pubout")
    monkeypatch.setattr("privstats.files.locked_key.COST", 1 << 14)  # the same form, within that limit
    ME.save(tmp_path / "locked.pem", "correct horse")
    public = openssl("pkey", "-in", "locked.pem", "-passin", "pass:correct horse", "-pubout")
    assert public.decode() == ME.public_pem
    openssl("genpkey", "-algorithm", "ed25519", "-out", "theirs.pem")
    (tmp_path / "theirs.pem").chmod(0o600)
    theirs = Identity.load(tmp_path / "theirs.pem")
    assert openssl("pkey", "-in", "theirs.pem", "-pubout").decode() == theirs.public_pem
