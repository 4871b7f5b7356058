"""The digest of a plan that exists never changes: a new field is left out of the tables while it has its default."""

import json
import re
from hashlib import sha256
from importlib.resources import files

import pytest

import privstats as ps
from privstats.transforms import ConstantFeature, GaussianProjection, UnitNorm

COHORT = ps.Cohort(clients=20, min_survivors=15, max_records=5000, colluders=2)
PRIVACY = ps.Privacy(model="distributed", unit="record", adjacency="add-remove", epsilon=1.0, delta=1e-5)
EXAMPLE = files("privstats.cli").joinpath("plan.toml").read_text()
PLANS = {
    "example": ps.Plan.from_toml(
        re.sub("(?m)^(shares|key_agreement).*\n", "", files("privstats.cli").joinpath("plan.toml").read_text())
    ),
    "classes": ps.Plan(schema=ps.ClassSchema(3, 4, "NAB", 1.0), cohort=COHORT, privacy=ps.NoPrivacy()),
    "classes with everything": ps.Plan(
        schema=ps.ClassSchema(
            4,
            9,
            "NAS",
            1.5,
            14,
            nonnegative=True,
            transform=(GaussianProjection(7, 64, 8), UnitNorm(), ConstantFeature(1.0)),
        ),
        cohort=COHORT,
        privacy=PRIVACY,
        min_count=50,
        merge={3: 0},
        graph="complete",
    ),
    "ridge": ps.Plan(schema=ps.RidgeSchema(4, clip_norm=1.0, target_bound=2.0), cohort=COHORT, privacy=ps.NoPrivacy()),
    "ridge with everything": ps.Plan(
        schema=ps.RidgeSchema(
            5,
            2,
            clip_norm=1.0,
            target_bound=2.0,
            grid_bits=10,
            folds=3,
            nonnegative=True,
            transform=(ConstantFeature(1.0),),
        ),
        cohort=COHORT,
        privacy=PRIVACY,
    ),
    "named": ps.Plan(
        schema=ps.ClassSchema(
            3, 2, "NAB", 1.0, class_names=("katze", "chien", "狗"), feature_names=('say "a"', "b\\c")
        ),
        cohort=COHORT,
        privacy=ps.NoPrivacy(),
    ),
}
FROZEN = {
    "example": "304418e31d4fcf67eec9dae934f0bdfe091c11bdc67591526c73814d4310e4ed",
    "classes": "414bc2af2765a24318e22fbce573747ec6d3535d859df06dd02020e3040cc356",
    "classes with everything": "f9c56722c5951e6f70cead47ddb6287eb0253fcbfc0c3b91c8fed0dd876edea0",
    "ridge": "c5f1a0a8b065739110db664f61ac5cd1c820aba89c7d0711a44a875bda911fa2",
    "ridge with everything": "4350a64734c19770cb247a3a1f4c98f16034654aec2408ecae94208b330d4ab0",
    "named": "078e64c5b77460a6de0b3a3fe1a0957979190f8b86b6ecb5446c5964b9c2cda0",
}
"""All but the last were computed before schemas had names."""


@pytest.mark.parametrize("name", PLANS)
def test_the_digest_is_the_frozen_one(name):
    assert PLANS[name].digest == FROZEN[name]


@pytest.mark.parametrize("name", PLANS)
def test_the_toml_form_gives_the_plan_back(name):
    again = ps.Plan.from_toml(PLANS[name].to_toml())
    assert (again, again.digest) == (PLANS[name], FROZEN[name])


@pytest.mark.parametrize("name", PLANS)
def test_the_canonical_json_has_the_digest_and_gives_the_plan_back(name):
    text = PLANS[name].to_json()
    assert sha256(text).hexdigest() == PLANS[name].digest
    assert ps.Plan.from_tables(json.loads(text)) == PLANS[name]


def test_names_are_part_of_the_digest():
    def digest(**names):
        schema = ps.ClassSchema(2, 2, "NA", 1.0, **names)
        return ps.Plan(schema=schema, cohort=COHORT, privacy=ps.NoPrivacy()).digest

    same = [digest(), digest(class_names=None, feature_names=None)]
    other = [
        digest(class_names=("a", "b")),
        digest(class_names=("b", "a")),
        digest(feature_names=("a", "b")),
        digest(feature_names=("b", "a")),
        digest(class_names=("a", "b"), feature_names=("a", "b")),
    ]
    assert (len({*same}), len({*same, *other})) == (1, 6)
