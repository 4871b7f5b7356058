"""Records on a Dask cluster: the same integers as in one place, however they are cut and whoever dies."""

import os
import subprocess
import sys
import warnings
from pathlib import Path
from types import SimpleNamespace

import dask
import dask.array as da
import dask.bag as db
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from distributed import Client, LocalCluster

import privstats as ps
from privstats import session
from privstats.contrib.parts import dask as dask_parts
from privstats.contrib.parts import measure
from privstats.errors import DataError, MissingExtraError, PrivstatsError, SchemaError
from privstats.moments import exact_moments
from privstats.randomness import seeded
from tests.course.cases import OF_CELLS, plan_of, table

RNG = np.random.default_rng(0)
RECORDS, FEATURES, CLASSES = 1_000, 5, 3
X, Y = RNG.normal(size=(RECORDS, FEATURES)), RNG.integers(0, CLASSES, RECORDS)
T = RNG.normal(size=(RECORDS, 2))
COLUMNS = tuple("abcde")
SCHEMA = ps.ClassSchema(CLASSES, FEATURES, "NABD", clip_norm=2.0)
GROUPED = ps.ClassSchema(CLASSES, FEATURES, "NAS", clip_norm=2.0)
NAMED = ps.ClassSchema(CLASSES, FEATURES, "NAB", 2.0, class_names=("ash", "beech", "elm"), feature_names=COLUMNS)
RIDGE = ps.RidgeSchema(FEATURES, targets=2, clip_norm=2.0, target_bound=1.5, folds=3)
WHOLE = ps.measure(SCHEMA, X, Y)


@pytest.fixture(autouse=True)
def here():
    """One task after the other in this process, unless a test asks for a cluster."""
    with dask.config.set(scheduler="sync"):
        yield


def test_a_clip_of_every_row_is_told_once_for_all_partitions():
    with pytest.warns(ps.ClippedWarning, match="clip_norm shortens 100% of the rows") as said:
        measure(SCHEMA, da.from_array(1e6 + X, chunks=(7, 5)), da.from_array(Y, chunks=7))
    assert [each.filename for each in said if each.category is ps.ClippedWarning] == [__file__]


def frame() -> pd.DataFrame:
    return pd.DataFrame(X, columns=list(COLUMNS)).assign(label=np.array(NAMED.class_names)[Y])


def batches(cuts: int) -> list[tuple[np.ndarray, np.ndarray]]:
    return [(X[k::cuts], Y[k::cuts]) for k in range(cuts)]


@pytest.mark.parametrize(("schema", "rows"), [(SCHEMA, 1), (GROUPED, 7), (SCHEMA, 100), (GROUPED, RECORDS)])
def test_every_cut_of_an_array_gives_the_whole(schema, rows):
    count = min(RECORDS, 60 * rows)
    found = measure(
        schema, da.from_array(X[:count], chunks=(rows, 2)), da.from_array(Y[:count], chunks=max(1, count // 3))
    )
    whole = ps.measure(schema, X[:count], Y[:count])
    assert found == whole
    assert found.clip_report == whole.clip_report


def test_targets_are_measured_too():
    targets = da.from_array(T, chunks=(90, 1))
    assert measure(RIDGE, da.from_array(X, chunks=(70, 5)), targets) == ps.measure(RIDGE, X, T)


def test_arrays_of_unknown_size_are_measured_as_they_are_cut():
    rows, labels = da.from_array(X, chunks=(100, 5)), da.from_array(Y, chunks=100)
    keep = rows[:, 0] > 0
    assert measure(SCHEMA, rows[keep], labels[keep]) == ps.measure(SCHEMA, X[X[:, 0] > 0], Y[X[:, 0] > 0])


def test_dataframes_are_measured_by_the_names_of_the_plan():
    cut = dd.from_pandas(frame(), npartitions=7)
    whole = ps.measure(NAMED, frame()[list(COLUMNS)], frame()["label"])
    assert measure(NAMED, cut[list(COLUMNS)[::-1]], cut["label"]) == whole
    numbers = cut[list(COLUMNS)].to_dask_array(), cut["label"].map(NAMED.class_names.index, meta=("label", int))
    assert measure(SCHEMA, *numbers) == WHOLE


@pytest.mark.parametrize("odd", ["x", None, "1.0", 0.25])
def test_partitions_of_other_types_are_read_value_by_value(odd):
    """A partition with a text or a gap has another type than the rest, in truth if not by its plan."""
    schema = ps.ClassSchema(2, 2, "NAB", 1.0, feature_names=("a", "b"))
    plain = pd.DataFrame({"a": [0.5, 0.0, 1.0], "b": [0, 1, 0], "y": [0, 1, 1]})
    strange = pd.DataFrame({"a": [0.5, odd], "b": ["0", "1"], "y": [1.0, None]}, dtype=object)
    strange.loc[1, "y"] = "0"
    frames = [dask.delayed(plain), dask.delayed(strange)]
    table = dd.from_delayed(frames, meta=plain, verify_meta=False)
    left, right = (ps.measure(schema, each[["a", "b"]], each["y"], unreadable="leave out") for each in (plain, strange))
    assert measure(schema, table[["a", "b"]], table["y"], unreadable="leave out") == left + right
    assert right.records == (1 if odd in ("x", None) else 2)


PLAN = ps.Plan(
    schema=NAMED,
    cohort=ps.Cohort(3, 3, 2_000),
    privacy=ps.Privacy(
        model="central", unit="person", adjacency="add-remove", epsilon=1.0, delta=1e-5,
        max_records_per_person=3, person_clip=1.5,
    ),
)  # fmt: skip
OF_PERSONS = ps.ClassSchema(CLASSES, FEATURES, "NAB", clip_norm=2.0)
IDS = np.arange(RECORDS) // 4
TERMS = {"person_clip": PLAN.person_clip}


def test_a_frame_is_measured_by_the_names_of_its_columns():
    whole = ps.measure(NAMED, frame(), "label")
    assert measure(NAMED, dd.from_pandas(frame(), npartitions=7), "label") == whole
    assert measure(RIDGE, dd.from_pandas(frame_of_targets(), npartitions=3), ["s", "t"]) == ps.measure(RIDGE, X, T)


def frame_of_targets() -> pd.DataFrame:
    return pd.DataFrame(X, columns=list(COLUMNS)).assign(s=T[:, 0], t=T[:, 1])


def test_the_cluster_makes_parts_by_the_id_of_a_frames_column():
    shuffled = frame().assign(person=[f"p{number}" for number in IDS]).sample(frac=1, random_state=3)
    whole = ps.measure(NAMED, frame(), "label", persons=IDS, **TERMS)
    found = measure(NAMED, dd.from_pandas(shuffled, npartitions=5, sort=False), "label", persons="Person", **TERMS)
    assert found == whole
    assert (found.persons, found.parties, found.shrunk) == (250, 1, whole.shrunk)


def test_ids_beside_arrays_and_frames_are_those_of_the_partitions():
    rows, labels = da.from_array(X, chunks=(100, 5)), da.from_array(Y, chunks=70)
    whole = ps.measure(OF_PERSONS, X, Y, persons=IDS, **TERMS)
    for ids in (IDS, da.from_array(IDS, chunks=9)):
        assert measure(OF_PERSONS, rows, labels, persons=ids, **TERMS) == whole
    cut = dd.from_pandas(frame().assign(person=IDS), npartitions=5)
    assert measure(NAMED, cut[[*COLUMNS, "label"]], "label", persons=cut["person"], **TERMS) == ps.measure(
        NAMED, frame(), "label", persons=IDS, **TERMS
    )


def test_a_person_in_several_partitions_is_clipped_once():
    rows, labels = da.from_array(X, chunks=(99, 5)), da.from_array(Y, chunks=99)
    assert measure(OF_PERSONS, rows, labels, persons=IDS, **TERMS) == ps.measure(OF_PERSONS, X, Y, persons=IDS, **TERMS)
    mixed = np.random.default_rng(0).permutation(IDS)
    cut = dd.from_pandas(frame().assign(person=mixed), npartitions=5)
    found = measure(NAMED, cut[[*COLUMNS, "label"]], "label", persons=cut["person"], **TERMS)
    assert found == ps.measure(NAMED, frame(), "label", persons=mixed, **TERMS)
    alike = frame().assign(person=[f"{'0' * (place % 8)}{place % 11}" for place in range(RECORDS)])  # 007 and 7 are one
    whole = ps.measure(NAMED, frame(), "label", persons=alike["person"], **TERMS)
    assert measure(NAMED, dd.from_pandas(alike, npartitions=4), "label", persons="person", **TERMS) == whole


@pytest.mark.ci
@pytest.mark.slow
@pytest.mark.parametrize("odd", ["x", None])
def test_a_partition_of_another_type_fails_no_exchange_of_a_cluster(odd):
    """Dask's own method between workers fails where one record gives its partition another type."""
    schema = ps.ClassSchema(2, 2, "NAB", 1.0, feature_names=("a", "b"))
    plain = pd.DataFrame({"a": [0.5, 0.0], "b": [0, 1], "label": [0, 1], "id": ["7", "8"]})
    strange = pd.DataFrame({"a": [0.5, odd], "b": ["0", "1"], "label": [1.0, 0], "id": [7, 8]}, dtype=object)
    table = dd.from_delayed([dask.delayed(plain), dask.delayed(strange)], meta=plain, verify_meta=False)
    terms = {"unreadable": "leave out", "person_clip": ps.encoding.PersonAverage()}
    with (
        Client(n_workers=1, threads_per_worker=1, processes=False, dashboard_address=None),
        dask.config.set(scheduler=None),
    ):
        found = measure(schema, table, "label", persons="id", **terms)
    both = pd.concat([plain, strange])
    assert found == ps.measure(schema, both[["a", "b"]], both["label"], persons=both["id"], **terms)


def test_measure_names_the_door_of_a_collection():
    with pytest.raises(
        DataError, match=r"Dask has the parts of this DataFrame: pass it to privstats\.contrib\.parts\."
    ):
        ps.measure(NAMED, dd.from_pandas(frame(), npartitions=2), "label")
    with pytest.raises(DataError, match="Dask has the parts of this Series"):
        ps.measure(SCHEMA, X, dd.from_pandas(frame(), npartitions=2)["label"])


def test_bags_and_delayed_batches_are_measured():
    assert measure(SCHEMA, db.from_sequence(batches(9), npartitions=4)) == WHOLE
    assert measure(SCHEMA, [dask.delayed(batch) for batch in batches(9)]) == WHOLE
    assert measure(SCHEMA, (dask.delayed(list(batch)) for batch in batches(1))) == WHOLE


def test_delayed_tables_are_measured_by_the_name_of_a_column():
    load = dask.delayed(lambda place: frame()[place::4])
    assert measure(NAMED, [load(place) for place in range(4)], "label") == ps.measure(NAMED, frame(), "label")
    assert measure(NAMED, (load(place) for place in range(4)), "label") == ps.measure(NAMED, frame(), "label")
    of_persons = dask.delayed(lambda place: frame().assign(person=IDS)[place == IDS % 4])
    parts = [of_persons(place) for place in range(4)]
    found = measure(NAMED, parts, "label", persons="person", **TERMS)
    assert found == ps.measure(NAMED, frame(), "label", persons=IDS, **TERMS)
    twice = pd.concat([frame().assign(person=IDS), frame().assign(person=IDS)[IDS % 4 == 0]])
    whole = ps.measure(NAMED, twice[[*COLUMNS]], twice["label"], persons=twice["person"], **TERMS)
    assert measure(NAMED, [*parts, of_persons(0)], "label", persons="person", **TERMS) == whole


def test_workers_read_files_as_the_page_shows(tmp_path):
    page = (Path(__file__).parents[3] / "docs" / "parts.md").read_text("utf-8")
    recipe = page.partition("<!-- recipe: dask -->\n```py\n")[2].partition("```")[0]
    for place in range(3):
        frame()[place::3].to_parquet(tmp_path / f"{place}.parquet", index=False)
    names = {"parts": SimpleNamespace(measure=measure), "folder": tmp_path, "schema": NAMED}
    exec(recipe.replace('"ill"', '"label"'), names)
    assert names["moments"] == ps.measure(NAMED, frame(), "label")


def test_partitions_of_a_bag_may_be_empty_but_not_all():
    bag = db.from_sequence(batches(9), npartitions=9)
    assert measure(SCHEMA, bag.filter(lambda batch: len(batch[0]) == 112)) == ps.measure(
        SCHEMA, [batch for batch in batches(9) if len(batch[0]) == 112]
    )
    with pytest.raises(DataError, match="the bag holds no batch"):
        measure(SCHEMA, bag.filter(lambda batch: False))


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        (lambda: (X, Y), "X must have parts, got ndarray: .*; what is in memory as a whole is privstats.measure's"),
        (lambda: (da.from_array(X), Y), "y must be a Dask array, dataframe or series, got ndarray"),
        (lambda: ([dask.delayed(X)], da.from_array(Y)), "X must be a Dask array, dataframe or series, got list"),
        (lambda: ([dask.delayed(frame()), frame()], "label"), "a list must hold delayed tables, got DataFrame"),
        (lambda: ([dask.delayed(X), X],), "a list must hold delayed .* batches, got ndarray"),
        (lambda: (da.from_array(X),), "y is missing"),
        (lambda: (dd.from_pandas(frame(), 2),), "y is missing"),
        (lambda: ("X.parquet", "ill"), "no such file .*X.parquet"),
        (lambda: (5,), "X must have parts, got int"),
        (lambda: ([],), "no part was measured; pass at least one"),
        (lambda: ([db.from_sequence([1])],), "a list must hold delayed .* batches, got Bag"),
        (lambda: (da.from_array(X[0]), da.from_array(Y)), "X must have shape .records, features., got 1 dimensions"),
        (lambda: (da.from_array(X), da.from_array(T[None])), "y must have shape .* got 3 dimensions"),
        (lambda: (da.from_array(X), da.from_array(Y[1:])), "X has 1000 rows but y has 999; pass one label"),
        (
            lambda: (dd.from_pandas(frame()[list(COLUMNS)], 4), dd.from_pandas(frame()["label"], 2)),
            "X has 4 partitions and y has 2; partition both alike",
        ),
        (
            lambda: (da.from_array(X, chunks=(300, 5)), da.from_array(np.where(np.arange(1000) == 950, 3, Y))),
            "partition 3: y has labels outside",
        ),
        (lambda: ([dask.delayed((X[:, :4], Y))],), "partition 0: X has 4 features but the schema has 5"),
        (
            lambda: (dd.from_pandas(frame(), 2), "label", {"persons": "nobody", **TERMS}),
            "persons='nobody' names no column of X",
        ),
        (lambda: (db.from_sequence(batches(2)), None, {"persons": IDS, **TERMS}), "batches do not show which person"),
        (
            lambda: (da.from_array(X), da.from_array(Y), {"persons": IDS[1:], **TERMS}),
            "X has 1000 rows but persons has 999; pass one id per row",
        ),
        (lambda: ([dask.delayed(X)],), "partition 0: a batch iterable must yield .X, y. pairs"),
    ],
)
def test_what_does_not_fit_is_one_sentence(given, sentence):
    *records, terms = given() if isinstance(given()[-1], dict) else (*given(), {})
    with pytest.raises(DataError, match=sentence):
        measure(SCHEMA, *records, **terms)


def test_a_schema_that_was_left_out_is_one_sentence():
    with pytest.raises(SchemaError, match="contrib.parts.measure"):
        measure(da.from_array(X), da.from_array(Y))


def test_sums_that_do_not_add_up_over_parts_are_refused():
    sites = ps.SitesSchema(FEATURES, clip_norm=1.0)
    with pytest.raises(SchemaError, match="a SitesSchema cannot be measured in parts: these sums depend"):
        measure(sites, da.from_array(X), da.from_array(Y))


@pytest.mark.filterwarnings("ignore::privstats.errors.UnreadableRecordsWarning")
@pytest.mark.parametrize("then", ["centred", "rounds"])
def test_every_session_of_a_course_over_a_declared_table_is_measured_on_the_cluster(then):
    course = ps.Binned.within(plan_of(OF_CELLS, ps.Cohort(2, 2, 1_200), model="central"), then, expected_records=600)
    X, y = table()
    frame = dd.from_pandas(pd.DataFrame({**X, "y": y}), npartitions=3)
    course.admits(frame[list(X)], frame["y"], "leave out", measure)
    releases: list[ps.Release] = []
    while (plan := course.next(releases)) is not None:
        terms = {"published": plan.published, "unreadable": plan.unreadable}
        found = measure(plan.schema, frame[list(X)], frame["y"], **terms)
        assert found == exact_moments(plan.schema, X, y, **terms)
        releases.append(session.aggregate_unmasked(plan, [found, exact_moments(plan.schema, X, y, **terms)], seeded(1)))
    assert len(releases) == course.most
    with pytest.raises(DataError, match=r"partition \d: the table lacks the column 'age'"):
        course.admits(frame[["Sodium"]], frame["y"], "leave out", measure)


def test_progress_is_shown_on_request(capsys):
    rows, labels = da.from_array(X, chunks=(500, 5)), da.from_array(Y, chunks=500)
    assert measure(SCHEMA, rows, labels, progress=True) == WHOLE
    assert "100%" in capsys.readouterr().out


def test_without_dask_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "dask", None)
    with pytest.raises(
        MissingExtraError, match=r"contrib.parts.measure needs dask; install with: pip install 'privstats\[dask\]'"
    ):
        measure(SCHEMA, da.from_array(X), da.from_array(Y))


def test_door_and_store_are_imported_without_the_extra():
    imported = "import sys; import privstats.contrib.parts.door, privstats.contrib.parts.part_store"
    code = f"{imported}; sys.exit(bool({{'dask', 'fsspec'}} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


@pytest.mark.parametrize(("values", "warned"), [(["65536", "65536"], 2), (["268435456", ""], 0), (["", "1"], 1)])
def test_dasks_allocator_setting_is_warned_of(values, warned):
    client = SimpleNamespace(run=lambda *_, **__: dict(enumerate(values)))
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        dask_parts._warn_of_allocator(client)
    assert [str(each.message).startswith(f"{warned} of 2 workers") for each in told] == [True] * bool(warned)


@pytest.fixture(scope="module")
def cluster():
    """Two workers, each a process of its own, that are started again when they die."""
    with (
        dask.config.set({"distributed.scheduler.allowed-failures": 2, "distributed.comm.timeouts.connect": "5s"}),
        LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None) as made,
        Client(made),
    ):
        yield made


def dying(folder: str, place: int, deaths: int):
    """A batch whose loader takes its worker down with it, the first ``deaths`` times, and is counted."""
    times = len(list(Path(folder).glob(f"{place}-*")))
    Path(folder, f"{place}-{times}").touch()
    if times < deaths:
        os._exit(1)
    return X[place::9], Y[place::9]


@pytest.mark.ci
@pytest.mark.slow
def test_a_cluster_of_processes_gives_the_whole(cluster, capsys):
    rows, labels = da.from_array(X, chunks=(100, 5)), da.from_array(Y, chunks=100)
    with pytest.warns(UserWarning, match="2 of 2 workers run with MALLOC_TRIM_THRESHOLD_=65536, Dask's own setting"):
        assert measure(SCHEMA, rows, labels) == WHOLE
    assert measure(SCHEMA, rows, labels, progress=True) == WHOLE
    assert "100%" in capsys.readouterr().out
    with pytest.raises(DataError, match=r"partition \d: X has 5 features but the schema has 4"):
        measure(ps.ClassSchema(CLASSES, 4, "NAB", 2.0), rows, labels)


@pytest.mark.nightly
@pytest.mark.slow
def test_a_killed_worker_is_replaced_and_nothing_is_counted_twice(cluster, tmp_path):
    """Workers die in the middle of a run, with finished partitions in their memory that are measured again."""
    load = dask.delayed(dying, pure=False)
    found = measure(SCHEMA, [load(str(tmp_path), place, place in (4, 7)) for place in range(9)])
    assert found == WHOLE
    assert found.clip_report == WHOLE.clip_report
    loaded = [len(list(tmp_path.glob(f"{place}-*"))) for place in range(9)]
    assert min(loaded[4], loaded[7]) >= 2
    counted = [
        ps.measure(SCHEMA, *batch) for batch, times in zip(batches(9), loaded, strict=True) for _ in range(times)
    ]
    assert sum(counted) != WHOLE  # what a sum that every finished task adds itself to would have given


@pytest.mark.nightly
@pytest.mark.slow
def test_a_partition_that_kills_every_worker_is_one_sentence(cluster, tmp_path, monkeypatch):
    monkeypatch.setattr(cluster.scheduler, "allowed_failures", 0)
    load = dask.delayed(dying, pure=False)
    with pytest.raises(PrivstatsError, match="every worker of one partition died"):
        measure(SCHEMA, [load(str(tmp_path), 0, 99)])
