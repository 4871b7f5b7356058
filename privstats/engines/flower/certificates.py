"""Certificates for TLS, and a node's key pair.

The authority's own key signs once and is discarded, so it can sign no other server. New certificates ``after`` old ones
include the valid old authorities, so parties change one by one and the server last.
"""

from __future__ import annotations

import ipaddress
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
    load_ssh_private_key,
    load_ssh_public_key,
)
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from privstats.engines.flower.replaced_names import check_version
from privstats.errors import PrivstatsError
from privstats.files.atomic import read_bounded, write_new
from privstats.files.text import is_plain_text
from privstats.printable import printable
from privstats.printable.command_line import command_line
from privstats.progress import progress_bar

MOST_DAYS = 825
_MOST_KEY = 1 << 16
_NODE_PUBLIC = "node.pub"
"""The longest lifetime of a server's certificate: some TLS libraries refuse longer ones."""

_FLWR = (sys.executable, "-c", "from flwr.cli.app import app; app()")
_SECONDS = 60.0
_ALREADY = "already in use"
_LOOPBACK = ("localhost", "127.0.0.1")
_OLD = "give --after the folder that serve runs with"
_SKEW = timedelta(hours=1)


def write_certificates(
    folder: Path, hosts: Sequence[str], *, days: int, after: Path | None = None, now: datetime | None = None
) -> None:
    """Write ``ca.pem``, ``server.pem`` and ``server.key`` into a new folder, readable by its owner only.

    Args:
        hosts: names or addresses by which parties reach the server; localhost and 127.0.0.1 are added. Default with
            ``after``: the hosts of its server.
        after: the folder of certificates to replace.

    Raises:
        PrivstatsError: the folder exists, bad input, or unreadable files of ``after``.
    """
    if not 1 <= days <= MOST_DAYS:
        raise PrivstatsError(f"certificates last 1 to {MOST_DAYS} days, not {days}: change --days")
    today = now or datetime.now(UTC)
    hosts, trusted = (hosts, b"") if after is None else (hosts or hosts_of(after), _still_trusted(after, today))
    if not hosts:
        raise PrivstatsError("no host is named: give --host with the name or address by which parties reach the server")
    names = [_general_name(host) for host in dict.fromkeys((*hosts, *_LOOPBACK))]
    begin = today - _SKEW
    end = begin + _SKEW + timedelta(days=days)
    authority, server = (ec.generate_private_key(ec.SECP256R1()) for _ in range(2))
    root = _signed(_authority(authority.public_key(), begin, end), authority)
    leaf = _signed(_server(server.public_key(), names, authority.public_key(), begin, end), authority)
    _new_folder(folder)
    write_new(folder / "ca.pem", root + trusted)
    write_new(folder / "server.pem", leaf)
    write_new(folder / "server.key", server.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))


def hosts_of(folder: Path) -> list[str]:
    """Return the names and addresses that a folder's ``server.pem`` is for."""
    (leaf, *_) = pem_certificates(folder / "server.pem", _OLD)
    if not (hosts := named_in(leaf)):
        raise PrivstatsError(f"{folder / 'server.pem'} names no host: give --host")
    return hosts


def named_in(certificate: x509.Certificate) -> list[str]:
    """Return a certificate's names and addresses."""
    try:
        named = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except (x509.ExtensionNotFound, ValueError):
        return []
    return [str(one.value) for one in named if isinstance(one, x509.DNSName | x509.IPAddress)]


def pem_certificates(path: Path, remedy: str) -> list[x509.Certificate]:
    """Return the certificates in an ASCII PEM file, at least one; ``remedy`` is the error's advice."""
    data = read_bounded(path, PrivstatsError, "privstats flower certificates")
    if not is_plain_text(data):  # Flower reads it as ASCII
        raise PrivstatsError(f"{path} is no PEM file of printable ASCII characters alone: {remedy}")
    try:
        return x509.load_pem_x509_certificates(data)
    except ValueError:
        raise PrivstatsError(f"{path} is no certificate: {remedy}") from None


def _still_trusted(folder: Path, today: datetime) -> bytes:
    old = pem_certificates(folder / "ca.pem", _OLD)
    return b"".join(one.public_bytes(Encoding.PEM) for one in old if one.not_valid_after_utc >= today)


def write_node_key(path: Path) -> Path:
    """Write a node's private key in OpenSSH's format, readable by its owner only; return the path of its public half.

    Raises:
        PrivstatsError: one of the two files exists, or it cannot be written.
    """
    public = path.with_name(f"{path.name}.pub")
    if public.exists():
        raise PrivstatsError(f"{public} exists: name another file for the key")
    key = ec.generate_private_key(ec.SECP384R1())
    write_new(path, key.private_bytes(Encoding.PEM, PrivateFormat.OpenSSH, NoEncryption()))
    write_new(public, key.public_key().public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH) + b"\n")
    return public


def _key_text(path: Path) -> bytes:
    data = read_bounded(path, PrivstatsError, "privstats flower key", _MOST_KEY)
    return data if is_plain_text(data) else b""


def check_node_key(path: Path) -> None:
    """Refuse a file that is no elliptic curve private key in OpenSSH's format without a passphrase."""
    try:
        key: object = load_ssh_private_key(_key_text(path), password=None)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        key = None
    if not isinstance(key, ec.EllipticCurvePrivateKey):
        raise PrivstatsError(f"{path} is no node key: `privstats flower key NEW` makes one")


def public_node_key(path: Path) -> bytes:
    """Return a node's public elliptic curve key in OpenSSH's format; refuse an identity's."""
    try:
        key: object = load_ssh_public_key(_key_text(path))
    except (ValueError, UnsupportedAlgorithm):
        key = None
    if not isinstance(key, ec.EllipticCurvePublicKey):
        raise PrivstatsError(
            f"{path} is not what `privstats flower key` writes for the coordinator; an identity's belongs into a roster"
        )
    return key.public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH)


def _general_name(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        pass
    labels = host.rstrip(".").split(".")
    if len(host) > 253 or not all(_is_label(label) for label in labels):
        raise PrivstatsError(f"{host!r} is no host name or address: give the name without a port, as parties type it")
    return x509.DNSName(host.rstrip("."))


def _is_label(label: str) -> bool:
    return 0 < len(label) < 64 and label.isascii() and label.replace("-", "a").isalnum() and label.strip("-") == label


def _draft(subject: str, key: ec.EllipticCurvePublicKey, begin: datetime, end: datetime) -> x509.CertificateBuilder:
    named, issuer = (x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)]) for name in (subject, _AUTHORITY))
    return (
        x509.CertificateBuilder(issuer, named, key, x509.random_serial_number(), begin, end)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key), critical=False)
    )  # fmt: skip


_AUTHORITY = "privstats study authority"
_NO_USE = dict.fromkeys(
    (
        *("digital_signature", "content_commitment", "key_encipherment", "data_encipherment", "key_agreement"),
        *("key_cert_sign", "crl_sign", "encipher_only", "decipher_only"),
    ),
    False,
)


def _authority(key: ec.EllipticCurvePublicKey, begin: datetime, end: datetime) -> x509.CertificateBuilder:
    return (
        _draft(_AUTHORITY, key, begin, end)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(x509.KeyUsage(**{**_NO_USE, "key_cert_sign": True}), critical=True)
    )  # fmt: skip


def _server(
    key: ec.EllipticCurvePublicKey,
    names: Sequence[x509.GeneralName],
    authority: ec.EllipticCurvePublicKey,
    begin: datetime,
    end: datetime,
) -> x509.CertificateBuilder:
    return (
        _draft("privstats coordinator", key, begin, end)
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(x509.KeyUsage(**{**_NO_USE, "digital_signature": True}), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(authority), critical=False)
    )


def _signed(draft: x509.CertificateBuilder, authority: ec.EllipticCurvePrivateKey) -> bytes:
    return draft.sign(authority, hashes.SHA256()).public_bytes(Encoding.PEM)


def _new_folder(folder: Path) -> None:
    try:
        folder.mkdir(mode=0o700)
    except FileExistsError:
        raise PrivstatsError(f"{folder} exists: name another folder, or remove it first") from None
    except OSError as error:
        raise PrivstatsError(f"cannot make {folder}: {error.strerror}") from None


@dataclass(frozen=True)
class Registered:
    """A node that the SuperLink knows."""

    name: str
    new: bool


def register(home: Path, keys: Path) -> list[Registered]:
    """Register each ``NAME.pub`` or ``NAME/node.pub`` of a folder under its name; registered keys stay unchanged.

    All files are read first, so a wrong one changes nothing.

    Args:
        home: the host's folder, in which ``serve`` runs.

    Raises:
        PrivstatsError: a bad or duplicate key, or the SuperLink refuses or does not answer.
    """
    check_version()
    if not (home / ".flower" / "config.toml").is_file():
        start = command_line("flower", "serve", home, options={"--certificates": "FOLDER"})
        raise PrivstatsError(f"nothing was served in {home} yet: start `{start}` first")
    files = _public_keys(keys)
    with progress_bar("registering", len(files)) as advance:
        registered = []
        for path in files:
            registered.append(Registered(_name_of(path), _register(home, path)))
            advance(1)
    return registered


def _public_keys(keys: Path) -> list[Path]:
    files = sorted([*keys.glob("*.pub"), *keys.glob(f"*/{_NODE_PUBLIC}")]) if keys.is_dir() else []
    if not files:
        raise PrivstatsError(
            f"there is no .pub file in {keys}: put the keys there that parties sent, as NAME.pub or NAME/{_NODE_PUBLIC}"
        )
    if keys / _NODE_PUBLIC in files:
        raise PrivstatsError(
            f"{keys / _NODE_PUBLIC} does not say whose key it is: rename it to the party's name, NAME.pub"
        )
    seen: dict[bytes, Path] = {}
    names: dict[str, Path] = {}
    for path in files:
        if names.setdefault(_name_of(path), path) != path:
            raise PrivstatsError(f"{path} and {names[_name_of(path)]} are two keys of one name: keep one of them")
        first = seen.setdefault(public_node_key(path), path)
        if first != path:
            raise PrivstatsError(f"{path} and {first} are one key: every node needs its own")
    return files


def _name_of(path: Path) -> str:
    return path.parent.name if path.name == _NODE_PUBLIC else path.stem


def _register(home: Path, path: Path) -> bool:
    """Return whether the node is new."""
    words = (*_FLWR, "supernode", "register", str(path.resolve()), "--name", _name_of(path), "--format", "json")
    environment = {**os.environ, "FLWR_HOME": str((home / ".flower").resolve()), "FLWR_DISABLE_UPDATE_CHECK": "1"}
    try:
        ended = subprocess.run(  # noqa: S603 - this Python, a path that was read, and its own stem
            words, env=environment, capture_output=True, text=True, timeout=_SECONDS, check=False
        )
    except subprocess.TimeoutExpired:
        raise PrivstatsError(f"{path}: the SuperLink did not answer in {_SECONDS:g} s; does serve run?") from None
    reply = _reply(ended.stdout)
    if reply.get("success") is True:
        return True
    why = str(reply.get("error-message") or ended.stderr or ended.stdout).strip()
    if _ALREADY in why.lower():
        return False
    raise PrivstatsError(f"{path} was not registered; does serve run? Flower says: {printable(why)}")


def _reply(text: str) -> dict[str, object]:
    try:
        reply = json.loads(text)
    except ValueError:
        return {}
    return reply if isinstance(reply, dict) else {}
