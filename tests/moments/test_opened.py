"""Every kind pulls its records from one place, which counts those that cannot be read."""

from dataclasses import replace
from inspect import signature
from typing import Any, ClassVar

import numpy as np
import pytest

import privstats as ps
from privstats.encoding import PersonAverage
from privstats.errors import RecordError, SchemaError
from privstats.kinds import KINDS
from privstats.moments import exact_moments
from privstats.moments.opened import Excluded, Opened
from privstats.schema.base import Statistic
from tests.made import refused
from tests.schema.made_up import MadeUpSchema, made_up_kind

SCHEMA = ps.ClassSchema(2, 2, "NA", clip_norm=1.0)
X = np.array([[0.5, 0.0], [np.nan, 0.5], [0.0, 0.25]])
Y = np.array([0, 1, 1])


class OwnedSchema(MadeUpSchema):
    """Promises persons, and states no record's own terms."""

    task: ClassVar[str] = "owned"
    no_persons: ClassVar[str] = ""
    table: ClassVar[tuple[Statistic, ...]] = (
        Statistic("a", "pooled", ("feature",), (1, 0), meaning="the sum of rows", share=1.0),
    )


@pytest.mark.parametrize("task", KINDS)
def test_a_kind_takes_opened_records_and_no_container(task: str) -> None:
    row = KINDS[task]
    for forms in (row.measure, row.terms):
        assert forms is None or [*signature(forms).parameters][1:2] == ["records"]


def test_records_that_cannot_be_read_are_refused_or_counted() -> None:
    opened, excluded = Opened(SCHEMA.reading, X, Y), Excluded(marked=True)
    measured: Any = KINDS["classes"].measure
    refused(RecordError, "NaN", measured, SCHEMA, opened, {})
    terms: Any = KINDS["classes"].terms
    added = excluded.among(terms(SCHEMA, replace(opened, excluded=excluded), {}))
    assert added.included.tolist() == [True, False, True]
    assert (excluded.left_out.records, excluded.left_out.read) == (1, 3)


def test_a_bar_knows_the_number_of_records_only_where_all_are_read() -> None:
    opened = Opened(SCHEMA.reading, X, Y)
    assert (opened.count, replace(opened, excluded=Excluded()).count, opened.over([(X, Y)]).count) == (3, None, None)


def test_persons_of_a_kind_that_states_no_terms_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    row = made_up_kind(OwnedSchema, lambda schema, X, *_: (np.zeros(2, np.int64), len(X)))
    monkeypatch.setitem(KINDS, "owned", row)  # type: ignore[arg-type]
    owned: Any = {"persons": ["a", "b", "c"], "person_clip": PersonAverage()}
    refused(SchemaError, "OwnedSchema; omit persons", exact_moments, OwnedSchema(), np.zeros((3, 2)), Y, **owned)
