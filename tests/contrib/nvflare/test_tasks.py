"""What travels over FLARE, and what becomes of a task: without FLARE's server, by day."""

from types import SimpleNamespace

import numpy as np
import pytest

pytest.importorskip("nvflare", reason='pip install "privstats[nvflare]"')

from nvflare.apis.fl_constant import ReturnCode
from nvflare.apis.fl_context import FLContext
from nvflare.apis.shareable import Shareable, make_reply
from nvflare.apis.signal import Signal

from privstats.contrib.nvflare import controller, executor, job
from privstats.contrib.nvflare.controller import HOST, FlareTransport, PrivstatsController
from privstats.engines.network.study import LocalTransport
from privstats.engines.network.transport import Answer, Reply
from privstats.errors import PrivstatsError, RemoteProtocolError
from tests.engines.network.fake import study_of


class FakeController:
    """Keeps what is sent; a test says what becomes of it."""

    def __init__(self, *sites):
        self.sites, self.away, self.sent = list(sites), set(), []

    def get_clients(self):
        return [SimpleNamespace(name=name) for name in self.sites]

    def get_engine(self):
        return self

    def get_client_disconnect_time(self, name):
        return 1.0 if name in self.away else None

    def send(self, task, context, targets):
        self.sent.append((task, targets))


def transport(*sites):
    controller, aborted = FakeController(*sites), Signal()
    return FlareTransport(controller, controller, aborted), controller, aborted


def ends(task, result=None):
    """FLARE's own order: the result, if there is one, and then that the task is done."""
    if result is not None:
        client_task = SimpleNamespace(result=result, result_received_time=1.0)
        task.client_tasks.append(client_task)
        task.result_received_cb(client_task=client_task, fl_ctx=None)
    task.task_done_cb(task=task, fl_ctx=None)


def test_a_word_and_bytes_come_back_as_they_went():
    assert job.unpack(job.pack("step", b"\x00\xff"), "server") == ("step", b"\x00\xff")
    assert job.unpack(Shareable.from_bytes(job.pack("ok", bytes(1 << 20)).to_bytes()), "x")[1] == bytes(1 << 20)


@pytest.mark.parametrize(
    ("content", "code"),
    [
        ({}, "malformed"),
        ({"word": "step"}, "malformed"),
        ({"word": "", "data": b""}, "malformed"),
        ({"word": "x" * 33, "data": b""}, "malformed"),
        ({"word": 1, "data": b""}, "malformed"),
        ({"word": "step", "data": "text"}, "malformed"),
        ({"word": "step", "data": bytes(11)}, "too_large"),
    ],
)
def test_what_is_no_word_and_bytes_is_refused(content, code):
    with pytest.raises(RemoteProtocolError) as refusal:
        job.unpack(Shareable(content), "site-1", most=10)
    assert refusal.value.code == code


class TestTransport:
    def test_sites_keep_their_numbers_whoever_comes_and_goes(self):
        carrier, controller, _ = transport("b", "c")
        assert carrier.online() == [0, 1]
        controller.sites.append("a")
        controller.away.add("c")
        assert [carrier.name(node) for node in carrier.online()] == ["a", "b"]
        assert carrier.name(1) == "c"

    def test_a_task_goes_to_one_site_and_its_result_is_pulled_once(self):
        carrier, controller, _ = transport("a", "b")
        carrier.online()
        message = carrier.push(1, "step", b"question", ttl=2.5)
        ((task, targets),) = controller.sent
        assert (task.name, targets, task.timeout) == (job.TASK, ["b"], 3)
        assert job.unpack(task.data, "server") == ("step", b"question")
        assert carrier.pull(message, 100) is None
        ends(task, job.pack("ok", b"answer"))
        assert carrier.pull(message, 100) == Reply("ok", b"answer")
        assert carrier.pull(message, 100) is None

    @pytest.mark.parametrize(
        ("result", "reply"),
        [
            (None, "error:5"),
            (make_reply(ReturnCode.EXECUTION_EXCEPTION), "error:5"),
            (Shareable({"word": "ok", "data": bytes(101)}), "too_large"),
            (Shareable({"something": "else"}), "malformed"),
        ],
    )
    def test_what_is_no_answer_has_a_code_and_no_bytes(self, result, reply):
        carrier, controller, _ = transport("a")
        carrier.online()
        message = carrier.push(0, "step", b"", ttl=60)
        ends(controller.sent[0][0], result)
        assert carrier.pull(message, 100) == Reply(reply)

    def test_an_aborted_job_ends_the_run_and_loses_nothing(self):
        carrier, _, aborted = transport("a")
        carrier.online()
        aborted.trigger(True)
        for act in (carrier.online, lambda: carrier.push(0, "step", b"", ttl=1)):
            with pytest.raises(PrivstatsError, match="submit it again, and the session goes on"):
                act()


class TestExecutor:
    CONTEXT = SimpleNamespace(get_identity_name=lambda: "site-1")

    def answer(self, shareable, task=job.TASK):
        return executor.PrivstatsExecutor().execute(task, shareable, self.CONTEXT, Signal())

    def test_the_party_whose_folder_the_environment_names_answers(self, monkeypatch, tmp_path):
        asked = []

        def answer(*words, simulated):
            asked.append((*words, simulated))
            return Answer("ok", b"said")

        monkeypatch.setattr(executor, "answer", answer)
        monkeypatch.setenv(executor.PARTIES, str(tmp_path))
        assert job.unpack(self.answer(job.pack("open", b"data")), "x") == ("ok", b"said")
        monkeypatch.setenv(executor.HOME, str(tmp_path / "mine"))
        self.answer(job.pack("open", b"data"))
        assert asked == [(tmp_path / "site-1", "open", b"data", True), (tmp_path / "mine", "open", b"data", False)]

    def test_no_reason_leaves_the_site(self, monkeypatch, caplog):
        monkeypatch.delenv(executor.HOME, raising=False)
        monkeypatch.delenv(executor.PARTIES, raising=False)
        assert job.unpack(self.answer(job.pack("open", b"")), "x") == ("failed", b"")
        assert "set PRIVSTATS_HOME in the environment of FLARE's client" in caplog.text
        assert job.unpack(self.answer(Shareable({"word": 3})), "x") == ("failed", b"")

    def test_a_site_that_is_named_like_a_path_has_no_folder(self, monkeypatch, tmp_path):
        monkeypatch.delenv(executor.HOME, raising=False)
        monkeypatch.setenv(executor.PARTIES, str(tmp_path / "parties"))
        for name in ("../elsewhere", "/etc", "..", "a/b"):
            with pytest.raises(PrivstatsError, match="no party's folder is named"):
                executor.home_of(name)

    def test_another_task_is_not_known(self):
        assert self.answer(job.pack("open", b""), task="train").get_return_code() == ReturnCode.TASK_UNKNOWN


def test_a_job_names_two_classes_and_two_times_and_no_path(tmp_path):
    folder = job.write_job(tmp_path / "job", open_seconds=150)
    text = "".join(path.read_text() for path in sorted(folder.rglob("*.json")))
    assert "privstats.contrib.nvflare.controller.PrivstatsController" in text
    assert "privstats.contrib.nvflare.executor.PrivstatsExecutor" in text
    assert str(tmp_path) not in text
    assert not list(folder.rglob("*.py"))
    with pytest.raises(PrivstatsError, match="exists; name another folder"):
        job.write_job(folder)
    with pytest.raises(PrivstatsError, match=r"cannot make .*: Not a directory"):
        job.write_job(folder / "meta.json" / "job")


def test_a_server_without_a_folder_says_what_to_set(monkeypatch):
    monkeypatch.delenv(HOST, raising=False)
    controller = PrivstatsController()
    said = []
    monkeypatch.setattr(controller, "system_panic", lambda reason, _: said.append(reason))
    controller.control_flow(Signal(), FakeController())
    assert said == ["no host's folder is named: set PRIVSTATS_HOST in the environment of FLARE's server"]


class TestInTheirJob:
    """What the workflows behind ours find in FLARE's context."""

    @pytest.fixture
    def context(self, monkeypatch, tmp_path):
        study = study_of(tmp_path)
        monkeypatch.setenv(HOST, str(study.host))
        monkeypatch.setattr(controller, "FlareTransport", lambda *_: LocalTransport(homes(study)))
        return FLContext(), study

    def test_the_release_is_there_and_again_when_the_job_is_submitted_again(self, context):
        given, study = context
        for _ in range(2):
            PrivstatsController().control_flow(Signal(), given)
            (release,) = given.get_prop(controller.RELEASES)
            assert np.array_equal(release.vector, study.exact(range(5)))
        assert controller.RELEASES not in given.get_all_public_props(), "it goes to no site"

    def test_too_few_fail_the_job_with_what_to_do(self, context, monkeypatch):
        given, study = context
        for peer in range(5):
            (study.home(peer) / "records.npz").unlink()
        said = []
        ours = PrivstatsController()
        monkeypatch.setattr(ours, "system_panic", lambda reason, _: said.append(reason))
        ours.control_flow(Signal(), given)
        (reason,) = said
        assert reason.endswith("Nothing is lost: submit the job again, and the session goes on")
        assert given.get_prop(controller.RELEASES) is None


def homes(study):
    return {100 + peer: study.home(peer) for peer in range(len(study.identities))}
