"""Values beyond the edges of their bins: told to the holder of the records, refused where the plan asks for it."""

import warnings
from dataclasses import replace

import numpy as np
import pytest

import privstats as ps
from privstats.errors import ClippedWarning, RecordError, SchemaError, UnreadableRecordsWarning

MONTHS = ps.Bins("months", tuple(range(0, 25, 6)))
DIED = ps.Categories("died", (0, 1))
SCHEMA = ps.CountSchema((MONTHS, DIED), (("months", "died"),))


def schema_of(**changes):
    return replace(SCHEMA, variables=(replace(MONTHS, **changes), DIED))


def people(months):
    return {"months": months, "died": [place % 2 for place in range(len(months))]}


def quiet(schema, data, **how):
    with warnings.catch_warnings(action="error", category=ClippedWarning):
        return ps.measure(schema, data, **how)


def test_what_lies_beyond_an_edge_is_counted_on_its_side_and_the_edges_themselves_do_not():
    report = quiet(SCHEMA, people([-9, 0, 3, 5, 7, 11, 12, 17, 19, 24, 24, 10, 1, 2, 3, 4, 5, 6, 30.5, 8])).edge_report
    assert report == ps.moments.EdgeReport((ps.moments.Beyond("months", 20, 1, 1),), ("both",))
    assert str(report) == "months 5.00% below and 5.00% above"


@pytest.mark.parametrize("wrong", [[-9] * 3, [730.0, 900.0, 1100.0], ["-9", "-9", "400"]])
def test_more_than_a_tenth_beyond_the_edges_is_a_warning(wrong):
    data = people([*wrong, *[7] * 17])
    with pytest.warns(ClippedWarning, match=r"of the values of months are below its edges and \d+% above; each counts"):
        moments = ps.measure(SCHEMA, data)
    assert moments.records == 20
    quiet(SCHEMA, people([*wrong[:2], *[7] * 18]))  # a tenth is none


def test_reports_of_parts_add_up_to_that_of_the_whole_and_are_no_part_of_the_counts():
    months = np.random.default_rng(0).uniform(-5, 30, 300)
    with pytest.warns(ClippedWarning):
        whole, *parts = (ps.measure(SCHEMA, people(each)) for each in (months, months[:100], months[100:]))
    assert (sum(parts).edge_report, whole) == (whole.edge_report, replace(whole, edge_report=None))
    assert ps.moments.remarks_on(*parts) == ps.moments.remarks_on(whole)
    assert "edge" not in repr(whole)


@pytest.mark.parametrize(
    ("end", "refused", "counted"), [("above", -9, 99), ("below", 99, -9), ("none", -9, 24), ("none", 99, 0)]
)
def test_a_value_beyond_an_edge_that_is_not_open_has_no_cell(end, refused, counted):
    schema = schema_of(open=end)
    with pytest.raises(RecordError, match="column 'months' has values beyond the edges of its bins. The bins are open"):
        ps.measure(schema, people([3, refused]))
    assert quiet(schema, people([3, counted])).records == 2


def test_under_a_promise_such_a_record_is_left_out_and_decides_nothing_for_others():
    """``plan.unreadable`` of a promise: the others' counts are those without it, and nothing raises."""
    schema = schema_of(open="above")
    with pytest.warns(UnreadableRecordsWarning, match="cannot be read and are excluded"):
        with_it = ps.measure(schema, people([3, 7, -9]), unreadable="leave out")
    assert with_it == ps.measure(schema, people([3, 7]))
    blank = schema_of(open="above", missing=True)
    assert ps.measure(blank, people([3, -9]), unreadable="leave out") == ps.measure(blank, people([3, None]))


def test_a_curve_is_that_of_the_times_where_the_plan_refuses_what_is_none():
    """A fifth of the times coded -9 lifts the first event and moves the curve by 5 points; left out, by none."""
    rng = np.random.default_rng(1)
    times = np.floor(rng.exponential(12.0, 4_000))
    events = (rng.random(4_000) < 0.6).astype(int)
    coded = np.where(rng.random(4_000) < 0.2, -9.0, times)

    def curve(schema, months, **how):
        with warnings.catch_warnings(action="ignore"):
            moments = ps.measure(schema, {"months": months, "died": events[: len(months)]}, **how)
        release = ps.Release.exact(schema, moments)
        return ps.inference.kaplan_meier(release, time="months", event="died", times="discrete").survival_function_

    true = curve(SCHEMA, times)
    assert np.abs(curve(SCHEMA, coded) - true).max() > 0.04
    assert np.abs(curve(schema_of(open="above"), coded, unreadable="leave out") - true).max() < 0.02


def test_an_end_is_a_word_and_stands_in_the_plan_only_where_it_was_chosen():
    with pytest.raises(SchemaError, match="open of months must be one of 'both', 'above', 'below', 'none', got 'up'"):
        schema_of(open="up")
    chosen = schema_of(open="above")
    assert chosen.plain_fields()["variables"][0]["open"] == "above"
    assert "open" not in SCHEMA.plain_fields()["variables"][0]
    plan = ps.Plan(schema=chosen, cohort=ps.Cohort(3, 3, 100), privacy=ps.NoPrivacy())
    assert ps.Plan.from_toml(plan.to_toml()).schema == chosen


def test_what_a_plan_opened_on_purpose_is_no_remark():
    quiet(schema_of(open="above"), people([3, *[99] * 9]))


def test_no_number_is_no_share():
    assert str(quiet(schema_of(missing=True), people([None, None])).edge_report) == "months 0.00% below and 0.00% above"
