"""A plan between the rounds of an app with FedAvg: two programs on one grid, and neither disturbs the other."""

import shutil
from pathlib import Path

import numpy as np
import pytest
from flwr.app import ConfigRecord, Message, RecordDict
from flwr.clientapp import ClientApp
from flwr.clientapp.mod import arrays_size_mod, message_size_mod

import privstats as ps
from privstats.dp import Ledger
from privstats.engines import flower
from privstats.engines.flower import records
from privstats.engines.flower.client_app import PARTIES
from privstats.engines.network.host import Host
from privstats.errors import PlanError, PrivstatsError, SessionEndedError, TooFewAnswersError
from privstats.release import Release
from tests.engines.flower.quickstart import AtOnce, client_app, fed_avg, seen, simulated
from tests.engines.network.courses.study import course_study
from tests.engines.network.fake import open_accounts, study_of

pytestmark = pytest.mark.usefixtures("task")

PROMISE = ps.Privacy(model="distributed", unit="record", adjacency="add-remove", epsilon=2.0, delta=1e-5)


@pytest.fixture
def study(tmp_path):
    return study_of(tmp_path)


def joined(study, **mods):
    """Their app, which answers for the folders of a study."""
    app = client_app(**mods)
    flower.join(app, lambda context: study.home(context.node_config["partition-id"]))
    return app


def asked(grid, content, kind, node=100):
    (reply,) = grid.send_and_receive([Message(content, node, kind)])
    return reply


def spent(study, party):
    return Ledger.open(study.home(party) / "ledger").account("beds").entries


@pytest.mark.ci
def test_in_flowers_simulation_a_release_comes_between_two_rounds_of_fedavg(tmp_path, monkeypatch):
    """Under mods of Flower that look at every message: ``message_size_mod`` fails on a record with an empty value."""
    study = study_of(tmp_path, privacy=PROMISE)
    open_accounts(study, 2.0)
    found = {}

    def main(grid, context):
        found["before"] = fed_avg(grid, nodes=5)
        found["release"] = flower.run_plan(grid, study.host)
        found["after"] = fed_avg(grid, found["before"], nodes=5)
        found["again"] = flower.run_plan(grid, study.host)
        (node, *_) = grid.get_node_ids()
        found["theirs"] = asked(grid, RecordDict(), "query", node).content["theirs"]["seen"]

    simulated(monkeypatch, main, joined(study, mods=[message_size_mod, arrays_size_mod]), 5)
    assert found["release"].survivors == (0, 1, 2, 3, 4)
    assert found["again"] == found["release"] == Release.load(study.host / "release.safetensors", plan=study.plan)
    assert [[entry.released is not None for entry in spent(study, party)] for party in range(5)] == [[True]] * 5
    assert found["theirs"] == 2, "their state holds their two rounds"
    alone = fed_avg(AtOnce(client_app(), 5), rounds=2)
    np.testing.assert_allclose(found["after"], alone, rtol=1e-12, err_msg="their model is not what it is without us")


def test_the_sum_is_exact_and_their_rounds_are_theirs(study):
    grid = AtOnce(joined(study), 5)
    before = fed_avg(grid)
    release = flower.run_plan(grid, study.host)
    assert np.array_equal(release.vector, study.exact(range(5)))
    np.testing.assert_allclose(fed_avg(grid, before), fed_avg(AtOnce(client_app(), 5), rounds=2), rtol=1e-12)
    ours = [message for message in grid.pushed if "privstats" in message.content]
    assert {message.metadata.message_type for message in ours} == {"query.privstats"}
    theirs = {message.metadata.message_type for message in grid.pushed if message not in ours}
    assert theirs == {"train", "evaluate"}
    assert all(seen(context) == 2 and list(context.state) == ["rounds"] for context in grid.contexts.values())
    later = AtOnce(joined(study), 5)
    assert flower.run_plan(later, study.host) == release, "an app that was killed behind it calls again"
    (study.host / "release.safetensors").unlink()
    with pytest.raises(SessionEndedError, match="this session ended on"):
        flower.run_plan(later, study.host)


def test_a_party_without_records_is_missing_from_the_sum_and_trains_all_the_same(study, caplog):
    (study.home(3) / "records.npz").unlink()
    grid = AtOnce(joined(study), 5)
    release = flower.run_plan(grid, study.host)
    assert release.survivors == (0, 1, 2, 4)
    assert np.array_equal(release.vector, study.exact((0, 1, 2, 4)))
    assert "FileNotFoundError" in caplog.text, "its operator reads why"
    fed_avg(grid)
    assert seen(grid.contexts[103]) == 1


def test_an_app_that_is_killed_in_the_middle_goes_on_with_the_same_session(tmp_path):
    """Nobody answers twice, and each party pays once."""
    study = study_of(tmp_path, privacy=PROMISE)
    open_accounts(study, 2.0)
    with pytest.raises(KeyboardInterrupt):
        flower.run_plan(Killed(joined(study), 5), study.host)
    release = flower.run_plan(AtOnce(joined(study), 5), study.host)
    assert release.survivors == (0, 1, 2, 3, 4)
    assert [len(spent(study, party)) for party in range(5)] == [1] * 5


class Killed(AtOnce):
    """A grid whose app ends at its eighteenth message."""

    def push_messages(self, messages):
        if len(self.pushed) == 17:
            raise KeyboardInterrupt
        return super().push_messages(messages)


def test_a_session_that_was_given_up_has_no_release(study):
    for party in range(5):
        (study.home(party) / "records.npz").unlink()
    with pytest.raises(TooFewAnswersError, match=r"missing: .*Bonn.*Nothing is lost: call it again"):
        flower.run_plan(AtOnce(joined(study), 5), study.host)
    Host.open(study.host).give_up()
    with pytest.raises(SessionEndedError, match="without a sum"):
        flower.run_plan(AtOnce(joined(study), 5), study.host)


class TestLyingServer:
    """It runs in their app, on their grid, and has the same folders to ask as any other."""

    def test_another_plan_is_refused_and_nothing_is_spent(self, tmp_path, caplog):
        study = study_of(tmp_path / "agreed", privacy=PROMISE)
        open_accounts(study, 2.0)
        cheap = study.plan.to_toml().replace("epsilon = 2.0", "epsilon = 90.0")
        (study.host / "plan.toml").write_text(cheap)
        grid = AtOnce(joined(study), 5)
        with pytest.raises(TooFewAnswersError):
            flower.run_plan(grid, study.host)
        assert "runs another plan" in caplog.text
        assert [spent(study, party) for party in range(5)] == [()] * 5

    @pytest.mark.ci
    def test_a_second_sum_under_the_same_run_is_refused(self, tmp_path):
        """With the server's folder as it was before: nobody answers twice, and no party pays twice."""
        study = study_of(tmp_path, privacy=PROMISE)
        open_accounts(study, 2.0)
        shutil.copytree(study.host, tmp_path / "before")
        flower.run_plan(AtOnce(joined(study), 5), study.host)
        with pytest.raises((TooFewAnswersError, ps.AggregationError)):
            flower.run_plan(AtOnce(joined(study), 5), tmp_path / "before")
        assert [len(spent(study, party)) for party in range(5)] == [1] * 5

    @pytest.mark.parametrize(
        "content",
        [
            RecordDict(),
            RecordDict({"privstats": ConfigRecord({"round": b"open the folder"})}),
            RecordDict({"privstats": ConfigRecord({"open": b"\x00" * 200})}),
            RecordDict({"privstats": ConfigRecord({"round": b""}), "theirs": ConfigRecord({"more": 1})}),
        ],
    )
    def test_what_no_server_of_ours_sends_gets_a_code_and_no_text(self, study, content):
        reply = asked(AtOnce(joined(study), 1), content, records.MESSAGE_TYPE)
        code, data = records.unpack(reply.content, "node")
        assert code in ("failed", "damaged", "version")
        assert not reply.has_error()
        assert not (study.home(0) / "sessions").exists()

    def test_our_record_in_a_message_of_theirs_is_theirs(self, study):
        """Their handler answers a message of its type, whatever is in it."""
        reply = asked(AtOnce(joined(study), 1), records.pack("round", b"open"), "query")
        assert list(reply.content) == ["theirs"]


class TestJoin:
    def test_no_text_of_an_error_leaves(self, caplog):
        app = client_app()
        flower.join(app, lambda context: Path("/records of Mary").read_text())
        reply = asked(AtOnce(app, 1), records.pack("round", b""), records.MESSAGE_TYPE)
        assert records.unpack(reply.content, "node") == ("failed", b"")
        assert "FileNotFoundError" in caplog.text
        assert "Mary" not in caplog.text

    @pytest.mark.parametrize("home", ["study/party", lambda context: "study/party"])
    def test_a_relative_path_is_refused(self, home, caplog):
        app = client_app()
        flower.join(app, home)
        reply = asked(AtOnce(app, 1), records.pack("round", b""), records.MESSAGE_TYPE)
        assert records.unpack(reply.content, "node") == ("failed", b"")
        assert "absolute path, got 'study/party'" in caplog.text

    def test_by_default_the_node_names_its_folder(self, study, monkeypatch, caplog):
        app = client_app()
        flower.join(app)
        grid = AtOnce(app, 1)
        monkeypatch.delenv(PARTIES, raising=False)
        asked(grid, records.pack("round", b""), records.MESSAGE_TYPE)
        assert "start the node with --node-config" in caplog.text
        grid.contexts[100].node_config["privstats-home"] = str(study.home(0))
        reply = asked(grid, records.pack("round", b"no envelope"), records.MESSAGE_TYPE)
        assert records.unpack(reply.content, "node")[0] == "damaged", "which the folder has said"

    def test_a_node_that_is_not_simulated_refuses_the_keys_of_a_simulation(self, tmp_path, caplog):
        (tmp_path / "script.py").write_text("def load():\n    return [[0.1, 0.2], [0.3, 0.4]], [0, 1]\n")
        plan = ps.Plan(schema=ps.ClassSchema(2, 2, "NA", 1.0), cohort=ps.Cohort(2, 2, 10), privacy=ps.NoPrivacy())
        flower.simulated_study(tmp_path / "study", plan, tmp_path / "script.py")
        app = client_app()
        flower.join(app, tmp_path / "study" / "parties" / "0")
        grid = AtOnce(app, 1)
        assert records.unpack(asked(grid, records.pack("round", b""), records.MESSAGE_TYPE).content, 0)[0] == "damaged"
        grid.contexts[100].node_config.clear()
        reply = asked(grid, records.pack("round", b""), records.MESSAGE_TYPE)
        assert records.unpack(reply.content, 0)[0] == "failed"
        assert "the roster's label is 'simulation'" in caplog.text

    def test_an_app_joins_once(self):
        app = client_app()
        flower.join(app, "/srv/party")
        with pytest.raises(PrivstatsError, match="join it once"):
            flower.join(app, "/srv/party")

    def test_an_app_of_a_client_fn_takes_the_mod(self, study):
        calls = []

        def client_fn(context):
            calls.append(context)
            raise RuntimeError("their client")

        with pytest.raises(PrivstatsError, match=r"mods=\[party_mod\(\)\]"):
            flower.join(ClientApp(client_fn))
        home = flower.party_mod(lambda context: study.home(context.node_config["partition-id"]))
        grid = AtOnce(ClientApp(client_fn, mods=[home]), 5)
        assert flower.run_plan(grid, study.host).survivors == (0, 1, 2, 3, 4)
        assert not calls
        assert asked(grid, RecordDict(), "train").has_error(), "their messages reach their client"
        assert len(calls) == 1


class TestRunPlan:
    def test_the_host_is_named_by_an_absolute_path_or_the_environment(self, study, monkeypatch, caplog):
        grid = AtOnce(joined(study), 5)
        with pytest.raises(PrivstatsError, match="absolute path, got 'study/host'"):
            flower.run_plan(grid, "study/host")
        monkeypatch.setenv("PRIVSTATS_HOME", str(study.host))
        with caplog.at_level("INFO", "flwr"):
            assert flower.run_plan(grid).survivors == (0, 1, 2, 3, 4)
        assert any("5 of 5 answered" in line for line in caplog.messages), "in the log that its operator reads"

    def test_a_course_has_a_call_of_its_own(self, tmp_path):
        study = course_study(tmp_path)
        with pytest.raises(PlanError, match="call run_course"):
            flower.run_plan(AtOnce(joined(study), 5), study.host)
