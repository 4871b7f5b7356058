"""The entries that persons cost are bounded by the plan: no data set clips more of them one by one."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import privstats as ps
from privstats.moments import person_sums
from privstats.moments.person_sums import seconds_per_entry
from privstats.review.person_cost import clipped_entries, person_sentences


def plan_of(clip=1, statistics="NAB", records=60, features=5, most=4):
    how = {} if clip == "average" else {"max_records_per_person": most}
    privacy = ps.Privacy(
        model="central", unit="person", adjacency="add-remove", epsilon=1.0, delta=1e-5, person_clip=clip, **how
    )
    return ps.Plan(
        schema=ps.ClassSchema(3, features, statistics, 1.0), cohort=ps.Cohort(2, 2, records), privacy=privacy
    )


def counted(patch):
    """Return a list that is filled with the entries of each sum that a person is clipped in."""
    seen, genuine = [], person_sums._Part.add

    def counting(part, total, clip):
        side = part.sums.shape[2] if part.unformed else part.sums.shape[-1]
        square = part.letter in "BS"
        seen.append(len(part.sums) * (side * (side + 1) // 2 if square else int(np.prod(part.sums.shape[1:]))))
        genuine(part, total, clip)

    patch.setattr(person_sums._Part, "add", counting)
    return seen


@given(sizes=st.lists(st.integers(1, 9), min_size=1, max_size=12), seed=st.integers(0, 999))
@pytest.mark.parametrize("clip", [1, 2.5, "average"])
@pytest.mark.parametrize("statistics", ["NAB", "NAS"])
def test_no_data_set_within_the_plans_records_clips_more_entries(clip, statistics, sizes, seed):
    with pytest.MonkeyPatch.context() as patch:
        seen = counted(patch)
        schema = plan_of(clip, statistics).schema
        persons = np.repeat(np.arange(len(sizes)), sizes)
        rng = np.random.default_rng(seed)
        X, y = rng.normal(size=(len(persons), 5)), rng.integers(0, 3, len(persons))
        clip_of = plan_of(clip, statistics).person_clip
        moments = ps.measure(schema, X, y, persons=[f"p{each}" for each in persons], person_clip=clip_of)
    plan = plan_of(clip, statistics, records=max(moments.counted, 1))
    assert sum(seen) <= clipped_entries(plan)


def test_the_bound_is_met_where_each_person_has_the_fewest_rows_that_are_clipped():
    assert clipped_entries(plan_of("average", "NA", records=1)) == 3 + 3 * 5  # three classes, one sum of each in each
    assert clipped_entries(plan_of(1, "NAB", records=60)) == 60 * (1 + 5) + 30 * 15


def test_the_sentence_states_entries_and_seconds_of_this_machine(monkeypatch):
    assert 1e-11 < seconds_per_entry() < 1e-7
    monkeypatch.setattr(person_sums, "seconds_per_entry", lambda: 1e-9)
    plan = plan_of(1, records=50_000, features=512)
    (sentence,) = person_sentences(plan)
    entries = clipped_entries(plan)
    assert f"at most {entries:,} entries are clipped one by one over all parties" in sentence
    assert f"about {entries / 1e9:.2g} s of one core here" in sentence
    assert "under 0.1 s of one core here" in person_sentences(plan_of())[0]


def test_a_plan_without_persons_has_no_such_cost():
    plan = ps.Plan(schema=ps.ClassSchema(3, 5, "NAB", 1.0), cohort=ps.Cohort(2, 2, 60), privacy=ps.NoPrivacy())
    assert clipped_entries(plan) == 0
    assert person_sentences(plan) == []
