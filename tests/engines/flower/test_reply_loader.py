"""Replies of dishonest and of dying nodes, over Flower's own object store and encoding, without a process."""

from types import SimpleNamespace

import numpy as np
import pytest
from flwr.app import Error, Message, RecordDict
from flwr.app.message import remove_content_from_message
from flwr.common.serde import message_to_proto
from flwr.proto.message_pb2 import ObjectTree, PullObjectResponse
from flwr.proto.node_pb2 import NodeInfo
from flwr.supercore.inflatable.inflatable_object import get_all_nested_objects, get_object_id, get_object_tree
from flwr.supercore.run import Run
from flwr.superlink.grid.http_grid import HttpGrid

from privstats.engines.flower import records
from privstats.engines.flower.grid import GridTransport
from privstats.engines.network.nodes import RequestQueue
from privstats.engines.network.transport import ARRIVING, Reply

pytestmark = pytest.mark.usefixtures("task")

LIAR, BONN, MARY = 66, 77, 1444
MOST = 4096


class SuperLink:
    """What a SuperLink does with messages: each reply is announced once, and its objects come when they come."""

    def __init__(self):
        self.pushed, self.replies, self.trees, self.objects, self.confirmed = {}, {}, {}, {}, []
        self.pulled = 0

    def GetNodes(self, _):
        return SimpleNamespace(nodes=[NodeInfo(node_id=node, name=str(node)) for node in (LIAR, BONN, MARY)])

    def PullMessages(self, request):
        known = [self.replies.pop(name) for name in request.message_ids if name in self.replies]
        return SimpleNamespace(messages_list=known, message_object_trees=[self.trees[_id(each)] for each in known])

    def PullObject(self, request):
        self.pulled += 1
        content = self.objects.get(request.object_id)
        return PullObjectResponse(
            object_found=content is not None, object_available=bool(content), object_content=content or b""
        )

    def ConfirmMessageReceived(self, request):
        self.confirmed.append(request.message_object_id)

    def announce(self, name, reply, contents=None, tree=None):
        """A node announces a reply; its objects are known and empty until they arrive."""
        objects = {each.object_id: each.deflate() for each in get_all_nested_objects(reply).values()}
        contents = objects if contents is None else contents
        root = reply.object_id if reply.object_id in contents else next(iter(contents))
        reply.metadata.__dict__["_message_id"] = root
        proto = message_to_proto(remove_content_from_message(reply))
        proto.metadata.reply_to_message_id = name
        self.replies[name] = proto
        self.trees[_id(proto)] = tree or get_object_tree(reply)
        self.objects |= dict.fromkeys(contents, b"")
        return contents

    def answer(self, name, reply, contents=None, tree=None):
        """A complete reply."""
        self.objects |= self.announce(name, reply, contents, tree)


def _id(proto):
    return proto.metadata.message_id


class Grid(HttpGrid):
    """Flower's grid, on this SuperLink instead of a connection."""

    def __init__(self, link):
        super().__init__(token="t")
        self._client, self._run = link, Run.create_empty(1)

    def push_messages(self, messages):
        (message,) = messages
        name = f"message-{len(self._client.pushed)}"
        message.metadata.__dict__["_message_id"] = name
        self._client.pushed[name] = message
        return [name]

    def pull_messages(self, _):
        raise AssertionError("Flower decodes all replies together, and waits for those that never come")


@pytest.fixture
def link():
    return SuperLink()


@pytest.fixture
def transport(link):
    return GridTransport(Grid(link))


def asked(transport):
    return [transport.push(node, "step", b"asked", ttl=600) for node in (LIAR, BONN, MARY)]


def honest(link, name, data=b"whole"):
    return Message(records.pack("ok", data), reply_to=link.pushed[name])


def _object(kind, body=b"", children=()):
    content = f"{kind} {','.join(children)} {len(body)}".encode() + b"\0" + body
    return get_object_id(content), content


def _message(body=b"", children=()):
    return dict([_object("Message", body, children)])


def _chain():
    """A message with a child of a kind that needs no child of its own."""
    inner, content = _object("ArrayRecord", b"\xff\xff\xff")
    return {**_message(b"", [inner]), inner: content}


LIES = {
    "another class": dict([_object("ConfigRecord", b"")]),
    "no class of Flower's": dict([_object("Elephant", b"")]),
    "no protobuf": _message(b"\xff" * 20),
    "no children": _message(b""),
    "a missing child": _message(b"", [get_object_id(b"elsewhere")]),
    "a child that is no record": _chain(),
    "no head": {get_object_id(b"x" * 20): b"x" * 20},
    "twenty bytes without a number": {get_object_id(b"Message  many\0"): b"Message  many\0"},
}


@pytest.mark.parametrize("lie", LIES)
def test_attack_a_reply_that_cannot_be_decoded_is_its_nodes_alone(link, transport, lie):
    """Each ended the run with a traceback that named no node, and the honest replies of the request were lost."""
    liar, bonn, mary = asked(transport)
    contents = LIES[lie]
    (root, *others) = contents
    tree = ObjectTree(object_id=root, children=[ObjectTree(object_id=each) for each in others])
    link.answer(liar, honest(link, liar), contents, tree)
    link.answer(bonn, honest(link, bonn))
    link.answer(mary, honest(link, mary))
    assert dict(transport.pull_many([liar, bonn, mary], MOST)) == {
        liar: Reply("malformed"),
        bonn: Reply("ok", b"whole"),
        mary: Reply("ok", b"whole"),
    }
    assert len(link.confirmed) == 3, "the SuperLink deletes what it held of each"


def test_attack_an_announced_reply_that_never_arrives_keeps_nobody_waiting(link, transport):
    """Flower waited for it up to two hours, past every deadline of ours."""
    liar, bonn, mary = asked(transport)
    contents = link.announce(liar, honest(link, liar, b"late"))
    for name in (bonn, mary):
        link.answer(name, honest(link, name))
    wanted = {bonn: Reply("ok", b"whole"), mary: Reply("ok", b"whole")}
    assert dict(transport.pull_many([liar, bonn, mary], MOST)) == wanted
    before = link.pulled
    for _ in range(5):
        assert list(transport.pull_many([liar], MOST)) == []
    assert link.pulled == before + 5, "one look each time"
    link.objects |= contents
    assert list(transport.pull_many([liar], MOST)) == [(liar, Reply("ok", b"late"))], "late is not lost"


@pytest.mark.parametrize("backwards", [False, True])
def test_a_reply_that_arrives_piece_by_piece_is_on_its_way(link, transport, backwards):
    (name, *_) = asked(transport)
    data = np.random.default_rng(1).bytes(15 << 20)  # three pieces of Flower's
    contents = link.announce(name, honest(link, name, data))
    assert len(contents) == 7, "the message, a dictionary, a record, an array and its pieces"
    pieces = sorted(contents, reverse=backwards)
    found = []
    for piece in pieces:
        link.objects[piece] = contents[piece]
        found += [reply for _, reply in transport.pull_many([name], 16 << 20)]
    assert found[-1] == Reply("ok", data)
    assert {reply.code for reply in found[:-1]} <= {ARRIVING}
    assert link.pulled <= 4 * len(pieces), "content that was there before is not fetched again for each piece"


def test_a_reply_that_its_node_gave_up_is_unavailable(link, transport):
    (name, *_) = asked(transport)
    link.announce(name, honest(link, name))
    assert list(transport.pull_many([name], MOST)) == []
    link.objects.clear()  # as at the end of Flower's session for pushing
    assert list(transport.pull_many([name], MOST)) == [(name, Reply("error:13"))]


def test_attack_a_reply_is_no_larger_than_its_plan_allows(link, transport):
    """Nothing is known of a reply until it is loaded, so a node would choose how much the server holds."""
    liar, bonn, _ = asked(transport)
    link.answer(liar, honest(link, liar, bytes(64 << 20)))
    link.answer(bonn, honest(link, bonn))
    assert dict(transport.pull_many([liar, bonn], MOST)) == {liar: Reply("too_large"), bonn: Reply("ok", b"whole")}
    assert link.pulled <= 1 + 5


def test_attack_a_reply_of_countless_objects_is_refused_before_the_first(link, transport):
    (name, *_) = asked(transport)
    many = ObjectTree(object_id="a", children=[ObjectTree(object_id=str(each)) for each in range(100_000)])
    link.answer(name, honest(link, name), tree=many)
    assert list(transport.pull_many([name], MOST)) == [(name, Reply("too_large"))]
    assert link.pulled == 0


def test_attack_a_reply_answers_what_the_superlink_says_and_not_what_its_node_wrote(link, transport):
    liar, bonn, _ = asked(transport)
    link.answer(liar, honest(link, bonn))  # inside it names Bonn's message
    assert list(transport.pull_many([liar, bonn], MOST)) == [(liar, Reply("ok", b"whole"))]


@pytest.mark.parametrize("code", [3, 5, 8, 2])
def test_flowers_own_errors_keep_their_number_and_lose_their_text(link, transport, code):
    (name, *_) = asked(transport)
    link.answer(name, Message(Error(code, "<class 'ValueError'>:<'record 17'>"), reply_to=link.pushed[name]))
    assert list(transport.pull_many([name], MOST)) == [(name, Reply(f"error:{code}"))]


def test_records_of_another_app_are_malformed(link, transport):
    (name, *_) = asked(transport)
    link.answer(name, Message(RecordDict(), reply_to=link.pushed[name]))
    assert list(transport.pull_many([name], MOST)) == [(name, Reply("malformed"))]


def test_a_node_whose_reply_is_on_its_way_is_not_asked_again_until_it_stands_still(link, transport):
    """A second request would have it send the same again, over the same slow line."""
    now = [0.0]
    queue = RequestQueue(transport, lambda: now[0], until=10_000.0, most=16 << 20)

    def tick(seconds):
        now[0] += seconds
        found = list(queue.replies())
        queue.ask(BONN, "step", lambda: b"asked")
        return found

    tick(0)
    contents = link.announce("message-0", honest(link, "message-0", np.random.default_rng(1).bytes(15 << 20)))
    first, *others = contents
    for piece in (first, *others[:-1]):
        assert tick(50) == []
        link.objects[piece] = contents[piece]
    assert len(link.pushed) == 1, "300 seconds, and never 60 without progress"
    assert tick(50) == []
    tick(70)
    assert len(link.pushed) == 2, "its silence is that of any other node"
    link.objects[others[-1]] = contents[others[-1]]
    ((node, _, reply),) = tick(1)
    assert (node, reply.code) == (BONN, "ok")
