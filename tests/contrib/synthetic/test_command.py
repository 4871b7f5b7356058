"""The command writes rows and their page from a course's file and its releases."""

import csv
from datetime import date

import pytest
from typer.testing import CliRunner

import privstats as ps
from privstats.cli import table
from privstats.contrib.synthetic.command import app
from privstats.contrib.synthetic.rows import NO_INTERVALS
from privstats.errors import DataError, PlanError, ReleaseError
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


def test_a_written_file_is_not_read_as_records(folder):
    _run(folder, "--rows", "3")
    with pytest.raises(DataError, match="only records may be measured"):
        ps.moments.RecordFile(folder / "rows.csv").table(["age"])


def test_privstats_table_refuses_a_written_file_with_a_sentence_of_its_own(folder):
    _run(folder, "--rows", "3")
    refused = CliRunner().invoke(table.app, [str(folder / "rows.csv")]).exception
    assert isinstance(refused, ReleaseError)
    assert "holds synthetic rows, from which no estimate has an interval" in str(refused)
    missing = CliRunner().invoke(table.app, [str(folder / "none.csv")]).exception
    assert "synthetic" not in str(missing)
