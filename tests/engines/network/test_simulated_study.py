"""Folders to try an app with: a whole session comes of them, and what cannot be made is one sentence."""

import os

import numpy as np
import pytest

import privstats as ps
from privstats.dp import Ledger
from privstats.engines.network import party
from privstats.engines.network.host import Host, named_home, run_releases
from privstats.engines.network.study import LocalTransport, simulated_study
from privstats.engines.network.transport import Deadlines
from privstats.errors import DataError, PlanError, PrivstatsError, SessionEndedError
from tests import made
from tests.engines.network.fake import plan_of

SCRIPT = """
from pathlib import Path

import numpy as np


def load():
    rng = np.random.default_rng(int(Path(__file__).parent.name))
    return rng.normal(size=(9, 3)), np.arange(9) % 2
"""


@pytest.fixture
def script(tmp_path):
    (tmp_path / "script.py").write_text(SCRIPT)
    return tmp_path / "script.py"


def plan(**changes):
    promise = ps.Privacy(model="distributed", unit="record", adjacency="add-remove", epsilon=2.0, delta=1e-5)
    given = {"schema": ps.ClassSchema(2, 3, "NA", 2.0), "cohort": ps.Cohort(3, 2, 100), "privacy": promise}
    return made.plan(**{**given, **changes})


def run(study, names=("0", "1", "2")):
    nodes = LocalTransport({place: study / "parties" / name for place, name in enumerate(names)})
    return run_releases(Host.open(study / "host"), nodes, Deadlines(), again="", sleep=lambda _: None)


def test_a_session_comes_of_them_once_and_every_ledger_is_full(tmp_path, script):
    study = tmp_path / "study"
    simulated_study(study, plan(), script)
    (release,) = run(study)
    assert release.survivors == (0, 1, 2)
    assert release.plan == plan()
    (again,) = run(study)
    assert np.array_equal(again.vector, release.vector), "it is read, and not run again"
    account = Ledger.open(study / "parties" / "1" / "ledger").account("records")
    assert account.spent == pytest.approx(2.0, rel=1e-6)
    (study / "host" / "release.safetensors").write_bytes(b"another file")
    with pytest.raises(SessionEndedError):
        run(study)


def test_a_whole_course_comes_of_them_in_folders_of_any_names(tmp_path, script):
    promise = ps.Privacy(model="distributed", unit="record", adjacency="add-remove", epsilon=2.0, delta=1e-5)
    unit = (ps.transforms.UnitNorm(),)
    first = plan(schema=ps.ClassSchema(2, 3, "NAB", 1.0, transform=unit), privacy=promise)
    course = ps.Rounds.within(first, rounds=1)
    sites = ["site-1", "site-2", "site-3"]
    script.write_text(SCRIPT.replace(".parent.name", ".parent.name[5:]"))
    simulated_study(tmp_path / "study", course, script, names=sites)
    releases = run(tmp_path / "study", sites)
    assert [release.survivors for release in releases] == [(0, 1, 2)] * 2
    account = Ledger.open(tmp_path / "study" / "parties" / "site-2" / "ledger").account("records")
    assert account.spent == pytest.approx(2.0, rel=1e-6)
    assert account.spent <= account.cap.epsilon


def test_no_node_of_a_network_answers_for_them(tmp_path, script, caplog):
    simulated_study(tmp_path / "study", plan(privacy=ps.NoPrivacy()), script)
    home = tmp_path / "study" / "parties" / "0"
    assert party.answer(home, "round", b"", simulated=True).code == "damaged", "the folder has read it"
    assert party.answer(home, "round", b"", simulated=False).code == "failed"
    assert "for simulated nodes alone; make the folders with `privstats flower new`" in caplog.text


def test_only_their_owner_reads_them(tmp_path, script):
    simulated_study(tmp_path / "study", plan(privacy=ps.NoPrivacy()), script)
    homes = [tmp_path / "study" / name for name in ("host", "parties/0", "parties/1", "parties/2")]
    assert {home.stat().st_mode & 0o777 for home in homes} == {0o700}
    assert len({(home / "identity.pem").read_bytes() for home in homes}) == 4
    assert not (homes[1] / "ledger").exists()


def test_what_cannot_be_made_is_one_sentence(tmp_path, script):
    with pytest.raises(DataError, match=r"script that is not there\.py"):
        simulated_study(tmp_path / "study", plan(), tmp_path / "script that is not there.py")
    with pytest.raises(PrivstatsError, match="cannot make"):
        simulated_study(script / "study", plan(), script)
    (tmp_path / "study").mkdir()
    with pytest.raises(PrivstatsError, match="exists; name another folder"):
        simulated_study(tmp_path / "study", plan(), script)
    helpers = [ps.secagg.Identity.generate(os.urandom) for _ in range(2)]
    with pytest.raises(PlanError, match="no helpers"):
        simulated_study(tmp_path / "another", plan_of("split", helpers), script)
    with pytest.raises(PlanError, match="parties of a stream bring changes"):
        simulated_study(tmp_path / "another", ps.Stream(plan(), 4), script)
    for names in (["a", "b"], ["a", "b", "b"], ["a", "b", "../c"], ["a", "b", ""]):
        with pytest.raises(PlanError, match="names must be 3 different names"):
            simulated_study(tmp_path / "another", plan(), script, names=names)
    assert not (tmp_path / "another").exists()


def test_a_folder_is_named_by_the_call_or_the_environment(tmp_path):
    assert named_home(tmp_path, {"HOME_OF": "/elsewhere"}, "HOME_OF") == tmp_path
    assert str(named_home(None, {"HOME_OF": "/elsewhere"}, "HOME_OF")) == "/elsewhere"
    with pytest.raises(PrivstatsError, match="set HOME_OF before the server starts"):
        named_home(None, {}, "HOME_OF")
    with pytest.raises(PrivstatsError, match="absolute path, got 'study'"):
        named_home(None, {"HOME_OF": "study"}, "HOME_OF")
