"""The strategies draw what they promise, reach the awkward corners, and drive a whole aggregation."""

import math
import sys

import numpy as np
import pytest
from hypothesis import HealthCheck, find, given, settings
from hypothesis import strategies as st

import privstats as ps
from privstats.encoding import flatten
from privstats.errors import MissingExtraError
from privstats.testing import (
    chunkings,
    class_schemas,
    cohorts,
    dropout_schedules,
    entries,
    partitions,
    plans,
    privacies,
    records,
    ridge_schemas,
    schemas,
    shards,
)
from privstats.workflows.simulate import run

QUICK = settings(max_examples=15, deadline=None, suppress_health_check=list(HealthCheck))


@given(st.data(), schemas())
def test_records_fit_their_schema(data, schema):
    X, y = data.draw(records(schema, max_records=9))
    assert X.dtype == np.float64
    assert X.shape == (len(y), schema.features)
    if isinstance(schema, ps.ClassSchema):
        assert y.dtype == np.int64
        assert ((y >= 0) & (y < schema.classes)).all()
    else:
        assert y.shape == (len(X), schema.targets)


@pytest.mark.parametrize(
    "corner",
    [
        lambda v: v == 0 and math.copysign(1, v) < 0,
        lambda v: abs(v) == 3.0,
        lambda v: abs(v) > 1e300,
        lambda v: 0 < abs(v) < 1e-307,
        lambda v: v == math.nextafter(3.0, 4.0),
        lambda v: v == 0.5 * 3.0 / 4096,
    ],
    ids=["minus zero", "the bound", "huge", "subnormal", "just beyond the bound", "half a step"],
)
def test_entries_reach_the_corners(corner):
    find(entries(3.0, 3.0 / 4096), corner)


@given(st.data(), st.integers(0, 30))
def test_chunkings_are_consecutive_and_complete(data, count):
    pieces = data.draw(chunkings(count))
    assert [i for piece in pieces for i in range(count)[piece]] == list(range(count))


@given(st.data(), st.integers(0, 30), st.integers(1, 6))
def test_partitions_are_disjoint_and_complete(data, count, clients):
    parts = data.draw(partitions(count, clients))
    assert len(parts) == clients
    assert sorted(np.concatenate(parts).tolist()) == list(range(count))


@given(st.data(), plans())
def test_schedules_name_who_is_silent_and_no_more_than_asked(data, plan):
    spare = plan.cohort.clients - plan.cohort.min_survivors
    gone = [client for clients in data.draw(dropout_schedules(plan)).values() for client in clients]
    assert len(set(gone)) == len(gone) <= spare
    fatal = [c for clients in data.draw(dropout_schedules(plan, survivable=False)).values() for c in clients]
    assert len(set(fatal)) == len(fatal) > spare


@pytest.mark.ci
def test_every_statistic_and_trust_model_is_drawn():
    for name in "BSD":
        find(class_schemas(), lambda schema, name=name: name in schema.statistics)
    find(ridge_schemas(), lambda schema: schema.folds > 1 and schema.targets > 1)
    for model in ("central", "distributed", "local"):
        find(privacies(), lambda privacy, model=model: getattr(privacy, "model", "") == model)
    find(cohorts(), lambda cohort: cohort.colluders > 0)


@pytest.mark.slow
@QUICK
@given(st.data())
def test_any_drawn_plan_runs_and_its_sum_is_exact(data):
    plan = data.draw(plans(privacy=st.just(ps.NoPrivacy())))
    moments = [ps.measure(plan.schema, *shard) for shard in data.draw(shards(plan))]
    done = run(plan, moments, data.draw(dropout_schedules(plan)))
    total = sum((flatten(moments[k]) for k in done.release.survivors), np.zeros(plan.layout.size, np.int64))
    assert np.array_equal(done.release.vector, total)


@pytest.mark.slow
@QUICK
@given(st.data(), plans(privacy=st.just(ps.NoPrivacy())))
def test_too_many_dropouts_end_in_a_named_error(data, plan):
    schedule = data.draw(dropout_schedules(plan, survivable=False))
    with pytest.raises(ps.AggregationError):
        run(plan, data.draw(shards(plan)), schedule)


def test_without_hypothesis_there_is_a_sentence(monkeypatch):
    monkeypatch.setitem(sys.modules, "hypothesis", None)
    monkeypatch.delitem(sys.modules, "privstats.testing.extra")
    with pytest.raises(MissingExtraError, match=r"pip install 'privstats\[testing\]'"):
        __import__("privstats.testing.extra")
