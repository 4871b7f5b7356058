"""A node is measured by its work, and a fault of the line does not end it: Flower's own client, and a faulty proxy."""

import asyncio
import logging
import os
import subprocess
import sys
import threading
from functools import partial
from importlib import import_module

import httpx
import pytest
from flwr.proto.fleet_pb2 import PullMessagesRequest
from flwr.proto.runtime_pb2 import AcquireTaskRequest, AcquireTaskResponse, PullTaskInputRequest
from flwr.supercore.auth import create_superexec_auth_metadata, derive_auth_secret
from flwr.supercore.constant import TaskType
from flwr.supercore.object_store import ObjectStoreFactory
from flwr.supercore.protobuf.client import ProtobufClient
from flwr.supercore.retry import make_simple_http_retry_invoker
from flwr.supercore.runtime import RuntimeHttpClient
from flwr.supernode.fleet_http_client import FleetHttpClient
from flwr.supernode.nodestate import NodeStateFactory

from privstats.engines.flower import entrypoint_guard, pulse
from privstats.engines.flower.certificates import write_certificates
from privstats.engines.flower.pulse import (
    ANSWERED,
    FAILED,
    HEARTBEAT,
    PULSE,
    TRANSFERRING,
    WORKING,
    Pulse,
    PulsePipe,
    Signs,
    WatchedExecutor,
    retried,
)
from privstats.engines.network.status_file import SILENT_SECONDS
from tests.engines.flower.tls import polled
from tests.faulty_proxy import FAULTS, FaultyProxy
from tests.threads import join

import_module("flwr.supernode.main")  # before any test, because it sets a variable of the environment


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
            (ANSWERED, TRANSFERRING, False),
            (ANSWERED + TRANSFERRING, ANSWERED, True),  # the heartbeat is late, and no piece is the reason any more
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

    def test_a_piece_of_a_message_has_the_time_of_the_slowest_line_and_no_more(self, clock):
        pulse = Pulse(clock)
        pulse.note(ANSWERED + TRANSFERRING)
        for step, stopped in ((SILENT_SECONDS + 383, False), (2, True)):
            clock.now += step
            pulse.note(TRANSFERRING + FAILED)
            assert pulse.stopped is stopped

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


def test_attack_no_account_without_the_secret_takes_a_task(monkeypatch):
    """Before, whoever could reach the node's loopback port got the task's token, and with it the party's messages."""
    monkeypatch.setattr(entrypoint_guard, "replace", lambda module, names: replaced.update({module: names}))
    monkeypatch.setattr(entrypoint_guard, "_child", lambda *_: None)
    replaced = {}
    entrypoint_guard._supernode()
    factory = NodeStateFactory(ObjectStoreFactory())
    app = replaced["flwr.supernode.main"]["create_app"](state_factory=factory, superexec_auth_secret=None)
    asked = AcquireTaskRequest(supported_task_types=[TaskType.CLIENT_APP])
    assert factory.state().create_task(TaskType.CLIENT_APP, 1, "0" * 64) is not None
    executor = replaced["flwr.supernode.start_client_internal"]["subprocess"]
    read = "import sys, pathlib; print(pathlib.Path(sys.argv[2]).read_bytes().hex())"
    with monkeypatch.context() as patch:
        patch.setattr(pulse.subprocess, "Popen", partial(subprocess.Popen, stdout=subprocess.PIPE))
        secret, _ = executor.Popen([sys.executable, "-c", read]).communicate()
    signed = partial(create_superexec_auth_metadata, method="/flwr.proto.Runtime/AcquireTask", request=asked)
    named = {"content-type": "application/protobuf", "accept": "application/protobuf"}

    async def ask(headers):
        body = asked.SerializeToString(deterministic=True)
        async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://node") as client:
            return await client.post("/v1/runtime/acquire-task", content=body, headers={**named, **headers})

    def answers(**headers):
        return asyncio.run(ask(headers))

    assert answers().status_code == 401
    assert answers(**signed(auth_secret=derive_auth_secret(bytes(32)))).status_code == 401
    given = answers(**signed(auth_secret=derive_auth_secret(bytes.fromhex(secret.decode()))))
    assert given.status_code == 200
    assert AcquireTaskResponse.FromString(given.content).token


@pytest.fixture
def port(tmp_path):
    """A server over TLS that answers each poll."""
    write_certificates(tmp_path / "tls", ["127.0.0.1"], days=1)
    with polled(tmp_path / "tls") as port:
        yield port


@pytest.mark.parametrize("fault", FAULTS)
def test_attack_one_fault_on_the_line_does_not_end_flowers_loop(port, tmp_path, monkeypatch, fault):
    """Before, one flipped bit in a record, whose error names SSL, was final for Flower."""
    given = []
    signs = Signs(None)
    monkeypatch.setattr(signs, "give", lambda sign: given.extend([sign] if sign else []))
    monkeypatch.setattr(FleetHttpClient, "_unary_unary", signs.of_calls(FleetHttpClient._unary_unary))
    monkeypatch.setattr(ProtobufClient, "_send", retried(ProtobufClient._send))
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
    assert {*given} == {ANSWERED, FAILED}, "a fault that nothing notices proves nothing"


@pytest.mark.parametrize(
    "fault", [pytest.param(fault, marks=pytest.mark.nightly if place % 2 else ()) for place, fault in enumerate(FAULTS)]
)
def test_attack_nor_does_it_end_the_server_app_or_its_executor(port, tmp_path, monkeypatch, fault):
    """These call the SuperLink over TLS too, and retry inside of one call."""
    monkeypatch.setattr(ProtobufClient, "_send", retried(ProtobufClient._send))
    again, authority = make_simple_http_retry_invoker(), str(tmp_path / "tls" / "ca.pem")
    with (
        FaultyProxy(port, delay_seconds=1.0) as proxy,
        RuntimeHttpClient.from_server_address(proxy.address, False, authority, (), retry_invoker=again) as client,
    ):
        client._client.timeout = 0.5
        client.PullTaskInput(PullTaskInputRequest())
        before = proxy.accepted
        proxy.begin(fault)
        healing = threading.Thread(target=lambda: (proxy.struck.wait(60), proxy.heal()))
        healing.start()
        while not proxy.struck.is_set():
            client.PullTaskInput(PullTaskInputRequest())
        join(healing)
        client.PullTaskInput(PullTaskInputRequest())
    assert proxy.accepted > before, "a fault that nothing notices proves nothing"


def test_an_error_before_the_first_answer_keeps_its_text(port, tmp_path, monkeypatch):
    write_certificates(tmp_path / "others", ["127.0.0.1"], days=1)
    authority = str(tmp_path / "others" / "ca.pem")
    monkeypatch.setattr(ProtobufClient, "_send", retried(ProtobufClient._send))
    with (
        FleetHttpClient.from_server_address(f"127.0.0.1:{port}", False, authority, ()) as client,
        pytest.raises(httpx.ConnectError, match="certificate"),
    ):
        client.PullMessages(PullMessagesRequest())


@pytest.mark.parametrize("program", ["flower-supernode", "flower-superexec", "flwr-serverapp"])
def test_every_program_that_calls_a_superlink_tries_again(monkeypatch, program):
    replaced = {}
    monkeypatch.setattr(entrypoint_guard, "replace", lambda module, names: replaced.update(names))
    monkeypatch.setattr(entrypoint_guard, "end_with", lambda _: None)
    monkeypatch.setenv(entrypoint_guard.fork_server.PROGRAM, "flwr-serverapp")
    monkeypatch.setattr(entrypoint_guard.fork_server, "ForkedPrograms", str)
    monkeypatch.setattr(logging.getLogger("flwr"), "filters", [])
    entrypoint_guard._MAINS[program]()
    assert "ProtobufClient._send" in replaced
