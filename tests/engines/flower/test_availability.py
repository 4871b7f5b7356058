"""Attack: a stranger without any key, and a node that is registered, against a SuperLink as its operator starts it."""

import os
import resource
import socket
import ssl
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec
from flwr.proto.fleet_pb2 import ActivateNodeRequest
from flwr.supercore.primitives.asymmetric import public_key_to_bytes

from privstats.engines.flower.certificates import write_certificates, write_node_key
from privstats.engines.network.status_file import read_connections
from tests.engines.flower.federation import Federation
from tests.engines.flower.signing import signed
from tests.engines.network.fake import study_of

MIB = 1 << 20


@pytest.fixture
def superlink(tmp_path):
    """A SuperLink that may open 1,024 files, as usual, and the keys of its two nodes."""
    federation = Federation(study_of(tmp_path, "interactive"), tmp_path / "federation")
    federation.marks.mkdir(parents=True)
    write_certificates(federation.certificates, ["localhost"], days=1)
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (1024, before[1]))
    try:
        federation.serve()
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(before[1], 4096), before[1]))
        federation.keys = [register(federation, home) for home in federation.homes[:2]]
        yield federation
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
        federation.close()


def register(federation, home):
    write_node_key(home / "node")
    federation.flwr("supernode", "register", home / "node.pub", "study", "--name", home.name)
    return serialization.load_ssh_private_key((home / "node").read_bytes(), None)


def connect(federation, source="127.0.0.1", tls=True):
    host, _, port = federation.address.partition(":")
    connection = socket.create_connection((host, int(port)), timeout=60, source_address=(source, 0))
    trust = ssl.create_default_context(cafile=federation.certificates / "ca.pem")
    return trust.wrap_socket(connection, server_hostname="localhost") if tls else connection


def request(headers, path=b"push-object"):
    lines = [b"POST /v1/fleet/" + path + b" HTTP/1.1", b"host: localhost", b"content-type: application/protobuf"]
    return b"\r\n".join([*lines, *(b": ".join(each) for each in headers), b"", b""])


def hold_back(federation, headers, size):
    """Thirty bodies less a byte, sent as far as they are taken; the connections."""

    def one(_):
        connection = connect(federation)
        with suppress(OSError):
            connection.sendall(request([*headers(), (b"content-length", b"%d" % size)]))
            connection.sendall(bytes(size - 1))
        return connection

    with ThreadPoolExecutor(30) as pool:
        return list(pool.map(one, range(30)))


def memory(federation):
    """The most memory that the SuperLink has ever had, in MiB."""
    lines = Path(f"/proc/{federation.marked('host.pid')}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) >> 10


def is_answered(federation, source="127.0.0.2"):
    """Whether Flower itself answers a node that introduces itself: it may, or is there already."""
    key = federation.keys[0]
    body = ActivateNodeRequest(
        public_key=public_key_to_bytes(key.public_key()), heartbeat_interval=30
    ).SerializeToString()
    with connect(federation, source) as connection:
        connection.sendall(request(signed(key, content_length=len(body)), b"activate-node") + body)
        return connection.recv(1 << 16).startswith((b"HTTP/1.1 200", b"HTTP/1.1 412"))


@pytest.mark.ci
@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="it reads the memory of a process from /proc")
def test_attack_bodies_that_lack_a_byte_and_connections_that_say_nothing(superlink):
    """Before, 144 MiB became 1,127 and stayed so, and 1,010 connections kept every node out for a minute."""
    before = memory(superlink)
    strangers = ec.generate_private_key(ec.SECP384R1())
    for headers, size in (
        (list, 32 * MIB),
        (lambda: signed(strangers), 32 * MIB),
        (lambda: signed(superlink.keys[1]), 6 * MIB),
    ):
        held = hold_back(superlink, headers, size)
        assert is_answered(superlink)
        assert memory(superlink) < before + 200, "30 bodies of 32 MiB are 960"
        for connection in held:
            connection.close()
    idle = [connect(superlink, tls=False) for _ in range(1010)]
    assert is_answered(superlink)
    assert len(os.listdir(f"/proc/{superlink.marked('host.pid')}/fd")) < 400
    for connection in idle:
        connection.close()
    told = ("login", "size", "node", "address")
    superlink.wait(lambda: {*told} <= set(read_connections(superlink.study.host).closed), "the numbers are kept")
    superlink.wait(lambda: superlink.log_of("serve").count("turned away") >= len(told), "the operator is told")
