"""The transport over a Grid of Flower's, with Flower's own messages and no process."""

from types import SimpleNamespace

import pytest
from flwr.app import Error, Message

from privstats.engines.flower import records
from privstats.engines.flower.grid import GridTransport
from privstats.engines.network.nodes import RequestQueue
from privstats.engines.network.statements import most_bytes
from privstats.engines.network.transport import Reply, Transport
from privstats.secagg.protocols import PROTOCOLS
from tests.engines.network.fake import study_of

pytestmark = pytest.mark.usefixtures("task")

MARY, BONN = 1444, 77


class Grid:
    """Two nodes, one of them named; what is pushed waits until the test answers it."""

    def __init__(self):
        self.pushed, self.replies, self.pulls, self.takes = [], {}, [], True
        self.failing = {}

    def get_nodes(self):
        return [SimpleNamespace(node_id=MARY, name="st-mary"), SimpleNamespace(node_id=BONN, name="")]

    def push_messages(self, messages):
        messages = list(messages)
        for message in messages:
            self.pushed.append(message)
            message.metadata.__dict__["_message_id"] = f"message-{len(self.pushed)}"
        return [message.metadata.message_id if self.takes else None for message in messages]

    def pull_messages(self, ids):
        ids = list(ids)
        self.pulls.append(ids)
        for name in ids:
            if name in self.failing:
                raise self.failing[name]
        return [self.replies.pop(name) for name in ids if name in self.replies]


@pytest.fixture
def grid():
    return Grid()


@pytest.fixture
def transport(grid):
    transport: Transport = GridTransport(grid)
    return transport


def test_who_is_online_and_what_people_call_them(transport):
    assert transport.name(MARY) == "1444", "nobody has asked for the names yet"
    assert transport.online() == [BONN, MARY]
    assert transport.name(MARY) == "st-mary"
    assert transport.name(BONN) == "77"


def test_a_message_goes_to_one_node_for_so_long(transport, grid):
    assert transport.push(MARY, "step", b"said", ttl=41.5) == "message-1"
    (message,) = grid.pushed
    assert (message.metadata.dst_node_id, message.metadata.message_type) == (MARY, "query.privstats")
    assert message.metadata.ttl == 41.5
    assert records.unpack(message.content, "server") == ("step", b"said")


def test_no_answer_yet(transport):
    assert transport.pull(transport.push(MARY, "step", b"", ttl=1), 100) is None


@pytest.mark.parametrize(("most", "requests"), [(100, 1), (16 << 20, 1), (40 << 20, 2), (512 << 20, 2)])
def test_answers_are_asked_for_together_as_long_as_they_fit(transport, grid, most, requests):
    """Flower loads every reply of a request at once: five of 512 MiB would be 2.5 GiB."""
    first, second = (transport.push(node, "step", b"", ttl=1) for node in (MARY, BONN))
    grid.replies = {
        name: Message(records.pack("ok", name.encode()), reply_to=message)
        for name, message in zip((first, second), grid.pushed, strict=True)
    }
    found = dict(transport.pull_many([second, first], most))
    assert found == {second: Reply("ok", b"message-2"), first: Reply("ok", b"message-1")}
    assert grid.pulls == ([[second, first]] if requests == 1 else [[second], [first]])
    assert transport.pull(first, most) is None, "once"


def test_a_hundred_parties_that_keep_silent_cost_few_requests(transport, grid):
    """One by one these were 202 requests a second, of which 200 found nothing."""
    now = [0.0]
    queue = RequestQueue(transport, lambda: now[0], until=600.0, most=4096)
    for node in range(100):
        queue.ask(node, "step", lambda: b"asked")
    while now[0] < 60:
        assert list(queue.replies()) == []
        now[0] += queue.pause
    assert len(grid.pulls) <= 60 * 2
    assert {len(ids) for ids in grid.pulls} == {100}
    assert queue.pause == 2.0
    now[0] = 599.5
    assert queue.pause == 0.5, "the deadline is not overslept"


@pytest.mark.parametrize("code", [3, 5, 8, 2])
def test_flowers_own_errors_keep_their_number_and_lose_their_text(transport, grid, code):
    name = transport.push(MARY, "step", b"", ttl=1)
    grid.replies[name] = Message(Error(code, "<class 'ValueError'>:<'record 17'>"), reply_to=grid.pushed[0])
    assert transport.pull(name, 100) == Reply(f"error:{code}", b"")


def test_what_no_party_of_ours_sent_is_malformed(transport, grid):
    name = transport.push(MARY, "step", b"", ttl=1)
    grid.replies[name] = Message(records.pack("a word that is far too long to be a code", b""), reply_to=grid.pushed[0])
    assert transport.pull(name, 100) == Reply("malformed", b"")


def test_what_is_too_large_is_refused(grid):
    transport = GridTransport(grid)
    name = transport.push(MARY, "step", b"", ttl=1)
    grid.replies[name] = Message(records.pack("ok", bytes(11)), reply_to=grid.pushed[0])
    assert transport.pull(name, 10) == Reply("too_large", b"")


@pytest.mark.parametrize("error", [AttributeError("x"), IndexError("x"), ValueError("x")])
def test_attack_a_reply_that_another_grid_cannot_decode_is_its_nodes_alone(transport, grid, error):
    """One exception lost the replies of all nodes of the request."""
    liar, honest = (transport.push(node, "step", b"", ttl=1) for node in (MARY, BONN))
    grid.failing[liar] = error
    grid.replies[honest] = Message(records.pack("ok", b"whole"), reply_to=grid.pushed[1])
    assert dict(transport.pull_many([liar, honest], 100)) == {liar: Reply("malformed"), honest: Reply("ok", b"whole")}
    assert grid.pulls == [[liar, honest], [liar], [honest]]


def test_a_line_that_fails_is_no_nodes_fault(transport, grid):
    names = [transport.push(node, "step", b"", ttl=1) for node in (MARY, BONN)]
    grid.failing = dict.fromkeys(names, ConnectionResetError())
    with pytest.raises(ConnectionResetError):
        list(transport.pull_many(names, 100))


def test_a_message_that_flower_does_not_take_is_answered_as_by_a_node_that_is_away(transport, grid):
    grid.takes = False
    name = transport.push(MARY, "step", b"", ttl=1)
    assert transport.pull(name, 100) == Reply("error:5", b"")
    assert grid.pulls == []


def test_the_largest_answer_follows_from_the_plan(tmp_path):
    for protocol in PROTOCOLS:
        plan = study_of(tmp_path / protocol, protocol).plan
        boxes = plan.cohort.clients * 1_300  # a box and proofs for each other party, or a box for each member
        assert plan.masking.upload_bytes + 68 <= most_bytes(plan) < plan.masking.upload_bytes + 4096 + boxes
