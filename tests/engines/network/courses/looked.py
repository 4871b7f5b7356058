"""A trial with interim looks over folders, and the files that its three parties sum at each look."""

import io
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
import pandas

import privstats as ps
from privstats.encoding import flatten
from tests import made
from tests.engines.network.courses.study import CourseStudy, course_study

SCHEMA = ps.EffectSchema.of({"age": (20, 90)}, treatment="arm", outcome={"recovered": (0, 1)}, probability=0.5)
PARTIES, LOOKS = 3, 3
_SCRIPT = """from pathlib import Path
import privstats as ps

def load():
    return ps.moments.RecordFile(Path(__file__).parent / "{file}", target="recovered")
"""
_HEADER = "age,arm,recovered"


def looked_study(place: Path, files: Sequence[str] = ("ward.csv",) * PARTIES) -> CourseStudy:
    """The folders of a trial with three looks; each party's records.py reads its file, which does not exist yet."""
    looks = ps.course.Looks(LOOKS, "obrien-fleming")
    course = ps.Effect.start(
        SCHEMA,
        ps.Cohort(PARTIES, PARTIES, 5_000),
        made.promise(model="distributed", epsilon=3.0),
        share=0.0,
        adjust=False,
        analysis=ps.course.Analysis(primary=("recovered",), looks=looks),
    )
    study = course_study(place, course)
    for party, file in enumerate(files):
        (study.home(party) / "records.py").write_text(_SCRIPT.format(file=file))
    return study


def table(seed: int, records: int) -> str:
    """CSV of the first records of an endless series, so that a longer table begins with a shorter one."""
    rng = np.random.default_rng(seed)
    rows = [f"{rng.integers(20, 91)},{rng.integers(2)},{rng.integers(2)}" for _ in range(records)]
    return "\n".join([_HEADER, *rows]) + "\n"


def summed(plan: ps.Plan, tables: Iterable[str]) -> np.ndarray:
    """The sum over the records of all tables, without any protocol."""
    frames = [pandas.read_csv(io.StringIO(text)) for text in tables]
    pairs = [(frame[["age", "arm"]], frame["recovered"]) for frame in frames]
    return np.sum([flatten(ps.measure(plan.schema, *each, published=plan.published)) for each in pairs], axis=0)
