"""Attacks on synthetic rows stay below the promise, and contradict one that is claimed and not kept."""

from dataclasses import replace

import numpy as np
import pytest

import privstats as ps
from privstats.contrib.synthetic.columns import Hashed, coded, schema_of
from privstats.contrib.synthetic.course import Synthetic
from privstats.randomness import seeded
from threat_models.audits.synthetic_rows import CLOSEST, DENSITY, SHADOW, Inference, Membership, inference, membership

COLUMNS = [ps.Categories(name, ("a", "b", "c")) for name in "wxy"]
CODES = [ps.Categories("w", ("a", "b", "c")), Hashed("icd", 8)]
TARGET = dict.fromkeys("wxy", "c")


def _course(epsilon: float, columns=COLUMNS) -> Synthetic:
    privacy = ps.Privacy(model="central", unit="record", adjacency="add-remove", epsilon=epsilon, delta=1e-6)
    return Synthetic.within(ps.Plan(schema=schema_of(columns), cohort=ps.Cohort(2, 2, 2_000), privacy=privacy))


def _records(count: int = 60) -> dict[str, list[str]]:
    rng = np.random.default_rng(0)
    return {name: list(rng.choice(["a", "b"], count)) for name in "wxy"}


@pytest.mark.ci
@pytest.mark.parametrize("epsilon", [1.0, 8.0])
def test_membership_stays_below_the_promise(epsilon):
    found = membership(_course(epsilon), _records(), TARGET, seeded(1), trials=24)
    assert [each.attack for each in found] == [SHADOW, DENSITY, CLOSEST]
    assert not any(each.violated for each in found)
    assert {each.claimed for each in found} == {_course(epsilon).mu}


@pytest.mark.ci
def test_a_broken_course_is_contradicted_by_every_attack():
    """The same rows, claimed at a hundredth of what they cost."""
    for honest in membership(_course(90.0), _records(), TARGET, seeded(2), trials=40):
        assert honest.auc > 0.9
        assert not honest.violated
        assert replace(honest, claimed=honest.claimed / 100).violated


@pytest.mark.ci
def test_a_hidden_attribute_is_guessed_no_better_than_the_promise_allows():
    found = inference(_course(1.0), _records(), TARGET, "y", ("a", "b", "c"), seeded(3), trials=24)
    assert not found.violated
    assert found.baseline == 1 / 3 < found.ceiling < 1


@pytest.mark.ci
@pytest.mark.parametrize(("epsilon", "least"), [(1.0, 0.0), (90.0, 0.9)])
def test_a_dictionary_finds_a_hashed_code_only_as_far_as_the_promise_allows(epsilon, least):
    icd = CODES[1]
    codes = {icd.bucket(f"I{code}"): f"I{code}" for code in range(60)}
    assert len(codes) == 8
    table = {"w": ["a", "b"] * 30, "icd": [codes[7]] * 60}
    records = {name: list(values) for name, values in coded(CODES, table).items()}
    found = inference(_course(epsilon, CODES), records, {"w": "c"}, "icd", (0, 1, 2), seeded(4), trials=24)
    assert not found.violated
    assert found.guessed >= least


def test_verdicts():
    assert Membership(SHADOW, 1, 0.5, 0.6, 1.0).violated
    assert Inference(0.9, (0.7, 1.0), 0.3, 0.6).violated
