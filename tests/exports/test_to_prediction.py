"""From a dirty export to a prediction: each step reads the records that the clean table of the same patients holds."""

from __future__ import annotations

import csv
import io
import json
import math
import shlex
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import privstats as ps
from privstats.cli.parts.declared_columns import read_columns
from privstats.engines.network.round_host import Ended
from privstats.moments import RecordFile, exact_moments
from privstats.records.from_file import records_in
from privstats.transforms import Categories, Column, Dates, Numeric
from privstats.workflows import rehearsal
from privstats.workflows.look import looked
from tests import drawing
from tests.cli.test_try import ANSWERS, said
from tests.engines.network.fake import FolderNet, study_of
from tests.engines.network.test_records_script import named
from tests.exports.programs import EXPORTS, PATIENTS, options_typed
from tests.exports.test_commands import files_of
from tests.exports.test_exports import opened

CHEAP = "excel_german"
NAMES = (CHEAP, "laboratory", "spss", "sas", "epic_like", "omop", "mysql", "icd_9", "castor", "redcap_labels")
UNREAD = {"epic_like": {"RESULT": (4, "See note")}}
"""Values that no form reads, by export and column, with their number and text: so few that no gap is proposed."""


def with_cuts(column: Column, values: Any) -> Column:
    """The column as a person declares it: with public cut points, or the listed values."""
    if not isinstance(column, Numeric | Dates):
        return column
    known = np.unique(np.array(values, float)[~np.isnan(values)])
    edges = [round(float(each), 6) for each in known[[len(known) // 4, len(known) // 2, 3 * len(known) // 4]] + 0.0625]
    return type(column)(**{key: value for key, value in column.to_plan().items() if key != "kind"} | {"edges": edges})


def cell(column: Column, value: Any) -> str:
    """A value as a clean file has it: with a decimal point, an ISO date, nothing for a gap."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return ""
    if isinstance(column, Dates):
        return Dates("x").edge_text(float(value))
    return str(value)


def clean_file(path: Path, columns: list[Column], values: dict[str, Any], target: str, labels: list[Any]) -> RecordFile:
    """The same patients in a plain file."""
    out = io.StringIO()
    writer = csv.writer(out)
    writer.writerow([*(column.name for column in columns), target])
    for k in range(len(labels)):
        writer.writerow([*(cell(column, values[column.name][k]) for column in columns), labels[k]])
    path.write_text(out.getvalue(), "utf-8")
    return RecordFile(path, target)


def quoted(value: Any) -> str:
    """A value as TOML writes it."""
    return json.dumps(value, ensure_ascii=False)


def stated(column: Column) -> str:
    """What a person adds to the kind: public cut points, or the listed values."""
    if isinstance(column, Categories):
        return f"\nvalues = {quoted(column.values)}"
    return f"\nedges = {quoted(column.edges)}" if isinstance(column, Numeric | Dates) else ""


def both_files(folder: Path, name: str) -> tuple[list[Column], RecordFile, RecordFile]:
    """The columns as a person declares them, a program's export, and the same patients in a clean file."""
    export = EXPORTS[name]
    what = opened(folder, name, export)
    party, values = what.parties[0], dict(export.values)
    for number, column in enumerate(what.public.columns):
        read = party.codes[:, number] if isinstance(column, Numeric | Dates) else party.table[column.name]
        values.setdefault(column.name, read)
    columns = [with_cuts(column, values[column.name]) for column in what.public.columns]
    labels = [what.public.classes[place] for place in party.y]
    clean = clean_file(folder / "clean.csv", columns, values, export.target, labels)
    return columns, rehearsal.written_as(RecordFile(folder / f"{name}.csv", export.target), {}), clean


@pytest.mark.parametrize("name", [CHEAP, *(pytest.param(each, marks=pytest.mark.ci) for each in NAMES[1:])])
def test_every_step_reads_the_patients_of_the_clean_table(privstats, tmp_path, name):
    export = EXPORTS[name]
    columns, _, clean = both_files(tmp_path, name)
    words = files_of(tmp_path, name)

    done = privstats("try", *words, "--forms", "--force", cwd=tmp_path, code=0)
    place = tmp_path / "columns.toml"
    text = place.read_text("utf-8")
    for column in columns:
        asked = f'name = {quoted(column.name)}\nkind = "?"'
        assert asked in text
        text = text.replace(asked, asked.replace('"?"', quoted(column.kind)) + stated(column))
    text = text.replace(f'name = "{export.target}"\nkind = "?"', f'name = "{export.target}"\nkind = "truth"')
    place.write_text(text, "utf-8")
    declared = [each for each in read_columns(place) if each.name != export.target]
    assert declared == columns

    lines = [line for line in done.stdout.partition("next:")[2].splitlines() if line.startswith("  privstats")]
    planned, look, _ = (shlex.split(line)[1:] for line in lines)
    privstats(*planned, *ANSWERS, "--force", cwd=tmp_path, code=0)
    seen = said(privstats(*look, cwd=tmp_path, code=0))
    for column, (count, text) in UNREAD.get(name, {}).items():
        assert f"{column}: {count} are no numbers, such as {text}: correct it, or they count as missing" in seen
    assert ("or they count as missing" in seen) == (name in UNREAD)
    assert "unreadable" not in seen
    assert "are not listed" not in seen
    plan = ps.Plan.read(tmp_path / "plan.toml")
    dirty = rehearsal.written_as(RecordFile(tmp_path / "north.csv", export.target), {})
    assert look[1:-2] == ["north.csv", *options_typed(dirty)]
    table = dirty.table([each.name for each in columns], [each.marks for each in columns])
    for column in columns:
        facts = looked(column, table.values(column.name))
        assert (facts.unreadable, facts.other) == (UNREAD.get(name, {}).get(column.name, (0, ""))[0], 0)

    how: Any = {"unreadable": plan.unreadable}
    measured = [
        exact_moments(plan.schema, *records_in(file, plan.schema.reading, plan.unreadable), **how)
        for file in (dirty, clean)
    ]
    assert measured[0] == measured[1]
    assert measured[0].records == PATIENTS - len(export.unlabelled)
    head = ps.heads.LDA().fit_release(ps.simulate(plan, [measured[0], measured[1]]))
    head.save(tmp_path / "ill.head")
    head = ps.heads.load(tmp_path / "ill.head")
    found = [head.predict_proba(file.read(plan.schema.reading.source, **how).X) for file in (dirty, clean)]
    np.testing.assert_array_equal(found[0], found[1])
    assert np.ptp(found[0], axis=0).max() > 0
    scored = [
        json.loads(
            privstats("score", "ill.head", *of, "--target", export.target, "--json", cwd=tmp_path, code=0).stdout
        )
        for of in (look[1:-2], ["clean.csv"])
    ]
    assert scored[0] == scored[1]


def schema_of(columns: list[Column]) -> ps.ClassSchema:
    """Class sums of rows of these columns."""
    cells = ps.Cells(tuple(columns))
    return ps.ClassSchema(2, cells.width, "NAB", 1.0, class_names=("no", "yes"), transform=(cells,))


@pytest.mark.parametrize("name", [CHEAP, pytest.param("laboratory", marks=pytest.mark.ci)])
def test_a_session_over_dirty_and_clean_files_has_the_sums_of_the_clean_one(tmp_path: Path, name: str) -> None:
    """Parties that name a file, with real folders and masks: every second one has the program's own export."""
    columns, dirty, clean = both_files(tmp_path, name)
    schema = schema_of(columns)
    net = FolderNet(study_of(tmp_path / "study", schema=schema, cohort=ps.Cohort(5, 3, 5 * PATIENTS)))
    for peer in range(5):
        found = named(net.study, peer, clean if peer % 2 else dirty)
        assert found.summed == PATIENTS
    assert isinstance(net.run(), Ended)
    release = ps.Release.load(net.study.host / "release.safetensors")
    alone = exact_moments(schema, *records_in(clean, schema.reading, "refuse"))
    total = sum([alone] * 4, alone).real()
    for letter in "NAB":
        np.testing.assert_array_equal(getattr(release.moments, letter), getattr(total, letter))


@pytest.mark.ci
def test_a_course_is_rehearsed_over_dirty_files_as_over_clean_ones(privstats: Any, tmp_path: Path) -> None:
    columns, dirty, clean = both_files(tmp_path, CHEAP)
    schema = schema_of(columns)
    promise = ps.Privacy(model="central", unit="record", adjacency="add-remove", epsilon=100, delta=1e-6)
    plan = ps.Plan(schema=schema, cohort=ps.Cohort(2, 2, 2 * PATIENTS), privacy=promise)
    (tmp_path / "plan.toml").write_text(plan.to_toml(), "utf-8")
    privstats("course", "init", "course.toml", "--plan", "plan.toml", "--rounds", "2", cwd=tmp_path, code=0)
    found = []
    for file, how in ((dirty, options_typed(dirty)), (clean, [])):
        out = Path(file.path).stem
        words = ("course.toml", str(file.path), str(file.path), "--target", "ill", *how, "--out", out)
        with drawing.named("a rehearsal"):  # both sample the same noise
            privstats("course", "rehearse", *words, cwd=tmp_path, code=0)
        found.append([ps.Release.load(each).vector for each in sorted((tmp_path / out).glob("*.release"))])
    assert len(found[0]) == 3
    for one, other in zip(*found, strict=True):
        np.testing.assert_array_equal(one, other)
