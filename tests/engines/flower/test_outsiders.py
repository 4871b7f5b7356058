"""What a stranger with ``ca.pem`` and the address of a SuperLink can do there: nothing that is the coordinator's."""

import asyncio
import json
import logging
import os
import socket
import subprocess
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace

import pytest
from starlette.middleware import Middleware

from privstats.engines import flower
from privstats.engines.door import ports
from privstats.engines.door.connection_limits import CONNECTION, ConnectionLimiter, Limits
from privstats.engines.flower import addresses
from privstats.engines.flower.addresses import FleetOnly
from privstats.engines.flower.certificates import write_node_key
from privstats.errors import PrivstatsError
from tests.engines.flower.federation import FLWR, Federation
from tests.engines.flower.signing import signed
from tests.engines.network.fake import study_of

APP = Path(flower.__file__).parent / "template" / "app"


class Stranger:
    """Flower's own commands, from a folder of the stranger's."""

    def __init__(self, place, address, authority):
        place.mkdir()
        self.place = place
        (place / "config.toml").write_text(
            f'[superlink]\ndefault = "theirs"\n[superlink.theirs]\naddress = "{address}"\n'
            f'root-certificates = "{authority}"\n'
        )
        write_node_key(place / "node")

    def flwr(self, *words):
        """Whether the command did what it was asked for, and what it printed."""
        ended = subprocess.run(
            [str(FLWR), *map(str, words)],
            env={**os.environ, "FLWR_HOME": str(self.place), "FLWR_TELEMETRY_ENABLED": "0"},
            capture_output=True,
            text=True,
            timeout=60,
        )
        said = ended.stdout + ended.stderr
        return ended.returncode == 0 and '"success": false' not in said, said


@pytest.mark.nightly
def test_a_stranger_does_none_of_the_five_things_that_are_the_coordinators(tmp_path):
    with Federation(study_of(tmp_path, "interactive"), tmp_path / "federation") as federation:
        nodes = json.loads(federation.flwr("supernode", "list", "study", "--format", "json"))["nodes"]
        run = federation.start_session(APP)
        federation.wait(lambda: "party 0" in federation.log_of("run") or federation.taken, "the session runs")
        runs = json.loads(federation.flwr("list", "study", "--format", "json"))["runs"]
        stranger = Stranger(tmp_path / "stranger", federation.address, federation.certificates / "ca.pem")
        done = {
            "list": stranger.flwr("supernode", "list", "theirs", "--format", "json"),
            "register": stranger.flwr("supernode", "register", stranger.place / "node.pub", "theirs"),
            "start": stranger.flwr("run", APP, "theirs", "--run-config", "open-seconds=120"),
            "unregister": stranger.flwr("supernode", "unregister", nodes[0]["node-id"], "theirs"),
            "stop": stranger.flwr("stop", runs[0]["run-id"], "theirs"),
        }
        assert not {what: said for what, (succeeded, said) in done.items() if succeeded}
        federation.finish_session(run)


def answer_of(app, path, server, kind="http", headers=()):
    """The first message that an ASGI app sends to a signed request, by the address that it was accepted on."""
    sent, scope = [], {"type": kind, "method": "POST", "path": path, "raw_path": path.encode(), "query_string": b""}
    scope |= {"server": server, "client": ("127.0.0.1", 5), "scheme": "https", "http_version": "1.1", "root_path": ""}
    admitted = ConnectionLimiter(Limits()).arrive("127.0.0.1")
    scope |= {
        "headers": [*signed(content_length=0), *headers],
        "asgi": {"version": "3.0"},
        "state": {CONNECTION: admitted},
    }

    async def receive():
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message):
        sent.append(message)

    asyncio.run(app(scope, receive, send))
    return sent[0]


MAIN = import_module("flwr.superlink.main")
LAYERS = MAIN._get_middleware


@pytest.fixture(scope="module")
def superlink():
    """Flower's own app behind our two addresses, and the paths of all that it serves."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(MAIN, "_get_middleware", lambda: addresses.layers(LAYERS))
        app = MAIN.create_app()
    paths = {route.path for route in import_module("fastapi.routing").iter_route_contexts(app.routes)}
    return FleetOnly(app, addresses._authenticated(app, ConnectionLimiter(Limits())), 8001), {
        path.replace("{", "").replace("}", "") for path in paths if path
    }


class TestFleetOnly:
    def test_parties_reach_the_fleet_interface_and_nothing_else_of_what_flower_serves(self, superlink):
        app, paths = superlink
        assert sum(path.startswith("/v1/control/") for path in paths) > 20
        assert sum(path.startswith("/v1/fleet/") for path in paths) > 10
        for address in (("127.0.0.1", 8000), ("10.0.0.7", 8001), ("::1", 8001)):
            reached = {path for path in paths if answer_of(app, path, address)["status"] != 404}
            assert reached == {path for path in paths if path.startswith("/v1/fleet/")}

    def test_the_coordinator_reaches_all_of_it_on_loopback(self, superlink):
        app, paths = superlink
        closed = {path for path in paths if answer_of(app, path, ("127.0.0.1", 8001))["status"] == 404}
        assert not {path for path in closed if path.startswith(("/v1/control/", "/v1/fleet/"))}

    @pytest.mark.parametrize(
        "path", ["/v1/fleet/../control/list-nodes", "/v1/fleet//v1/control/list-nodes", "/V1/CONTROL/list-nodes", ""]
    )
    def test_no_way_of_writing_a_path_leads_around_it(self, superlink, path):
        assert answer_of(superlink[0], path, ("0.0.0.0", 8000))["status"] == 404

    def test_no_header_says_where_a_connection_was_accepted(self, superlink):
        told = [(b"host", b"127.0.0.1:8001"), (b"x-forwarded-for", b"127.0.0.1"), (b"x-forwarded-host", b"127.0.0.1")]
        given = answer_of(superlink[0], "/v1/control/list-nodes", ("10.0.0.7", 8000), headers=told)
        assert given["status"] == 404

    def test_a_websocket_is_closed(self, superlink):
        given = answer_of(superlink[0], "/v1/fleet/x", ("10.0.0.7", 8000), kind="websocket")
        assert given["type"] == "websocket.close"


class TestLayers:
    """Requests that are not for the control interface pass its layers by."""

    def test_whatever_is_asked_is_answered_as_by_flowers_own_layers(self, superlink):
        app, paths = superlink
        flowers = MAIN.create_app()
        plain = FleetOnly(flowers, addresses._authenticated(flowers, ConnectionLimiter(Limits())), 8001)
        odd = {"/v1/control", "/v1/control/", "/V1/control/list-nodes", "/v1/control/../fleet/push-object", "//", ""}
        for path in sorted(paths | odd):
            for address in (("127.0.0.1", 8001), ("10.0.0.7", 8000)):
                assert answer_of(app, path, address) == answer_of(plain, path, address), path

    def test_the_four_of_the_control_interface_are_for_its_requests_alone(self):
        passed = []

        class Layer:
            def __init__(self, app, name):
                self.app, self.name = app, name

            async def __call__(self, scope, receive, send):
                passed.append(self.name)
                await self.app(scope, receive, send)

        def of(name, module):
            made = type(name, (Layer,), {"__module__": module})
            return Middleware(made, name=name)

        async def inner(scope, receive, send):
            await send({"status": 200})

        made = addresses.layers(lambda: [of("sensitive", addresses._LAYERS), of("node", "elsewhere")])
        app = inner
        for layer in reversed(made):
            app = layer.cls(app, *layer.args, **layer.kwargs)
        for path in ("/v1/fleet/x", "/v1/runtime/x", "/v1/controlling", "/v1/control/x"):
            answer_of(app, path, None)
        assert passed == ["node"] * 3 + ["sensitive", "node"]
        ours = [layer for layer in addresses.layers(LAYERS) if layer.cls is addresses.ControlOnly]
        assert len(ours) == 4
        assert len(LAYERS()) in (8, 9), "1.42 has one less, which traced runtime requests"


class TestServeBoth:
    @pytest.mark.parametrize("given", [{"host": "0.0.0.0"}, {"ssl_certfile": None}])
    def test_the_control_interface_never_leaves_this_machine_nor_goes_without_tls(self, given, tmp_path):
        config = SimpleNamespace(**{"host": "127.0.0.1", "port": 8001, "ssl_certfile": "server.pem", **given})
        with pytest.raises(PrivstatsError, match=r"served on 127\.0\.0\.1 and over TLS only"):
            addresses.serve_both("127.0.0.1:8000", tmp_path, lifespan_config=config)

    def test_an_address_that_is_taken_is_one_sentence(self):
        with socket.create_server(("127.0.0.1", 0)) as taken:
            port = taken.getsockname()[1]
            with pytest.raises(PrivstatsError, match=f"cannot listen on 127.0.0.1, port {port} .*give another address"):
                ports.listening("127.0.0.1", port)

    def test_an_open_request_does_not_keep_a_superlink_that_is_told_to_end(self, monkeypatch, tmp_path):
        """Its app would live on, and hold the journal against the next run."""
        found = []

        class Server:
            started = True

            def __init__(self, config, *_):
                found.append(config)

            def run(self, sockets):
                assert len(sockets) == 1

        monkeypatch.setattr("privstats.engines.door.server.DoorServer", Server)
        monkeypatch.setattr("flwr.superlink.main.create_app", lambda *_: None)
        monkeypatch.setattr(addresses, "listening", lambda *_: None)
        monkeypatch.setattr(addresses.operator_log, "configure_log", lambda: None)
        config = SimpleNamespace(host="127.0.0.1", port=8001, ssl_certfile="server.pem", ssl_keyfile="server.key")
        addresses.serve_both("127.0.0.1:8000", tmp_path, lifespan_config=config)
        assert 0 < found[0].timeout_graceful_shutdown <= 5
        assert (found[0].http, found[0].h11_max_incomplete_event_size) == ("h11", 16 << 10), "headers are bounded"
        assert not found[0].access_log, "strangers would write a line of 16 KiB for each request"
        errors = logging.getLogger("uvicorn.error")
        lines = [logging.makeLogRecord({"levelno": level}) for level in (logging.WARNING, logging.ERROR)]
        assert [bool(errors.filter(line)) for line in lines] == [False, True]
