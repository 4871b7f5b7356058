"""Write one row per person from an OMOP common data model: the SQL view of a study, from a small file of concept sets.

The view has each person's index date, covariates known by then, and whether the first outcome follows in time. A plan
over it has the person as its unit, because each person has one row. A FHIR bulk export has the same view, over tables
that :mod:`privstats.contrib.parts.fhir` writes.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date
from itertools import pairwise
from tomllib import TOMLDecodeError
from typing import Literal, TypeAlias

import msgspec

from privstats.contrib.parts import fhir
from privstats.contrib.parts.sql_dialects import Dialect, dialect_of
from privstats.errors import PlanError
from privstats.extend.plans import Study as Study
from privstats.extend.plans import read_text
from privstats.extend.support import toml_tables
from privstats.files.typed_tables import tables_as
from privstats.intake.column_names import same_names
from privstats.schema import Categories
from privstats.transforms import Column, Numeric, Truth

Domain: TypeAlias = Literal["condition", "drug", "procedure", "visit", "measurement", "death"]
Source: TypeAlias = Literal["omop", "fhir"]

_EVENTS = {
    "condition": ("condition_occurrence", "condition_concept_id", "condition_start_date"),
    "drug": ("drug_exposure", "drug_concept_id", "drug_exposure_start_date"),
    "procedure": ("procedure_occurrence", "procedure_concept_id", "procedure_date"),
    "visit": ("visit_occurrence", "visit_concept_id", "visit_start_date"),
    "measurement": ("measurement", "measurement_concept_id", "measurement_date"),
    "death": ("death", "", "death_date"),
}
"""By domain: its table, and the columns of concept and date."""
_FEMALE, _MALE = 8532, 8507
_MAX_DAYS = 36_500
_FHIR = "fhir"


class _Concepts(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    domain: Domain
    concepts: tuple[int | str, ...] = ()
    descendants: bool | None = None


class _Index(_Concepts, frozen=True):
    first: date | None = msgspec.field(default=None, name="from")
    last: date | None = msgspec.field(default=None, name="until")
    observed_before_days: int = 0


class _Outcome(_Concepts, frozen=True):
    name: str
    within_days: int
    or_death: bool = False


class _Covariate(_Concepts, frozen=True):
    name: str
    before_days: int
    edges: tuple[float, ...] = ()
    units: tuple[int | str, ...] = ()


class _Age(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    edges: tuple[float, ...]


class _File(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    view: str
    dialect: str
    index: _Index
    outcome: _Outcome
    covariates: tuple[_Covariate, ...] = ()
    cdm: str = ""
    age: _Age | None = None
    sex: bool = True


_ENCOUNTERS_END = (
    "an export states no observation period, so each person's follow-up ends at the last encounter. Whether a person "
    "comes back may depend on the outcome (informative censoring): who has it counts, and who stays away without it is "
    "a gap in {outcome} and excluded. Risks may then be biased, usually upward, and effects in either direction. "
    "Compare the share of gaps between groups; where it differs, use a registry's follow-up"
)


def study_of(path: str | os.PathLike[str], source: Source = "omop") -> Study:
    """Read a file of concept sets, and write its view.

    Args:
        path: a TOML file. ``dialect`` and ``view`` name the SQL and the view, ``cdm`` the schema of OMOP's tables. The
            tables ``[index]``, ``[outcome]`` and ``[[covariates]]`` hold concept sets: a ``domain`` (condition, drug,
            procedure, visit, measurement or death) and ``concepts``, with their ``descendants`` by default.
        source: where the events are. For ``"fhir"`` a concept is a text ``system|code``, a unit is a UCUM code, and the
            dialect is DuckDB's, which reads NDJSON.

    Raises:
        PlanError: the file is malformed, or a setting is out of bounds.

    Example:
        >>> from pathlib import Path
        >>> from privstats.contrib.parts.omop import study_of
        >>> _ = Path("concepts.toml").write_text('''view = "study"
        ... dialect = "duckdb"
        ... index = {domain = "condition", concepts = [201826]}
        ... outcome = {name = "stroke", domain = "condition", concepts = [443454], within_days = 365}
        ... ''')
        >>> study_of("concepts.toml").view.splitlines()[0]
        'CREATE VIEW "study" AS'
    """
    try:
        tables = toml_tables(read_text(path))
    except TOMLDecodeError as error:
        raise PlanError(f"{path} is not valid TOML: {error}") from None
    try:
        file = tables_as(tables, _File)
    except PlanError as error:
        raise PlanError(f"{path}: {error}") from None
    _check(file)
    _check_concepts(file, source)
    columns: list[Column] = [] if file.age is None else [Numeric("age", file.age.edges)]
    columns += [Categories("sex", ("female", "male"))] if file.sex else []
    columns += [Numeric(each.name, each.edges) if each.edges else Truth(each.name) for each in file.covariates]
    if not columns:
        raise PlanError("the study has no covariate; add [[covariates]], [age] or sex = true")
    names = ["person_id", "index_date", *(each.name for each in columns), file.outcome.name]
    if twice := same_names(names):
        raise PlanError(f"the view would have {twice[0]!r} and {twice[1]!r}, one name in any case; rename one")
    dialect = dialect_of(file.dialect)
    cdm = _Cdm(dialect, file.cdm or (_FHIR if source == _FHIR else ""), source)
    view = "\n".join([*cdm.tables(file), _view(file, cdm)])
    where = "by DuckDB in the export's folder" if source == _FHIR else Study.where
    warning = _ENCOUNTERS_END.format(outcome=file.outcome.name) if source == _FHIR else ""
    return Study(file.view, view, tuple(columns), Truth(file.outcome.name), where, warning)


def _check(file: _File) -> None:
    for name, listed in _sets(file):
        if (listed.domain == "death") == bool(listed.concepts):
            raise PlanError(f"{name} must list concepts, and death none: change its concepts or its domain")
    days = [("index", file.index.observed_before_days, 0), ("outcome", file.outcome.within_days, 1)]
    for name, number, least in [*days, *((each.name, each.before_days, 1) for each in file.covariates)]:
        if not least <= number <= _MAX_DAYS:
            raise PlanError(f"the days of {name} must be {least} to {_MAX_DAYS}, got {number}")
    if file.index.domain == "death":
        raise PlanError("the index must not be death, which no outcome follows; name another domain")
    if file.outcome.domain == "death" and file.outcome.or_death:
        raise PlanError("the outcome is death itself: omit or_death")
    for covariate in file.covariates:
        if covariate.domain == "death":
            raise PlanError(f"{covariate.name} must not be death, which no index date follows; name another domain")
        if (covariate.edges or covariate.units) and covariate.domain != "measurement":
            raise PlanError(f"{covariate.name} has edges or units, which only a measurement has; omit them")
        if any(low >= high for low, high in pairwise(covariate.edges)):
            raise PlanError(f"edges of {covariate.name} must increase; sort them")


def _sets(file: _File) -> list[tuple[str, _Concepts]]:
    return [("index", file.index), ("outcome", file.outcome), *((each.name, each) for each in file.covariates)]


def _check_concepts(file: _File, source: Source) -> None:
    """Refuse concepts and units of another source, which no event would match."""
    if source == _FHIR and file.dialect != "duckdb":
        raise PlanError(f'dialect must be "duckdb" for FHIR, because DuckDB reads the NDJSON; got {file.dialect!r}')
    for name, listed in _sets(file):
        if source == _FHIR:
            if not all(isinstance(concept, str) and _CONCEPT.fullmatch(concept) for concept in listed.concepts):
                raise PlanError(f'concepts of {name} must be texts "SYSTEM|CODE" for FHIR, as in a search by token')
            if listed.descendants:
                raise PlanError(f"{name} asks for descendants, and an export has no terminology: list every code")
        elif not all(isinstance(concept, int) and 0 < concept < 1 << 31 for concept in listed.concepts):
            raise PlanError(f"concepts of {name} must be positive concept ids below 2**31")
        units = listed.units if isinstance(listed, _Covariate) else ()
        if not all(isinstance(unit, str if source == _FHIR else int) for unit in units):
            raise PlanError(f"units of {name} must be {'UCUM codes' if source == _FHIR else 'concept ids'}")


_CONCEPT = re.compile(r"[^|\s]+\|[^|\s]+")


def _view(file: _File, cdm: _Cdm) -> str:
    dialect = cdm.dialect
    events = [_first_index(cdm, file.index), *_first_outcome(cdm, file)]
    covariates = [_covariate(cdm, place, each) for place, each in enumerate(file.covariates)]
    places = range(len(covariates))
    joins = [f"LEFT JOIN covariate_{at} ON covariate_{at}.person_id = c.person_id" for at in places]
    shown = ["c.person_id", "c.index_date", *_person(dialect, file)]
    for place, each in enumerate(file.covariates):
        known = f"CASE WHEN covariate_{place}.person_id IS NULL THEN 0 ELSE 1 END"
        shown.append(f"{f'covariate_{place}.value' if each.edges else known} AS {dialect.name(each.name)}")
    horizon = f"c.index_date + INTERVAL '{file.outcome.within_days}' DAY"
    known = f"c.observed_until >= {horizon} OR d.died <= {horizon}"
    outcome = f"CASE WHEN o.outcome_date <= {horizon} THEN 1 WHEN {known} THEN 0 END"
    shown.append(f"{outcome} AS {dialect.name(file.outcome.name)}")
    steps = ",\n".join([*events, _cohort(cdm, file), *covariates])
    tables = [
        "FROM cohort AS c",
        f"JOIN {cdm.table('person')} AS p ON p.person_id = c.person_id",
        "LEFT JOIN first_outcome AS o ON o.person_id = c.person_id",
        "LEFT JOIN deaths AS d ON d.person_id = c.person_id",
        *joins,
    ]
    return "\n".join(
        [f"CREATE VIEW {dialect.table(file.view)} AS", f"WITH {steps}", "SELECT", "  " + ",\n  ".join(shown), *tables]
    )


def _person(dialect: Dialect, file: _File) -> list[str]:
    age = f"CAST(EXTRACT(YEAR FROM c.index_date) AS BIGINT) - p.year_of_birth AS {dialect.name('age')}"
    sex = f"CASE p.gender_concept_id WHEN {_FEMALE} THEN 'female' WHEN {_MALE} THEN 'male' END AS {dialect.name('sex')}"
    return [age] * (file.age is not None) + [sex] * file.sex


@dataclass(frozen=True)
class _Cdm:
    """The tables of one common data model."""

    dialect: Dialect
    schema: str
    source: Source

    def tables(self, file: _File) -> list[str]:
        """Return the statements that create the tables, where the source has none."""
        if self.source != _FHIR:
            return []
        domains = {each.domain for _, each in _sets(file)} - {"death"}
        return [fhir.statements(self.dialect, self.schema, [_EVENTS[domain] for domain in sorted(domains)])]

    def listed(self, concepts: Iterable[int | str]) -> str:
        """Return literals of concepts or units, divided by commas."""
        return ", ".join(self.dialect.text(each) if isinstance(each, str) else str(each) for each in concepts)

    def table(self, name: str) -> str:
        """Return the quoted name of a table."""
        return self.dialect.table(f"{self.schema}.{name}" if self.schema else name)

    def events(self, concepts: _Concepts) -> tuple[str, str, str]:
        """Return a concept set's table, its date column, and the condition that an event ``e`` is of the set."""
        table, concept, day = _EVENTS[concepts.domain]
        if not concept:
            return self.table(table), day, "1 = 1"
        listed = self.listed(concepts.concepts)
        condition = f"e.{concept} IN ({listed})"
        if concepts.descendants is not False and self.source != _FHIR:
            below = f"SELECT a.descendant_concept_id FROM {self.table('concept_ancestor')} AS a"
            condition = f"({condition} OR e.{concept} IN ({below} WHERE a.ancestor_concept_id IN ({listed})))"
        return self.table(table), day, condition


def _first_index(cdm: _Cdm, index: _Index) -> str:
    table, day, condition = cdm.events(index)
    # Beyond these years the addition of days would stop the statement for all persons.
    condition = f"{condition} AND e.{day} BETWEEN DATE '0001-01-01' AND DATE '9999-12-31'"
    limits = [f"MIN(e.{day}) >= DATE '{index.first}'"] if index.first else []
    limits += [f"MIN(e.{day}) <= DATE '{index.last}'"] if index.last else []
    having = f" HAVING {' AND '.join(limits)}" if limits else ""
    return (
        f"first_index AS (\n  SELECT e.person_id, MIN(e.{day}) AS index_date\n  FROM {table} AS e\n"
        f"  WHERE {condition}\n  GROUP BY e.person_id{having}\n)"
    )


def _first_outcome(cdm: _Cdm, file: _File) -> list[str]:
    table, day, condition = cdm.events(file.outcome)
    deaths = f"SELECT e.person_id, MIN(e.death_date) AS died FROM {cdm.table('death')} AS e GROUP BY e.person_id"
    every = f"SELECT e.person_id, e.{day} AS outcome_date FROM {table} AS e WHERE {condition}"
    if file.outcome.or_death:
        every += f"\n    UNION ALL SELECT e.person_id, e.death_date FROM {cdm.table('death')} AS e"
    first = (
        f"SELECT e.person_id, MIN(e.outcome_date) AS outcome_date FROM (\n    {every}\n  ) AS e GROUP BY e.person_id"
    )
    return [f"deaths AS (\n  {deaths}\n)", f"first_outcome AS (\n  {first}\n)"]


def _cohort(cdm: _Cdm, file: _File) -> str:
    """Return persons who are observed at their index date, and had no outcome by then."""
    before = f"i.index_date - INTERVAL '{file.index.observed_before_days}' DAY"
    return (
        "cohort AS (\n  SELECT i.person_id, i.index_date, MAX(v.observation_period_end_date) AS observed_until\n"
        f"  FROM first_index AS i\n  JOIN {cdm.table('observation_period')} AS v ON v.person_id = i.person_id\n"
        f"    AND v.observation_period_start_date <= {before} AND v.observation_period_end_date >= i.index_date\n"
        "  LEFT JOIN first_outcome AS o ON o.person_id = i.person_id AND o.outcome_date <= i.index_date\n"
        "  WHERE o.person_id IS NULL\n  GROUP BY i.person_id, i.index_date\n)"
    )


def _covariate(cdm: _Cdm, place: int, covariate: _Covariate) -> str:
    """Return persons with an event by the index date; for a number the value of the last."""
    table, day, condition = cdm.events(covariate)
    within = (
        f"e.{day} <= c.index_date AND e.{day} > c.index_date - INTERVAL '{covariate.before_days}' DAY AND {condition}"
    )
    source = f"FROM cohort AS c\n    JOIN {table} AS e ON e.person_id = c.person_id\n    WHERE {within}"
    if not covariate.edges:
        return f"covariate_{place} AS (\n  SELECT DISTINCT c.person_id\n    {source}\n)"
    units = f" AND e.unit_concept_id IN ({cdm.listed(covariate.units)})" if covariate.units else ""
    order = f"ROW_NUMBER() OVER (PARTITION BY c.person_id ORDER BY e.{day} DESC, e.measurement_id DESC) AS latest"
    source = f"{source} AND e.value_as_number IS NOT NULL{units}"
    rows = f"SELECT c.person_id, e.value_as_number AS value, {order}\n    {source}"
    return f"covariate_{place} AS (\n  SELECT r.person_id, r.value FROM (\n    {rows}\n  ) AS r WHERE r.latest = 1\n)"
