"""Sessions over FLARE's own simulator: a process per site, its real server, and the exact sum."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("nvflare", reason='pip install "privstats[nvflare]"')

import privstats as ps
from privstats.contrib.nvflare.job import write_job
from privstats.dp import Ledger
from privstats.release import Release
from privstats.secagg.protocols import PROTOCOLS
from tests.engines.network.fake import study_of

ROOT = Path(__file__).parents[3]
RUN = """
import sys
from nvflare.private.fed.app.simulator.simulator_runner import SimulatorRunner
job, workspace, sites = sys.argv[1:]
sys.exit(SimulatorRunner(job_folder=job, workspace=workspace, n_clients=int(sites), threads=int(sites)).run())
"""


def simulated(place, study, allowed="privstats.contrib.nvflare."):
    """A run of the simulator over a study's folders, whose sites allow one prefix of class names."""
    parties = place / "parties"
    if not parties.exists():
        parties.mkdir()
        for peer in range(len(study.peers)):
            study.home(peer).rename(parties / f"site-{peer + 1}")
        write_job(place / "job", open_seconds=120, step_seconds=120)
    local = place / "workspace" / "local"
    local.mkdir(parents=True, exist_ok=True)
    (local / "resources.json").write_text(json.dumps({"class_allow_list": [allowed]}))
    environment = {"PRIVSTATS_PARTIES": str(parties), "PRIVSTATS_HOST": str(study.host), "PYTHONPATH": str(ROOT)}
    return subprocess.run(
        [sys.executable, "-c", RUN, place / "job", place / "workspace", str(len(study.peers))],
        env={**os.environ, **environment},
        cwd=place,
        capture_output=True,
        text=True,
        timeout=600,
    )


@pytest.mark.nightly
@pytest.mark.waits
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_five_sites_give_the_exact_sum(tmp_path, protocol):
    study = study_of(tmp_path, protocol)
    done = simulated(tmp_path, study)
    assert done.returncode == 0, done.stdout + done.stderr
    release = Release.load(study.host / "release.safetensors")
    assert release.survivors == (0, 1, 2, 3, 4)
    assert np.array_equal(release.vector, study.exact(range(5)))
    again = simulated(tmp_path, study)
    assert "this session ended on" in again.stdout + again.stderr, "a job that is submitted again begins nothing new"


@pytest.mark.nightly
@pytest.mark.waits
def test_a_site_that_does_not_allow_our_classes_runs_none_of_them(tmp_path):
    study = study_of(tmp_path)
    done = simulated(tmp_path, study, allowed="nvflare.")
    assert "is not in allow_list" in done.stdout + done.stderr
    assert not (study.host / "release.safetensors").exists()


@pytest.mark.nightly
@pytest.mark.waits
def test_five_sites_of_raw_tables_find_cut_points_and_make_a_model(tmp_path):
    """CSV files of two dialects, Parquet, and a cluster's own partitions."""
    pytest.importorskip("pandas")
    from tests.engines.network.courses.test_declared_tables import study_of_files

    study = study_of_files(tmp_path, "centred")
    done = simulated(tmp_path, study)
    assert done.returncode == 0, done.stdout + done.stderr
    releases = [Release.load(path) for path in sorted(study.host.glob("nodes/*/release.safetensors"))]
    assert [release.plan.schema.task for release in releases] == ["counts", "counts", "mean", "classes"]
    assert all(release.survivors == (0, 1, 2, 3, 4) for release in releases)
    assert ps.heads.LDA().fit_release(releases).provenance_.epsilon == pytest.approx(4.0, rel=1e-6)


THEIR_SCRIPT = """
import numpy as np
import nvflare.client as flare

flare.init()
while flare.is_running():
    model = flare.receive()
    update = {"numpy_key": np.ones((2, 3)) * 50}
    flare.send(flare.FLModel(params=update, params_type="DIFF", metrics={"accuracy": 0.5}))
"""
THEIR_JOB = """
import sys

import numpy as np
from nvflare.app_common.np.np_model_persistor import NPModelPersistor
from nvflare.app_common.workflows.fedavg import FedAvg
from nvflare.job_config.api import FedJob
from nvflare.job_config.defs import FilterType
from nvflare.job_config.script_runner import ScriptRunner
from privstats.contrib.nvflare.controller import PrivstatsController
from privstats.contrib.nvflare.executor import PrivstatsExecutor
from privstats.contrib.nvflare.weights import PrivateWeights

weights = PrivateWeights({"numpy_key": [2, 3]}, clip_norm=1.0, epsilon=8.0, delta=1e-5, rounds=2)
job = FedJob(name="both", min_clients=3)
job.to_server(PrivstatsController(open_seconds=120, step_seconds=120))
job.to_server(NPModelPersistor(model=np.zeros((2, 3)).tolist()), id="persistor")
job.to_server(FedAvg(num_clients=3, num_rounds=int(sys.argv[2])))
job.to_clients(PrivstatsExecutor(), tasks=["privstats"])
job.to_clients(ScriptRunner(script="client.py", framework="numpy"), tasks=["train"])
job.to_clients(weights, filter_type=FilterType.TASK_RESULT, tasks=["train"])
sys.exit(job.simulator_run(sys.argv[1], n_clients=3, threads=3) or 0)
"""


@pytest.mark.nightly
@pytest.mark.waits
@pytest.mark.parametrize(("rounds", "ends_well"), [(2, True), (3, False)])
def test_in_their_job_a_release_comes_before_fedavg_whose_weights_have_noise(tmp_path, rounds, ends_well):
    """The third round is one more than the ledgers of the sites admit."""
    study = study_of(tmp_path, names=("a", "b", "c"), cohort=ps.Cohort(3, 3, 100))
    (tmp_path / "parties").mkdir()
    for peer in range(3):
        made = Ledger.create(study.home(peer) / "ledger")
        made.set_cap("weights", unit="client", adjacency="replace-one", epsilon=8.0, delta=1e-5)
        with (study.home(peer) / "records.py").open("a") as script:
            script.write('\ndataset = "sums"\n')  # beside the account of the weights
        study.home(peer).rename(tmp_path / "parties" / f"site-{peer + 1}")
    (tmp_path / "client.py").write_text(THEIR_SCRIPT)
    paths = {"PRIVSTATS_PARTIES": tmp_path / "parties", "PRIVSTATS_HOST": study.host, "PYTHONPATH": ROOT}
    done = subprocess.run(
        [sys.executable, "-c", THEIR_JOB, tmp_path / "workspace", str(rounds)],
        env={**os.environ, **{name: str(path) for name, path in paths.items()}},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=600,
    )
    said = done.stdout + done.stderr
    assert np.array_equal(Release.load(study.host / "release.safetensors").vector, study.exact(range(3))), said
    accounts = [Ledger.open(tmp_path / "parties" / f"site-{n}" / "ledger").account("weights") for n in (1, 2, 3)]
    assert [len(account.entries) for account in accounts] == [2, 2, 2], said
    assert ("account 'weights' would reach epsilon" in said) is not ends_well
    assert (done.returncode == 0) is ends_well, said
