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
from privstats.engines.nvflare.job import write_job
from privstats.release import Release
from tests.engines.network.fake import study_of

ROOT = Path(__file__).parents[3]
RUN = """
import sys
from nvflare.private.fed.app.simulator.simulator_runner import SimulatorRunner
job, workspace, sites = sys.argv[1:]
sys.exit(SimulatorRunner(job_folder=job, workspace=workspace, n_clients=int(sites), threads=int(sites)).run())
"""


def simulated(place, study, allowed="privstats.engines.nvflare."):
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
@pytest.mark.parametrize("protocol", ["interactive", "split"])
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
