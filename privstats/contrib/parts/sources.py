"""The rows of two sources of a study: an OMOP common data model, and a FHIR bulk export."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from privstats.extend.doors import Option
from privstats.extend.plans import StudySource

if TYPE_CHECKING:
    from privstats.extend.plans import Study


@dataclass(frozen=True)
class _Omop:
    omop: Annotated[
        Path | None,
        Option("Concept sets: write a view of an OMOP common data model, one row per person.", "CONCEPTS.TOML"),
    ] = None


@dataclass(frozen=True)
class _Fhir:
    fhir: Annotated[
        Path | None,
        Option("Concept sets: write the same view of a FHIR bulk export of NDJSON files.", "CONCEPTS.TOML"),
    ] = None


def _of_omop(given: Any) -> Study:
    from privstats.contrib.parts.omop import study_of

    return study_of(given.omop, "omop")


def _of_fhir(given: Any) -> Study:
    from privstats.contrib.parts.omop import study_of

    return study_of(given.fhir, "fhir")


OMOP = StudySource("omop", _Omop, _of_omop)
FHIR = StudySource("fhir", _Fhir, _of_fhir)
