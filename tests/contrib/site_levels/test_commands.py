"""Commands plan the round by site and read its table; the columns that the rounds do not have are the sites."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import privstats as ps
from privstats.contrib.site_levels import random_intercept, random_intercept_logit, site_round
from privstats.contrib.site_levels.commands import planned, read
from privstats.engines.network.host import Host
from privstats.engines.network.study import LocalTransport, simulated_study
from privstats.engines.network.transport import Deadlines
from privstats.randomness import seeded
from tests.contrib.site_levels import test_table as linear
from tests.contrib.site_levels.test_logit import ALL, NAMES, OWN, POOLED, records, terms
from tests.made import refused


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Three rounds, a file of the plan by site, and sums by site of a linear regression."""
    (X, y), course = records(), ps.Newton.start(POOLED, rounds=3, **terms())
    rounds = ps.simulate(course, [(X[k::2, :1], y[k::2]) for k in range(2)], rng=seeded(5))
    for place, release in enumerate(rounds):
        release.save(tmp_path / f"{place}.release")
    (tmp_path / "own.toml").write_text(ps.Newton.full_plan(schema=OWN, **terms()).to_toml())
    linear.exact().save(tmp_path / "linear.release")
    return tmp_path


ROUNDS = ("0.release", "1.release", "2.release")


def test_a_round_by_site_is_planned_run_and_read(privstats: Any, folder: Path) -> None:
    done = privstats("course", "sites", "own.toml", *ROUNDS, cwd=folder, code=0)
    assert "sites.toml" in done.stdout
    assert "sites.values" in done.stdout
    plan, rounds = ps.Plan.read(folder / "sites.toml"), [ps.Release.load(folder / name) for name in ROUNDS]
    assert plan == site_round(rounds, schema=OWN, sites=ALL, **terms())
    X, y = records()
    release = ps.simulate(plan, [(X[k::2], y[k::2]) for k in range(2)], rng=seeded(6))
    release.save(folder / "sites.release")
    words = ("table", *ROUNDS, "sites.release", "--reader", "site-levels")
    table = random_intercept_logit(release, sites=ALL, rounds=rounds)
    assert privstats(*words, cwd=folder, code=0).stdout.strip() == table.summary().as_text().strip()
    assert "odds ratio" in privstats(*words, "--exponentiate", cwd=folder, code=0).stdout
    refusal = "--column and --unclipped are for a linear regression"
    assert refusal in privstats(*words, "--column", "age", cwd=folder, code=2).stderr
    assert "sites.toml" in privstats("course", "sites", "own.toml", *ROUNDS, cwd=folder, code=2).stderr  # exists


def test_a_linear_regression_names_its_regressors(privstats: Any, folder: Path) -> None:
    words = ("table", "linear.release", "--reader", "site-levels")
    done = privstats(*words, "--column", "age", "--column", "dose", cwd=folder, code=0)
    table = random_intercept(linear.exact(), sites=linear.ALL)
    assert done.stdout.strip() == table.summary().as_text().strip()
    assert "needs --column for each regressor" in privstats(*words, cwd=folder, code=2).stderr
    forgotten = privstats(*words, "--column", "age", cwd=folder, code=2).stderr
    assert "sites 'dose' and" in forgotten
    assert "share records" in forgotten
    words = (*words, "--column", "age", "--column", "dose", "--exponentiate")
    assert "Traceback" not in privstats(*words, cwd=folder, code=2).stderr


def test_what_is_no_round_is_refused(privstats: Any, folder: Path) -> None:
    alone = ps.Release.load(folder / "0.release")
    refused(ps.ReleaseError, "in order, then that of the round by site; got one", read, [alone], None)
    refused(ps.ReleaseError, "a round by site is of scores", planned, {"schema": linear.schema()}, [alone])
    unnamed = replace(alone, plan=replace(alone.plan, schema=replace(POOLED, feature_names=None)))
    refused(ps.ReleaseError, "must name their columns by feature_names", read, [unnamed, alone], None)
    stderr = privstats("course", "sites", "own.toml", "linear.release", cwd=folder, code=2).stderr
    assert "Traceback" not in stderr
    refused(ps.ReleaseError, "no column besides those of the rounds", planned, {"schema": POOLED}, [alone])
    for out in ("", ".", "x.values"):
        stderr = privstats("course", "sites", "own.toml", *ROUNDS, "--out", out, cwd=folder, code=2).stderr
        assert "--out must name a file for the plan" in stderr
    for option in ("--by", "--records", "--target"):
        words = ("table", "linear.release", "--reader", "site-levels", "--column", "age", option, "1")
        stderr = " ".join(privstats(*words, cwd=folder, code=2).stderr.split())
        assert f"{option} is for " in stderr
        assert "not site-levels; omit it" in stderr


def test_real_folders_carry_the_rounds_and_the_round_by_site(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every machine has one file; each plan reads the columns that it names."""
    monkeypatch.chdir(folder)
    X, y = records()
    script = "from privstats.moments import RecordFile\n\n\ndef load():\n    return RecordFile('a.csv', target='ill')\n"
    Path("records.py").write_text(script)

    def ran(study: str, plan: Any) -> None:
        simulated_study(study, plan, "records.py")
        for k in range(2):
            lines = np.column_stack([X[k::2], y[k::2]])
            np.savetxt(f"{study}/parties/{k}/a.csv", lines, "%.17g", ",", header=",".join((*NAMES, "ill")), comments="")
        homes = LocalTransport({k: Path(study, "parties", str(k)) for k in range(2)})
        assert "release.safetensors" in Host.open(f"{study}/host").run(homes, Deadlines()).sentence

    settings = terms(model="distributed")
    ran("rounds", ps.Newton.start(POOLED, rounds=2, **settings))
    rounds = [ps.Release.load(f"rounds/host/nodes/{place}/release.safetensors") for place in range(2)]
    ran("site", planned({"schema": OWN, "published": None, **settings}, rounds))
    table = read([*rounds, ps.Release.load("site/host/release.safetensors")], None)
    assert table.reported.all()
    assert abs(table.params[1] - 0.03) < 0.006
