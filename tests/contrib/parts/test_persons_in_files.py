"""A person with rows in two files is clipped once, whether one process reads all files or each is a part."""

import pickle
from collections.abc import Callable
from functools import reduce
from itertools import pairwise
from operator import add
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset as pads
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import privstats as ps
from privstats.contrib.parts import measure, partitioned
from privstats.contrib.parts.partitioned import Partitioned, in_several_parts
from privstats.errors import DataError
from privstats.moments import RecordFile
from privstats.records.from_file import persons_in
from tests import made
from tests.contrib.parts.test_partitioned import ADDS, RECORDS, of_persons
from tests.contrib.parts.test_partitioned import NAMES as NAMES_OF_KINDS
from tests.lengths import sized
from tests.moments.test_person_sums import some
from tests.schema.test_contract import published, records_of

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")

NAMES, ENDS = ("age", "bmi"), (0, 7, 31, 60)
SCHEMA = ps.ClassSchema(2, 2, "NAB", clip_norm=100.0, class_names=("no", "yes"), feature_names=NAMES)
CLIP = made.plan(
    SCHEMA, ps.Cohort(3, 3, 600), made.promise("central", unit="person", max_records_per_person=9, person_clip=1.0)
).person_clip
AS_WRITTEN: tuple[Callable[[int], Any], ...] = (int, "{:04}".format, float)  # one person in three columns' types


def parts_of(rng: np.random.Generator) -> list[pd.DataFrame]:
    """Three files whose persons are the same ten, with ids of another type in each."""
    persons = rng.integers(0, 10, ENDS[-1])
    rows = {"age": rng.uniform(40, 90, ENDS[-1]), "bmi": rng.uniform(18, 40, ENDS[-1]), "person": persons}
    frame = pd.DataFrame(rows | {"ill": rng.choice(["no", "yes"], ENDS[-1])})
    parts = [frame[start:end] for start, end in pairwise(ENDS)]
    return [part.assign(person=list(map(as_, part["person"]))) for part, as_ in zip(parts, AS_WRITTEN, strict=True)]


def written(parts: list[pd.DataFrame], home: Path, kind: str) -> Path:
    home.mkdir()
    for place, part in enumerate(parts):
        getattr(part, f"to_{kind}")(home / f"{place}.{kind}", index=False)
    return home


def of_file(path: Path) -> Any:
    X, y, ids = persons_in(RecordFile(path, "ill", persons="person"), SCHEMA.reading, "refuse")
    return ps.measure(SCHEMA, X, y, persons=ids, person_clip=CLIP)


@pytest.mark.parametrize(("kind", "seed"), [("csv", 0), ("csv", 1), ("parquet", 2), ("parquet", 3)])
def test_one_process_clips_a_person_once_over_all_files(kind: str, seed: int, tmp_path: Path) -> None:
    parts = parts_of(np.random.default_rng(seed))
    home = written(parts, tmp_path / "parts", kind)
    together = pd.concat([part.assign(person=part["person"].astype(int)) for part in parts])
    whole = ps.measure(SCHEMA, together[list(NAMES)], together["ill"], persons=together["person"], person_clip=CLIP)
    assert whole.shrunk > 0  # the clip decides here
    apart = reduce(add, (of_file(home / f"{place}.{kind}") for place in range(len(parts))))
    assert apart != whole
    for path in (home, home / f"*.{kind}"):
        found = of_file(path)
        assert found == whole
        assert (found.persons, found.shrunk) == (whole.persons, whole.shrunk) == (10, found.shrunk)


@pytest.mark.parametrize("max_rows", [1_000_000, 9])
@pytest.mark.parametrize("seed", range(3))
def test_parts_clip_a_person_once_over_all_parts(
    seed: int, max_rows: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(partitioned, "_MAX_SHARED_ROWS", max_rows)
    parts = parts_of(np.random.default_rng(seed))
    home = written(parts, tmp_path / "parts", "parquet")
    whole = of_file(home)
    mixed = [pl.from_pandas(parts[0]), parts[1], pa.Table.from_pandas(parts[2], preserve_index=False)]
    for records in (home, str(home), pads.dataset(home), parts, iter(parts), mixed):
        found: Any = measure(SCHEMA, records, "ill", persons="person", person_clip=CLIP)
        assert found == whole
        for name in ("records", "counted", "persons", "shrunk", "parties", "clip_report"):
            assert getattr(found, name) == getattr(whole, name), name


def test_an_engine_of_ones_own_measures_persons_in_several_parts_together() -> None:
    parts = parts_of(np.random.default_rng(0))
    door = Partitioned(SCHEMA, person_clip=CLIP)
    apart = [door.measure(part, "ill", persons="person", part=str(place)) for place, part in enumerate(parts)]
    with pytest.raises(DataError, match=r"a person has rows in two parts.* pass shared= .* add measure_shared\(\)"):
        door.total(map(door.encode, apart))
    groups = in_several_parts([door.present(part, persons="person") for part in parts])
    sums = [
        door.measure(part, "ill", persons="person", part=str(place), shared=groups) for place, part in enumerate(parts)
    ]
    for group in groups:
        rows = [door.rows_of(part, "ill", persons="person", chosen=group) for part in parts]
        sums.append(door.measure_shared(pickle.loads(pickle.dumps(rows))))
    together = pd.concat([part.assign(person=part["person"].astype(int)) for part in parts])
    whole = ps.measure(SCHEMA, together[list(NAMES)], together["ill"], persons=together["person"], person_clip=CLIP)
    assert door.total(map(door.encode, sums)) == whole


@pytest.mark.parametrize("averaged", [False, True])
def test_a_person_of_thousands_of_rows_in_each_part_is_clipped_once(averaged: bool) -> None:
    """Such a person's rows are summed alone, and not with other persons'."""
    rng = np.random.default_rng(0)
    clip = ps.encoding.PersonAverage() if averaged else CLIP
    sizes = (1_500, 900, 3)
    X, y = rng.uniform(20, 60, (sum(sizes), 2)), rng.choice(["no", "yes"], sum(sizes))
    ids = np.where(rng.random(sum(sizes)) < 0.9, 7, rng.integers(10, 12, sum(sizes)))
    ends = np.cumsum(sizes)[:-1]
    parts = [
        pd.DataFrame(rows, columns=list(NAMES)).assign(ill=labels, person=whose)
        for rows, labels, whose in zip(np.split(X, ends), np.split(y, ends), np.split(ids, ends), strict=True)
    ]
    whole = ps.measure(SCHEMA, X, y, persons=ids, person_clip=clip)
    assert measure(SCHEMA, parts, "ill", persons="person", person_clip=clip) == whole


@pytest.mark.parametrize("schema", ADDS, ids=NAMES_OF_KINDS)
@settings(max_examples=sized(3, 30), deadline=None)
@given(seed=st.integers(0, 1000), several=st.integers(2, 5))
def test_every_kind_of_persons_adds_up_over_any_parts(schema: Any, seed: int, several: int) -> None:
    rng = np.random.default_rng(seed)
    X, y = records_of(schema, RECORDS, rng)
    ids, part = rng.integers(0, 12, RECORDS), rng.integers(0, several, RECORDS)
    for clip in of_persons(schema):
        terms: Any = {"published": published(schema), "unreadable": "leave out", "person_clip": clip}
        whole = ps.moments.exact_moments(schema, X, y, **terms, persons=ids)
        door = Partitioned(schema, published(schema), "leave out", clip)
        cut = [(some(X, part == each), some(y, part == each), ids[part == each]) for each in range(several)]
        groups = in_several_parts([door.present(X, persons=ids) for X, _, ids in cut])
        sums = [door.measure(X, y, persons=ids, shared=groups) for X, y, ids in cut]
        sums += [
            door.measure_shared(door.rows_of(X, y, persons=ids, chosen=group) for X, y, ids in cut) for group in groups
        ]
        found: Any = door.total(sums)
        assert found == whole
        for name in ("records", "counted", "persons", "shrunk", "clip_report", "edge_report"):
            assert getattr(found, name, None) == getattr(whole, name, None), name
