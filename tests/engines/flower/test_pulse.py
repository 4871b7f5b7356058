"""A node is measured by its work, and a fault of the line does not end it: Flower's own client, and a faulty proxy."""

import os
import ssl
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import httpx
import pytest
from flwr.proto.fleet_pb2 import PullMessagesRequest, PullMessagesResponse
from flwr.supercore.retry import make_simple_http_retry_invoker
from flwr.supernode.fleet_http_client import FleetHttpClient

from privstats.engines.flower.certificates import write_certificates
from privstats.engines.flower.pulse import (
    ANSWERED,
    FAILED,
    HEARTBEAT,
    PULSE,
    WORKING,
    Pulse,
    PulsePipe,
    Signs,
    WatchedExecutor,
)
from privstats.engines.network.status_file import SILENT_SECONDS
from tests.faulty_proxy import FAULTS, FaultyProxy
from tests.threads import join

LATE = SILENT_SECONDS + 1


class Clock:
    now = 1000.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


class TestPulse:
    def test_answers_connect_and_a_failure_disconnects(self, clock):
        pulse = Pulse(clock)
        assert not pulse.connected
        for sign, connected in ((HEARTBEAT, False), (ANSWERED, True), (FAILED, False), (ANSWERED, True), (b"?", True)):
            pulse.note(sign)
            assert pulse.connected is connected, sign

    @pytest.mark.parametrize(
        ("signs", "later", "stopped"),
        [
            (b"", b"", True),
            (ANSWERED, b"", True),
            (ANSWERED, ANSWERED, True),  # the heartbeat's thread has ended: the server calls such a node offline
            (ANSWERED, HEARTBEAT, True),  # the main loop has ended
            (ANSWERED, FAILED, True),
            (ANSWERED, ANSWERED + HEARTBEAT, False),
            (ANSWERED, WORKING, False),
            (ANSWERED, WORKING + ANSWERED, True),
        ],
    )
    def test_what_two_minutes_without_work_are(self, clock, signs, later, stopped):
        pulse = Pulse(clock)
        pulse.note(signs)
        clock.now += SILENT_SECONDS
        assert not pulse.stopped
        clock.now += 1
        pulse.note(later)
        assert pulse.stopped is stopped
        assert not (pulse.stopped and pulse.connected)

    def test_no_answer_is_one_that_was_asked_for(self, clock):
        pulse, asked = Pulse(clock), []
        for sign in (WORKING, FAILED, ANSWERED):
            pulse.note(sign)
            asked.append(pulse.unanswered)
        assert asked == [False, True, False]


class TestSigns:
    def test_they_arrive_and_the_end_is_seen(self, monkeypatch):
        pipe = PulsePipe()
        monkeypatch.setenv(PULSE, str(os.dup(pipe.given)))
        pipe.begun()
        signs = Signs.inherited()
        assert pipe.wait(0.0) == b""
        signs.give(ANSWERED)
        signs.give(WORKING)
        assert pipe.wait(60.0) == ANSWERED + WORKING
        os.close(signs._descriptor)
        assert pipe.wait(60.0) is None
        pipe.close()

    def test_a_supervisor_that_reads_nothing_or_has_ended_stops_no_node(self):
        pipe = PulsePipe()
        signs = Signs(pipe.given)
        for _ in range(1 << 17):
            signs.give(WORKING)
        pipe.close()
        signs.give(WORKING)
        os.close(pipe.given)

    def test_without_a_pipe_they_go_nowhere(self, monkeypatch):
        monkeypatch.delenv(PULSE, raising=False)
        Signs.inherited().give(ANSWERED)


def test_a_node_ends_with_its_executor():
    executor = WatchedExecutor()
    executor.require()
    child = executor.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    try:
        executor.require()
    finally:
        child.kill()
        child.wait()
    with pytest.raises(SystemExit, match="the node's executor has ended"):
        executor.require()


class Answer(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    timeout = 30

    def do_POST(self):
        self.rfile.read(int(self.headers["content-length"]))
        body = PullMessagesResponse().SerializeToString()
        self.send_response(200)
        self.send_header("content-type", "application/x-protobuf")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


class Server(ThreadingHTTPServer):
    daemon_threads, block_on_close = True, False

    def handle_error(self, *_):
        """A spoiled record is no error of this server's."""


@pytest.fixture
def port(tmp_path):
    """A server over TLS that answers each poll."""
    write_certificates(tmp_path / "tls", ["127.0.0.1"], days=1)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "tls" / "server.pem", tmp_path / "tls" / "server.key")
    with Server(("127.0.0.1", 0), Answer) as server:
        server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
        thread = threading.Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        yield server.server_port
        server.shutdown()
        join(thread)


@pytest.mark.parametrize("fault", FAULTS)
def test_attack_one_fault_on_the_line_does_not_end_flowers_loop(port, tmp_path, monkeypatch, fault):
    """Before, one flipped bit in a record, whose error names SSL, was final for Flower."""
    given = []
    signs = Signs(None)
    monkeypatch.setattr(signs, "give", given.append)
    monkeypatch.setattr(FleetHttpClient, "_unary_unary", signs.of_calls(FleetHttpClient._unary_unary))
    with (
        FaultyProxy(port, delay_seconds=1.0) as proxy,
        FleetHttpClient.from_server_address(proxy.address, False, str(tmp_path / "tls" / "ca.pem"), ()) as client,
    ):
        client._client.timeout = 0.5

        def poll():
            make_simple_http_retry_invoker().invoke(client.PullMessages, PullMessagesRequest())

        poll()
        proxy.begin(fault)
        healing = threading.Thread(target=lambda: (proxy.struck.wait(60), proxy.heal()))
        healing.start()
        while not proxy.struck.is_set():
            poll()
        join(healing)
        poll()
    assert given[0] == given[-1] == ANSWERED
    assert {*given} <= {ANSWERED, FAILED}


def test_an_error_before_the_first_answer_keeps_its_text(port, tmp_path):
    write_certificates(tmp_path / "others", ["127.0.0.1"], days=1)
    authority = str(tmp_path / "others" / "ca.pem")
    address = f"127.0.0.1:{port}"
    signs = Signs(None)
    with FleetHttpClient.from_server_address(address, False, authority, ()) as client:
        poll = signs.of_calls(FleetHttpClient._unary_unary)
        with pytest.raises(httpx.ConnectError, match="certificate"):
            poll(client, path="/p", rpc_method="p", request=PullMessagesRequest(), response_type=PullMessagesResponse)
