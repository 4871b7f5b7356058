"""The paragraph for a paper: what was computed, the promise of all sessions, assumptions, plan and software."""

from __future__ import annotations

from typing import Any

import pytest

import privstats as ps
from privstats.errors import ReleaseError
from privstats.randomness import seeded
from privstats.version import __version__
from tests.hazard import worlds as hazards
from tests.inference import test_effects as effects
from tests.inference.test_counts import exact as counted
from tests.inference.test_counts import people
from tests.inference.test_regression import exact, noisy, records


def test_of_hazards_it_says_what_a_ratio_is_not_and_the_epsilon_of_all_sessions() -> None:
    releases = hazards.played(hazards.course_of(2_000, 3.0), hazards.world(2_000), 1)
    said = ps.inference.methods(ps.inference.hazards(releases))
    assert said.startswith("TEST NOISE, not private: Hazard ratios of died on arm, age and dose")
    assert "A hazard ratio is not a causal effect, even in a trial" in said
    assert "All 5 sessions together are differentially private with epsilon = 3 and delta = 1e-06" in said
    assert "one record, the adjacency add-remove" in said
    assert releases[-1].plan.digest in said  # type: ignore[union-attr]
    assert said.endswith(f"Software: privstats {__version__}.")


def test_of_an_adjusted_difference_it_says_first_what_no_sum_can_test() -> None:
    schema = effects.observed_schema("overlap", trim=0.1)
    X, y = effects.confounded(4_000, effects.np.random.default_rng(1))
    table = ps.inference.effect(effects.played(effects.course_of(4_000, 8.0, schema), X, y, seeded(1)))
    said = ps.inference.methods(table).removeprefix("TEST NOISE, not private: ")
    assert said.startswith("No unmeasured confounding given the columns named in the plan: no sum can test this.")
    assert "the records weighted by e (1 - e)" in said
    assert "effect" not in said


def test_the_level_of_the_intervals_is_that_of_the_paper() -> None:
    X, y = records()
    fit = ps.inference.ols(noisy(X, y, 1.0))
    assert "Intervals (90%) and p-values include sampling and that noise" in ps.inference.methods(fit, alpha=0.1)
    exactly = ps.inference.methods(ps.inference.ols(exact(X, y)))
    assert "without differential privacy" in exactly
    assert "include sampling:" in exactly


@pytest.mark.parametrize("what", ["curves", "a plain mapping of curves", "one curve", "table one"])
def test_curves_and_the_first_table_know_their_release(what: str) -> None:
    release, inf = counted(people()), ps.inference
    results: dict[str, Any] = {
        "curves": lambda: inf.kaplan_meier(release, time="months", event="died", by="sex"),
        "a plain mapping of curves": lambda: dict(inf.kaplan_meier(release, time="months", event="died", by="sex")),
        "one curve": lambda: inf.kaplan_meier(release, time="months", event="died"),
        "table one": lambda: inf.table_one(release, by="sex"),
    }
    said = inf.methods(results[what]())
    assert release.plan.digest in said
    assert said.endswith(f"Software: privstats {__version__}.")
    assert ("Yang and Dalton" in said) is (what == "table one")


def test_shares_hold_no_release_and_are_given_one() -> None:
    release, inf = counted(people()), ps.inference
    result = inf.proportions(release, "sex")
    assert release.plan.digest in inf.methods(result, release)
    with pytest.raises(ReleaseError, match="second argument"):
        inf.methods(result)


def test_nothing_is_written_of_what_no_reader_returned() -> None:
    with pytest.raises(ReleaseError, match="no paragraph is written for a int"):
        ps.inference.methods(3, counted(people()))  # type: ignore[arg-type]
