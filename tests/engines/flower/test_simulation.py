"""Fifty parties in Flower's own simulation engine: the two apps as they are, one folder for each party."""

import numpy as np
import pytest

import privstats as ps
from privstats.release import Release
from tests.engines.flower.simulated import simulation, study_of_many
from tests.engines.network.fake import SCHEMA, records_of
from tests.lacking import needs

PARTIES = 50


@pytest.mark.nightly
@pytest.mark.waits
def test_fifty_parties_give_the_exact_sum(tmp_path):
    needs("ray")
    study = study_of_many(tmp_path, PARTIES)
    with simulation(study, tmp_path) as run:
        said = run()
    path = study.host / "release.safetensors"
    assert path.exists(), said.stdout + said.stderr + (tmp_path / "superlink.log").read_text()[-3000:]
    release = Release.load(path)
    assert release.survivors == tuple(range(PARTIES))
    whole = ps.measure(SCHEMA, *map(np.concatenate, zip(*map(records_of, range(PARTIES)), strict=True)))
    assert vars(release.moments)
    for name, array in vars(Release.exact(SCHEMA, whole).moments).items():
        np.testing.assert_array_equal(getattr(release.moments, name), array)
