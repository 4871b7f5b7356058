"""The two apps as Flower calls them: nothing leaves a party but a code, nothing counts at the server but its folder."""

from pathlib import Path
from types import SimpleNamespace

import pytest
from flwr.app import ConfigRecord, Context, Message, RecordDict

from privstats.engines.flower import client_app, records, server_app
from privstats.engines.flower.grid import GridTransport
from privstats.engines.network import party
from privstats.engines.network.host import Host
from privstats.engines.network.round_host import Ended, Waiting
from privstats.engines.network.transport import Answer, Deadlines
from privstats.errors import PlanError, PrivstatsError

pytestmark = pytest.mark.usefixtures("task")


def context(run_config=None, **node_config):
    return Context(1, 1, node_config, RecordDict(), run_config or {})


def asked(content, **node_config):
    """What the client app answers."""
    message = Message(content, 1, records.MESSAGE_TYPE)
    return client_app.app(message, context(**node_config))


class TestClient:
    def test_the_message_goes_to_the_folder_and_the_answer_back(self, monkeypatch, tmp_path):
        seen = []

        def answer(home, kind, data, *, simulated):
            seen.append((home, kind, data))
            return Answer("ok", b"said")

        monkeypatch.setattr(party, "answer", answer)
        reply = asked(records.pack("step", b"asked"), **{"privstats-home": str(tmp_path)})
        assert seen == [(tmp_path, "step", b"asked")]
        assert records.unpack(reply.content, 1) == ("ok", b"said")

    def test_no_text_of_an_error_leaves(self, monkeypatch, tmp_path, capsys):
        """Flower would send ``<class 'ValueError'>:<'record 17 has the value 3.14'>`` to the server."""

        def fail(*_, **__):
            raise ValueError("record 17 has the value 3.14")

        monkeypatch.setattr(party, "answer", fail)
        reply = asked(records.pack("step", b""), **{"privstats-home": str(tmp_path)})
        assert records.unpack(reply.content, 1) == ("failed", b"")
        assert not reply.has_error()
        said = capsys.readouterr().err
        assert "ValueError" in said, "its own operator reads where it failed"
        assert "record 17" not in said

    def test_what_no_server_of_ours_sends_is_not_answered(self, monkeypatch, tmp_path):
        monkeypatch.setattr(party, "answer", lambda *_, **__: pytest.fail("it got through"))
        reply = asked(RecordDict({"weights": ConfigRecord({"lr": 0.1})}), **{"privstats-home": str(tmp_path)})
        assert records.unpack(reply.content, 1) == ("failed", b"")

    def test_nothing_is_kept_in_flowers_state(self, monkeypatch, tmp_path):
        monkeypatch.setattr(party, "answer", lambda *_, **__: Answer("ok", b"said"))
        kept = context(**{"privstats-home": str(tmp_path)})
        client_app.app(Message(records.pack("step", b""), 1, records.MESSAGE_TYPE), kept)
        assert len(kept.state) == 0

    def test_the_folder_is_the_nodes_own_setting(self, tmp_path):
        assert client_app.home({"privstats-home": str(tmp_path)}) == tmp_path

    def test_a_simulated_node_has_one_by_its_number(self, monkeypatch):
        monkeypatch.setenv(client_app.PARTIES, "/somewhere/parties")
        assert client_app.home({"partition-id": 3, "num-partitions": 50}) == Path("/somewhere/parties/3")

    @pytest.mark.parametrize(
        "node_config", [{}, {"privstats-home": "relative"}, {"privstats-home": 7}, {"partition-id": 3}]
    )
    def test_a_node_without_one_says_so(self, monkeypatch, node_config):
        monkeypatch.delenv(client_app.PARTIES, raising=False)
        with pytest.raises(PrivstatsError, match='start it with "privstats flower join"'):
            client_app.home(node_config)

    def test_a_partition_that_is_no_number_has_none(self, monkeypatch):
        monkeypatch.setenv(client_app.PARTIES, "/somewhere")
        with pytest.raises(PrivstatsError, match='start it with "privstats flower join"'):
            client_app.home({"partition-id": "../elsewhere"})


class TestServer:
    @pytest.fixture
    def ran(self, monkeypatch, tmp_path):
        """The host's folder is named; what ``Host.run`` was given, and what it is to give."""
        seen = SimpleNamespace(outcome=None)

        def run(_, transport, deadlines):
            seen.transport, seen.deadlines = transport, deadlines
            return seen.outcome

        monkeypatch.setenv(server_app.HOME, str(tmp_path))
        monkeypatch.setattr(Host, "open", lambda home: seen.__setattr__("home", home) or Host(None))
        monkeypatch.setattr(Host, "run", run)
        return seen

    def start(self, run_config=None):
        grid = SimpleNamespace()
        server_app.app(grid, context(run_config))

    def test_the_folder_the_grid_and_the_times_go_to_the_host(self, ran, tmp_path):
        ran.outcome = Ended((None,), "this session ended")
        self.start({"open-seconds": 900, "step-seconds": 240.5})
        assert ran.home == tmp_path
        assert isinstance(ran.transport, GridTransport)
        assert ran.deadlines == Deadlines(900.0, 240.5)

    def test_the_last_line_of_a_run_says_how_it_ended(self, ran, capsys):
        ran.outcome = Ended((None,), "this session ended with parties 0, 1: host/release.safetensors")
        self.start()
        assert capsys.readouterr().out.splitlines()[-1] == ran.outcome.sentence

    def test_a_pinned_server_reads_overrides_only_so_the_rest_stands(self, ran):
        ran.outcome = Ended((None,), "this session ended")
        self.start({})
        assert ran.deadlines == Deadlines()

    def test_a_session_that_waits_is_no_success_for_flower(self, ran):
        """``flwr list`` shows it as failed, with the sentence."""
        ran.outcome = Waiting("step mask: 3 of 5 answered, the plan needs 4", "Nothing is lost")
        with pytest.raises(PrivstatsError, match="^step mask: 3 of 5 answered, the plan needs 4. Nothing is lost$"):
            self.start()

    def test_without_a_folder_nothing_is_run(self, monkeypatch):
        monkeypatch.delenv(server_app.HOME, raising=False)
        with pytest.raises(PrivstatsError, match='start the SuperLink with "privstats flower serve"'):
            self.start()

    @pytest.mark.parametrize("value", [True, "long", None])
    def test_a_time_that_is_no_number_is_named(self, ran, value):
        with pytest.raises(PlanError, match="step-seconds must be a number of seconds"):
            self.start({"step-seconds": value})

    def test_a_time_that_is_too_short_is_refused(self, ran):
        with pytest.raises(PlanError, match="step-seconds must be at least 120"):
            self.start({"step-seconds": 60})
