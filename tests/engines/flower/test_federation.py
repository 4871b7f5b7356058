"""Parties and a server as processes, over Flower with TLS and node authentication: killed, and exact."""

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

import privstats as ps
from privstats.dp import Ledger
from privstats.engines import flower
from tests.engines.flower import shipped
from tests.engines.flower.federation import Federation
from tests.engines.network.fake import NAMES, plan_of, study_of

APP = Path(flower.__file__).parent / "template" / "app"
STEPS = ("advertise", "share", "check", "mask", "agree", "unmask")
MASK, UNMASK = STEPS.index("mask"), STEPS.index("unmask")


def with_noise(clients=5, min_survivors=4):
    """A plan under which every party draws a share of the noise, so that no two contributions are alike."""
    return {
        "cohort": ps.Cohort(clients, min_survivors, colluders=1, max_records=100),
        "privacy": ps.Privacy(epsilon=4.0, delta=1e-5, unit="record", adjacency="add-remove", model="distributed"),
    }


def open_accounts(study):
    for peer in range(len(study.identities)):
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


@pytest.mark.nightly
@pytest.mark.waits
def test_processes_give_the_exact_sum(tmp_path):
    """The shortest session in which Flower's programs and ours meet, over TLS.

    Three parties: each answers six times in a process of its own, which is where the time goes. By day Flower's
    simulation runs a session in one process (``test_inside.py``).
    """
    study = study_of(tmp_path, names=NAMES[:3], **with_noise(clients=3, min_survivors=3))
    open_accounts(study)
    app = hostile_app(tmp_path)
    with Federation(study, tmp_path / "federation") as federation:
        nothing_fails(federation, app, range(3))
        assert not (tmp_path / shipped.RAN).exists(), "what was shipped ran, on a node or on the SuperLink"


@pytest.mark.nightly
@pytest.mark.waits
def test_five_processes_give_the_exact_sum_whoever_is_killed(tmp_path):
    study = study_of(tmp_path, "split", **with_noise())
    helpers, split = study.helpers, study.plan
    open_accounts(study)
    app = hostile_app(tmp_path)
    study = under(study, plan_of("interactive", **with_noise()), helpers=())
    outsiders = [copied(study.home(0), name) for name in ("unknown", "late", "deceived")]
    with Federation(study, tmp_path / "federation") as federation:
        three_are_not_let_in(federation, outsiders)
        nothing_fails(federation, app)
        federation.next_session()
        the_server_app_is_killed_in_mask_and_in_unmask(federation, APP)
        federation.next_session()
        two_helpers_take_one_upload_from_each(federation, under(federation.study, split, helpers))
        federation.next_session()
        federation.study = under(federation.study, study.plan, helpers=())
        one_node_is_killed_for_good_and_one_comes_back(federation, app)
        assert not (tmp_path / shipped.RAN).exists(), "what was shipped ran, on a node or on the SuperLink"


class WithSpoiledReplies(Federation):
    """Two nodes are registered, and answer otherwise than they should."""

    def join(self, home):
        how = {"party 1": "never", "party 2": "class"}.get(home.name)
        self._join(home, self.certificates / "ca.pem", **({} if how is None else {"OBSERVED_REPLIES": how}))
        self._lasting.add(home.name)


@pytest.mark.nightly
@pytest.mark.waits
def test_attack_replies_that_never_arrive_or_cannot_be_decoded_end_no_session(tmp_path):
    """One held the run past every deadline, the other one ended it with a traceback and exit code 0."""
    study = study_of(tmp_path, cohort=ps.Cohort(5, 3, 100))
    with WithSpoiledReplies(study, tmp_path / "federation") as federation:
        nothing_fails(federation, APP, [0, 3, 4])
        federation.wait_for("spoiled.never", "spoiled.class")
        assert "sent an answer that no version of privstats sends" in (federation.place / "run.log").read_text()


def under(study, plan, helpers):
    """The same folders under another plan."""
    after = replace(study, plan=plan, helpers=helpers)
    for home in (after.host, *(after.home(peer) for peer in range(5 + len(helpers)))):
        (home / "plan.toml").write_text(plan.to_toml())
        after.roster.save(home / "roster.toml")
    return after


def copied(home, name):
    return Path(shutil.copytree(home, home.with_name(name)))


def three_are_not_let_in(federation, outsiders):
    said = federation.outsiders(*outsiders)
    assert "the SuperLink still holds our last connection; trying again" in said["unknown"]
    assert "and its clock agrees with this machine's" in said["late"], "Flower's alone is off"
    assert (
        f"is not signed by {federation.place}/others/ca.pem: ask the coordinator for the ca.pem of that server"
        in said["deceived"]
    )


def nothing_fails(federation, app, survivors=range(5)):
    federation.finish_session(federation.start_session(app))
    federation.assert_exact(survivors)


def the_server_app_is_killed_in_mask_and_in_unmask(federation, app):
    everybody, late = [home.name for home in federation.homes], ["party 3", "party 4"]
    federation.shut(*(f"{name}.{MASK}" for name in late), *(f"{name}.{UNMASK}" for name in everybody))
    first = federation.start_session(app)
    federation.wait(lambda: federation.taken == 18, "the server has 5 advertisements, shares and checks, 3 masks")
    federation.wait_for(*(f"{name}.{MASK}.asked" for name in late))
    federation.kill_server_app(first)
    federation.open(*(f"{name}.{MASK}" for name in late))
    federation.wait_for(*(f"{name}.{MASK}.answered" for name in late))  # to a run that is dead: these must be repeated

    second = federation.start_session(app)
    federation.wait_for(*(f"{name}.{UNMASK}.asked" for name in everybody))
    federation.shut("server")
    federation.wait_for("server.held")
    federation.open(*(f"{name}.{UNMASK}" for name in everybody))
    federation.wait_for(*(f"{name}.{UNMASK}.answered" for name in everybody))  # the last answers, all on their way
    federation.kill_server_app(second)
    federation.open("server")

    federation.finish_session(federation.start_session(app))
    federation.assert_exact(range(5))


def two_helpers_take_one_upload_from_each(federation, study):
    """Over a SuperLink that was killed meanwhile: it still knows every node, by its old id."""
    federation.study = study
    federation.kill_superlink()
    federation.serve()
    for helper in (5, 6):
        federation.enter(study.home(helper))
    federation.finish_session(federation.start_session(APP))
    federation.assert_exact(range(5))


def one_node_is_killed_for_good_and_one_comes_back(federation, app):
    _, _, _, gone, back = federation.homes
    federation.shut(f"{gone.name}.{MASK}", f"{back.name}.{MASK}")
    run = federation.start_session(app)
    federation.wait_for(f"{gone.name}.{MASK}.asked", f"{back.name}.{MASK}.asked")
    federation.kill_party(gone)
    federation.kill_node(back)
    federation.open(f"{gone.name}.{MASK}", f"{back.name}.{MASK}")
    federation.finish_session(run)
    federation.assert_exact([0, 1, 2, 4])
    assert "the SuperLink still holds our last connection; trying again" in federation.log_of(back.name)
