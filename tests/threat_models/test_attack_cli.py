"""``privstats attack``: what stands on standard output, what on standard error, and when it fails."""

import json
import re
import tomllib
from importlib.resources import files
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from privstats.errors import DataError
from threat_models import attack_runs
from threat_models.attack import attacks
from threat_models.attack_cli import attack

from .conftest import plan_of, promise, records
from .test_report import report, row

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


def test_the_commands_are_plugged_in():
    pyproject = Path(__file__).parents[2] / "pyproject.toml"
    plugged = tomllib.loads(pyproject.read_text())["project"]["entry-points"]["privstats.commands"]
    assert plugged["attack"] == "threat_models.attack_cli:attack"


def test_the_list_has_every_attack():
    listed = json.loads(call("list", "--json").stdout)
    assert listed == [{"name": a.name, "number": a.number, "goal": a.goal} for a in attacks()]
    assert "mean-ratio" in call("list").stdout


def test_an_attack_is_named_by_a_test():
    """It joins the list by itself; that it succeeds without noise only a test of its own says."""
    tests = "".join(path.read_text() for path in Path(__file__).parent.rglob("test_*.py"))
    assert not [each.name for each in attacks() if f'"{each.name}"' not in tests]


def test_a_run_prints_json_alone(small):
    done = call("run", small, "--json", "--seed", "1", "--trials", "8", "--attack", "mean-ratio", "--records", "8")
    document = json.loads(done.stdout)
    assert (done.exit_code, len(document["rows"])) == (0, 1)
    assert document["rows"][0]["attack"] == "mean-ratio"
    assert done.stderr == ""


def test_a_pipe_is_told_which_attack_begins_and_ends(small, monkeypatch):
    words = ("run", small, "--seed", "1", "--trials", "8", "--attack", "mean-ratio", "--records", "8")
    lines = call(*words).stderr.splitlines()
    assert lines[0] == "playing mean-ratio"
    assert re.fullmatch(r"played mean-ratio in \d+ s", lines[-1])
    monkeypatch.setattr(attack_runs, "_SILENT", 0.0)
    lines = call(*words).stderr.splitlines()
    assert lines[-2] == "8 of 8 trials", "a long attack is not silent either"
    monkeypatch.setenv("PRIVSTATS_PROGRESS", "0")
    assert call(*words).stderr == ""


def test_too_few_trials_end_in_doubt_with_what_would_do_and_how_long_it_takes(small):
    done = call("run", small, "--seed", "1", "--trials", "8", "--attack", "mean-ratio", "--records", "8")
    said = " ".join(done.stdout.split())
    assert done.exit_code == 0  # nothing is contradicted
    assert re.search(r"1 of 1 attack says nothing with --trials 8; about [\d,]+ would\. At this run's pace", said)
    assert re.search(r"that takes about \d+ (seconds|minutes)\.", said)
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
    with pytest.raises(DataError, match="--over must be one of"):
        call("sweep", small, "--over", "size", "--value", "1")


def test_only_a_violated_ceiling_ends_with_1(small, monkeypatch):
    def violated(plan, chosen, pool, effort):
        silent = row("differencing", measured=None, interval=None, metric="-", verdict="underpowered", note="why")
        return report(row(setting={"epsilon": 1.0}), row("canary-audit", interval=(0.2, float("inf"))), silent)

    monkeypatch.setattr("threat_models.evaluate.evaluate", violated)
    done = call("run", small)
    assert done.exit_code == 1
    assert "a ceiling is VIOLATED" in done.stdout


def test_a_folder_that_cannot_be_is_one_sentence(small):
    with pytest.raises(DataError, match="cannot be a folder"):
        call("run", small, "--out", small)


@pytest.mark.nightly
def test_the_shipped_plan_needs_no_argument():
    done = call("run", SHIPPED, "--json")
    assert done.exit_code == 0
    rows = json.loads(done.stdout)["rows"]
    assert {each["attack"] for each in rows} == {each.name for each in attacks()}
