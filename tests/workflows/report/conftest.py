"""Plans whose pages differ in every section."""

import dataclasses

import pytest

import privstats as ps

PRIVACY = ps.Privacy(model="distributed", unit="record", adjacency="add-remove", epsilon=1.0, delta=1e-5)
PLAN = ps.Plan(
    schema=ps.ClassSchema(3, 4, "NAB", 1.0, class_names=("ash", "beech", "elm"), transform=(ps.transforms.UnitNorm(),)),
    cohort=ps.Cohort(12, 9, 1000, 1),
    privacy=PRIVACY,
    min_count=5,
)


@pytest.fixture
def plan():
    return PLAN


@pytest.fixture
def changed():
    """The plan with other values of some of its parts."""

    def change(**changes):
        return dataclasses.replace(PLAN, **changes)

    return change
