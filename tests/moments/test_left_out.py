"""Records that are left out, counted: where each goes, what one moves at most, and that it costs nothing."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import privstats as ps
from privstats.dp import joint_mu
from privstats.encoding import flatten
from privstats.errors import SchemaError, UnreadableRecordsWarning
from privstats.schema.public_values import Published, Values
from tests.made import refused
from tests.searched import UNTIL_FOUND, farthest
from threat_models.audits.effect import worst_attempt

PLAIN = ps.EffectSchema.of({"age": (20, 90)}, treatment="arm", outcome=(0, 1), probability=0.3)
COUNTED = replace(PLAIN, left_out="counted")
DIVIDED = replace(COUNTED, subgroups=(ps.Categories("age", (30, 40, 50)),))
SAID = Published.of({"line": Values.rounded(np.array([0.02, -0.1, 0.05, 0.1, 0.03]))})
GAP = np.nan


def measured(schema: Any, X: Any, y: Any, said: Published = SAID) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UnreadableRecordsWarning)
        return ps.moments.exact_moments(schema, X, y, published=said, unreadable="leave out")


def test_each_goes_to_its_arm_and_reason_and_the_other_sums_are_those_of_the_rest() -> None:
    """Treated and others without an outcome, with a gap, in no subgroup; without an arm; and everything at once."""
    X = np.array([[30, 1], [30, 0], [GAP, 1], [GAP, 0], [35, 1], [30, GAP], [30, 7], [GAP, GAP], [40, 1], [50, 0.0]])
    y = np.array([GAP, GAP, 0, 1, 1, 1, GAP, GAP, 1, 0])
    found = measured(DIVIDED, X, y)
    assert found.O.tolist() == [1, 1, 1, 2, 2, 1], "others, treated, unknown: outcome, column"
    plain = measured(replace(DIVIDED, left_out=None), X, y)
    assert all(np.array_equal(getattr(found, letter), getattr(plain, letter)) for letter in "Ne")
    assert (found.N.sum(), found.records, found.counted, plain.counted) == (2, 2, 10, 2)
    assert sum(measured(DIVIDED, X[k::3], y[k::3]) for k in range(3)) == found
    assert measured(DIVIDED, ((X[i : i + 3], y[i : i + 3]) for i in range(0, 10, 3)), None) == found
    several = measured(replace(DIVIDED, probability=(0.3, 0.5)), X, y)
    assert [several.for_client(place).O.tolist() for place in (0, 1)] == [found.O.tolist()] * 2


def test_texts_and_values_that_may_be_missing_are_counted_by_what_is_not_admitted() -> None:
    """With weights a missing outcome is none left out; a text in its place is."""
    schema = replace(COUNTED, missing="weights", trim=0.5)
    said = Published.of({**SAID.read(), "w": Values.rounded(np.zeros(4))})
    found = measured(schema, [[30, 1], [30, 0], [30, 1]], [None, "refused", 1.0], said)
    assert (int(found.N), found.O.tolist()) == (2, [1, 0, 0, 0, 0, 0])


@pytest.mark.parametrize("adjacency", ["add-remove", "replace-one"])
def test_it_costs_nothing_and_a_wider_count_would(adjacency: Any) -> None:
    """The others' noise is what it was. Two records left out, of different arms, lie sqrt 2 apart in O: so
    under replace-one it is free up to w_O = 1.72 of w_N + w_e and no further; 2.4 would cost 4.8 for 3.44."""
    privacy = ps.Privacy(model="central", unit="record", adjacency=adjacency, epsilon=1.0, delta=1e-6)
    cohort = ps.Cohort(2, 2, max_records=10_000)
    sigmas = [ps.Effect.start(s, cohort, privacy).plan.noise.sigma for s in (PLAIN, COUNTED)]
    for letter in "Ne":
        assert sigmas[1][letter] == pytest.approx(sigmas[0][letter], rel=1e-12)
    assert sigmas[1]["O"] == pytest.approx(sigmas[0]["N"] * 0.14**0.5, rel=1e-12)
    unit = {"N": 0.14**-0.5, "e": 0.86**-0.5}
    most = 1.0 if adjacency == "add-remove" else 1.72
    free, wider, claimed = (joint_mu(COUNTED, {**unit, "O": w**-0.5}, adjacency) ** 2 for w in (most, most + 0.01, 2.4))
    assert free == pytest.approx(joint_mu(PLAIN, unit, adjacency) ** 2)
    assert wider > free * 1.001
    assert claimed == pytest.approx(2.4 if adjacency == "add-remove" else 4.8)


@pytest.mark.ci
@settings(max_examples=300)
@given(st.data())
def test_no_two_records_are_further_apart_than_is_claimed(data: Any) -> None:
    """Readable or not in any part, in any subgroup, at any line and any noise."""
    schema = data.draw(st.sampled_from([COUNTED, DIVIDED, replace(COUNTED, probability=0.5, measure="both")]))
    whole = st.integers(-(1 << 19) + 1, (1 << 19) - 1)
    line = Values(np.array(data.draw(st.lists(whole, min_size=5, max_size=5)), np.int64), data.draw(st.integers(0, 20)))
    said = Published.of({"line": line})
    values = st.tuples(
        st.sampled_from([30, 40, GAP, 41]), st.sampled_from([0, 1, GAP, 5]), st.sampled_from([0, 1, GAP])
    )
    one, other = (
        flatten(measured(schema, [[age, arm]], [y], said)) for age, arm, y in (data.draw(values), data.draw(values))
    )
    sigmas = {s: data.draw(st.sampled_from([0.3, 1.0, 2.5])) for s in schema.statistics}
    layout = ps.encoding.layout_of(schema)

    def length(vector: Any) -> float:
        parts = zip(layout.segments, layout.slices, strict=True)
        return sum(float(((vector[where] / s.scale / sigmas[s.statistic]) ** 2).sum()) for s, where in parts) ** 0.5

    assert length(one) <= joint_mu(schema, sigmas, "add-remove") * (1 + 1e-9)
    assert length(one - other) <= joint_mu(schema, sigmas, "replace-one") * (1 + 1e-9)


@pytest.mark.ci
@pytest.mark.parametrize("adjacency", ["add-remove", "replace-one"])
@pytest.mark.parametrize(
    "sigmas", [{"N": 2.5, "O": 1.0, "e": 1.0}, {"N": 1.0, "O": 0.7, "e": 9.0}, {"N": 1.0, "O": 0.5, "e": 1.0}]
)
@UNTIL_FOUND
def test_the_search_reaches_the_bound_and_never_passes_it(adjacency: Any, sigmas: Any, until_found: bool) -> None:
    """Each of the branches: two in the sums, one beside one left out, and two left out."""
    bare = replace(COUNTED, transform=(), feature_names=None)
    claimed = joint_mu(bare, sigmas, adjacency)
    found = farthest(
        lambda seed: worst_attempt(bare, sigmas, adjacency, ps.randomness.seeded(seed), 100)[0],
        0.999 * claimed,
        until_found=until_found,
    )
    assert 0.999 * claimed <= found <= claimed * (1 + 1e-12)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"left_out": "all"}, "left_out must be 'counted' or omitted, got 'all'"),
        ({"left_out": "counted", "groups": 6}, "left_out and groups cannot be combined"),
    ],
)
def test_what_is_not_proved_is_refused(changes: dict[str, Any], said: str) -> None:
    refused(SchemaError, said, replace, PLAIN, **changes)


def test_persons_with_several_rows_are_refused() -> None:
    privacy = ps.Privacy(
        model="central", unit="person", person_clip="average", adjacency="add-remove", epsilon=1.0, delta=1e-6
    )
    with pytest.raises(ps.PlanError, match="records left out are counted one by one, and a person's rows are averaged"):
        ps.Effect.start(COUNTED, ps.Cohort(2, 2, max_records=10_000), privacy)
