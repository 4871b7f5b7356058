"""The command writes rows and their page from a course's file and its releases."""

import csv
from datetime import date

import numpy as np
import pytest
from typer.testing import CliRunner

import privstats as ps
from privstats.cli import table
from privstats.contrib.synthetic.command import app
from privstats.contrib.synthetic.rows import NO_INTERVALS
from privstats.errors import PlanError, ReleaseError
from privstats.intake.column_names import SYNTHETIC_MARK
from tests.contrib.synthetic.cases import released


@pytest.fixture
def folder(tmp_path):
    own, releases = released()
    ps.course.write(tmp_path / "study.toml", own)
    for place, release in enumerate(releases):
        release.save(tmp_path / f"{place}.release")
    return tmp_path


def _run(folder, *words):
    names = [str(folder / f"{place}.release") for place in range(3)]
    return CliRunner().invoke(app, [str(folder / "study.toml"), *names, "--out", str(folder / "rows.csv"), *words])


def test_rows_and_their_page_are_written(folder):
    done = _run(folder, "--rows", "30", "--seed", "4")
    assert done.exit_code == 0, done.output
    lines = (folder / "rows.csv").read_text().splitlines()
    assert len(lines) == 31
    assert lines[0].endswith(SYNTHETIC_MARK)
    assert NO_INTERVALS in (folder / "rows.txt").read_text()
    again = _run(folder, "--rows", "30", "--seed", "4", "--force")
    assert again.exit_code == 0
    assert (folder / "rows.csv").read_text().splitlines() == lines


def test_declared_columns_write_dates_and_truths_as_such(folder):
    declared = folder / "columns.toml"
    declared.write_text(
        '[[columns]]\nname = "smoker"\nkind = "truth"\n'
        '[[columns]]\nname = "admitted"\nkind = "dates"\nedges = ["2024-01-01", "2025-01-01"]\n'
    )
    done = _run(folder, "--rows", "30", "--columns", str(declared))
    assert done.exit_code == 0, done.output
    with (folder / "rows.csv").open() as file:
        lines = list(csv.DictReader(file))
    assert {line["smoker"] for line in lines} == {"True", "False"}
    assert all(date.fromisoformat(line["admitted"]).year == 2024 for line in lines if line["admitted"])


def test_another_course_is_refused(folder):
    other = ps.Plan(schema=ps.ClassSchema(2, 2, "NA", 1.0), cohort=ps.Cohort(2, 2, 10), privacy=ps.NoPrivacy())
    ps.course.write(folder / "study.toml", ps.Stream(other, epochs=2))
    assert isinstance(_run(folder, "--rows", "3").exception, PlanError)


def test_privstats_table_refuses_a_written_file_with_a_sentence_of_its_own(folder):
    _run(folder, "--rows", "3")
    refused = CliRunner().invoke(table.app, [str(folder / "rows.csv")]).exception
    assert isinstance(refused, ReleaseError)
    assert "holds synthetic rows, from which no estimate has an interval" in str(refused)
    missing = CliRunner().invoke(table.app, [str(folder / "none.csv")]).exception
    assert "synthetic" not in str(missing)


DECLARED = """
[[columns]]
name = "age"
kind = "numeric"
edges = [0, 20, 40, 60, 80, 100]
gaps = [-9]
[[columns]]
name = "icd"
kind = "hashed"
buckets = 4
[[columns]]
name = "admitted"
kind = "dates"
edges = ["2024-01-01", "2024-07-01", "2025-01-01"]
[[columns]]
name = "died"
kind = "truth"
"""
PROMISE = ("--clients", "3", "--vanish", "0", "--colluders", "0", "--max-records", "9000", "--model", "distributed",
    "--unit", "record", "--adjacency", "add-remove", "--epsilon", "3", "--delta", "1e-6")  # fmt: skip


def test_three_files_go_to_rows_by_commands_alone(privstats, tmp_path):
    (tmp_path / "columns.toml").write_text(DECLARED)
    for seed, name in enumerate("abc"):
        rng = np.random.default_rng(seed)
        ages, months = rng.integers(20, 90, 200), rng.integers(1, 7, 200)
        codes, deaths = rng.choice(["E11.9", "I10"], 200), rng.choice(["true", "false"], 200)
        rows = zip(ages, codes, months, deaths, strict=True)
        lines = [f"{age},{code},2024-0{month}-11,{died}" for age, code, month, died in rows]
        (tmp_path / f"{name}.csv").write_text("\n".join(["Age,ICD,Admitted,Died", *lines, "-9,,n/a,maybe"]) + "\n")
    files = [f"{name}.csv" for name in "abc"]
    words = ("--task", "rows", "--public", "columns.toml", "--from", "a.csv", *PROMISE)
    done = privstats("plan", "init", "plan.toml", "--yes", *words, cwd=tmp_path, code=0)
    assert "privstats course init study.toml --plan plan.toml --synthetic --columns columns.toml" in done.stdout
    init = ("course", "init", "study.toml", "--plan", "plan.toml", "--synthetic", "--columns", "columns.toml")
    privstats(*init, cwd=tmp_path, code=0)
    looked = privstats("look", "a.csv", "--plan", "study.toml", cwd=tmp_path, code=0).stdout
    assert "2 buckets in use" in looked
    assert "1 are neither true nor false, such as maybe" in looked
    done = privstats("course", "rehearse", "study.toml", *files, "--out", "out", cwd=tmp_path, code=0)
    assert "3 of 3 sessions ended with a sum" in done.stdout
    assert "privstats synthesise study.toml out/0.release" in done.stdout
    releases = [f"out/{place}.release" for place in range(3)]
    privstats("synthesise", "study.toml", *releases, "--rows", "40", "--out", "rows.csv", cwd=tmp_path, code=0)
    with (tmp_path / "rows.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert {row["died"] for row in rows} <= {"True", "False", ""}
    assert all(date.fromisoformat(row["admitted"]).year == 2024 for row in rows if row["admitted"])
    assert {row["icd"] for row in rows} <= {"0", "1", "2", "3", ""}
    first = ps.Release.load(tmp_path / "out" / "0.release")
    assert abs(first.moments.T.sum() - 4 * 603) < 6 * first.sigma["T"] * np.sqrt(len(first.moments.T))


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--task", "rows"), "synthetic rows need declared columns: pass --public"),
        (("--task", "rows", "--public", "columns.toml", "--target", "died"), "synthetic rows have no target"),
        (("--task", "rows", "--public", "columns.toml", "--from", "ward.csv"), "ward.csv lacks 'admitted', 'died'"),
        (("--public", "plain.toml"), "or pass --task rows"),
        (("--public", "columns.toml", "--target", "died"), "the column 'icd' has the kind 'hashed'"),
    ],
)
def test_a_plan_of_rows_needs_its_columns_and_nothing_to_predict(privstats, tmp_path, words, message):
    (tmp_path / "columns.toml").write_text(DECLARED)
    (tmp_path / "plain.toml").write_text(DECLARED.replace('"hashed"\nbuckets = 4', '"truth"'))
    (tmp_path / "ward.csv").write_text("age,icd\n1,E1\n")
    done = privstats("plan", "init", "plan.toml", "--yes", *words, *PROMISE, cwd=tmp_path, code=2)
    assert message in " ".join(done.stderr.split())
