"""Every command that reads a party's records reads a folder, a pattern and a table of a DuckDB file like one file."""

import json
import shutil
from pathlib import Path

import duckdb
import numpy as np
import pandas as pd
import pytest

import privstats as ps
from tests import made
from tests.engines.network.fake import study_of

CELLS = ps.Cells((ps.Numeric("age", (40, 65)), ps.Categories("sex", ("f", "m"))))
SCHEMA = ps.ClassSchema(2, statistics="NAB", clip_norm=1.0, transform=(CELLS,), class_names=("no", "yes"))
SOURCES = {
    "folder": "csv",
    "pattern": "csv/2024-*.csv",
    "Parquet folder": "parquet",
    "table": "base.duckdb/patients",
}
PARTIES = ("north", "south", "west")


@pytest.fixture
def home(tmp_path: Path, files: Path) -> Path:
    """A folder of its own with all of these files."""
    return shutil.copytree(files, tmp_path, dirs_exist_ok=True)


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same records of each party in one file and as every source; a patient has rows in two files."""
    place = tmp_path_factory.mktemp("parties")
    rng = np.random.default_rng(0)
    for party, name in enumerate(PARTIES):
        age = rng.integers(20, 90, 120)
        frame = pd.DataFrame(
            {"patient": np.arange(120) // 2 + 1000 * party, "age": age, "sex": rng.choice(["f", "m"], 120)}
        )
        frame["ill"] = np.where(age + 9 * rng.normal(size=120) > 60, "yes", "no")
        folder = place / name
        for kind in ("csv", "parquet"):
            (folder / kind).mkdir(parents=True)
            for part, (start, end) in enumerate(((0, 41), (41, 41), (41, 120))):
                getattr(frame[start:end], f"to_{kind}")(folder / kind / f"2024-{part}.{kind}", index=False)
        frame.to_csv(folder / "all.csv", index=False)
        with duckdb.connect(str(folder / "base.duckdb")) as base:
            base.register("frame", frame)
            base.execute("CREATE TABLE patients AS SELECT * FROM frame")
            base.execute("CREATE TABLE others AS SELECT 1 AS x")
    more = {"unit": "person", "max_records_per_person": 4, "person_clip": 2.0}
    plan = made.plan(SCHEMA, ps.Cohort(3, 3, 500), made.promise("distributed", **more))
    (place / "plan.toml").write_text(plan.to_toml())
    return place


@pytest.mark.parametrize("source", SOURCES.values(), ids=SOURCES)
def test_look_shows_the_same_table(privstats, home: Path, source: str) -> None:
    shown = [
        privstats("look", f"north/{path}", "--plan", "plan.toml", "--key", "patient", cwd=home, code=0).stdout.replace(
            path, "RECORDS"
        )
        for path in ("all.csv", source)
    ]
    assert shown[0] == shown[1]
    assert "120 records of north/RECORDS" in shown[0]
    assert "2.0 rows per patient, 2 at most" in shown[0]


@pytest.mark.parametrize("source", SOURCES.values(), ids=SOURCES)
def test_a_party_names_its_records_and_keeps_their_split(privstats, home: Path, source: str) -> None:
    plan = ps.Plan.read(home / "plan.toml")
    study_of(home, schema=plan.schema, cohort=ps.Cohort(5, 3, 500), privacy=plan.privacy)
    said = {}
    for path in ("all.csv", source):
        words = ("--target", "ill", "--persons", "patient", "--split", "0.3", "--seed", "4")
        done = privstats("flower", "records", "study/party 0", f"north/{path}", *words, cwd=home, code=0)
        said[path] = " ".join(done.stdout.split()).replace(path, "RECORDS")
    assert said["all.csv"] == said[source]
    assert " records of north/RECORDS, " in said[source]
    (note,) = set(home.rglob("*.splits.json")) - {home / "north" / "all.csv.splits.json"}
    assert json.loads(note.read_text())["splits"][0]["seed"] == 4


@pytest.mark.ci
@pytest.mark.parametrize("source", SOURCES.values(), ids=SOURCES)
def test_a_course_is_rehearsed_over_each_party_s_records(privstats, home: Path, source: str) -> None:
    privstats("course", "init", "course.toml", "--plan", "plan.toml", "--rounds", "1", cwd=home, code=0)
    paths = [f"{name}/{source}" for name in PARTIES]
    words = ("--target", "ill", "--persons", "patient", "--out", "out")
    done = privstats("course", "rehearse", "course.toml", *paths, *words, cwd=home, code=0)
    assert f"3 parties, one for each path: {', '.join(paths)}" in " ".join(done.stdout.split())
    assert "2 of 2 sessions ended with a sum" in done.stdout


@pytest.mark.parametrize("source", SOURCES.values(), ids=SOURCES)
def test_a_head_is_scored_alike(privstats, home: Path, source: str) -> None:
    plan = made.plan(SCHEMA, ps.Cohort(3, 3, 500), ps.NoPrivacy())
    frames = [pd.read_csv(home / name / "all.csv") for name in PARTIES]
    release = ps.simulate(plan, [(frame[["age", "sex"]], frame["ill"]) for frame in frames])
    ps.heads.LDA().fit_release(release).save(home / "head.safetensors")
    found = [
        privstats("score", "head.safetensors", f"north/{path}", "--target", "ill", "--json", cwd=home, code=0).stdout
        for path in ("all.csv", source)
    ]
    assert found[0].replace("all.csv", source) == found[1]


@pytest.mark.parametrize("source", SOURCES.values(), ids=SOURCES)
def test_the_names_of_columns_are_read_and_the_next_command_can_be_pasted(privstats, home: Path, source: str) -> None:
    done = privstats("plan", "init", "next.toml", "--from", f"north/{source}", "--drop", "patient", cwd=home, code=0)
    path = f"'north/{source}'" if "*" in source else f"north/{source}"
    assert f"--from {path} --public columns.toml --target COLUMN" in " ".join(done.stdout.split())
    assert (home / "columns.toml").read_text().count("name = ") == 3


@pytest.mark.ci
@pytest.mark.parametrize("source", SOURCES.values(), ids=SOURCES)
def test_a_rehearsal_names_parties_whose_files_have_one_name_by_their_paths(privstats, home: Path, source: str) -> None:
    paths = [f"{name}/{source}" for name in PARTIES[:2]]
    words = ("--target", "ill", "--epsilon", "3", "--drop", "patient")
    done = privstats("try", *paths, *words, cwd=home, code=0)
    for path in paths:
        assert f"{path} alone, no privacy" in done.stdout.replace("\n", " ")
