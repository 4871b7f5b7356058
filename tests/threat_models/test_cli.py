"""``privstats audit`` and ``attack``: readable, machine-readable, and 1 when a claim falls."""

import json
import re
from dataclasses import replace
from importlib.resources import files
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import privstats as ps
from tests import made
from tests.course.cases import rounds
from tests.made import refused
from threat_models import attack_runs, cli
from threat_models.attack import attacks
from threat_models.attack_cli import attack
from threat_models.audits.target import Target

from .conftest import plan_of, promise, records
from .test_report import report, row

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


def invoke(*words, code=None):
    done = CliRunner().invoke(cli.audit, [str(word) for word in words])
    assert code in (None, done.exit_code), done.output
    return done


@pytest.mark.ci
@pytest.mark.parametrize("name", FAST)
def test_a_sound_plan_passes_every_audit(name, plan_file):
    seed = [] if name == "budget" else ["--seed", "3"]
    done = invoke(name, plan_file, *FAST[name], *seed, code=0)
    assert "no claim is contradicted" in done.output
    machine = invoke(name, plan_file, *SHOWN[name], *seed, "--json")
    assert all(not report["violated"] and report["rows"] for report in json.loads(machine.output))


@pytest.mark.ci
@pytest.mark.parametrize("name", ["budget", "sensitivity", "noise", "canary"])
def test_a_plan_whose_noise_is_calibrated_ten_times_too_small_ends_with_one(name, plan_file, monkeypatch):
    def wrong(*arguments, **options):
        noise = ps.dp.calibrate(*arguments, **options)
        return replace(noise, rows=tuple(replace(row, sigma=row.sigma / 10) for row in noise.rows))

    monkeypatch.setattr("privstats.plan.plan.calibrate", wrong)
    done = invoke(name, plan_file, *SHOWN[name], "--json", code=1)
    assert json.loads(done.output)[0]["violated"] is True


@pytest.mark.ci
def test_a_false_claim_is_said_to_be_violated(plan_file, monkeypatch):
    honest = Target.draw
    monkeypatch.setattr(Target, "draw", lambda self, releases, rng: honest(self, releases, rng) // 2)
    done = invoke("canary", plan_file, "--trials", "600", "--seed", "1", code=1)
    assert "VIOLATED" in done.output


def test_the_noise_of_a_release_file_is_tested_against_its_known_inputs(plan_file, tmp_path):
    plan = ps.Plan.from_toml(plan_file.read_text())
    rng = np.random.default_rng(0)
    if isinstance(plan.schema, ps.ClassSchema):
        shards = [(rng.normal(size=(9, 8)), rng.integers(0, 3, 9)) for _ in range(6)]
    else:
        shards = [(rng.normal(size=(9, 5)), rng.normal(size=(9, 2))) for _ in range(6)]
    ps.simulate(plan, shards, dropouts={"mask": {4}}, rng=ps.randomness.seeded(1)).save(tmp_path / "out.safetensors")
    known = {f"{name}_{k}": array for k, shard in enumerate(shards) for name, array in zip("Xy", shard, strict=True)}
    np.savez(tmp_path / "known.npz", **known)
    done = invoke("release", tmp_path / "out.safetensors", tmp_path / "known.npz", "--seed", "1", "--json", code=0)
    (report,) = json.loads(done.output)
    assert report["violated"] is False
    assert {row["verdict"] for row in report["rows"]} <= {"underpowered", "no evidence"}


@pytest.mark.ci
def test_without_a_seed_the_systems_randomness_is_used(plan_file):
    assert len({invoke("canary", plan_file, "--trials", "100", "--json").output for _ in range(2)}) == 2


def test_the_ledger_is_printed(tmp_path):
    ledger = made.ledger(tmp_path / "spent.db", epsilon=2.0, delta=1e-6)
    privacy = made.promise(delta=1e-6)
    noise = ps.dp.calibrate(PLANS["classes"], privacy, honest_shares=1)
    ledger.spend("ward", plan="d1ce" * 16, run=b"2031-05", schema=PLANS["classes"], privacy=privacy, noise=noise)
    done = invoke("ledger", tmp_path / "spent.db", "--dataset", "ward", code=0)
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
    assert isinstance(done.exception, ps.PlanError)
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
    ledger = ps.dp.Ledger.create(tmp_path / "spent.db")
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
    plan_file.write_text(replace(ps.Plan.read(plan_file), privacy=ps.NoPrivacy(), min_count=0).to_toml())
    error = invoke("budget", plan_file).exception
    assert isinstance(error, ps.PlanError)
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


SHIPPED = str(files("privstats.cli").joinpath("plan.toml"))


@pytest.fixture
def small(tmp_path):
    path = tmp_path / "small.toml"
    path.write_text(plan_of(promise()).to_toml())
    return path


def call(*words):
    done = CliRunner().invoke(attack, [str(word) for word in words])
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    return done


def test_the_list_has_every_attack():
    listed = json.loads(call("list", "--json").stdout)
    assert listed == [{"name": a.name, "number": a.number, "goal": a.goal} for a in attacks()]
    assert "mean-ratio" in call("list").stdout


def test_the_list_of_a_plan_shows_what_each_attack_reads_of_it(small):
    listed = {each["name"]: each for each in json.loads(call("list", small, "--json").stdout)}
    assert listed["mean-ratio"]["reads"] == "A"
    assert listed["likelihood-ratio"]["reads"] == "NASBD"
    assert listed["event-time"]["reads"] == ""
    assert "HazardSchema" in listed["event-time"]["does not apply"]
    shown = " ".join(call("list", small).stdout.split())
    assert "reads of this plan" in shown
    assert "nothing: is written for a HazardSchema" in shown


def test_an_attack_is_named_by_a_test():
    """It joins the list by itself; that it succeeds without noise only a test of its own says."""
    tests = "".join(path.read_text() for path in Path(__file__).parent.rglob("test_*.py"))
    unnamed = [each.name for each in attacks() if f'"{each.name}"' not in tests]
    assert not unnamed, f"add a test that runs {', '.join(unnamed)} to tests/threat_models/attacks"


def test_a_run_prints_json_alone(small):
    done = call("run", small, "--json", "--seed", "1", "--trials", "8", "--attack", "mean-ratio", "--records", "8")
    document = json.loads(done.stdout)
    assert (done.exit_code, len(document["rows"])) == (0, 1)
    assert (document["rows"][0]["attack"], done.stderr) == ("mean-ratio", "")


def test_a_pipe_is_told_which_attack_begins_and_ends(small, monkeypatch):
    words = ("run", small, "--seed", "1", "--trials", "8", "--attack", "mean-ratio", "--records", "8")
    lines = call(*words).stderr.splitlines()
    assert lines[0] == "playing mean-ratio"
    assert re.fullmatch(r"played mean-ratio in \d+ s", lines[-1])
    monkeypatch.setattr(attack_runs, "_SILENT", 0.0)
    lines = call(*words).stderr.splitlines()
    assert lines[-2].startswith("8 trials of 8"), "a long attack is not silent either"
    monkeypatch.setenv("PRIVSTATS_PROGRESS", "0")
    assert call(*words).stderr == ""


def test_too_few_trials_end_in_doubt_with_what_would_do_and_how_long_it_takes(small):
    done = call("run", small, "--seed", "1", "--trials", "8", "--attack", "mean-ratio", "--records", "8")
    said = " ".join(done.stdout.split())
    assert done.exit_code == 0  # nothing is contradicted
    assert re.search(r"1 of 1 attack says nothing with --trials 8; about [\d,]+ would\. At this run's pace", said)
    assert re.search(r"that takes about \d+ (seconds?|minutes?)\.", said)
    enough = call("run", small, "--seed", "1", "--trials", "80", "--attack", "one-record", "--records", "8")
    assert "Too few trials" not in enough.stdout


@pytest.mark.ci
def test_a_run_writes_its_report_and_goes_on(small, tmp_path):
    out = tmp_path / "deep" / "out"
    words = ("run", small, "--seed", "1", "--trials", "8", "--attack", "mean-ratio", "--attack", "quadratic")
    done = call(*words, "--out", out)
    assert {path.name for path in out.iterdir()} == {
        "report.json", "report.md", "report.html", "matrix.png", "roc.png", "rows.jsonl",
    }  # fmt: skip
    assert "no ceiling is violated" in done.stdout
    assert "needs one of the statistics" not in done.stdout
    before = (out / "report.json").read_bytes()
    call(*words, "--out", out, "--json")
    assert (out / "report.json").read_bytes() == before


def test_without_the_report_extra_the_numbers_are_still_written(small, tmp_path, monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "jinja2", None)
    done = call("run", small, "--trials", "8", "--attack", "mean-ratio", "--records", "8", "--out", tmp_path / "out")
    assert "without report.html and pictures: the page needs jinja2" in " ".join(done.stderr.split())
    assert {path.name for path in (tmp_path / "out").iterdir()} == {"report.json", "report.md"}


def test_own_records_are_attacked(small, tmp_path):
    X, y = records(160, 6)
    np.savez(tmp_path / "own.npz", X=X, y=y)
    done = call("run", small, "--data", tmp_path / "own.npz", "--trials", "8", "--attack", "differencing")
    assert "own.npz" in done.stdout
    assert "differencing" in done.stdout


def test_a_sweep_and_a_matrix_print_their_rows(small):
    swept = call(
        "sweep", small, "--over", "epsilon", "--value", "1", "--value", "8", "--attack", "mean-ratio", "--trials", "8",
        "--seed", "1", "--json", "--records", "8",
    )  # fmt: skip
    assert [each["setting"] for each in json.loads(swept.stdout)["rows"]] == [{"epsilon": 1.0}, {"epsilon": 8.0}]
    seen = call("matrix", small, "--attack", "mean-ratio", "--trials", "8", "--seed", "1", "--records", "8")
    assert "(transcript)" in seen.stdout
    refused(ps.DataError, "--over must be one of", call, "sweep", small, "--over", "size", "--value", "1")


def test_only_a_violated_ceiling_ends_with_1(small, monkeypatch):
    def violated(plan, chosen, pool, effort):
        silent = row("differencing", measured=None, interval=None, metric="-", verdict="underpowered", note="why")
        return report(row(setting={"epsilon": 1.0}), row("canary-audit", interval=(0.2, float("inf"))), silent)

    monkeypatch.setattr("threat_models.evaluate.evaluate", violated)
    done = call("run", small)
    assert done.exit_code == 1
    assert "a ceiling is VIOLATED" in done.stdout


def test_a_folder_that_cannot_be_is_one_sentence(small):
    refused(ps.DataError, "cannot be a folder", call, "run", small, "--out", small)


@pytest.mark.nightly
def test_the_shipped_plan_needs_no_argument():
    done = call("run", SHIPPED, "--json")
    assert done.exit_code == 0
    rows = json.loads(done.stdout)["rows"]
    assert {each["attack"] for each in rows} == {each.name for each in attacks()}
