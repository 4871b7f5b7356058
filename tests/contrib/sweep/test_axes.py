"""Every axis changes what it names in the plan, and nothing else."""

import dataclasses
import math

import pytest

import privstats as ps
from privstats.contrib.sweep.axes import Axes, Partition, Point, plan_at
from privstats.transforms import GaussianProjection, OrthogonalProjection, UnitNorm
from tests import made
from tests.made import refused

PRIVACY = made.promise("distributed")
PLAN = made.plan(ps.ClassSchema(3, 8, "NAB", 4.0, transform=(UnitNorm(),)), ps.Cohort(20, 15, 1000, 2), PRIVACY)
DEAL = Partition(20, None, 4.0, None, "NAB")


def at(deal=DEAL, model="distributed", unit="record", epsilon=1.0, plan=PLAN, most=None):
    return plan_at(plan, Point(deal, model, unit, epsilon), 8, most)


def test_the_plans_own_values_give_the_plan_itself():
    assert at().digest == PLAN.digest
    assert at(epsilon=math.inf, model="none", unit="none").noise is None


def test_the_promise_is_varied():
    changed = at(model="central", epsilon=3.0)
    assert (changed.privacy.model, changed.privacy.epsilon, changed.schema) == ("central", 3.0, PLAN.schema)
    client = at(unit="client", most=60)
    assert (client.privacy.unit, client.privacy.max_records_per_client) == ("client", 60)
    own = dataclasses.replace(PLAN, privacy=dataclasses.replace(PRIVACY, unit="client", max_records_per_client=7))
    assert at(unit="client", plan=own, most=60).privacy.max_records_per_client == 7
    assert at(unit="record", plan=own).privacy.max_records_per_client is None
    refused(ps.PlanError, "needs records_per_client", at, unit="client")
    persons = dataclasses.replace(PLAN, privacy=dataclasses.replace(PRIVACY, unit="person", person_clip="average"))
    refused(ps.PlanError, "a sweep's rows have no ids", at, unit="person", plan=persons)


def test_what_is_measured_is_varied():
    assert at(dataclasses.replace(DEAL, clip_norm=2.0)).schema.clip_norm == 2.0
    assert at(dataclasses.replace(DEAL, statistics="NAD")).schema.statistics == "NAD"


def test_shares_of_other_statistics_are_not_carried_over():
    shared = dataclasses.replace(PLAN, privacy=dataclasses.replace(PRIVACY, shares={"N": 0.2, "A": 0.6, "B": 0.2}))
    assert at(plan=shared).privacy.shares == {"N": 0.2, "A": 0.6, "B": 0.2}
    assert at(dataclasses.replace(DEAL, statistics="NA"), plan=shared).privacy.shares is None


def test_the_parts_of_the_cohort_are_kept_as_far_as_masking_allows():
    assert at(dataclasses.replace(DEAL, clients=40)).cohort == ps.Cohort(40, 30, 1000, 4)
    assert at(dataclasses.replace(DEAL, clients=3)).cohort == ps.Cohort(3, 3, 1000, 0)
    refused(ps.PlanError, "clients must hold integers", at, dataclasses.replace(DEAL, clients=1))


def test_a_dimension_is_a_public_projection_in_front_or_the_plans_own():
    lower = at(dataclasses.replace(DEAL, dimension=4)).schema
    assert (lower.features, lower.transform) == (4, (OrthogonalProjection(0, 8, 4), UnitNorm()))
    own = dataclasses.replace(
        PLAN, schema=ps.ClassSchema(3, 6, "NAB", 4.0, transform=(GaussianProjection(7, 8, 6), UnitNorm()))
    )
    assert at(dataclasses.replace(DEAL, dimension=3), plan=own).schema.transform == (
        GaussianProjection(7, 8, 3),
        UnitNorm(),
    )


def test_a_regression_has_its_own_statistics():
    ridge = dataclasses.replace(PLAN, schema=ps.RidgeSchema(8, clip_norm=1.0, target_bound=1.0))
    deal = Partition(20, None, 2.0, None, "Ghq")
    assert at(deal, plan=ridge).schema.clip_norm == 2.0
    refused(ps.PlanError, "omit the axis", at, dataclasses.replace(deal, statistics="NAB"), plan=ridge)


def test_deals_and_promises_are_crossed_in_order():
    axes = Axes(clients=[10, 20], alpha=[0.1], model=["central", "local"], epsilon=[1.0, 3.0, 1.0])
    deals = list(axes.deals(PLAN))
    assert [(deal.clients, deal.alpha) for deal in deals] == [(10, 0.1), (20, 0.1)]
    points = [(point.model, point.epsilon) for point in axes.points(PLAN, deals[0])]
    assert points == [("none", math.inf), ("central", 3.0), ("central", 1.0), ("local", 3.0), ("local", 1.0)]
    assert axes.varied == ("model", "clients", "epsilon")
    assert [point.epsilon for point in Axes().points(PLAN, DEAL)] == [math.inf, 1.0]


def test_a_plan_without_a_promise_has_nothing_to_vary():
    with pytest.raises(ps.PlanError, match="no epsilon to sweep"):
        list(Axes().points(dataclasses.replace(PLAN, privacy=ps.NoPrivacy()), DEAL))
