"""Spark and Ray, started on this machine as users start them: the integers and the refusals of one process."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import privstats as ps
from privstats.contrib.parts import measure
from privstats.contrib.parts.partitioned import Partitioned
from privstats.errors import DataError, RecordError, UnreadableRecordsWarning
from tests import made

pytestmark = [pytest.mark.nightly, pytest.mark.slow]  # by day test_dask.py starts an engine

RNG = np.random.default_rng(0)
RECORDS, NAMES = 400, ("age", "bmi")
SCHEMA = ps.ClassSchema(2, 2, "NAB", clip_norm=100.0, class_names=("no", "yes"), feature_names=NAMES)
FRAME = pd.DataFrame(
    {
        "bmi": RNG.uniform(18, 40, RECORDS),
        "ill": RNG.choice(["no", "yes"], RECORDS),
        "age": RNG.uniform(20, 90, RECORDS),
        "person": [f"p{number}" for number in RNG.integers(0, 90, RECORDS)],
    }
)
PLAIN = FRAME.drop(columns="person")
CLIP = made.plan(
    SCHEMA, ps.Cohort(3, 3, 2_000), made.promise("central", unit="person", max_records_per_person=9, person_clip=1.5)
).person_clip


def checked(distributed: Callable[[pd.DataFrame], Any]) -> None:
    """Measure on an engine, from a frame in several of its parts."""
    assert measure(SCHEMA, distributed(PLAIN), "ill") == ps.measure(SCHEMA, PLAIN, "ill")
    found = measure(SCHEMA, distributed(FRAME), "ill", persons="Person", person_clip=CLIP)
    whole: Any = ps.measure(SCHEMA, PLAIN, "ill", persons=FRAME["person"], person_clip=CLIP)
    assert found == whole
    assert (found.persons, found.parties, found.shrunk) == (whole.persons, 1, whole.shrunk)
    gaps = PLAIN.assign(age=PLAIN["age"].where(PLAIN.index % 4 != 0))
    with pytest.warns(UnreadableRecordsWarning, match="100 of the records cannot be read"):
        assert measure(SCHEMA, distributed(gaps), "ill", unreadable="leave out").records == RECORDS - 100
    with pytest.raises(RecordError, match="a gap|missing|finite"):
        measure(SCHEMA, distributed(gaps), "ill")
    alike = FRAME.assign(person=[f"{'0' * (at % 5)}{at % 9 + 1}" for at in range(RECORDS)])  # 007 and 7 are one person
    found = measure(SCHEMA, distributed(alike), "ill", persons="person", person_clip=CLIP)
    assert found == ps.measure(SCHEMA, PLAIN, "ill", persons=alike["person"], person_clip=CLIP)
    with pytest.raises(DataError, match="'nobody' names no column of X"):
        measure(SCHEMA, distributed(FRAME), "ill", persons="nobody", person_clip=CLIP)
    with pytest.raises(DataError, match="y must name columns of the"):
        measure(SCHEMA, distributed(PLAIN), FRAME["ill"])


def test_spark_measures_what_one_process_does(spark: Any) -> None:
    spark.conf.set("spark.sql.shuffle.partitions", "5")
    checked(lambda frame: spark.createDataFrame(frame).repartition(4))


def test_spark_connect_measures_what_one_process_does(spark_connect: Any) -> None:
    checked(lambda frame: spark_connect.createDataFrame(frame).repartition(4))


def test_workers_of_spark_read_files_as_the_page_shows(spark: Any, tmp_path: Path) -> None:
    page = (Path(__file__).parents[3] / "docs" / "parts.md").read_text("utf-8")
    recipe = page.partition("<!-- recipe: spark -->\n```py\n")[2].partition("```")[0]
    for start in range(3):
        PLAIN[start::3].to_parquet(tmp_path / f"{start}.parquet", index=False)
    names: dict[str, Any] = {"spark": spark, "folder": tmp_path, "door": Partitioned(SCHEMA)}
    exec(recipe, names)
    assert names["moments"] == ps.measure(SCHEMA, PLAIN, "ill")


def test_ray_measures_what_one_process_does(ray: Any) -> None:
    data = pytest.importorskip("ray.data")

    data.DataContext.get_current().enable_progress_bars = False
    checked(lambda frame: data.from_pandas([frame[start::4] for start in range(4)]))
