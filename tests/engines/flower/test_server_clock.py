"""Whose clock is wrong: the date in a server's answer, next to this machine's."""

import ssl
import time
from email.utils import formatdate

import pytest

from privstats.engines.flower.certificates import write_certificates
from privstats.engines.flower.server_clock import clock_difference, clock_sentence
from tests.engines.flower.tls import answering


def difference(certificates, answer):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificates / "server.pem", certificates / "server.key")

    def greet(connection):
        with context.wrap_socket(connection, server_side=True) as greeted:
            assert greeted.recv(4096).startswith(b"HEAD / HTTP/1.1\r\n")
            greeted.sendall(answer)

    with answering(greet) as superlink:
        return clock_difference(superlink, certificates / "ca.pem")


@pytest.mark.parametrize("hours", [0, -2, 960])
def test_the_servers_clock_is_read_from_any_answer(certificates, hours):
    date = formatdate(time.time() + hours * 3600, usegmt=True).encode()
    found = difference(certificates, b"HTTP/1.1 404 Not Found\r\nServer: x\r\nDate: " + date + b"\r\n\r\n")
    assert abs(found - hours * 3600) <= 3


@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b"no HTTP",
        b"HTTP/1.1 200 OK\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nDate: soon\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nDate: Fri, 31 Dec 99999 00:00:00 GMT\r\n\r\n",
        b"x" * (1 << 20),
    ],
)
def test_an_answer_without_a_date_says_nothing_of_a_clock(certificates, answer):
    assert difference(certificates, answer) is None


def test_nobody_answers_or_another_server_does(certificates, tmp_path):
    write_certificates(tmp_path / "others", ["localhost"], days=1)
    assert clock_difference("127.0.0.1:1", certificates / "ca.pem") is None
    assert difference(tmp_path / "others", b"") is None
    assert clock_difference("127.0.0.1:1", tmp_path / "missing.pem") is None


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (None, "ended our connection without a reason"),
        (2.0, "without a reason, and its clock agrees with this machine's"),
        (-7200.0, "its clock is 2 hours behind this machine's: set this machine's clock if it is wrong, else ask the"),
        (90.0, "its clock is 90 seconds ahead of this machine's"),
        (40 * 86_400.0, "its clock is 40 days ahead of this machine's"),
    ],
)
def test_the_operator_reads_by_how_much_the_clocks_differ(seconds, words):
    assert words in clock_sentence("coordinator.example:8000", seconds)
