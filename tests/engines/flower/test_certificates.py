"""The files that TLS needs: what a client that trusts them accepts, and what it refuses."""

import socket
import ssl
import stat
import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.serialization import load_ssh_private_key, load_ssh_public_key

from privstats.engines.flower.certificates import MOST_DAYS, write_certificates, write_node_key
from privstats.errors import PrivstatsError
from tests.threads import join


@pytest.fixture
def folder(tmp_path):
    write_certificates(tmp_path / "tls", ["coordinator.example", "192.0.2.7"], days=30)
    return tmp_path / "tls"


def shaken(server, trusted, host):
    """A handshake of a client that trusts one authority and asks for one host; raises as the client would."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(server / "server.pem", server / "server.key")
    ours, theirs = socket.socketpair()

    def serve():
        try:
            with context.wrap_socket(theirs, server_side=True) as connection:
                connection.recv(1)
        except OSError:
            theirs.close()

    thread = threading.Thread(target=serve)
    thread.start()
    client = ssl.create_default_context(cafile=trusted / "ca.pem")
    client.verify_flags |= ssl.VERIFY_X509_STRICT
    try:
        with client.wrap_socket(ours, server_hostname=host) as connection:
            return connection.version()
    finally:
        ours.close()
        join(thread)


@pytest.mark.parametrize("host", ["coordinator.example", "192.0.2.7", "localhost", "127.0.0.1"])
def test_a_client_that_trusts_the_authority_accepts_each_host(folder, host):
    assert shaken(folder, folder, host) == "TLSv1.3"


def test_after_old_ones_parties_change_one_by_one_and_the_server_last(folder, tmp_path):
    new = tmp_path / "new"
    write_certificates(new, [], days=30, after=folder)
    for server, trusted in ((folder, folder), (folder, new), (new, new)):
        for host in ("coordinator.example", "192.0.2.7", "127.0.0.1"):
            assert shaken(server, trusted, host) == "TLSv1.3"
    with pytest.raises(ssl.SSLCertVerificationError):
        shaken(new, folder, "coordinator.example")
    assert (new / "ca.pem").read_bytes().endswith((folder / "ca.pem").read_bytes())


def test_grpc_accepts_both_servers_while_parties_change(folder, tmp_path):
    grpc = pytest.importorskip("grpc")
    write_certificates(tmp_path / "new", [], days=30, after=folder)
    trusting = grpc.ssl_channel_credentials((tmp_path / "new" / "ca.pem").read_bytes())
    for server in (folder, tmp_path / "new"):
        shown = grpc.ssl_server_credentials(
            [((server / "server.key").read_bytes(), (server / "server.pem").read_bytes())]
        )
        running = grpc.server(ThreadPoolExecutor(1))
        port = running.add_secure_port("127.0.0.1:0", shown)
        running.start()
        with grpc.secure_channel(f"127.0.0.1:{port}", trusting) as channel:
            grpc.channel_ready_future(channel).result(timeout=10)
        running.stop(None)


def test_an_authority_that_has_ended_is_not_carried_on(tmp_path):
    past = datetime.now(UTC) - timedelta(days=40)
    write_certificates(tmp_path / "old", ["coordinator.example"], days=30, now=past)
    write_certificates(tmp_path / "new", [], days=30, after=tmp_path / "old")
    assert len(x509.load_pem_x509_certificates((tmp_path / "new" / "ca.pem").read_bytes())) == 1


def test_what_is_no_folder_of_certificates_is_not_followed(tmp_path):
    with pytest.raises(PrivstatsError, match="give --after|server.pem"):
        write_certificates(tmp_path / "new", [], days=30, after=tmp_path)
    assert not (tmp_path / "new").exists()


def test_another_host_and_another_authority_are_refused(folder, tmp_path):
    with pytest.raises(ssl.SSLCertVerificationError, match="Hostname mismatch"):
        shaken(folder, folder, "elsewhere.example")
    write_certificates(tmp_path / "other", ["coordinator.example"], days=30)
    with pytest.raises(ssl.SSLCertVerificationError, match="certificate verify failed"):
        shaken(folder, tmp_path / "other", "coordinator.example")


def test_nothing_is_left_that_signs_another_server(folder):
    assert {path.name for path in folder.iterdir()} == {"ca.pem", "server.pem", "server.key"}
    assert b"PRIVATE" not in (folder / "ca.pem").read_bytes() + (folder / "server.pem").read_bytes()
    assert all(stat.S_IMODE(path.stat().st_mode) == 0o600 for path in folder.iterdir())
    leaf = x509.load_pem_x509_certificate((folder / "server.pem").read_bytes())
    assert not leaf.extensions.get_extension_for_class(x509.BasicConstraints).value.ca
    assert not leaf.extensions.get_extension_for_class(x509.KeyUsage).value.key_cert_sign


def test_the_days_count_from_now(tmp_path):
    begin = datetime(2027, 1, 1, tzinfo=UTC)
    write_certificates(tmp_path / "tls", ["a.example"], days=10, now=begin)
    for name in ("ca.pem", "server.pem"):
        certificate = x509.load_pem_x509_certificate((tmp_path / "tls" / name).read_bytes())
        assert certificate.not_valid_after_utc == begin + timedelta(days=10)
        assert certificate.not_valid_before_utc < begin


@pytest.mark.parametrize(
    ("hosts", "days", "sentence"),
    [
        ([], 30, "no host is named: give --host"),
        (["a.example"], 0, f"certificates last 1 to {MOST_DAYS} days, not 0"),
        (["a.example"], MOST_DAYS + 1, "change --days"),
        (["a.example:8000"], 30, "'a.example:8000' is no host name or address: give the name without a port"),
        (["https://a.example"], 30, "is no host name or address"),
        (["*"], 30, "is no host name or address"),
        (["a..example"], 30, "is no host name or address"),
        (["-a.example"], 30, "is no host name or address"),
        ([""], 30, "is no host name or address"),
    ],
)
def test_what_makes_no_certificate_is_one_sentence_and_no_folder(tmp_path, hosts, days, sentence):
    with pytest.raises(PrivstatsError) as refusal:
        write_certificates(tmp_path / "tls", hosts, days=days)
    assert sentence in str(refusal.value)
    assert not (tmp_path / "tls").exists()


def test_a_folder_that_is_there_is_left_alone(folder):
    before = (folder / "server.key").read_bytes()
    with pytest.raises(PrivstatsError, match="exists: name another folder"):
        write_certificates(folder, ["a.example"], days=30)
    assert (folder / "server.key").read_bytes() == before
    with pytest.raises(PrivstatsError, match=r"cannot make .*: No such file or directory"):
        write_certificates(folder / "no" / "where", ["a.example"], days=30)


def test_a_nodes_key_is_the_owners_and_its_public_half_fits(tmp_path):
    public = write_node_key(tmp_path / "node")
    assert stat.S_IMODE((tmp_path / "node").stat().st_mode) == 0o600
    private = load_ssh_private_key((tmp_path / "node").read_bytes(), None)
    assert load_ssh_public_key(public.read_bytes()) == private.public_key()
    for gone in (public, None):
        with pytest.raises(PrivstatsError, match="exists"):
            write_node_key(tmp_path / "node")
        if gone is not None:
            gone.unlink()
    assert not public.exists()
