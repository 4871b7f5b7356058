"""Every kind pulls its records from one place, which counts those that cannot be read."""

from dataclasses import replace

import numpy as np

import privstats as ps
from privstats.errors import RecordError
from privstats.records.opened import Excluded, Opened
from tests.made import refused

SCHEMA = ps.ClassSchema(2, 2, "NA", clip_norm=1.0)
X = np.array([[0.5, 0.0], [np.nan, 0.5], [0.0, 0.25]])
Y = np.array([0, 1, 1])


def test_records_that_cannot_be_read_are_refused_or_counted() -> None:
    opened, excluded = Opened(SCHEMA.reading, X, Y), Excluded(marked=True)
    refused(RecordError, "NaN", SCHEMA.moments_of, opened, {})
    added = SCHEMA.terms_of(replace(opened, excluded=excluded), {}).among(excluded.marks)
    assert added.included.tolist() == [True, False, True]
    assert (excluded.left_out.records, excluded.left_out.read) == (1, 3)


def test_a_bar_knows_the_number_of_records_only_where_all_are_read() -> None:
    opened = Opened(SCHEMA.reading, X, Y)
    assert (opened.count, replace(opened, excluded=Excluded()).count, opened.over([(X, Y)]).count) == (3, None, None)
