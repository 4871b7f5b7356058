"""A party that names a file brings what it would bring with a function of its own."""

import os
import shutil
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import privstats as ps
from privstats.contrib.streams import Stream
from privstats.engines.network.folder import Folder
from privstats.engines.network.measuring import records_of
from privstats.engines.network.party import Party
from privstats.engines.network.records_script import Named, name_file
from privstats.engines.network.round_host import Ended
from privstats.errors import DataError, PlanError
from privstats.moments import RecordFile
from tests.course.cases import plan_of
from tests.engines.network.courses.study import course_study
from tests.engines.network.fake import RECORDS, FolderNet, Study, study_of
from tests.engines.network.fake import records_of as arrays_of

pandas = pytest.importorskip("pandas")

COLUMNS = ("age", "dose", "mass")
NUMBERED = ps.ClassSchema(2, 3, "NA", clip_norm=2.0, feature_names=COLUMNS)
SCHEMA = replace(NUMBERED, class_names=("well", "ill"))
PROMISE = ps.Privacy(model="central", unit="record", adjacency="add-remove", epsilon=4.0, delta=1e-5)
TEMPLATE = RECORDS.encode()


def csv_of(study: Study, peer: int, path: Path) -> Path:
    """A party's records as its hospital has them: other columns, in another order, and words for the classes."""
    X, y = arrays_of(peer)
    table = pandas.DataFrame(X, columns=COLUMNS).assign(outcome=np.array(["well", "ill"])[y], name="somebody")
    table[["outcome", "mass", "name", "age", "dose"]].to_csv(path, index=False)
    return path


def named(study: Study, peer: int, file: RecordFile) -> Named:
    return name_file(Folder.open(study.home(peer)), file, TEMPLATE)


def test_a_party_brings_a_raw_table_as_it_is(tmp_path: Path) -> None:
    """Texts, gaps and another order of columns; the party says how its file is written, and the script repeats it."""
    cells = ps.Cells((ps.Numeric("age", (0.1, 0.3)), ps.Categories("ward", ("a", "b")), ps.Truth("smokes")))
    schema = ps.ClassSchema(2, cells.width, "NAB", 1.0, class_names=("well", "ill"), transform=(cells,))
    study = study_of(tmp_path, schema=schema, privacy=PROMISE)
    rows = [f"{'ill' if row % 2 else 'well'};{'ab '[row % 3]};n;0,{row};{row % 2}" for row in range(6)]
    lines = ["outcome;WARD;note;age;Smokes", *rows, "ill;b"]
    (study.home(0) / "t.csv").write_bytes("\n".join(lines).encode("cp1252"))
    file = RecordFile(study.home(0) / "t.csv", "outcome", encoding="cp1252", separator=";", decimal=",")
    with pytest.warns(ps.errors.UnreadableRecordsWarning, match="1 line of .* first: line 8 has 2 fields for 5 names"):
        assert named(study, 0, file).summed == 6
    script = (study.home(0) / "records.py").read_text()
    assert "RecordFile('t.csv', target='outcome', encoding='cp1252', separator=';', decimal=',')" in script
    (tmp_path / "plain.csv").write_text("\n".join(lines[:-1]).replace(",", ".").replace(";", ","))
    frame = pandas.read_csv(tmp_path / "plain.csv")
    with pytest.warns(ps.errors.UnreadableRecordsWarning, match="1 line of .* first: line 8 has 2 fields for 5 names"):
        found = file.read(cells, unreadable="leave out")
    assert ps.measure(schema, found.X, found.y) == ps.measure(schema, frame, frame["outcome"])


def test_several_outcomes_and_texts_come_from_one_file(tmp_path: Path) -> None:
    schema = ps.EffectSchema.of(
        {"age": (20, 90)},
        treatment={"arm": ("placebo", "drug")},
        outcome={"fell": ("no", "yes"), "well": (0, 1)},
        probability=0.5,
        subgroups=(ps.Bins("age", (20, 26, 90)),),  # which makes a party read its file twice before it joins
    )
    course = ps.Effect.start(schema, ps.Cohort(2, 2, 100), PROMISE)
    study = course_study(tmp_path, course)
    lines = [f"{row % 2},{20 + row},{('drug', 'placebo')[row % 2]},{('no', 'yes')[row // 2 % 2]}" for row in range(12)]
    (study.home(0) / "t.csv").write_text("\n".join(["well,age,arm,fell", *lines, "1,30,Drug,no"]) + "\n")
    file = RecordFile(study.home(0) / "t.csv", ("fell", "well"))
    with pytest.warns(ps.errors.UnreadableRecordsWarning, match="'arm': 1 hold none of the values"):
        assert name_file(Folder.open(study.home(0)), file, TEMPLATE).summed == 12
    assert "RecordFile('t.csv', target=('fell', 'well'))" in (study.home(0) / "records.py").read_text()
    frame = pandas.read_csv(study.home(0) / "t.csv")[:12]
    with pytest.warns(ps.errors.UnreadableRecordsWarning, match="1 of the records"):
        found = Party.open(study.home(0)).prepare().moments
    assert found == ps.measure(schema.rows, frame[["age", "arm"]], frame[["fell", "well"]].to_numpy())


def test_a_session_of_files_sums_what_a_session_of_arrays_sums(tmp_path: Path) -> None:
    net = FolderNet(study_of(tmp_path, schema=SCHEMA))
    for peer in range(5):
        beside = net.study.home(peer) if peer else tmp_path  # the first party's lies outside of its folder
        named(net.study, peer, RecordFile(csv_of(net.study, peer, beside / "patients.csv"), "outcome"))
        (net.study.home(peer) / "records.npz").unlink()
    assert "RecordFile('patients.csv', target='outcome')" in (net.study.home(1) / "records.py").read_text()
    assert f"RecordFile('{tmp_path / 'patients.csv'}'," in (net.study.home(0) / "records.py").read_text()
    assert isinstance(net.run(), Ended)
    release = ps.Release.load(net.study.host / "release.safetensors")
    parts = [ps.measure(NUMBERED, *arrays_of(peer)) for peer in range(5)]
    whole = sum(parts[1:], parts[0]).real()
    np.testing.assert_array_equal(release.moments.N, whole.N)
    np.testing.assert_array_equal(release.moments.A, whole.A)


@pytest.mark.parametrize("kind", ["csv", "parquet", "npz"])
def test_what_a_split_holds_out_is_not_measured(kind: str, tmp_path: Path) -> None:
    study = study_of(tmp_path, schema=NUMBERED)
    X, y = arrays_of(0)
    path = study.home(0) / f"patients.{kind}"
    table = pandas.DataFrame(X, columns=COLUMNS).assign(outcome=y)
    if kind == "csv":
        table.to_csv(path, index=False)
    elif kind == "parquet":
        pytest.importorskip("pyarrow")
        table.to_parquet(path)
    else:
        np.savez(path, X=X, y=y)
    file = RecordFile(path, None if kind == "npz" else "outcome", split=1 / 3, seed=5)
    found = named(study, 0, file)
    assert found.summed + found.held_out == len(X)
    assert "split=0.3333333333333333, seed=5)" in found.script.read_text()
    learned, held_out = file.parts(COLUMNS)
    assert len(held_out.X) == found.held_out > 0
    folder = Folder.open(study.home(0)).round(0)
    assert records_of(folder).moments == ps.measure(NUMBERED, learned.X, learned.y)


def test_a_party_that_is_asked_again_brings_the_direction_that_it_kept(tmp_path: Path) -> None:
    """Sums without a count were kept without one where the clip had a report, and refused after a restart."""
    schema = ps.PartySchema(2, 3)
    folder = Folder.open(study_of(tmp_path, schema=schema).home(0)).round(0)
    first, kept = records_of(folder).moments, records_of(folder).moments
    assert first == kept == ps.measure(schema, *arrays_of(0))
    assert first.records == kept.records == 1


def test_naming_a_corrected_file_forgets_the_sums_of_the_one_before(tmp_path: Path) -> None:
    study = study_of(tmp_path, schema=NUMBERED)
    X, y = arrays_of(0)
    file = RecordFile(study.home(0) / "patients.npz")
    for rows in (X, X[:5]):
        np.savez(file.path, X=rows, y=y[: len(rows)])
        named(study, 0, file)
        folder = Folder.open(study.home(0)).round(0)
        assert records_of(folder).moments == ps.measure(NUMBERED, rows, y[: len(rows)])


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (
            lambda it: it.rename(columns={"age": "years"}),
            r"patients.csv lacks 'age' of the plan's columns; rename its col",
        ),
        (lambda it: it.rename(columns={"outcome": "state"}), r"has no column 'outcome'.* it has state, mass, name"),
        (lambda it: it.replace({"outcome": {"ill": "dead"}}), "not among class_names"),
    ],
)
def test_a_file_that_does_not_fit_is_one_sentence_and_nothing_is_written(change, words: str, tmp_path: Path) -> None:
    study = study_of(tmp_path, schema=SCHEMA)
    path = csv_of(study, 0, study.home(0) / "patients.csv")
    change(pandas.read_csv(path)).to_csv(path, index=False)
    with pytest.raises(DataError, match=words):
        named(study, 0, RecordFile(path, "outcome"))
    assert (study.home(0) / "records.py").read_text() == RECORDS


@pytest.mark.parametrize(
    ("columns", "labels", "words"),
    [
        (2, [0, 1] * 4, r"X has 2 features but the schema has 3"),
        (3, ["well", "ill"] * 4, r"class_names"),
        (3, [1, 2] * 4, r"y has labels outside 0\.\.1"),
    ],
)
def test_records_that_do_not_fit_a_plan_without_names_are_refused(
    columns: int, labels: list[object], words: str, tmp_path: Path
) -> None:
    study = study_of(tmp_path, schema=replace(NUMBERED, feature_names=None))
    path = study.home(0) / "patients.csv"
    pandas.DataFrame(np.eye(8)[:, :columns]).assign(outcome=labels).to_csv(path, index=False)
    with pytest.raises(DataError, match=words):
        named(study, 0, RecordFile(path, "outcome"))
    assert (study.home(0) / "records.py").read_text() == RECORDS


def test_a_file_that_changed_its_columns_later_is_the_same_sentence_at_the_party(tmp_path: Path) -> None:
    study = study_of(tmp_path, schema=SCHEMA)
    path = csv_of(study, 0, study.home(0) / "patients.csv")
    named(study, 0, RecordFile(path, "outcome"))
    pandas.read_csv(path).drop(columns="dose").to_csv(path, index=False)
    with pytest.raises(DataError, match=r"patients.csv lacks 'dose' of the plan's columns"):
        Party.open(study.home(0)).prepare()


def test_a_script_that_was_edited_is_kept(tmp_path: Path) -> None:
    study = study_of(tmp_path, schema=SCHEMA)
    file = RecordFile(csv_of(study, 0, study.home(0) / "patients.csv"), "outcome")
    first = named(study, 0, replace(file, split=0.5))
    assert first.held_out > 0
    assert named(study, 0, file).held_out == 0  # another choice replaces what the command wrote
    first.script.write_text("dataset = 'wards'\n" + first.script.read_text())
    with pytest.raises(DataError, match=r"records.py was edited; name the file in its load\(\), or move it away"):
        named(study, 0, file)
    assert first.script.read_text().startswith("dataset")


def test_a_stream_is_brought_and_not_named(tmp_path: Path) -> None:
    study = course_study(tmp_path, Stream(plan_of(model="distributed"), 2))
    with pytest.raises(PlanError, match="is of a stream: bring what enters and leaves with `privstats stream bring`"):
        named(study, 0, RecordFile(tmp_path / "patients.csv", "outcome"))


def test_a_helper_brings_no_records(tmp_path: Path) -> None:
    study = study_of(tmp_path, "split", schema=SCHEMA)
    with pytest.raises(DataError, match="party 5 brings no records: its identity.pem is a helper's, or not on roster"):
        named(study, 5, RecordFile(csv_of(study, 0, tmp_path / "patients.csv"), "outcome"))
    assert not (study.home(5) / "records.py").exists()


PERSONS = ps.Privacy(
    model="central",
    unit="person",
    adjacency="add-remove",
    epsilon=4.0,
    delta=1e-5,
    max_records_per_person=2,
    person_clip=2,
)


def opened(home: Path) -> None:
    """An account, kept per person."""
    ledger = ps.dp.Ledger.create(home / "ledger")
    ledger.set_cap("ward", unit="person", adjacency="add-remove", epsilon=9.0, delta=1e-5)


@pytest.mark.parametrize("kind", ["csv", "parquet", "npz"])
def test_a_session_of_persons_sums_what_a_session_of_measured_persons_sums(kind: str, tmp_path: Path) -> None:
    """The column of ids is read beside the features, kept sums are those of persons, and ids are in no file of ours."""
    net = FolderNet(study_of(tmp_path, schema=NUMBERED, privacy=PERSONS))
    plan, parts = net.study.plan, []
    opened(net.study.host)
    for peer in range(5):
        opened(net.study.home(peer))
        X, y = arrays_of(peer)
        X, ids = np.abs(X), np.array([f"patient-{row // 4}" for row in range(len(X))])
        path = net.study.home(peer) / f"visits.{kind}"
        table = pandas.DataFrame(X, columns=COLUMNS).assign(outcome=y, pid=ids)
        if kind == "csv":
            table.to_csv(path, index=False)
        elif kind == "parquet":
            pytest.importorskip("pyarrow")
            table.to_parquet(path)
        else:
            np.savez(path, X=X, y=y, pid=ids)
        found = named(net.study, peer, RecordFile(path, None if kind == "npz" else "outcome", persons="pid"))
        assert found.summed == len(X)
        assert "persons='pid')" in found.script.read_text()
        parts.append(ps.measure(NUMBERED, X, y, persons=ids, person_clip=plan.person_clip))
        folder = Folder.open(net.study.home(peer)).round(0)
        assert records_of(folder).moments == records_of(folder).moments == parts[-1]  # measured, and then kept
        assert records_of(folder).moments.clip == plan.person_clip
    assert sum(part.shrunk for part in parts) > 0
    assert isinstance(net.run(), Ended)
    for path in (each for each in tmp_path.rglob("*") if each.is_file() and not each.name.startswith("visits")):
        assert b"patient-" not in path.read_bytes(), path


@pytest.mark.parametrize(
    ("promise", "how", "words"),
    [
        (PERSONS, {}, "name the id column with --persons"),
        (PROMISE, {"persons": "pid"}, "the plan promises no persons, so no column of ids is read but for a split"),
        (PERSONS, {"persons": "nobody"}, "no column 'nobody' of person ids; it has age, dose, mass, outcome, pid"),
        (PERSONS, {"persons": "age"}, "'age' holds the person ids, and the plan reads it"),
    ],
)
def test_ids_are_named_where_the_plan_promises_persons_and_nowhere_else(
    promise: ps.Privacy, how: dict[str, str], words: str, tmp_path: Path
) -> None:
    study = study_of(tmp_path, schema=NUMBERED, privacy=promise)
    path = study.home(0) / "visits.csv"
    path.write_text("age,dose,mass,outcome,pid\n1,2,3,0,a\n1,2,3,1,b\n")
    with pytest.raises(DataError, match=words):
        named(study, 0, RecordFile(path, "outcome", **how))
    assert "visits.csv" not in (study.home(0) / "records.py").read_text()


@pytest.mark.parametrize(
    "promise", [PERSONS, replace(PERSONS, adjacency="replace-one"), PROMISE], ids=lambda each: each.unit
)
def test_a_split_keeps_all_rows_of_a_person_on_one_side(promise: ps.Privacy, tmp_path: Path) -> None:
    """Whoever is promised: a head is scored on nobody of whom it was made."""
    study = study_of(tmp_path, schema=NUMBERED, privacy=promise)
    ledger = ps.dp.Ledger.create(study.home(0) / "ledger")
    ledger.set_cap("ward", unit=promise.unit, adjacency=promise.adjacency, epsilon=9.0, delta=1e-5)
    X, y = arrays_of(0)
    ids = np.arange(len(X)) // 3
    pandas.DataFrame(X, columns=COLUMNS).assign(outcome=y, pid=ids).to_csv(study.home(0) / "visits.csv", index=False)
    file = RecordFile(study.home(0) / "visits.csv", "outcome", split=0.5, seed=1, persons="pid")
    found = named(study, 0, file)
    summed, kept = (replace(file, kept_out=each).read() for each in (False, True))
    assert found.summed == len(summed.X) > 0 < found.held_out == len(kept.X)
    assert not set(summed.persons) & set(kept.persons)
    where = np.isin(ids, np.array(list(set(summed.persons)), int))
    owners = {"persons": ids[where], "person_clip": study.plan.person_clip} if promise.unit == "person" else {}
    want = ps.measure(NUMBERED, X[where], y[where], **owners)
    assert records_of(Folder.open(study.home(0)).round(0)).moments == want
    assert "split=0.5, seed=1, persons='pid')" in found.script.read_text()


def test_load_gives_ids_beside_arrays_where_the_plan_promises_persons(tmp_path: Path) -> None:
    study = study_of(tmp_path, schema=NUMBERED, privacy=PERSONS)
    opened(study.home(0))
    script = study.home(0) / "records.py"
    with pytest.raises(DataError, match="returns X, y and an id for each row, or a RecordFile with persons="):
        records_of(Folder.open(study.home(0)).round(0))
    script.write_text("import numpy as np\n\n\ndef load():\n    return np.ones((4, 3)), [0, 1, 0, 1], [1, 1, 1, 2]\n")
    X, y = np.ones((4, 3)), [0, 1, 0, 1]
    want = ps.measure(NUMBERED, X, y, persons=[1, 1, 1, 2], person_clip=study.plan.person_clip)
    assert records_of(Folder.open(study.home(0)).round(0)).moments == want


def test_counts_of_persons_come_from_a_table_with_ids(tmp_path: Path) -> None:
    """A broken line, a value without a cell and a row of nobody are left out; two rows in two cells weigh one."""
    counts = ps.CountSchema((ps.Categories("sex", ("f", "m")), ps.Bins("age", (0, 40, 60))), (("sex",), ("age",)))
    study = study_of(tmp_path, schema=counts, privacy=replace(PERSONS, max_records_per_person=1, person_clip=1))
    path = study.home(0) / "visits.csv"
    opened(study.home(0))
    path.write_text("sex,age,pid\nf,30,a\nm,50,a\nf,,b\nm,41\nf,59,\nm,30,c\n")
    with pytest.warns(ps.errors.UnreadableRecordsWarning):
        assert named(study, 0, RecordFile(path, persons="pid")).summed == 3
    with pytest.warns(ps.errors.UnreadableRecordsWarning):
        moments = records_of(Folder.open(study.home(0)).round(0)).moments
    assert pytest.approx([0.7071, 1.7071, 1.7071, 0.7071], abs=1e-3) == moments.real().T


SLOW = """
import time
from privstats.moments import RecordFile

def load():
    time.sleep(0.2)  # long enough for another party's script to start
    return RecordFile("rows.npz")
"""


def test_parties_in_threads_of_one_process_read_their_own_files(tmp_path: Path) -> None:
    """A relative path of one party never meets another party's folder, nor a current folder that was removed."""
    study = study_of(tmp_path / "study")
    for party in range(3):
        np.savez(study.home(party) / "rows.npz", X=np.full((2, 3), party / 8), y=np.zeros(2, int))
        (study.home(party) / "records.py").write_text(SLOW)
    before = Path.cwd()
    (tmp_path / "gone").mkdir()
    os.chdir(tmp_path / "gone")
    shutil.rmtree(tmp_path / "gone")
    try:
        with ThreadPoolExecutor(3) as pool:
            sums = list(pool.map(lambda party: records_of(Folder.open(study.home(party)).round(0)).moments, range(3)))
    finally:
        os.chdir(before)
    assert sums[0].A.sum() < sums[1].A.sum() < sums[2].A.sum()
