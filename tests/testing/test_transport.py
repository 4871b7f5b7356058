"""The transport double does what a carrier promises, and nothing by itself."""

from __future__ import annotations

import pytest

from privstats.engines.network.transport import Reply, Transport
from privstats.errors import LocalProtocolError
from privstats.testing import MockTransport


@pytest.fixture
def net() -> MockTransport:
    return MockTransport(lambda node, kind, data: Reply("ok", bytes([node]) + data), nodes=[1, 2])


def test_every_message_has_one_reply_and_it_is_fetched_once(net: MockTransport) -> None:
    carrier: Transport = net
    first, second = carrier.push(1, "step", b"a", ttl=9), carrier.push(2, "step", b"b", ttl=9)
    assert carrier.pull(second, 10) == Reply("ok", b"\x02b")
    assert carrier.pull(first, 10) == Reply("ok", b"\x01a")
    assert carrier.pull(first, 10) is None
    assert net.pushed == [(1, "step", b"a"), (2, "step", b"b")]
    assert carrier.name(1) == "node-1"


def test_a_reply_that_is_too_large_is_not_handed_over(net: MockTransport) -> None:
    assert net.pull(net.push(1, "step", b"1234", ttl=9), most=4) == Reply("too_large")


def test_nodes_come_and_go_by_the_clock_that_sleeping_moves(net: MockTransport) -> None:
    net.comes[1], net.goes[2] = 10.0, 20.0
    seen = []
    for _ in range(3):
        seen.append((net.clock(), net.online()))
        net.sleep(10)
    assert seen == [(0.0, [2]), (10.0, [1, 2]), (20.0, [1])]
    assert net.push(2, "step", b"", ttl=9) == ""
    assert net.pull("", 10) is None


@pytest.mark.parametrize("ttl", [0, 0.5, float("nan")])
def test_a_message_that_would_expire_at_once_is_refused(net: MockTransport, ttl: float) -> None:
    with pytest.raises(LocalProtocolError, match="at least 1 second"):
        net.push(1, "step", b"", ttl=ttl)
