"""Write the SQL that turns a FHIR bulk export (R4, NDJSON) into the tables that a study's view reads.

Each resource is read by itself, with declared types: a line that is no JSON, or a value of another type, is a gap of
that resource alone. A concept is the text ``system|code``, as in a FHIR search.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from privstats.contrib.parts.sql_dialects import Dialect

# A longer line would stop the statement, so the limit is far above that of any resource that is read.
_MAX_LINE_BYTES = 1 << 28
_CODING = "STRUCT(system VARCHAR, code VARCHAR)[]"
_CODED, _PERIOD = f"STRUCT(coding {_CODING})", 'STRUCT(start VARCHAR, "end" VARCHAR)'
_QUANTITY = "STRUCT(value DOUBLE, code VARCHAR, comparator VARCHAR)"
_PERSON = r"regexp_extract(subject.reference, '(?:^|/)Patient/([^/|]+)', 1)"


@dataclass(frozen=True)
class _Resource:
    """Name the fields that hold the events of one FHIR resource.

    Attributes:
        fields: the read fields with their types; ``resourceType`` and ``subject`` are always read.
        concept: the field with the concepts.
        days: the fields with the event's date; the first that is given counts.
        void: a condition that the event never happened.
        more: further columns.
    """

    name: str
    fields: Mapping[str, str]
    concept: str
    days: tuple[str, ...]
    void: str
    more: str = ""

    def events(self, concept: str, day: str) -> str:
        """Return a query of the events, with these names of the columns of concept and date."""
        when = f"coalesce({', '.join(map(_date, self.days))})"
        more = f", {self.more}" if self.more else ""
        source = f"FROM {_read(self.name, {'subject': 'STRUCT(reference VARCHAR)', **self.fields})}"
        inner = f"SELECT {_PERSON} AS person_id, unnest({self.concept}) AS coding, {when} AS {day}{more}\n    {source}"
        inner = f"{inner}\n    WHERE resourceType = '{self.name}' AND NOT coalesce({self.void}, FALSE)"
        named = f"coding.system || '|' || coding.code AS {concept}"
        given = f"person_id <> '' AND {day} IS NOT NULL AND {concept} IS NOT NULL"
        selected = f"* EXCLUDE (coding), {named}"
        return "\n".join([f"SELECT {selected}", "  FROM (", f"    {inner}", "  ) AS r", f"  WHERE {given}"])


def _date(field: str) -> str:
    """Return the date of a moment as it is written; NULL for a year or month alone, and for words such as infinity."""
    return f"TRY_CAST(regexp_extract({field}, '^[0-9]{{4}}-[0-9]{{2}}-[0-9]{{2}}') AS DATE)"


def _read(resource: str, fields: Mapping[str, str]) -> str:
    types = ", ".join(f"'{name}': '{kind}'" for name, kind in {"resourceType": "VARCHAR", **fields}.items())
    how = f"ignore_errors=true, maximum_object_size={_MAX_LINE_BYTES}"
    return f"read_ndjson('{_files_of(resource)}', columns={{{types}}}, {how})"


_NAMELESS = "(regexp_matches(file, '[.](ndjson|jsonl)') AND NOT regexp_matches(file, '[A-Z][a-z]'))"
_OTHERS = "[.](duckdb|sql|toml)([.]wal)?$"
"""Files of the view itself, whatever they are named."""


def _files_of(resource: str) -> str:
    """Return the pattern of a resource's files, as servers and clients of bulk exports name them; also compressed."""
    return f"*{resource}*.ndjson*"


def _unread(resources: Iterable[str]) -> str:
    """Return a statement that stops at a file that may hold events and is not read: persons would lose them.

    Such a file names a resource that is read, or is NDJSON and names none.
    """
    names = sorted(set(resources))
    about = " OR ".join([f"file ILIKE '%{name}%'" for name in names] + [_NAMELESS])
    read = " OR ".join(f"file GLOB '{_files_of(name)}'" for name in names)
    problem = (
        "which is not read: name it after its resource, such as Condition.001.ndjson, and put it into this folder, or "
        "move it away"
    )
    return "\n".join(
        [
            f"SELECT CASE WHEN count(*) > 0 THEN error('the export holds ' || min(file) || ', {problem}') END",
            f"  FROM glob('**/*') WHERE ({about}) AND NOT (({read}) AND NOT contains(file, '/'))",
            f"    AND NOT regexp_matches(file, '{_OTHERS}')",
        ]
    )


def _status(*void: str) -> str:
    return f"status IN ({', '.join(map(repr, void))})"


_EVENTS = {
    "condition_occurrence": _Resource(
        "Condition",
        {
            "code": _CODED,
            "onsetDateTime": "VARCHAR",
            "onsetPeriod": _PERIOD,
            "recordedDate": "VARCHAR",
            "verificationStatus": _CODED,
        },
        "code.coding",
        ("onsetDateTime", "onsetPeriod.start", "recordedDate"),
        "list_has_any(list_transform(verificationStatus.coding, lambda c: c.code), ['refuted', 'entered-in-error'])",
    ),
    "drug_exposure": _Resource(
        "MedicationRequest",
        {"medicationCodeableConcept": _CODED, "authoredOn": "VARCHAR", "status": "VARCHAR", "doNotPerform": "BOOLEAN"},
        "medicationCodeableConcept.coding",
        ("authoredOn",),
        f"doNotPerform OR {_status('entered-in-error', 'cancelled', 'draft')}",
    ),
    "procedure_occurrence": _Resource(
        "Procedure",
        {"code": _CODED, "performedDateTime": "VARCHAR", "performedPeriod": _PERIOD, "status": "VARCHAR"},
        "code.coding",
        ("performedDateTime", "performedPeriod.start"),
        _status("entered-in-error", "not-done", "preparation"),
    ),
    "visit_occurrence": _Resource(
        "Encounter",
        {"type": f"{_CODED}[]", "period": _PERIOD, "status": "VARCHAR"},
        "flatten(list_transform(type, lambda t: t.coding))",
        ("period.start",),
        _status("entered-in-error", "cancelled", "planned"),
    ),
    "measurement": _Resource(
        "Observation",
        {
            "id": "VARCHAR",
            "code": _CODED,
            "effectiveDateTime": "VARCHAR",
            "effectivePeriod": _PERIOD,
            "valueQuantity": _QUANTITY,
            "status": "VARCHAR",
        },
        "code.coding",
        ("effectiveDateTime", "effectivePeriod.start"),
        _status("entered-in-error", "cancelled", "registered"),
        "coalesce(effectiveDateTime, '') || coalesce(id, '') AS measurement_id, "
        "CASE WHEN valueQuantity.comparator IS NULL THEN valueQuantity.value END AS value_as_number, "
        "valueQuantity.code AS unit_concept_id",
    ),
}
"""By table of the common data model; the view finds the tables' columns by OMOP's names."""


def statements(dialect: Dialect, schema: str, events: Sequence[tuple[str, str, str]]) -> str:
    """Return the statements that create the tables from the NDJSON files of the current folder.

    Args:
        schema: the schema of the tables.
        events: table, column of concepts and column of dates of each needed table of events.

    Example:
        >>> from privstats.contrib.parts import fhir
        >>> from privstats.contrib.parts.sql_dialects import dialect_of
        >>> fhir.statements(dialect_of("duckdb"), "fhir", []).splitlines()[0]
        'CREATE SCHEMA "fhir";'
    """
    queries = {"person": _PERSONS, "observation_period": _OBSERVED, "death": _DEATHS}
    queries |= {table: _EVENTS[table].events(concept, day) for table, concept, day in events}
    tables = [f"CREATE TABLE {dialect.table(f'{schema}.{table}')} AS\n  {query};" for table, query in queries.items()]
    resources = ["Patient", "Encounter", *(_EVENTS[table].name for table, *_ in events)]
    return "\n".join([f"CREATE SCHEMA {dialect.name(schema)};", f"{_unread(resources)};", *tables])


_PATIENT = {"id": "VARCHAR", "gender": "VARCHAR", "birthDate": "VARCHAR", "deceasedDateTime": "VARCHAR"}
_PATIENTS = f"FROM {_read('Patient', _PATIENT)}\n  WHERE resourceType = 'Patient' AND id <> ''"
# An export may hold several versions of a patient, who is one person.
_PERSONS = (
    "SELECT id AS person_id, max(CASE gender WHEN 'female' THEN 8532 WHEN 'male' THEN 8507 END) AS gender_concept_id,\n"
    f"    max(TRY_CAST(left(birthDate, 4) AS INTEGER)) AS year_of_birth\n  {_PATIENTS} GROUP BY id"
)
_DEATHS = (
    f"SELECT id AS person_id, min({_date('deceasedDateTime')}) AS death_date\n"
    f"  {_PATIENTS} AND {_date('deceasedDateTime')} IS NOT NULL GROUP BY id"
)
_STAYS = {"subject": "STRUCT(reference VARCHAR)", "period": _PERIOD, "status": "VARCHAR"}
_OBSERVED = "\n".join(
    [
        f"SELECT {_PERSON} AS person_id, min({_date('period.start')}) AS observation_period_start_date,",
        f"    max(coalesce({_date('period.end')}, {_date('period.start')})) AS observation_period_end_date",
        f"  FROM {_read('Encounter', _STAYS)}",
        f"  WHERE resourceType = 'Encounter' AND NOT coalesce({_EVENTS['visit_occurrence'].void}, FALSE)",
        f"    AND {_PERSON} <> '' AND {_date('period.start')} IS NOT NULL GROUP BY 1",
    ]
)
