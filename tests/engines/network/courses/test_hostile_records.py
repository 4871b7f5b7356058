"""One record or one person of a party does not decide who takes part: all parties survive each session."""

from pathlib import Path
from typing import Any

import pytest

import privstats as ps
from privstats.contrib.synthetic.columns import schema_of
from privstats.contrib.synthetic.course import Synthetic
from tests.engines.network.courses.study import CourseStudy, course_study
from tests.engines.network.fake import FolderNet
from tests.without import needing

COHORT = ps.Cohort(3, 2, 100)
PLAN = """
from pathlib import Path
import privstats as ps
dataset = "ward"
nodes = Path({nodes!r})
def current():
    return ps.Plan.read(sorted(nodes.iterdir(), key=lambda each: int(each.name))[-1] / "plan.toml")
"""
PARTS = """
import pyarrow as pa
from privstats.contrib import parts
def load():
    plan = current()
    one = {{**{{f"x{{j}}": [.1] * 5 for j in range(plan.schema.features)}}, "y": [0] * 5, "id": list("abcde")}}
    two = {{**one, "id": {value!r}}}
    terms = {{"unreadable": plan.unreadable, "person_clip": plan.person_clip, "published": plan.published}}
    return parts.measure(plan.schema, [pa.table(one), pa.table(two)], "y", persons="id", **terms)
"""
SQL = """
import duckdb
from privstats.contrib.parts import sql
def load():
    base = duckdb.connect()
    base.execute("CREATE TABLE t (v0 VARCHAR, v1 VARCHAR, id INTEGER)")
    base.execute("INSERT INTO t VALUES ('0', '1', 1), ('1', '0', 2), ('1', '1', 3)")
    base.executemany("INSERT INTO t VALUES (?, '0', ?)", {value!r})
    plan = current()
    ids = "id" if plan.person_clip else None
    query = sql.Query.of(plan, "t", dialect="duckdb", persons=ids)
    return query.moments(base.execute(query.text).fetchall())
"""


def survivors(study: CourseStudy, script: str, calm: Any, value: Any) -> list[Any]:
    """Run a course in which party 0 has the value, and each other party a calm one."""
    for peer in range(COHORT.clients):
        home = study.home(peer)
        text = (PLAN + script).format(nodes=str(home / "nodes"), value=calm if peer else value)
        (home / "records.py").write_text(text)
    return [release.survivors for release in FolderNet(study).run().releases]


@needing("privstats.records_engines:parts")
def test_persons_in_two_parts_end_no_part_in_a_session(tmp_path: Path) -> None:
    schema = ps.ClassSchema(2, 2, "NAB", 1.0, feature_names=("x0", "x1"))
    plan = _plan(schema, unit="person", person_clip="average")
    study = course_study(tmp_path, ps.Centred.within(plan), schema=schema)
    assert survivors(study, PARTS, [*"fghij"], [*"fgha", "unknown"]) == [(0, 1, 2)] * 2


@pytest.mark.filterwarnings("ignore::privstats.errors.UnreadableRecordsWarning")
def test_texts_that_only_the_library_reads_end_no_part_in_a_session(tmp_path: Path) -> None:
    """One party has them all: any of them would end its part."""
    texts = ("\u0436", "1e999", "x" * 1_100)
    hostile = [[text, person] for person, text in enumerate(texts, start=4)]
    assert set(_of_sql(tmp_path, hostile, unit="record")) == {(0, 1, 2)}


@pytest.mark.filterwarnings("ignore::privstats.errors.UnreadableRecordsWarning")
@pytest.mark.parametrize("clip", [{"person_clip": "average"}, {"person_clip": 1, "max_records_per_person": 4}])
def test_persons_beyond_the_clip_end_no_part_in_a_session_of_sql(clip: Any, tmp_path: Path) -> None:
    assert set(_of_sql(tmp_path, [["1", 1], ["1", None]], unit="person", **clip)) == {(0, 1, 2)}


def _of_sql(folder: Path, hostile: list[list[Any]], **terms: Any) -> list[Any]:
    course = Synthetic.within(_plan(schema_of([ps.Truth("v0"), ps.Truth("v1")]), **terms))
    study = course_study(folder, course, schema=ps.ClassSchema(2, 2, "NA", 1.0))
    return survivors(study, SQL, [["1", 4]], hostile)


def _plan(schema: Any, **terms: Any) -> ps.Plan:
    privacy = ps.Privacy(model="distributed", adjacency="add-remove", epsilon=1.0, delta=1e-6, **terms)
    return ps.Plan(schema=schema, cohort=COHORT, privacy=privacy)
