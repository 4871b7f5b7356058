"""Risks at a time by group, and cumulative incidence by cause: against their definitions."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import privstats as ps
from privstats import inference as inf
from privstats.errors import ReleaseError
from privstats.inference.counts.risks import contrasts
from privstats.randomness import seeded
from tests import made

MONTHS = ps.Bins("months", tuple(range(13)))
ENDED = ps.Categories("ended", ("seen", "relapse", "death"))
ARM = ps.Categories("arm", ("a", "b"))
ASKED: dict[str, Any] = {"time": "months", "event": "ended"}


def people(n: int) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    arm = rng.integers(0, 2, n)
    first = rng.exponential(1 / np.array([[0.04, 0.02], [0.08, 0.02]])[arm].T)
    left = np.minimum(rng.exponential(40, n), 11.5)
    times = np.minimum(first.min(axis=0), left)
    ended = np.where(times == left, "seen", np.where(first[0] < first[1], "relapse", "death"))
    return {"months": times, "ended": ended, "arm": np.where(arm, "b", "a")}


def release(data: dict[str, np.ndarray], epsilon: float | None = None) -> ps.Release:
    schema = ps.CountSchema((MONTHS, ENDED, ARM), (("arm", "months", "ended"),))
    if epsilon is None:
        return ps.Release.exact(schema, ps.measure(schema, data))
    plan = ps.Plan(schema=schema, cohort=ps.Cohort(2, 2, 10_000), privacy=made.promise(epsilon=epsilon, delta=1e-6))
    return ps.simulate(
        plan, [ps.measure(schema, {name: each[k::2] for name, each in data.items()}) for k in (0, 1)], rng=seeded(0)
    )


def test_at_discrete_times_incidence_is_aalen_and_johansen_s() -> None:
    data = people(900)
    found = inf.cumulative_incidence(release(data), **ASKED, times="discrete").curves
    month, survival, hand = np.floor(data["months"]), 1.0, {"relapse": 0.0, "death": 0.0}
    for bin_ in range(11):  # the last one is open
        at_risk = (month >= bin_).sum()
        died = {cause: ((month == bin_) & (data["ended"] == cause)).sum() / at_risk for cause in hand}
        hand = {cause: hand[cause] + survival * died[cause] for cause in hand}
        survival *= 1 - sum(died.values())
        for cause, value in hand.items():
            assert found["", cause][bin_, 0] == pytest.approx(value, rel=1e-9)


@pytest.mark.parametrize("times", ["discrete", "continuous"])
@pytest.mark.parametrize("epsilon", [None, 3.0])
def test_all_causes_together_are_what_survival_leaves(times: Any, epsilon: float | None) -> None:
    """Incidences of all causes add up to 1 less the survival of the same records, noisy or not."""
    data = people(4_000)
    survival = inf.kaplan_meier(_two(data), **ASKED, times=times).survival_function_
    found = inf.cumulative_incidence(release(data, epsilon), **ASKED, times=times).curves
    told = len(found["", "death"])
    total = found["", "relapse"][:, 0] + found["", "death"][:, 0]
    assert total == pytest.approx(1 - survival[:told], abs=1e-9 if epsilon is None else 0.05)
    assert told >= 6
    assert all((curve[:, 1] <= curve[:, 0]).all() and (curve[:, 0] <= curve[:, 2]).all() for curve in found.values())


def test_risks_at_a_time_are_those_of_the_curves_and_their_contrasts() -> None:
    exact = _two(people(4_000))
    curves = inf.kaplan_meier(exact, **ASKED, by="arm", times="continuous")
    found = inf.risks_at(curves, 6)
    one, other = (1 - np.exp(-6 * rate) for rate in (0.06, 0.10))
    assert found.difference[1] < other - one < found.difference[2]
    assert found.ratio[1] < other / one < found.ratio[2]
    assert [row["metric"] for row in found.to_rows()] == ["risk", "risk", "difference", "ratio"]
    assert "b less a" in str(found)
    with pytest.raises(ReleaseError, match="not at 6.5"):
        inf.risks_at(curves, 6.5)
    with pytest.raises(ReleaseError, match="of a variable of two"):
        inf.risks_at(inf.kaplan_meier(exact, **ASKED, times="continuous"), 6)


def test_contrasts_leave_out_what_both_intervals_rule_out() -> None:
    """Zero is an end of the difference exactly where one is an end of the ratio, as for any two shares."""
    rng = np.random.default_rng(1)
    for _ in range(200):
        p, q = rng.uniform(0.1, 0.9, 2)
        one, other = ((each, each - 0.05, each + 0.08) for each in (p, q))
        difference, ratio = contrasts(one, other)
        assert difference[1] <= difference[0] <= difference[2]
        assert ratio[1] <= ratio[0] <= ratio[2]
        assert (difference[1] > 0, difference[2] < 0) == (ratio[1] > 1, ratio[2] < 1)
    assert contrasts((0.1, 0.05, 0.2), (0.02, 0.0, 0.05))[1][2] == np.inf


def test_the_figure_says_how_many_are_at_risk() -> None:
    curves = inf.kaplan_meier(_two(people(4_000)), **ASKED, by="arm", times="continuous")
    texts = [each.get_text() for axes in inf.plot_survival(curves).axes for each in axes.texts]
    assert texts[0] == "at risk"
    first = int(texts[1].replace(",", ""))
    assert first == round(float(curves["a"].at_risk[0]))


def _two(data: dict[str, np.ndarray]) -> ps.Release:
    schema = ps.CountSchema((MONTHS, ps.Categories("ended", ("no", "yes")), ARM), (("arm", "months", "ended"),))
    told = {**data, "ended": np.where(data["ended"] == "seen", "no", "yes")}
    return ps.Release.exact(schema, ps.measure(schema, told))


def test_arms_without_an_event_have_no_ratio_and_an_interval_of_their_difference() -> None:
    arms = ps.CountSchema(
        (ps.Bins("months", (0, 1, 2, 3)), ps.Categories("died", (0, 1)), ps.Categories("arm", ("a", "b"))),
        (("months", "died", "arm"),),
    )
    records = {"months": [0, 1, 2, 2] * 30, "died": [0] * 120, "arm": ["a", "b", "b", "a"] * 30}
    release = ps.Release.exact(arms, ps.measure(arms, records))
    found = inf.risks_at(inf.kaplan_meier(release, time="months", event="died", by="arm", times="discrete"), 1)
    assert math.isnan(found.ratio[0])
    assert found.ratio[1:] == (0.0, math.inf)
    assert found.difference[1] < 0 < found.difference[2]
    assert "nan" not in str(found)
    assert any(line.split()[2:] == ["b", "over", "a", "-", "0", "inf"] for line in str(found).splitlines())
