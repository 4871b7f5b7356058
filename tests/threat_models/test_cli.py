"""``privstats audit``: readable, machine-readable, and 1 when a claim falls."""

import json
from dataclasses import replace

import numpy as np
import pytest
from typer.testing import CliRunner

import privstats as ps
from privstats.dp import Ledger, calibrate
from privstats.errors import PlanError
from privstats.randomness import seeded
from tests import made
from tests.course.cases import rounds
from threat_models import cli
from threat_models.audits.target import Target

PLANS = {
    "classes": ps.ClassSchema(3, 8, "NAB", 1.0, transform=(ps.transforms.UnitNorm(),)),
    "ridge": ps.RidgeSchema(5, 2, clip_norm=1.0, target_bound=2.0),
}
FAST = {
    "sensitivity": ["--starts", "2"],
    "canary": ["--trials", "200"],
    "budget": ["--client-records", "9"],
    "noise": ["--trials", "200"],
}
SHOWN = FAST | {"canary": ["--trials", "100"]}  # for what a page says and not what it finds


@pytest.fixture(params=["classes", pytest.param("ridge", marks=pytest.mark.nightly)])
def plan_file(request, tmp_path):
    plan = made.plan(
        PLANS[request.param],
        ps.Cohort(6, 4, 600),
        made.promise("distributed", delta=1e-6),
        min_count=5 if request.param == "classes" else 0,
    )
    path = tmp_path / "plan.toml"
    path.write_text(plan.to_toml())
    return path


def invoke(*words):
    return CliRunner().invoke(cli.audit, [str(word) for word in words])


@pytest.mark.ci
@pytest.mark.parametrize("name", FAST)
def test_a_sound_plan_passes_every_audit(name, plan_file):
    seed = [] if name == "budget" else ["--seed", "3"]
    done = invoke(name, plan_file, *FAST[name], *seed)
    assert done.exit_code == 0, done.output
    assert "no claim is contradicted" in done.output
    machine = invoke(name, plan_file, *SHOWN[name], *seed, "--json")
    assert all(not report["violated"] and report["rows"] for report in json.loads(machine.output))


@pytest.mark.ci
@pytest.mark.parametrize("name", ["budget", "sensitivity", "noise", "canary"])
def test_a_plan_whose_noise_is_calibrated_ten_times_too_small_ends_with_one(name, plan_file, monkeypatch):
    def wrong(*arguments, **options):
        noise = calibrate(*arguments, **options)
        return replace(noise, rows=tuple(replace(row, sigma=row.sigma / 10) for row in noise.rows))

    monkeypatch.setattr("privstats.plan.plan.calibrate", wrong)
    done = invoke(name, plan_file, *SHOWN[name], "--json")
    assert done.exit_code == 1
    assert json.loads(done.output)[0]["violated"] is True


@pytest.mark.ci
def test_a_false_claim_is_said_to_be_violated(plan_file, monkeypatch):
    honest = Target.draw
    monkeypatch.setattr(Target, "draw", lambda self, releases, rng: honest(self, releases, rng) // 2)
    done = invoke("canary", plan_file, "--trials", "600", "--seed", "1")
    assert done.exit_code == 1
    assert "VIOLATED" in done.output


def test_the_noise_of_a_release_file_is_tested_against_its_known_inputs(plan_file, tmp_path):
    plan = ps.Plan.from_toml(plan_file.read_text())
    rng = np.random.default_rng(0)
    if isinstance(plan.schema, ps.ClassSchema):
        shards = [(rng.normal(size=(9, 8)), rng.integers(0, 3, 9)) for _ in range(6)]
    else:
        shards = [(rng.normal(size=(9, 5)), rng.normal(size=(9, 2))) for _ in range(6)]
    ps.simulate(plan, shards, dropouts={"mask": {4}}, rng=seeded(1)).save(tmp_path / "out.safetensors")
    known = {f"{name}_{k}": array for k, shard in enumerate(shards) for name, array in zip("Xy", shard, strict=True)}
    np.savez(tmp_path / "known.npz", **known)
    done = invoke("release", tmp_path / "out.safetensors", tmp_path / "known.npz", "--seed", "1", "--json")
    assert done.exit_code == 0, done.output
    (report,) = json.loads(done.output)
    assert report["violated"] is False
    assert {row["verdict"] for row in report["rows"]} <= {"underpowered", "no evidence"}


@pytest.mark.ci
def test_without_a_seed_the_systems_randomness_is_used(plan_file):
    runs = {invoke("canary", plan_file, "--trials", "100", "--json").output for _ in range(2)}
    assert len(runs) == 2


def test_the_ledger_is_printed(tmp_path):
    ledger = made.ledger(tmp_path / "spent.db", epsilon=2.0, delta=1e-6)
    privacy = made.promise(delta=1e-6)
    noise = calibrate(PLANS["classes"], privacy, honest_shares=1)
    ledger.spend("ward", plan="d1ce" * 16, run=b"2031-05", schema=PLANS["classes"], privacy=privacy, noise=noise)
    done = invoke("ledger", tmp_path / "spent.db", "--dataset", "ward")
    assert done.exit_code == 0
    assert "total" in done.output
    assert "per record, add-remove" in done.output


def test_a_central_plan_has_no_dropout_table(plan_file):
    plan = ps.Plan.read(plan_file)
    plan_file.write_text(replace(plan, privacy=replace(plan.privacy, model="central")).to_toml())
    assert "dropouts" not in invoke("budget", plan_file).output


@pytest.mark.parametrize("content", [None, b"\xff\xfe", b"version = 1"])
def test_a_plan_that_cannot_be_read_is_one_sentence(content, tmp_path):
    path = tmp_path / "plan.toml"
    if content is not None:
        path.write_bytes(content)
    done = invoke("budget", path)
    assert isinstance(done.exception, PlanError)
    assert "\n" not in str(done.exception)


@pytest.mark.ci
@pytest.mark.parametrize("model", made.MODELS)
@pytest.mark.parametrize("name", FAST)
def test_a_table_fits_a_terminal_of_80_columns(name, model, plan_file):
    plan = ps.Plan.read(plan_file)
    plan_file.write_text(replace(plan, privacy=replace(plan.privacy, model=model, epsilon=0.012)).to_toml())
    done = CliRunner().invoke(cli.audit, [name, str(plan_file), *SHOWN[name]], env={"COLUMNS": "80"})
    assert done.exit_code == 0, done.output
    assert max(map(len, done.output.splitlines())) <= 80
    assert "…" not in done.output


def test_a_long_name_in_the_ledger_is_folded_and_kept_as_it_is(tmp_path):
    ledger = Ledger.create(tmp_path / "spent.db")
    name = "[red]" + "ward" * 20
    ledger.set_cap(name, unit="record", adjacency="add-remove", epsilon=2.0, delta=1e-6)
    done = CliRunner().invoke(cli.audit, ["ledger", str(tmp_path / "spent.db")], env={"COLUMNS": "80"})
    assert max(map(len, done.output.splitlines())) <= 80
    assert "[red]" in done.output
    assert "…" not in done.output


def test_people_get_short_units_and_programs_get_whole_ones(plan_file):
    shown = invoke("budget", plan_file).output
    assert "record +/-" in shown
    assert "record swap" in shown
    rows = json.loads(invoke("budget", plan_file, "--json").output)[0]["rows"]
    assert {(row["unit"], row["adjacency"]) for row in rows} == {("record", "add-remove"), ("record", "replace-one")}
    assert all("between" not in row for row in rows)


def test_a_plan_without_dp_is_sent_to_the_command_that_tells_its_price(plan_file):
    plan = ps.Plan.read(plan_file)
    plan_file.write_text(replace(plan, privacy=ps.NoPrivacy(), min_count=0).to_toml())
    error = invoke("budget", plan_file).exception
    assert isinstance(error, PlanError)
    assert "privstats plan check" in str(error)


@pytest.mark.parametrize(("epsilon", "code"), [(4.0, 0), (3.0, 1)])
def test_a_course_that_breaks_what_its_file_promises_is_a_finding(epsilon, code, tmp_path):
    """Every other command refuses such a file; this one says by how much."""
    ps.course.write(tmp_path / "study.toml", rounds(epsilon=4.0))
    text = (tmp_path / "study.toml").read_text()
    (tmp_path / "study.toml").write_text(text.replace("epsilon = 4.0", f"epsilon = {epsilon}"))
    done = invoke("course", tmp_path / "study.toml", "--trials", "200", "--asks", "1", "--seed", "1", "--json")
    assert done.exit_code == code, done.output
    assert ('"violates"' in done.output) is bool(code)
