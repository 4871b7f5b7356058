"""Five parties and a server as processes, over Flower with TLS and node authentication: killed, and exact."""

import numpy as np
import pytest

import privstats as ps
from privstats import session
from privstats.dp import Ledger
from privstats.release import Release
from tests.engines.flower import shipped
from tests.engines.flower.federation import Federation
from tests.engines.flower.network import study_of

STEPS = ("advertise", "share", "mask", "agree", "unmask")
MASK, UNMASK = STEPS.index("mask"), STEPS.index("unmask")


def with_noise():
    """A plan under which every party draws a share of the noise, so that no two contributions are alike."""
    return {
        "cohort": ps.Cohort(clients=5, min_survivors=4, colluders=1, max_records=100),
        "privacy": ps.Privacy(epsilon=4.0, delta=1e-5, unit="record", adjacency="add-remove", model="distributed"),
    }


def open_accounts(study):
    for peer in range(5):
        ledger = Ledger.create(study.home(peer) / "ledger")
        ledger.set_cap("ward", unit="record", adjacency="add-remove", epsilon=50.0, delta=1e-3)
        (study.home(peer) / "ledger").chmod(0o600)


def hostile_app(place):
    app = place / "hostile-app"
    (app / "hostile").mkdir(parents=True)
    (app / "pyproject.toml").write_text(shipped.PROJECT)
    (app / "hostile" / "__init__.py").write_text("")
    (app / "hostile" / "app.py").write_text(shipped.CODE.format(ran=str(place / shipped.RAN)))
    return app


def check(federation, survivors):
    """The release is, integer for integer, the sum of what the survivors put in."""
    study = federation.study
    release = Release.load(study.host / "release.safetensors")
    ring = study.plan.ring
    put_in = [ring.unpack((federation.marks / f"party {peer}.vector").read_bytes()) for peer in survivors]
    expected = session.in_clear(study.plan, put_in)
    assert release.survivors == tuple(survivors)
    for name, array in vars(expected.moments).items():
        np.testing.assert_array_equal(getattr(release.moments, name), array)


def next_session(federation):
    study = federation.study
    (study.host / "release.safetensors").unlink()
    federation.study = study.renewed()
    federation.clear()


@pytest.mark.slow
def test_five_processes_give_the_exact_sum_whoever_is_killed(tmp_path):
    study = study_of(tmp_path, **with_noise())
    open_accounts(study)
    app = hostile_app(tmp_path)
    with Federation(study, tmp_path / "federation") as federation:
        nothing_fails(federation, app)
        assert not (tmp_path / shipped.RAN).exists(), "what was shipped ran, on a node or on the SuperLink"


def nothing_fails(federation, app):
    federation.finish_session(federation.start_session(app))
    check(federation, range(5))
