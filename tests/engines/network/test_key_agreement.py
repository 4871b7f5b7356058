"""The group that TLS agrees on keys by is read from a real first message, and printed where operators look."""

import socket
import ssl

import pytest

from privstats.engines.network import key_agreement as module
from privstats.engines.network.key_agreement import KeyAgreement, first_share, key_agreement
from tests.lacking import needs

HYBRID = KeyAgreement("X25519MLKEM768", "OpenSSL 3.5.0 8 Apr 2025")


@pytest.fixture(autouse=True)
def asked_anew() -> None:
    key_agreement.cache_clear()


def hello_of(context: ssl.SSLContext) -> bytes:
    sent = ssl.MemoryBIO()
    with pytest.raises(ssl.SSLWantReadError):
        context.wrap_bio(ssl.MemoryBIO(), sent, server_hostname="localhost").do_handshake()
    return sent.read()


def test_this_pythons_group_is_one_that_its_openssl_has_and_is_named_with_it() -> None:
    found, hybrid = key_agreement(), ssl.OPENSSL_VERSION_INFO >= (3, 5)
    assert found.library == ssl.OPENSSL_VERSION
    assert found.group == ("X25519MLKEM768" if hybrid else "X25519")
    assert found.hybrid == hybrid


@pytest.mark.parametrize("curve", ["prime256v1", "secp384r1", "X448"])
def test_the_group_that_a_context_is_told_to_take_is_read_from_its_first_message(curve: str) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    try:
        context.set_ecdh_curve(curve)
    except ValueError:
        pytest.skip(f"{ssl.OPENSSL_VERSION} has no {curve} here")
    named = {"prime256v1": "secp256r1"}.get(curve, curve)
    assert module._GROUPS[first_share(hello_of(context))] == named


def test_without_tls_1_3_there_is_no_share_and_it_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    old = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    old.maximum_version = ssl.TLSVersion.TLSv1_2
    assert first_share(hello_of(old)) is None
    monkeypatch.setattr(ssl, "SSLContext", lambda _: old)
    assert key_agreement().group == "none of TLS 1.3"


def test_grpcs_first_message_has_a_hybrid_share() -> None:
    """What another library sends is read, and docs/operating.md says this of it."""
    needs("grpc")
    import grpc

    with socket.create_server(("127.0.0.1", 0)) as server:
        channel = grpc.secure_channel(f"127.0.0.1:{server.getsockname()[1]}", grpc.ssl_channel_credentials())
        ready = grpc.channel_ready_future(channel)
        taken, _ = server.accept()
        with taken:
            hello = taken.recv(1 << 16)
        ready.cancel()
        channel.close()
    new = tuple(map(int, grpc.__version__.split(".")[:2])) >= (1, 83)
    group = module._GROUPS[first_share(hello)]
    assert group == ("X25519MLKEM768" if new else "X25519")


def test_what_is_not_hybrid_says_what_to_do() -> None:
    told = str(KeyAgreement("X25519", "OpenSSL 3.0.19 27 Jan 2026"))
    assert told == "X25519 (OpenSSL 3.0.19 27 Jan 2026): not hybrid, which needs OpenSSL 3.5 or newer at both ends"
    assert str(HYBRID) == "X25519MLKEM768 (OpenSSL 3.5.0 8 Apr 2025), where the other end offers it too"
