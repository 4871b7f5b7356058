"""A study over a FHIR bulk export: the rows that the same study has over an OMOP data model, from NDJSON files."""

import gzip
import json
import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import duckdb
import pytest
from typer.testing import CliRunner

import privstats as ps
from privstats.cli.main import app
from privstats.contrib.parts.omop import study_of
from privstats.errors import PlanError
from privstats.moments import RecordFile
from privstats.records.from_file import persons_in
from tests.contrib.parts.test_omop import (
    CHILD,
    CONCEPTS,
    DIABETES,
    HBA1C,
    PROMISE,
    found_by_hand,
    rows_of_model,
    viewed,
)

SNOMED = "http://snomed.info/sct"


def coded(concept: int, *, also: Any = None) -> dict[str, Any]:
    """A concept with its coding, and with one of another system."""
    return {
        "coding": [{"system": "http://local", "code": str(concept)}, {"system": SNOMED, "code": f"c{concept}"}, also]
    }


def token(concept: int) -> str:
    return f"{SNOMED}|c{concept}"


FHIR = (
    CONCEPTS.replace('cdm = "cdm"\n', "")
    .replace("descendants = false\n", "")
    .replace("[8554]", '["%"]')
    .replace("[201826]", f'["{token(DIABETES)}", "{token(CHILD)}"]')  # an export has no terminology
    .replace("[443454]", f'["{token(443454)}"]')
    .replace("[1503297]", f'["{token(1503297)}", "{token(900002)}"]')
    .replace("[3004410]", f'["{token(HBA1C)}"]')
)


def resources(rows: dict[str, list[Any]]) -> Iterator[dict[str, Any]]:
    """The resources of a data model's rows."""
    died = {person: day.isoformat() for person, day in rows["death"]}
    for person, gender, born in rows["person"]:
        sex = {8507: "male", 8532: "female"}.get(gender, "other")
        patient = {"resourceType": "Patient", "id": f"p{person}", "gender": sex, "birthDate": f"{born}-07-01"}
        yield patient | ({"deceasedDateTime": f"{died[person]}T08:00:00+01:00"} if person in died else {})
    for person, first, last in rows["observation_period"]:
        for period in ({"start": f"{first}T23:00:00-05:00"}, {"start": str(last), "end": str(last)}):
            yield {"resourceType": "Encounter", "subject": {"reference": f"Patient/p{person}"}, "period": period}
    for person, concept, day in rows["condition_occurrence"]:
        subject = {"reference": f"https://ehr.example/fhir/Patient/p{person}"}
        yield {"resourceType": "Condition", "subject": subject, "code": coded(concept), "onsetDateTime": str(day)}
    for person, concept, day in rows["drug_exposure"]:
        drug = {"medicationCodeableConcept": coded(concept), "authoredOn": f"{day}T10:00:00Z"}
        yield {"resourceType": "MedicationRequest", "subject": {"reference": f"Patient/p{person}"}, **drug}
    for place, person, concept, day, value, unit in rows["measurement"]:
        quantity = {"value": value, "code": "%" if unit == 8554 else "mmol/mol"}
        found = {"effectiveDateTime": str(day), "valueQuantity": quantity, "status": "final", "code": coded(concept)}
        yield {
            "resourceType": "Observation",
            "id": f"o{place:06}",
            "subject": {"reference": f"Patient/p{person}"},
        } | found


def exported(home: Path, seed: int = 0) -> dict[str, list[Any]]:
    """Write an export in two files of each resource, and return the rows that it was made of."""
    home.mkdir()
    rows = rows_of_model(seed)
    files: dict[str, list[str]] = {}
    for place, each in enumerate(resources(rows)):
        files.setdefault(f"{each['resourceType']}.{place % 2:03}.ndjson", []).append(json.dumps(each))
    for name, lines in files.items():
        (home / name).write_text("\n".join(lines) + "\n")
    return rows


@contextmanager
def inside(home: Path) -> Iterator[None]:
    before = Path.cwd()
    os.chdir(home)
    try:
        yield
    finally:
        os.chdir(before)


def rows_of(home: Path, concepts: str = FHIR) -> list[tuple[Any, ...]]:
    (home / "concepts.toml").write_text(concepts)
    with inside(home), duckdb.connect() as base:
        base.execute(study_of("concepts.toml", "fhir").view)
        return sorted(viewed(base), key=lambda row: int(row[0][1:]))


def named(rows: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    return [(f"p{person}", *others) for person, *others in rows]


@pytest.mark.parametrize("or_death", [False, True])
def test_the_view_has_the_rows_of_the_same_study_over_omop(tmp_path: Path, or_death: bool) -> None:
    rows = exported(tmp_path / "export")
    concepts = FHIR.replace("[age]", f"or_death = {str(or_death).lower()}\n[age]")
    found = rows_of(tmp_path / "export", concepts)
    assert found == named(found_by_hand(rows, or_death=or_death))
    assert len(found) > 50
    assert len({each[5] for each in found}) == 5


VOID: list[Any] = [
    *(
        "no JSON",
        "[1]",
        "5",
        '{"subject": ',
        "{}{}",
        '{"onsetDateTime": NaN}',
        '{"code": ' + "[" * 9_999 + "]" * 9_999 + "}",
    ),
    {"resourceType": "Condition"},
    {"resourceType": "Condition", "subject": "Patient/p1", "code": 7, "onsetDateTime": ["2010"]},
    {"code": {"coding": "c"}, "onsetDateTime": "2001-01-01"},
    {"code": coded(DIABETES), "onsetDateTime": "2001"},  # a year is no date
    *({"code": coded(DIABETES), "onsetDateTime": day} for day in ("2001-02-30", "-infinity", "epoch", "01-01-2001")),
    {"code": coded(DIABETES), "onsetDateTime": 20010101},
    {"code": coded(DIABETES), "onsetDateTime": "2001-01-01", "subject": {"reference": "Group/p1"}},
    {"code": coded(DIABETES), "onsetDateTime": "2001-01-01", "resourceType": "ConditionDefinition"},
    *(
        {
            "code": coded(DIABETES),
            "onsetDateTime": "2001-01-01",
            "verificationStatus": {"coding": [None, {"code": word}]},
        }
        for word in ("refuted", "entered-in-error")
    ),
]


NAMES: dict[str, Callable[[str, int], str]] = {
    "as servers name them": lambda name, part: f"{name}.{part:03}.ndjson",
    "as clients name them": lambda name, part: f"{part + 1}.{name}.ndjson",
    "packed": lambda name, part: f"{name}.{part}.ndjson.gz",
    "the second packed": lambda name, part: f"{name}.{part}.ndjson{'.gz' * part}",
    "the second numbered": lambda name, part: f"{name}{f'_{part}' * part}.ndjson",
    "the second as jsonl": lambda name, part: f"{name}.{part}.{'jsonl' if part else 'ndjson'}",
    "the second in capitals": lambda name, part: f"{name}.{part}.{'NDJSON' if part else 'ndjson'}",
    "in small letters": lambda name, part: f"{name.lower() if part else name}.{part}.ndjson",
    "without a resource": lambda name, part: f"part-{name.lower()[:3]}.ndjson" if part else f"{name}.ndjson",
    "the second in a folder": lambda name, part: f"{'more/' * part}{name}.{part}.ndjson",
}


@pytest.mark.parametrize("how", NAMES)
def test_every_file_of_an_export_is_read_or_named(how: str, tmp_path: Path) -> None:
    home, names = tmp_path / "export", NAMES[how]
    exported(home)
    before = rows_of(home)
    for path in sorted(home.glob("*.ndjson")):
        name, part, _ = path.name.split(".")
        new, text = home / names(name, int(part)), path.read_bytes()
        path.unlink()
        new.parent.mkdir(exist_ok=True)
        new.write_bytes(gzip.compress(text) if new.suffix == ".gz" else text)
    try:
        assert rows_of(home) == before
    except duckdb.Error as error:
        named = re.search("the export holds (.*), which is not read: name it after its resource", str(error))
        assert named, error
        assert (home / named[1]).exists()
        assert how in ("the second as jsonl", "the second in capitals", "in small letters", "without a resource") or (
            "folder" in how
        )


def test_no_resource_changes_how_another_is_read(tmp_path: Path) -> None:
    exported(tmp_path / "export")
    before = rows_of(tmp_path / "export")
    for person in range(1, 60):
        for place, each in enumerate(VOID):
            full = {"resourceType": "Condition", "subject": {"reference": f"Patient/p{person}"}}
            text = each if isinstance(each, str) else json.dumps(full | each)
            with (tmp_path / "export" / f"Condition.{place:03}.ndjson").open("a") as file:
                file.write(f"{text}\n")
    with (tmp_path / "export" / "Condition.000.ndjson").open("ab") as lines:
        lines.write(b'{"id": "\xff\xfe"}\n' + b'{"note": "' + b"x" * (40 << 20) + b'"}\n')
    observation = {"resourceType": "Observation", "code": coded(HBA1C), "effectiveDateTime": "2014-01-01"}
    void = [
        {"status": "entered-in-error"},
        {"valueQuantity": {"value": 9, "code": "%", "comparator": "<"}},
        {"value": 1},
    ]
    with (tmp_path / "export" / "Observation.9.ndjson").open("w") as file:
        for person in range(1, 60):
            for each in void:
                quantity = {"valueQuantity": {"value": 99.0, "code": "%"}} if "status" in each else {}
                subject = {"subject": {"reference": f"Patient/p{person}"}}
                file.write(json.dumps(observation | subject | quantity | each) + "\n")
    patient = {"resourceType": "Patient", "id": before[0][0]}  # another version of a patient is no other person
    (tmp_path / "export" / "Patient.9.ndjson").write_text(f"{json.dumps(patient)}\n\n{{}}\n")
    assert rows_of(tmp_path / "export") == before


def test_every_domain_is_read(tmp_path: Path) -> None:
    rows = exported(tmp_path / "export")
    with (tmp_path / "export" / "Procedure.ndjson").open("w") as file:
        for person, _, day in rows["condition_occurrence"]:
            subject = {"reference": f"Patient/p{person}"}
            performed = {"performedPeriod": {"start": str(day)}, "status": "completed", "code": coded(5)}
            file.write(json.dumps({"resourceType": "Procedure", "subject": subject} | performed) + "\n")
    with (tmp_path / "export" / "Encounter.9.ndjson").open("w") as file:
        for person, concept, day in rows["condition_occurrence"]:
            stay = {"period": {"start": str(day)}, "type": [coded(concept), {"text": "ward"}]}
            file.write(
                json.dumps({"resourceType": "Encounter", "subject": {"reference": f"Patient/p{person}"}} | stay) + "\n"
            )
    more = "".join(
        f'\n[[covariates]]\nname = "{name}"\ndomain = "{domain}"\nbefore_days = 1\nconcepts = ["{token(concept)}"]\n'
        for name, domain, concept in (("surgery", "procedure", 5), ("stay", "visit", DIABETES))
    )
    (tmp_path / "concepts.toml").write_text(FHIR + more)
    with inside(tmp_path / "export"), duckdb.connect() as base:
        base.execute(study_of(tmp_path / "concepts.toml", "fhir").view)
        found = base.execute("SELECT count(*), sum(surgery), sum(stay) FROM study").fetchone()
    assert found is not None
    number, surgery, stay = found
    assert number == surgery  # each index date has one
    assert 0 < stay < number  # others began with the child's concept


def test_from_an_export_to_a_release(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("concepts.toml").write_text(FHIR)
    done = CliRunner().invoke(app, ["plan", "init", "plan.toml", "--fhir", "concepts.toml", *PROMISE])
    assert done.exit_code == 0, done.output
    printed = " ".join(done.output.split())
    assert "run it by DuckDB in the export's folder" in printed
    assert "follow-up ends at the last encounter" in printed
    assert "a gap in stroke's and excluded. Risks may then be biased" in printed
    plan, moments = ps.Plan.read("plan.toml"), []
    for seed in range(3):
        home = tmp_path / f"party{seed}"
        exported(home, seed)
        with inside(home), duckdb.connect("hospital.duckdb") as base:
            base.execute((tmp_path / "plan.sql").read_text())
        file = RecordFile(home / "hospital.duckdb" / "study", "stroke's", persons="person_id")
        X, y, ids = persons_in(file, plan.schema.reading, plan.unreadable)
        with pytest.warns(UserWarning, match="cannot be read and are excluded"):
            measured = ps.measure(
                plan.schema, X, y, unreadable=plan.unreadable, persons=ids, person_clip=plan.person_clip
            )
        assert measured.persons is not None
        assert measured.persons > 50
        moments.append(measured)
    assert ps.simulate(plan, moments).survivors == (0, 1, 2)


WRONG = {
    'concepts of index must be texts "SYSTEM|CODE"': (f'["{token(DIABETES)}", "{token(CHILD)}"]', "[201826]"),
    'concepts of outcome must be texts "SYSTEM|CODE"': (f'["{token(443454)}"]', '["443454"]'),
    "metformin asks for descendants, and an export has no terminology": (
        "before_days = 200",
        "before_days = 200\ndescendants = true",
    ),
    "units of HbA1c must be UCUM codes": ('["%"]', "[8554]"),
    'dialect must be "duckdb" for FHIR': ('dialect = "duckdb"', 'dialect = "postgres"'),
}


@pytest.mark.parametrize("words", WRONG)
def test_a_file_that_no_export_fits_is_one_sentence(tmp_path: Path, words: str) -> None:
    before, after = WRONG[words]
    assert before in FHIR
    (tmp_path / "concepts.toml").write_text(FHIR.replace(before, after, 1))
    with pytest.raises(PlanError, match=words.replace("|", r"\|")):
        study_of(tmp_path / "concepts.toml", "fhir")


def test_concepts_of_an_export_are_none_of_omop(tmp_path: Path) -> None:
    (tmp_path / "concepts.toml").write_text(FHIR)
    with pytest.raises(PlanError, match="concepts of index must be positive concept ids"):
        study_of(tmp_path / "concepts.toml")
    (tmp_path / "concepts.toml").write_text(CONCEPTS.replace("[8554]", '["%"]'))
    with pytest.raises(PlanError, match="units of HbA1c must be concept ids"):
        study_of(tmp_path / "concepts.toml")
