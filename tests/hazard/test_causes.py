"""Hazard ratios of one cause among several: other causes count as censored at their time, at the same price."""

import math
from typing import Any

import numpy as np
import pytest

import privstats as ps
from privstats import inference as inf
from privstats.course.hazard import first_values
from privstats.errors import ReleaseError
from privstats.moments import exact_moments
from privstats.schema.public_values import Published, Values
from privstats.session import aggregate_unmasked
from privstats.transforms import Centre, ConstantFeature, Levels, Scale
from tests.made import promise

ENDED = ("seen", "relapse", "death")
TRUTH = np.array([0.5])
HAZARDS = {"relapse": 0.04, "death": (0.02, 0.06)}


def schema(*, causes: bool) -> ps.HazardSchema:
    event = ps.Categories("ended", ENDED if causes else ENDED[:2])
    maps = (Levels((), (event,)), Centre((0.5,)), Scale((0.5,)), ConstantFeature(1.0))
    return ps.HazardSchema(
        2,
        math.sqrt(2),
        bins=ps.Bins("months", (0, 4, 8, 12, 16, 20)),
        event="ended",
        feature_names=("arm",),
        transform=maps,
        times="continuous",
    )


def people(n: int, rng: np.random.Generator, ratio: float = TRUTH[0]) -> dict[str, Any]:
    """Two causes; the treated relapse more and die three times as often; leaving differs by arm."""
    arm = rng.integers(0, 2, n)
    relapse = rng.exponential(1 / (HAZARDS["relapse"] * np.exp(ratio * arm)))
    death = rng.exponential(1 / np.array(HAZARDS["death"])[arm])
    left = np.minimum(rng.exponential(1 / np.array([0.05, 0.01])[arm]), 24.0)
    times = np.minimum(np.minimum(relapse, death), left)
    ended = np.select([times == left, times == relapse], ENDED[:2], "death")
    return {"arm": arm, "months": times, "ended": ended}


def course(n: int, *, causes: bool = True) -> ps.Hazard:
    private = promise(epsilon=8.0, delta=1e-6)
    return ps.Hazard.start(schema(causes=causes), ps.Cohort(2, 2, 2 * n), private, by="arm")


def test_a_round_of_a_cause_counts_who_has_another_as_censored() -> None:
    data = people(500, np.random.default_rng(0))
    alone = {**data, "ended": np.where(data["ended"] == "death", "seen", data["ended"])}
    several, one = schema(causes=True), schema(causes=False)
    said = {"w": Values.rounded(np.array([0.2, *[-1.5] * 5])), "c": first_values(several)["c"]}
    found, other = (
        ps.measure(each, table, published=Published.of(said)) for each, table in ((several, data), (one, alone))
    )
    assert np.array_equal(found.g, other.g)
    assert np.array_equal(found.H, other.H)
    assert several.causes == ("relapse", "death")
    assert one.causes == ("ended",)


def test_causes_cost_no_noise() -> None:
    """A person is in one cell of the counts and one row of the rounds, whatever the causes are."""
    one, several = (course(5_000, causes=each) for each in (False, True))
    assert [plan.noise.sigma for plan in one.priced] == [plan.noise.sigma for plan in several.priced]  # type: ignore[union-attr]


@pytest.fixture(scope="module")
def table() -> Any:
    data = people(8_000, np.random.default_rng(1))
    parts = [({name: each[k::2] for name, each in data.items()}, None) for k in (0, 1)]
    return inf.hazards(ps.simulate(course(8_000), parts, rng=ps.randomness.seeded(2)))


def test_the_ratio_is_that_of_the_cause(table: Any) -> None:
    low, high = table.ratio_int()[0]
    assert low < math.exp(TRUTH[0]) < high
    assert table.reported.all()
    assert table.logrank().p_value < 0.01
    assert table.proportionality().p_value > 0.001
    assert 0.8 < table.events_within <= 1


def test_the_table_says_whose_rate_it_is(table: Any) -> None:
    text = " ".join(str(table.summary()).split())
    assert "Cause-specific hazard ratios" in text
    assert "so far; a person with death counts as censored then" in text
    assert "in ended 'relapse' is the event; 'seen', 'death' end the time without it" in text
    assert "Hazard ratios of relapse (cause-specific: death counted as censored) on arm" in inf.methods(table)


def test_a_curve_of_one_cause_is_refused_and_incidence_is_read_from_the_same_counts(table: Any) -> None:
    with pytest.raises(ReleaseError, match="for several causes read cumulative_incidence"):
        table.kaplan_meier()
    found = inf.cumulative_incidence(table.counted, time="months", event="ended", by="arm", times="continuous")
    assert set(found.curves) == {(arm, cause) for arm in ("0", "1") for cause in ENDED[1:]}


def test_the_log_rank_test_of_a_cause_keeps_its_level() -> None:
    """Equal rates of the event, while the other cause and leaving differ by arm; reported under noise."""
    plan, rng, rejected, runs = course(2_000).first, np.random.default_rng(3), 0, 150
    for run in range(runs):
        data = people(2_000, rng, ratio=0.0)
        counts = [exact_moments(plan.schema, {name: each[k::2] for name, each in data.items()}) for k in (0, 1)]
        release = aggregate_unmasked(plan, counts, ps.randomness.seeded(run))
        test = inf.logrank_test(release, time="months", event="ended", by="arm", times="continuous")
        assert test.reported
        rejected += test.p_value < 0.05
    assert 0.01 < rejected / runs < 0.1
