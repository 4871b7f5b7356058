"""Check that TLS will work before Flower starts.

Periods are read from the files first, because OpenSSL's errors name neither file nor day.
"""

from __future__ import annotations

import socket
import ssl
from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509

from privstats.engines.flower.addresses import LOOPBACK, host_and_port
from privstats.engines.flower.certificates import named_in, pem_certificates
from privstats.errors import PrivstatsError
from privstats.files.atomic import read_bounded

SOON = timedelta(days=30)
"""Before its end by which a certificate is called one that ends soon: new files must reach every party."""

_WRITER = "privstats flower certificates"
_NEW = "make new files (privstats flower certificates NEW --host NAME) and give every party the new ca.pem"
_ASK = "ask the coordinator for ca.pem"
_CLOCK = "set this machine's clock, or wait"
_ANSWER_SECONDS = 5.0
_NO_ISSUER = frozenset({2, 18, 19, 20, 21})  # X509_V_ERR_*: no issuer known, self-signed, another signature
_OTHER_NAME = frozenset({62, 64})  # X509_V_ERR_HOSTNAME_MISMATCH, _IP_ADDRESS_MISMATCH


def check_authority(path: Path, *, remedy: str = _ASK) -> datetime:
    """Return the last expiry time in ``ca.pem``; at least one certificate must be valid today."""
    held, today = pem_certificates(path, remedy), datetime.now(UTC)
    if not any(one.not_valid_before_utc <= today <= one.not_valid_after_utc for one in held):
        _check_period(path, max(held, key=lambda one: one.not_valid_after_utc), remedy)
    return max(one.not_valid_after_utc for one in held)


def check_served(folder: Path) -> datetime:
    """Return the first expiry time of ``ca.pem`` and ``server.pem``; refuse files that parties would refuse.

    ``server.pem`` must also name 127.0.0.1, which Flower's own programs use.
    """
    authority, shown, key = (folder / name for name in ("ca.pem", "server.pem", "server.key"))
    ends = [check_authority(authority, remedy=_NEW)]
    for one in pem_certificates(shown, _NEW):
        _check_period(shown, one, _NEW)
        ends.append(one.not_valid_after_utc)
    read_bounded(key, PrivstatsError, _WRITER)
    try:
        _shake(_showing(shown, key), trusting(authority), LOOPBACK)
    except ssl.SSLCertVerificationError as error:
        raise PrivstatsError(_unfit(authority, shown, error)) from None
    return min(ends)


def check_shown(superlink: str, authority: Path) -> datetime | None:
    """Return the expiry time of a SuperLink's certificate; None where nothing answers.

    Raises:
        PrivstatsError: a bad address, a server without TLS, or a refused certificate, with the reason.
    """
    host, _ = host_and_port(superlink)
    try:
        return _leaf(superlink, trusting(authority)).not_valid_after_utc
    except ssl.SSLCertVerificationError as error:
        raise PrivstatsError(_refused(superlink, host, authority, error)) from None
    except ssl.SSLError as error:
        if error.reason in {"WRONG_VERSION_NUMBER", "HTTP_REQUEST", "RECORD_LAYER_FAILURE"}:
            raise PrivstatsError(
                f"{superlink} does not speak TLS: is it the address for parties at which serve runs?"
            ) from None
        return None
    except ValueError:  # a name that no name server accepts
        raise PrivstatsError(f"{host!r} is no host name or address: give --superlink HOST:PORT") from None
    except OSError:
        return None


def remaining_days(end: datetime, now: datetime | None = None) -> int:
    """Return full days until ``end``; negative after it."""
    return (end - (now or datetime.now(UTC))) // timedelta(days=1)


def _check_period(what: Path | str, certificate: x509.Certificate, remedy: str) -> None:
    begin, end, now = certificate.not_valid_before_utc, certificate.not_valid_after_utc, datetime.now(UTC)
    if now > end:
        raise PrivstatsError(f"{what} ended on {_day(end)}, and today is {_day(now)}: {remedy}")
    if now < begin:
        raise PrivstatsError(f"{what} begins on {_day(begin)}, and today is {_day(now)}: {_CLOCK}")


def _day(time: datetime) -> str:
    return f"{time:%Y-%m-%d}"


def trusting(authority: Path) -> ssl.SSLContext:
    """Return a client's context that trusts the certificates of a file."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    data = read_bounded(authority, PrivstatsError, _WRITER)
    context.load_verify_locations(cadata=data.decode("ascii", "replace"))
    return context


def _showing(shown: Path, key: Path) -> ssl.SSLContext:
    def locked() -> str:
        raise PrivstatsError(f"{key} has a passphrase, which no one is there to type: write it without one")

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    try:
        context.load_cert_chain(shown, key, locked)
    except ssl.SSLError as error:
        if error.reason in {"KEY_VALUES_MISMATCH", "KEY_TYPE_MISMATCH"}:
            raise PrivstatsError(
                f"{key} does not belong to {shown}: give a folder whose three files were made together"
            ) from None
        words = error.reason or "it holds no private key"
        raise PrivstatsError(f"{key} cannot be used with {shown} ({words}): {_NEW}") from None
    return context


def _shake(server: ssl.SSLContext, client: ssl.SSLContext, host: str) -> None:
    up, down = ssl.MemoryBIO(), ssl.MemoryBIO()
    ends: Sequence[ssl.SSLObject] = (
        client.wrap_bio(down, up, server_hostname=host),
        server.wrap_bio(up, down, server_side=True),
    )
    for _ in range(3):  # the flights of TLS 1.2, the longest
        for end in ends:
            with suppress(ssl.SSLWantReadError):
                end.do_handshake()


def _leaf(superlink: str, context: ssl.SSLContext) -> x509.Certificate:
    host, port = host_and_port(superlink)
    with (
        socket.create_connection((host, port), _ANSWER_SECONDS) as plain,
        context.wrap_socket(plain, server_hostname=host) as connection,
    ):
        return x509.load_der_x509_certificate(connection.getpeercert(binary_form=True) or b"")


def _unfit(authority: Path, shown: Path, error: ssl.SSLCertVerificationError) -> str:
    if error.verify_code in _OTHER_NAME:
        return (
            f"{shown} is for {_names(pem_certificates(shown, _NEW)[0])} and does not name {LOOPBACK}, over which "
            "Flower's own programs reach the server: have it signed for that address, too"
        )
    if error.verify_code in _NO_ISSUER:
        return (
            f"{authority} has not signed {shown}: every party that trusts it refuses this server; give a folder whose "
            "three files were made together"
        )
    return f"every party that trusts {authority} refuses {shown} ({error.verify_message}): {_NEW}"


def _refused(superlink: str, host: str, authority: Path, error: ssl.SSLCertVerificationError) -> str:
    """The text informs people and decides nothing."""
    what = f"the certificate that {superlink} shows"
    try:
        anything = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        anything.check_hostname, anything.verify_mode = False, ssl.CERT_NONE
        leaf = _leaf(superlink, anything)
        _check_period(what, leaf, "ask the coordinator for a server with a new one")
    except PrivstatsError as refusal:
        return str(refusal)
    except (OSError, ValueError):
        return f"{what} is refused: {error.verify_message}"
    if error.verify_code in _OTHER_NAME:
        return f"{what} is for {_names(leaf)}, not for {host}: give --superlink with such a name, or {_ASK_NAMED}"
    if error.verify_code in _NO_ISSUER:
        return f"{what} is not signed by {authority}: ask the coordinator for the ca.pem of that server"
    return f"{what} is refused ({error.verify_message}): ask the coordinator for a server with another one"


_ASK_NAMED = "ask the coordinator for a certificate that names it"


def _names(certificate: x509.Certificate) -> str:
    printable = [text for text in named_in(certificate) if text.isprintable()][:_MOST_NAMES]
    return ", ".join(printable) or "no name"


_MOST_NAMES = 8
