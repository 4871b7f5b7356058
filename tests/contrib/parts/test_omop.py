"""A study over an OMOP common data model: one row per person, the rows that plain Python finds, up to a release."""

from datetime import date, timedelta
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from typer.testing import CliRunner

import privstats as ps
from privstats.cli.main import app
from privstats.contrib.parts import sql
from privstats.contrib.parts.omop import study_of
from privstats.errors import PlanError
from privstats.moments import RecordFile
from privstats.records.from_file import persons_in

CONCEPTS = """\
view = "study"
dialect = "duckdb"
cdm = "cdm"

[index]
domain = "condition"
concepts = [201826]
from = 2010-06-01
observed_before_days = 100

[outcome]
name = "stroke's"
domain = "condition"
concepts = [443454]
within_days = 365

[age]
edges = [40, 65]

[[covariates]]
name = "metformin"
domain = "drug"
concepts = [1503297]
before_days = 200

[[covariates]]
name = "HbA1c"
domain = "measurement"
concepts = [3004410]
descendants = false
units = [8554]
before_days = 400
edges = [6.5, 8.0]
"""
START = date(2010, 1, 1)
DIABETES, CHILD, STROKE, METFORMIN, PILL, HBA1C = 201826, 900001, 443454, 1503297, 900002, 3004410


COLUMNS = {
    "person": "person_id INTEGER, gender_concept_id INTEGER, year_of_birth INTEGER",
    "observation_period": "person_id INTEGER, observation_period_start_date DATE, observation_period_end_date DATE",
    "condition_occurrence": "person_id INTEGER, condition_concept_id INTEGER, condition_start_date DATE",
    "drug_exposure": "person_id INTEGER, drug_concept_id INTEGER, drug_exposure_start_date DATE",
    "measurement": (
        "measurement_id INTEGER, person_id INTEGER, measurement_concept_id INTEGER, measurement_date DATE, "
        "value_as_number DOUBLE, unit_concept_id INTEGER"
    ),
    "death": "person_id INTEGER, death_date DATE",
    "concept_ancestor": "ancestor_concept_id INTEGER, descendant_concept_id INTEGER",
}


def rows_of_model(seed: int = 0, persons: int = 300) -> dict[str, list[Any]]:
    """Return the rows of a small data model, by table."""
    rng = np.random.default_rng(seed)

    def day() -> date:
        return START + timedelta(days=int(rng.integers(0, 1_500)))

    def events(concepts: tuple[int, ...], each: float) -> list[Any]:
        several = [(person, rng.poisson(each)) for person in range(1, persons + 1)]
        return [(person, int(rng.choice(concepts)), day()) for person, number in several for _ in range(number)]

    return {
        "person": [
            (person, int(rng.choice([8507, 8532, 0])), int(rng.integers(1930, 1995)))
            for person in range(1, persons + 1)
        ],
        "observation_period": [
            (person, START - timedelta(days=50), START + timedelta(days=int(rng.integers(300, 2_500))))
            for person in range(1, persons + 1)
        ],
        "condition_occurrence": events((DIABETES, CHILD, STROKE, 5), 3),
        "drug_exposure": events((METFORMIN, PILL, 6), 2),
        "measurement": [
            (place, *event, value, unit)
            for place, event in enumerate(events((HBA1C, 7), 3))
            for value, unit in [((None, 5.9, 6.5, 7.2, 9.0)[place % 5], 8554 if place % 7 else 1)]
        ],
        "death": [(person, day()) for person in range(1, persons + 1, 9)],
        "concept_ancestor": [(DIABETES, DIABETES), (DIABETES, CHILD), (METFORMIN, PILL), (HBA1C, 7)],
    }


def data_model(path: Path, seed: int = 0) -> dict[str, list[Any]]:
    """Write a small data model, and return its rows."""
    rows = rows_of_model(seed)
    with duckdb.connect(str(path)) as base:
        base.execute("CREATE SCHEMA cdm")
        for table, declared in COLUMNS.items():
            base.execute(f"CREATE TABLE cdm.{table} ({declared})")
            columns = zip(*rows[table], strict=True)
            base.register("held", pa.table({str(place): list(column) for place, column in enumerate(columns)}))
            base.execute(f"INSERT INTO cdm.{table} SELECT * FROM held")
    return rows


def found_by_hand(rows: dict[str, list[Any]], *, or_death: bool = False) -> list[tuple[Any, ...]]:
    """The study's rows, person by person."""
    died, found = dict(rows["death"]), []
    conditions, drugs = rows["condition_occurrence"], rows["drug_exposure"]
    for person, gender, born in rows["person"]:
        index = min((at for who, what, at in conditions if who == person and what in (DIABETES, CHILD)), default=None)
        if index is None or index < date(2010, 6, 1):
            continue
        ((_, first, last),) = [each for each in rows["observation_period"] if each[0] == person]
        outcomes = [at for who, what, at in conditions if who == person and what == STROKE]
        outcomes += [died[person]] if or_death and person in died else []
        outcome, horizon = min(outcomes, default=date.max), index + timedelta(days=365)
        if not (first <= index - timedelta(days=100) and index <= last) or outcome <= index:
            continue
        known = last >= horizon or died.get(person, date.max) <= horizon
        recent = [
            (at, place, value)
            for place, who, what, at, value, unit in rows["measurement"]
            if who == person and what == HBA1C and unit == 8554 and value is not None
            if index - timedelta(days=400) < at <= index
        ]
        drug = any(
            who == person and what in (METFORMIN, PILL) and index - timedelta(days=200) < at <= index
            for who, what, at in drugs
        )
        sex = {8532: "female", 8507: "male"}.get(gender)
        value = max(recent)[2] if recent else None
        state = 1 if outcome <= horizon else 0 if known else None
        found.append((person, index, index.year - born, sex, int(drug), value, state))
    return found


def viewed(base: Any) -> list[tuple[Any, ...]]:
    names = 'person_id, index_date, age, sex, metformin, "HbA1c", "stroke\'s"'
    return base.execute(f"SELECT {names} FROM study ORDER BY person_id").fetchall()


@pytest.mark.parametrize("or_death", [False, True])
def test_the_view_has_the_rows_that_plain_python_finds(tmp_path: Path, or_death: bool) -> None:
    (tmp_path / "concepts.toml").write_text(CONCEPTS.replace("[age]", f"or_death = {str(or_death).lower()}\n[age]"))
    rows = data_model(tmp_path / "base.duckdb")
    with duckdb.connect(str(tmp_path / "base.duckdb")) as base:
        base.execute(study_of(tmp_path / "concepts.toml").view)
        found = viewed(base)
    assert found == found_by_hand(rows, or_death=or_death)
    assert len(found) > 50
    assert {each[-1] for each in found} == {0, 1, None}
    assert {each[3] for each in found} == {"female", "male", None}
    assert len({each[5] for each in found}) == 5


PROMISE = [
    *("--model", "distributed", "--adjacency", "add-remove", "--epsilon", "3", "--delta", "1e-6", "--clients", "3"),
    *("--vanish", "0", "--colluders", "1", "--max-records", "1000", "--yes"),
]


def test_from_concept_sets_to_a_release(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("concepts.toml").write_text(CONCEPTS)
    done = CliRunner().invoke(app, ["plan", "init", "plan.toml", "--omop", "concepts.toml", *PROMISE])
    assert done.exit_code == 0, done.output
    plan = ps.Plan.read("plan.toml")
    assert (plan.privacy.unit, plan.privacy.max_records_per_person) == ("person", 1)
    moments = []
    for seed in range(3):
        data_model(Path(f"{seed}.duckdb"), seed)
        query = sql.Query.of(plan, "study", "stroke's", dialect="duckdb", persons="person_id")
        with duckdb.connect(f"{seed}.duckdb") as base:
            base.execute(Path("plan.sql").read_text())
            with pytest.warns(UserWarning, match="records are excluded"):
                counted = query.moments(base.execute(query.text).fetchall())
        file = RecordFile(f"{seed}.duckdb/study", "stroke's", persons="person_id")
        X, y, ids = persons_in(file, plan.schema.reading, plan.unreadable)
        with pytest.warns(UserWarning, match="cannot be read and are excluded"):
            measured = ps.measure(
                plan.schema, X, y, unreadable=plan.unreadable, persons=ids, person_clip=plan.person_clip
            )
        assert counted == measured
        assert counted.persons == measured.persons
        moments.append(counted)
    release = ps.simulate(plan, moments)
    assert release.survivors == (0, 1, 2)


def test_an_answer_that_the_study_fixes_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("concepts.toml").write_text(CONCEPTS)
    for more, words in (
        (["--unit", "record"], "the study fixes the unit as the person, with one row each: omit --unit"),
        (["--target", "ill"], "--omop declares every column and the outcome: omit --target"),
    ):
        done = CliRunner().invoke(app, ["plan", "init", "plan.toml", "--omop", "concepts.toml", *PROMISE, *more])
        assert words in " ".join(str(done.exception or done.output).split())
    assert not Path("plan.sql").exists()


WRONG = {
    "concepts.toml: outcome.within_days must be an integer, got 'a year'": (
        "within_days = 365",
        'within_days = "a year"',
    ),
    "item 2 of covariates.HbA1c.edges must be a number, got 'high'": ("edges = [6.5, 8.0]", 'edges = [6.5, "high"]'),
    "outcome has unknown keys 'weeks'; the keys are name": (
        "within_days = 365",
        "within_days = 365\nweeks = 2",
    ),
    "not valid TOML": ("[outcome]", "[outcome"),
    "outcome must list concepts, and death none": ("concepts = [443454]", "concepts = []"),
    "positive concept ids": ("concepts = [201826]", "concepts = [-1]"),
    "days of outcome must be 1 to 36500": ("within_days = 365", "within_days = 0"),
    "index must not be death": ('domain = "condition"\nconcepts = [201826]', 'domain = "death"'),
    "metformin must not be death": ('domain = "drug"\nconcepts = [1503297]', 'domain = "death"'),
    "metformin has edges or units": ("before_days = 200", "before_days = 200\nedges = [1]"),
    "edges of HbA1c must increase": ("edges = [6.5, 8.0]", "edges = [8.0, 6.5]"),
    "one name in any case": ('name = "metformin"', 'name = "Person_ID"'),
    "dialect must be one of": ('dialect = "duckdb"', 'dialect = "oracle"'),
}


@pytest.mark.parametrize("words", WRONG)
def test_a_wrong_file_is_one_sentence(tmp_path: Path, words: str) -> None:
    before, after = WRONG[words]
    assert before in CONCEPTS
    (tmp_path / "concepts.toml").write_text(CONCEPTS.replace(before, after, 1))
    with pytest.raises(ps.errors.PrivstatsError, match=words):
        study_of(tmp_path / "concepts.toml")


def test_a_study_without_covariates_is_refused(tmp_path: Path) -> None:
    text = CONCEPTS[: CONCEPTS.index("[age]")].replace('cdm = "cdm"', "sex = false")
    (tmp_path / "concepts.toml").write_text(text)
    with pytest.raises(PlanError, match="the study has no covariate"):
        study_of(tmp_path / "concepts.toml")


def test_no_value_of_a_person_stops_the_view(tmp_path: Path) -> None:
    """A sum or difference beyond a type's range would end the statement for all persons."""
    (tmp_path / "concepts.toml").write_text(CONCEPTS)
    rows = data_model(tmp_path / "base.duckdb")
    with duckdb.connect(str(tmp_path / "base.duckdb")) as base:
        base.execute(study_of(tmp_path / "concepts.toml").view)
        base.execute("UPDATE cdm.person SET year_of_birth = -2147483648 WHERE person_id = 7")
        for person, day in ((900, "5881580-07-10"), (901, "infinity"), (902, "-infinity"), (903, "290000-01-01 (BC)")):
            base.execute(f"INSERT INTO cdm.person VALUES ({person}, 8507, 1950)")
            base.execute(f"INSERT INTO cdm.condition_occurrence VALUES ({person}, {DIABETES}, DATE '{day}')")
            base.execute(f"INSERT INTO cdm.observation_period VALUES ({person}, '-infinity', 'infinity')")
        found = viewed(base)
    others = [each for each in found_by_hand(rows) if each[0] != 7]
    assert [each for each in found if each[0] != 7] == others
