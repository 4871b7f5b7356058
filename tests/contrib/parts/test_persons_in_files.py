"""A person with rows in two files: clipped once where one process reads all files, refused where parts are apart."""

from collections.abc import Callable
from functools import reduce
from itertools import pairwise
from operator import add
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import privstats as ps
from privstats.contrib.parts import measure
from privstats.contrib.parts.partitioned import Partitioned
from privstats.errors import DataError
from privstats.moments import RecordFile
from privstats.records.from_file import persons_in
from tests import made

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


def test_parts_by_themselves_refuse_the_same_files(tmp_path: Path) -> None:
    parts = parts_of(np.random.default_rng(0))
    home = written(parts, tmp_path / "parts", "parquet")
    remedy = "a person has rows in two parts.*partition the records by the id.* read all files as one RecordFile"
    for records in (home, str(home), parts, iter(parts)):
        with pytest.raises(DataError, match=remedy):
            measure(SCHEMA, records, "ill", persons="person", person_clip=CLIP)
    door = Partitioned(SCHEMA, person_clip=CLIP)
    sums = [door.measure(part, "ill", persons="person", part=str(place)) for place, part in enumerate(parts)]
    with pytest.raises(DataError, match=remedy):
        door.total(map(door.encode, sums))
