"""Adjusted risks and means by arm: the g-formula of pooled records, its noise, and the effect they differ by."""

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import privstats as ps
from privstats.estimates.effect import ArmSums, ridge_line
from privstats.inference.treatment_effects.adjusted import Standardisation, adjusted_means
from privstats.randomness import seeded
from tests import made

SCHEMA = ps.EffectSchema.of({"a": (-1, 1), "b": (-1, 1)}, treatment="arm", outcome=(0, 1), probability=0.5)
MIDDLE, CONSTANT = 0.5, 1.0


def people(n: int, seed: int = 0, treated: float = 0.5) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Columns, arms and a 0/1 outcome that column a moves."""
    chance = np.random.default_rng(seed)
    u, arm = chance.uniform(-1, 1, (n, 2)), chance.random(n) < treated
    return u, arm, (chance.random(n) < 0.3 * (1 + 0.9 * u[:, 0]) * np.where(arm, 1.3, 1.0)) * 1.0


def sums_of(u: np.ndarray, arm: np.ndarray, y: np.ndarray, sigma_G: float = 0.0, sigma_h: float = 0.0) -> ArmSums:
    rows = np.c_[u, np.full(len(u), CONSTANT)]
    G, h = zip(*((rows[k].T @ rows[k], rows[k].T @ (y[k] - MIDDLE)) for k in (arm, ~arm)), strict=True)
    return ArmSums(G, h, CONSTANT, sigma_G, sigma_h)


def standardised(sums: ArmSums, sigma: tuple[float, float] = (0.0, 0.0)) -> Standardisation:
    lines = [ridge_line(G, h, sums.sigma_G) for G, h in zip(sums.G, sums.h, strict=True)]
    return Standardisation(sums, (lines[0], lines[1]), MIDDLE, *sigma)


def run(schema: ps.EffectSchema, X: Any, y: Any, epsilon: float, **terms: Any) -> ps.inference.ArmTable:
    course = ps.Effect.start(schema, ps.Cohort(2, 2, 20_000), made.promise(epsilon=epsilon, delta=1e-6), **terms)
    releases = ps.simulate(course, [(X[::2], y[::2]), (X[1::2], y[1::2])], rng=seeded(0))
    return ps.inference.effects(releases).by_arm()


@given(st.integers(0, 1 << 16), st.sampled_from([0.2, 0.5, 0.8]))
def test_without_noise_it_is_the_g_formula_of_the_pooled_records(seed: int, treated: float) -> None:
    """The mean over all records of each arm's least squares prediction."""
    u, arm, y = people(300, seed, treated)
    rows = np.c_[u, np.ones(len(u))]
    expected = [(rows @ np.linalg.lstsq(rows[k], y[k], rcond=None)[0]).mean() for k in (arm, ~arm)]
    both = standardised(sums_of(u, arm, y))
    assert both.means + MIDDLE == pytest.approx(np.array(expected), abs=1e-10)
    for place, k in enumerate((arm, ~arm)):
        fitted = rows[k] @ np.linalg.lstsq(rows[k], y[k], rcond=None)[0]
        assert both.explained(place) == pytest.approx(fitted.var(), abs=1e-10)


@given(st.integers(0, 1 << 16), st.floats(-1, 2))
def test_its_noise_is_the_derivative_of_both_sums(seed: int, weight: float) -> None:
    """By central differences over every entry of both arms' G and h, the lines fitted anew from each."""
    sigma_G, sigma_h, step = 3.0, 2.0, 1e-4
    sums = sums_of(*people(400, seed), sigma_G=sigma_G, sigma_h=sigma_h)
    weights = np.array([weight, 1 - weight])

    def mean(arm: int, G: np.ndarray, h: np.ndarray) -> float:
        """With noise in one arm's released sums; h is about the middle, and so loses the noise of G's last column."""
        several, goals = list(sums.G), list(sums.h)
        several[arm] = several[arm] + G
        goals[arm] = goals[arm] + h - MIDDLE / CONSTANT * G[:, -1]
        moved = replace(sums, G=(several[0], several[1]), h=(goals[0], goals[1]))
        return float(weights @ standardised(moved).means)

    def slope(arm: int, G: np.ndarray, h: np.ndarray) -> float:
        return (mean(arm, step * G, step * h) - mean(arm, -step * G, -step * h)) / (2 * step)

    variance = 0.0
    for arm in (0, 1):
        for i in range(3):
            one = np.eye(3)[i]
            variance += (sigma_h * slope(arm, np.zeros((3, 3)), one)) ** 2
            for j in range(i + 1):
                entry = np.zeros((3, 3))
                entry[i, j] = entry[j, i] = 1.0
                variance += (sigma_G * slope(arm, entry, np.zeros(3))) ** 2 / (1 if i == j else 2)
    both = standardised(sums, (sigma_G, sigma_h))
    assert both.noise((weight, 1 - weight)) == pytest.approx(variance, rel=1e-4)


@given(st.integers(0, 1 << 16), st.floats(-0.4, 0.4), st.floats(0, 0.02))
def test_both_means_differ_by_the_effect_and_lie_in_their_intervals(seed: int, effect: float, error: float) -> None:
    both = standardised(sums_of(*people(400, seed), sigma_G=3.0, sigma_h=2.0), (3.0, 2.0))
    treated, others = adjusted_means(both, 0.5, (effect, error), None, 0.05)
    if max(abs(treated.mean), abs(others.mean)) < 0.5:
        assert treated.mean - others.mean == pytest.approx(effect, abs=1e-12)
        for each in (treated, others):
            assert -0.5 <= each.low <= each.mean <= each.high <= 0.5
            assert each.high - each.low > 3.9 * math.sqrt(both.noise((0.5, 0.5))) * 0.6


@pytest.mark.parametrize("treated", [0.2, 0.5])
def test_a_line_that_explains_outcomes_makes_the_interval_shorter_and_a_useless_one_does_not(treated: float) -> None:
    u, arm, y = people(4_000, treated=treated)
    sums = sums_of(u, arm, y)
    fitted, flat = standardised(sums), standardised(sums)
    object.__setattr__(flat, "lines", tuple(np.array([0.0, 0.0, line[-1]]) for line in fitted.lines))
    for place, k in enumerate((arm, ~arm)):
        explained = fitted.explained(place) / y[k].var()
        widths = []
        for both in (fitted, flat):
            found = adjusted_means(both, 0.5, None, None, 0.05)[place]
            widths.append((found.high - found.low) / (2 * 1.96 * y[k].std() / k.sum() ** 0.5))
        assert widths == pytest.approx([math.sqrt(1 - (1 - k.mean()) * explained), 1], abs=0.01)
        assert widths[0] < widths[1] - 0.008


def test_a_course_reports_them_next_to_the_plain_risks_at_no_further_price() -> None:
    u, arm, y = people(6_000, 3)
    X = np.c_[u, arm]
    rows = np.c_[u, np.ones(len(u))]
    expected = [(rows @ np.linalg.lstsq(rows[k], y[k], rcond=None)[0]).mean() for k in (arm, ~arm)]
    table = run(SCHEMA, X, y, 100.0)
    for found, mean in zip(table.arms, expected, strict=True):
        assert found.adjusted is not None
        assert found.adjusted.mean == pytest.approx(mean, abs=0.003)
        assert found.adjusted.high - found.adjusted.low < found.high - found.low
    by_metric = {(row["group"], row["metric"]): row for row in table.to_rows()}
    apart = by_metric["treated", "adjusted risk"]["estimate"] - by_metric["others", "adjusted risk"]["estimate"]
    assert apart == pytest.approx(by_metric["", "difference"]["estimate"], abs=1e-9)
    text = " ".join(str(table.summary()).split())
    assert "treated, adjusted" in text
    assert "(standardisation, the g-formula)" in text


@pytest.mark.parametrize(
    "changes", [{"measure": "ratio"}, {"probability": (0.5, 0.4)}, {"probability": None, "trim": 0.1}]
)
def test_plans_whose_sums_do_not_hold_them_have_none(changes: dict[str, Any]) -> None:
    u, arm, y = people(4_000, 4)
    table = run(replace(SCHEMA, **changes), np.c_[u, arm], y, 8.0)
    assert [each.adjusted for each in table.arms] == [None, None]
    assert "g-formula" not in str(table.summary())


def test_noise_hides_them_where_it_hides_the_effect_or_an_arm() -> None:
    u, arm, y = people(60, 5)
    table = run(SCHEMA, np.c_[u, arm], y, 0.5)
    assert not all(each.reported for each in table.arms)
    assert all(each.adjusted is not None and not each.adjusted.reported for each in table.arms)
    assert [row["reported"] for row in table.to_rows() if row["metric"] == "adjusted risk"] == [False, False]
