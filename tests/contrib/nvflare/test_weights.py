"""The filter as FLARE calls it: arrays with noise leave, and nothing else, and no more often than was promised."""

import re
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

pytest.importorskip("nvflare", reason='pip install "privstats[nvflare]"')

from nvflare.apis.dxo import DXO, DataKind, MetaKey, from_shareable
from nvflare.apis.fl_constant import ReturnCode
from nvflare.apis.shareable import Shareable, make_reply
from nvflare.app_common.app_constant import AppConstants
from nvflare.private.fed.app.fl_conf import create_privacy_manager

from privstats.contrib.nvflare import executor, job
from privstats.contrib.nvflare.weights import PrivateWeights
from privstats.dp import Ledger
from privstats.errors import DataError, LedgerError, PlanError, PrivstatsError

PAGE = Path(__file__).parents[3] / "docs" / "inside_flower.md"
CONTEXT = SimpleNamespace(get_identity_name=lambda: "site-1")
PUBLIC = {"shapes": {"W": [2, 3]}, "clip_norm": 1.0, "epsilon": 8.0, "delta": 1e-5, "rounds": 2}
SECRET = 1234567.25


@pytest.fixture(autouse=True)
def ledger(tmp_path, monkeypatch):
    (tmp_path / "site-1").mkdir()
    made = Ledger.create(tmp_path / "site-1" / "ledger")
    made.set_cap("weights", unit="client", adjacency="replace-one", epsilon=8.0, delta=1e-5)
    monkeypatch.delenv(executor.HOME, raising=False)
    monkeypatch.setenv(executor.PARTIES, str(tmp_path))
    return made


def result(kind=DataKind.WEIGHT_DIFF, data=None, **meta):
    """A training script's, with everything in it that tells of records."""
    given = {"W": np.full((2, 3), SECRET)} if data is None else data
    about = {MetaKey.NUM_STEPS_CURRENT_ROUND: 417, MetaKey.INITIAL_METRICS: {"loss": SECRET}, **meta}
    shareable = DXO(kind, data=given, meta=about).to_shareable()
    shareable.set_header(AppConstants.CURRENT_ROUND, 3)
    shareable.set_header("note", SECRET)
    shareable["note"] = SECRET
    return shareable


@pytest.mark.parametrize("kind", [DataKind.WEIGHT_DIFF, DataKind.WEIGHTS])
def test_arrays_leave_with_noise_and_nothing_else_does(kind, ledger):
    sent = PrivateWeights(**PUBLIC).process(result(kind), CONTEXT)
    dxo = from_shareable(sent)
    assert (dxo.data_kind, dxo.meta, list(dxo.data)) == (kind, {}, ["W"])
    assert dxo.data["W"].dtype == np.float32
    assert np.linalg.norm(dxo.data["W"]) < 1000, "the clip is 1, and the noise a few times that"
    assert sent.get_return_code() == ReturnCode.OK
    assert sent.get_header(AppConstants.CURRENT_ROUND) is None, "a script may say any number, and the server knows it"
    assert str(SECRET) not in repr(sent)
    assert "417" not in repr(sent)
    assert [entry.released is not None for entry in ledger.account("weights").entries] == [True]


def test_a_used_up_promise_is_refused_by_name(ledger):
    private = PrivateWeights(**PUBLIC)
    for _ in range(2):
        private.process(result(), CONTEXT)
    with pytest.raises(LedgerError, match="account 'weights' would reach epsilon"):
        private.process(result(), CONTEXT)
    with pytest.raises(LedgerError, match="account 'weights' would reach epsilon"):
        PrivateWeights(**PUBLIC).process(result(), CONTEXT)
    assert len(ledger.account("weights").entries) == 2, "another job is charged to the same account"


@pytest.mark.parametrize(
    "shareable",
    [
        Shareable({"W": SECRET}),
        result(DataKind.METRICS, {"loss": SECRET}),
        result(DataKind.COLLECTION, {"one": DXO(DataKind.WEIGHTS, data={"W": np.ones((2, 3))})}),
        result(data={"W": np.ones((2, 3)), "more": np.ones(1)}),
        result(data={"W": np.ones((3, 2))}),
        job.pack("ok", b"an answer of ours"),
    ],
)
def test_what_is_no_update_of_the_model_stays_here(shareable, ledger):
    with pytest.raises(DataError) as refusal:
        PrivateWeights(**PUBLIC).process(shareable, CONTEXT)
    assert str(SECRET) not in str(refusal.value)
    assert ledger.account("weights").entries == ()


@pytest.mark.parametrize("code", [ReturnCode.EXECUTION_EXCEPTION, ReturnCode.BAD_TASK_DATA, f"a loss of {SECRET}"])
def test_of_a_failed_task_nothing_leaves_but_that_it_failed(code, ledger):
    """A code is any text that the script sets."""
    failed = make_reply(code)
    failed["note"] = SECRET
    sent = PrivateWeights(**PUBLIC).process(failed, CONTEXT)
    assert sent.get_return_code() == ReturnCode.EXECUTION_EXCEPTION
    assert str(SECRET) not in repr(sent)
    assert ledger.account("weights").entries == ()


def test_a_site_without_a_folder_sends_nothing(monkeypatch):
    monkeypatch.delenv(executor.PARTIES)
    with pytest.raises(PrivstatsError, match="set PRIVSTATS_HOME"):
        PrivateWeights(**PUBLIC).process(result(), CONTEXT)


def test_a_value_out_of_range_fails_the_job_before_it_begins():
    with pytest.raises(PlanError, match="epsilon"):
        PrivateWeights(**{**PUBLIC, "epsilon": -1.0})


def test_a_site_enforces_the_filter_for_every_job_in_its_own_privacy_policy(tmp_path, ledger):
    """As FLARE reads ``local/privacy.json``, and as the page has it."""
    (text,) = re.findall(r"```json\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL)
    (tmp_path / "privacy.json").write_text(text)
    workspace = SimpleNamespace(get_site_privacy_file_path=lambda: str(tmp_path / "privacy.json"))
    scope = create_privacy_manager(workspace, names_only=False).get_scope(None)
    (private,) = scope.task_result_filters["out"]
    assert isinstance(private, PrivateWeights)
    ledger.set_cap("weights", unit="client", adjacency="replace-one", epsilon=private.epsilon, delta=private.delta)
    data = {name: np.ones(shape) for name, shape in private.shapes.items()}
    assert from_shareable(private.process(result(data=data), CONTEXT)).meta == {}
