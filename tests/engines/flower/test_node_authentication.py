"""Who signed a request is known before a byte of its body is read, and says how many bytes that may be."""

import asyncio
import datetime
import math
from base64 import b64encode
from types import SimpleNamespace

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa, x25519
from flwr.proto.fleet_pb2 import ActivateNodeRequest, PushMessagesRequest
from flwr.proto.message_pb2 import ObjectTree
from flwr.supercore.primitives import asymmetric
from flwr.superlink.routers.fleet import node_auth
from starlette.datastructures import Headers

from privstats.engines.door.connection_limits import (
    BYTES_A_SECOND,
    CONNECTION,
    PATIENCE_SECONDS,
    ConnectionLimiter,
    Limits,
)
from privstats.engines.flower.addresses import MOST_REQUEST
from privstats.engines.flower.node_authentication import (
    MOST_OF_A_MESSAGE,
    MOST_OF_A_STRANGER,
    Login,
    Logins,
    NodeAuthentication,
    remembered,
)
from tests.engines.flower.signing import KEY, PUBLIC, signed

OTHER = ec.generate_private_key(ec.SECP384R1())
KEY_HEADER, STAMP_HEADER, SIGNATURE_HEADER = [name.decode() for name, _ in signed()][-3:]


class Served:
    """The layer around an app that reads the whole body, at a clock that stands still."""

    def __init__(self, registered=lambda key: key == PUBLIC, **limits):
        self.limiter = ConnectionLimiter(Limits(**limits), lambda: 0.0)
        self.bodies, self.asked = [], 0
        self.layer = NodeAuthentication(self.app, Logins(registered), self.limiter)

    async def app(self, scope, receive, send):
        body, more = b"", True
        while more:
            message = await receive()
            body, more = body + message["body"], message["more_body"]
        self.bodies.append(len(body))
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"read"})

    def request(self, headers, body=b"", admitted=None, path="/v1/fleet/push-object"):
        """The status, and whether the connection is closed."""
        sent = []
        admitted = admitted or self.limiter.arrive("10.0.0.7")

        async def receive():
            self.asked += 1
            return {"type": "http.request", "body": body, "more_body": False}

        async def send(message):
            sent.append(message)

        scope = {"type": "http", "path": path, "headers": headers, "state": {CONNECTION: admitted}}
        asyncio.run(self.layer(scope, receive, send))
        return sent[0]["status"], (b"connection", b"close") in sent[0]["headers"]


def without(name, headers):
    return [each for each in headers if each[0].decode() != name]


class TestBeforeTheBody:
    @pytest.mark.parametrize(
        "headers",
        [
            [(b"content-length", b"10")],
            without(KEY_HEADER, signed(content_length=10)),
            without(STAMP_HEADER, signed(content_length=10)),
            without(SIGNATURE_HEADER, signed(content_length=10)),
        ],
    )
    def test_who_has_not_signed_is_refused_and_nothing_is_read(self, headers):
        served = Served()
        assert served.request(headers) == (401, True)
        assert served.asked == 0
        assert served.limiter.status.closed == {"login": 1}

    def test_a_node_sends_a_piece_of_flowers_and_no_more(self):
        served = Served()
        assert served.request(signed(content_length=5 << 20), bytes(5 << 20)) == (200, False)
        assert served.request(signed(content_length=MOST_REQUEST + 1)) == (413, True)
        assert served.bodies == [5 << 20]
        assert served.asked == 1

    @pytest.mark.parametrize("path", ["push-messages", "pull-messages", "push-object/", "PUSH-OBJECT", "x/push-object"])
    def test_what_is_parsed_is_a_hundredth_of_a_piece(self, path):
        """16 requests of 6 MiB of empty messages, of one node, made 1,809 MiB of 182."""
        served = Served()
        path = f"/v1/fleet/{path}"
        assert served.request(signed(content_length=MOST_OF_A_MESSAGE), path=path) == (200, False)
        assert served.request(signed(content_length=MOST_OF_A_MESSAGE + 1), path=path) == (413, True)
        assert served.asked == 1

    def test_the_names_of_four_gibibytes_are_a_message(self):
        pieces = ObjectTree(object_id="a" * 64, children=[ObjectTree(object_id="b" * 64)] * 800)
        assert PushMessagesRequest(message_object_trees=[pieces]).ByteSize() < MOST_OF_A_MESSAGE

    def test_keys_that_are_not_registered_reach_flower_now_and_then(self):
        """Each such request is some lines of Flower's log: 867 kB a second before, of keys of 4 KiB."""
        served = Served()
        admitted = served.limiter.arrive("10.0.0.7")
        answers = [served.request(signed(OTHER, content_length=0), admitted=admitted) for _ in range(66)]
        assert answers == [(200, False)] * 64 + [(503, True)] * 2
        assert served.request(signed(content_length=0)) == (200, False), "a node is not concerned"
        assert served.limiter.status.closed == {"unknown": 2}

    def test_a_stranger_that_signs_with_its_own_key_sends_what_introduces_it_and_no_more(self):
        served = Served()
        assert served.request(signed(OTHER, content_length=MOST_OF_A_STRANGER)) == (200, False)
        assert served.request(signed(OTHER, content_length=MOST_OF_A_STRANGER + 1)) == (413, True)
        assert served.asked == 1
        assert served.limiter.status.nodes == 0

    def test_what_a_node_introduces_itself_with_fits_many_times(self):
        largest = asymmetric.public_key_to_bytes(ec.generate_private_key(ec.SECP521R1()).public_key())
        assert 10 * ActivateNodeRequest(public_key=largest, heartbeat_interval=30).ByteSize() < MOST_OF_A_STRANGER

    @pytest.mark.parametrize(
        "size", [[b"6291457"], [b"-1"], [b"1e9"], [b"1_0"], [b"\xb2"], [], [b"10", b"10"], [b"10", None]]
    )
    def test_a_body_of_no_certain_size_is_refused(self, size):
        """With ``transfer-encoding`` (None) the declared size is not the one that counts."""
        named = [(b"content-length", each) if each else (b"transfer-encoding", b"chunked") for each in size]
        served = Served()
        assert served.request([*signed(), *named]) == (413, True)
        assert served.asked == 0

    def test_more_headers_than_a_node_sends_are_refused(self):
        assert Served().request([*signed(content_length=0), *[(b"a", b"b")] * 64]) == (431, True)

    def test_a_node_has_so_many_requests_at_once_and_is_to_ask_again(self):
        served = Served(requests=1)
        first = served.limiter.arrive("10.0.0.7")
        with served.limiter.request(first, PUBLIC):
            assert served.request(signed(content_length=0)) == (503, True), "Flower's node asks again after 503"
        assert served.request(signed(content_length=0)) == (200, False)


class TestTime:
    """A connection's time: for headers, for the declared body, without end while the server works, for the answer."""

    def test_who_does_not_take_an_answer_is_not_waited_for_without_end(self):
        served, times = Served(), []
        admitted = served.limiter.arrive("10.0.0.7")

        async def receive():
            return {"type": "http.request", "body": b"", "more_body": False}

        async def send(message):
            times.append(admitted.until)  # a server waits in here until what was answered before is taken

        scope = {"type": "http", "path": "/", "headers": signed(content_length=0), "state": {CONNECTION: admitted}}
        asyncio.run(served.layer(scope, receive, send))
        assert max(times) < math.inf

    def test_it_is_as_long_as_the_body_takes_on_a_slow_line(self):
        served, times = Served(), []
        admitted = served.limiter.arrive("10.0.0.7")

        async def app(scope, receive, send):
            times.append(admitted.until)
            await receive()
            times.append(admitted.until)
            await send({"type": "http.response.start", "status": 200, "headers": []})
            times.append(admitted.until)
            await send({"type": "http.response.body", "body": bytes(10 * BYTES_A_SECOND)})
            times.append(admitted.until)

        served.layer = NodeAuthentication(app, Logins(lambda _: True), served.limiter)
        served.request(signed(content_length=5 * BYTES_A_SECOND), admitted=admitted)
        assert times == [PATIENCE_SECONDS + 5, math.inf, PATIENCE_SECONDS, PATIENCE_SECONDS + 10]


class TestLogins:
    def read(self, key=KEY, headers=None, registered=lambda _: True):
        return Logins(registered).read(Headers(raw=headers or signed(key)))

    def test_it_names_the_key_and_whether_it_is_registered(self):
        assert self.read() == Login(PUBLIC, True)
        assert self.read(registered=lambda _: False) == Login(PUBLIC, False)

    def changed(self, name, value):
        return [(key, value if key.decode() == name else old) for key, old in signed()]

    @pytest.mark.parametrize("name", [KEY_HEADER, STAMP_HEADER, SIGNATURE_HEADER])
    @pytest.mark.parametrize("value", [b"", b"!", b"AAAA", b"\xff", b"9" * 9000])
    def test_a_header_of_nonsense_is_no_login(self, name, value):
        assert self.read(headers=self.changed(name, value)) is None

    def test_a_key_with_words_around_it_is_no_login(self):
        """It signs, but Flower logs it whole, each byte as four letters."""
        assert self.read(headers=self.changed(KEY_HEADER, b64encode(b"\x01" * 512 + b"\n" + PUBLIC))) is None
        largest = ec.generate_private_key(ec.SECP521R1())
        assert self.read(largest) is not None

    def test_a_signature_of_another_key_is_no_login(self):
        others = dict(signed(OTHER))
        assert self.read(headers=self.changed(KEY_HEADER, others[KEY_HEADER.encode()])) is None

    @pytest.mark.parametrize("seconds", [-306, 6])
    def test_a_signature_of_another_time_is_no_login(self, seconds):
        stamp = (datetime.datetime.now(datetime.UTC) + datetime.timedelta(seconds=seconds)).isoformat()
        signature = b64encode(asymmetric.sign_message(KEY, stamp.encode()))
        given = {KEY_HEADER: b64encode(PUBLIC), STAMP_HEADER: stamp.encode(), SIGNATURE_HEADER: signature}
        headers = [(name.encode(), value) for name, value in given.items()]
        assert self.read(headers=headers) is None

    @pytest.mark.parametrize("kind", [rsa, ed25519, x25519])
    def test_a_key_of_another_kind_is_no_login(self, kind):
        generate = {
            rsa: lambda: rsa.generate_private_key(65537, 2048),
            ed25519: ed25519.Ed25519PrivateKey.generate,
            x25519: x25519.X25519PrivateKey.generate,
        }
        public = generate[kind]().public_key()
        pem = public.public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
        assert self.read(headers=self.changed(KEY_HEADER, b64encode(pem))) is None

    def test_the_state_is_asked_for_a_registered_key_once_in_some_seconds_and_for_a_strangers_each_time(self):
        asked, now = [], [0.0]
        logins = Logins(lambda key: asked.append(key) or key == PUBLIC, clock=lambda: now[0])
        for key in (KEY, KEY, OTHER, OTHER):
            logins.read(Headers(raw=signed(key)))
        assert [key == PUBLIC for key in asked] == [True, False, False]
        now[0] += 11
        logins.read(Headers(raw=signed()))
        assert len(asked) == 4


def test_flowers_own_layer_agrees_and_verifies_nothing_twice(monkeypatch):
    """Both read the same headers: what ours lets in, Flower's layer lets in, for one verification."""
    counted = []
    verify = remembered(lambda *words: counted.append(words) or asymmetric.verify_signature(*words))
    monkeypatch.setattr(node_auth, "verify_signature", verify)
    headers = Headers(raw=signed())
    assert Logins(lambda _: True, verify).read(headers) == Login(PUBLIC, True)
    node_auth.authenticate_node(
        SimpleNamespace(headers=headers, state=SimpleNamespace(protobuf_request=ActivateNodeRequest(public_key=PUBLIC)))
    )
    assert len(counted) == 1
