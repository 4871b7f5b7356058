"""Trials with missing outcomes: the course, what first lines of its table, and where the effect is not reported."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
from typer.testing import CliRunner

import privstats as ps
from privstats.cli.main import app
from privstats.course.effect import assigned_sums, propensity_schema
from privstats.errors import PlanError, ReleaseError
from privstats.estimates.score import damped_step
from privstats.inference.treatment_effects.influence_sums import course_sums
from privstats.moments.rounds import arm_rows
from privstats.randomness import seeded
from privstats.schema.public_values import Published, Values
from tests import made
from tests.lengths import sized
from threat_models.audits.effect_worlds import INCOMPLETE, played

RANGES = dict.fromkeys("abcd", (-1.0, 1.0))
SCHEMA = ps.EffectSchema.of(RANGES, treatment="arm", outcome=(-1, 1), probability=0.5, missing="weights", trim=0.5)


def course_of(records: int, epsilon: float, schema: ps.EffectSchema = SCHEMA, **options: Any) -> ps.Effect:
    return ps.Effect.start(schema, ps.Cohort(2, 2, 2 * records), made.promise(epsilon=epsilon, delta=1e-6), **options)


def drawn(records: int, seed: int, schema: ps.EffectSchema = SCHEMA) -> tuple[np.ndarray, np.ndarray]:
    return INCOMPLETE["missing"].draw(schema, records, np.random.default_rng(seed))


@pytest.fixture(scope="module")
def released() -> tuple[tuple[np.ndarray, np.ndarray], list[Any]]:
    X, y = drawn(6_000, 0)
    return (X, y), played(course_of(6_000, 8.0), X, y, seeded(1))


def test_rounds_of_both_arms_arrive_at_two_logistic_regressions() -> None:
    """Each arm has a step of its own, since no record reads both; equal to statsmodels' to the grid."""
    X, y = drawn(3_000, 1)
    score, w = propensity_schema(SCHEMA), np.zeros(10)
    for _ in range(8):
        said = Published.of({"w": Values.rounded(w)})
        sums = ps.measure(score, X, y, published=said).real()
        parts = [damped_step(sums.g[part], sums.H[part, part], 0.0, None) for part in score.parts]
        w = said.read()["w"].real + np.concatenate(parts)
    arm, x = arm_rows(SCHEMA, X)
    U = x * (SCHEMA.clip_norm / SCHEMA.grid_steps)
    logit = [sm.Logit(np.isfinite(y)[arm == side] * 1.0, U[arm == side]).fit(disp=0).params for side in (True, False)]
    assert np.abs(w - np.concatenate(logit)).max() < 2e-3


def test_the_course_fits_being_observed_then_the_lines_then_the_effect() -> None:
    found = course_of(6_000, 3.0, retries=1)
    assert [plan.schema.task for plan in found.priced] == ["score"] * 4 + ["ridge"] + ["effect"] * 2
    assert found.epsilon(1e-6) == pytest.approx(3.0, rel=1e-6)
    assert course_of(6_000, 3.0, rounds=6).most == 8
    assert found.digest != course_of(6_000, 3.0, replace(SCHEMA, trim=0.4), retries=1).digest
    with pytest.raises(PlanError, match="share must be above 0"):
        course_of(6_000, 3.0, adjust=False)


def test_the_table_is_of_all_records_and_says_first_what_no_sum_can_test(released: Any) -> None:
    (X, y), releases = released
    table = ps.inference.effect(releases)
    low, high = table.conf_int()
    assert table.reported, table.why_not_reported
    assert low < 0.1 < high
    assert (table.design, table.missing, table.trim) == ("trial", True, 0.5)
    assert table.nobs == pytest.approx(6_000, abs=60)
    assert table.arms is not None
    assert table.mean_weight is not None
    assert table.r_ is not None
    assert sum(table.arms) == pytest.approx(6_000, abs=200), "observed or not"
    assert 0.88 < table.mean_weight < 0.98
    assert 0 < table.r_ < 0.5
    text = " ".join(table.summary().as_text().split())
    first = "Outcomes are missing at random given the arm and the columns named in the plan: no sum can test this."
    assert text.index(first) < text.index("records")
    assert f"{table.mean_weight:.0%} of records" in text
    assert "none missing" not in text
    assert "the propensity of being observed or the outcome models are right for the records included" in text
    said = ps.inference.methods(table)
    assert first in said
    assert "propensity of being observed in" in said
    by_arm = " ".join(str(ps.inference.effects(releases).by_arm()).split())
    assert "table that have an outcome" in by_arm
    complete = y[np.isfinite(y) & (X[:, 4] == 1)].mean() - y[np.isfinite(y) & (X[:, 4] == 0)].mean()
    assert not low < complete < high, "who is observed differs between the arms"


def test_both_arms_and_their_balance_are_those_of_all_records(released: Any) -> None:
    """From the first round, whose weights are 0: four times its information is the Gram matrix."""
    (X, y), releases = released
    exact = ps.measure(replace(SCHEMA.rows, missing=None), X, np.zeros(len(y))).real().G
    sums = assigned_sums(SCHEMA, releases[0])
    for block, part in zip(sums.G, (slice(0, 5), slice(5, 10)), strict=True):
        assert np.abs(block - exact[part, part]).max() < 5 * sums.sigma_G
    balance = ps.inference.effect(releases).balance()
    assert balance.reported.all()
    assert np.abs(balance.difference).max() < 0.12
    arm = X[:, 4] == 1
    assert balance.means[:, 0] == pytest.approx(X[arm, :4].mean(axis=0), abs=0.05)


def test_the_product_of_errors_is_no_less_than_over_the_records_kept(released: Any) -> None:
    """(1 - o) is at most o (1 - o) over the trim for all who are kept, in expectation over arms."""
    (X, y), _ = released
    arm, x = arm_rows(SCHEMA, X)
    U, said = x * (SCHEMA.clip_norm / SCHEMA.grid_steps), np.array([1.5, 0, 0, -0.75, 1.2, -1.5, 0, 0, -0.75, 1.2])
    o = [1 / (1 + np.exp(-U @ each)) for each in (said[:5], said[5:])]
    kept = (o[0] >= 0.5) & (o[1] >= 0.5)
    information = ps.measure(propensity_schema(SCHEMA), X, y, published=Published.of({"w": Values.rounded(said)}))
    for side, part in enumerate((slice(0, 5), slice(5, 10))):
        M = information.real().H[part, part] / (0.5 * 0.5)
        own = (U[kept] * (1 - o[side][kept])[:, None]).T @ U[kept]
        assert np.linalg.eigvalsh(M - own).min() > 0


def test_releases_of_another_order_or_of_fewer_sessions_are_refused(released: Any) -> None:
    _, releases = released
    with pytest.raises(ReleaseError, match="propensity, of the outcome models"):
        ps.inference.effect(releases[-1:])
    with pytest.raises(ReleaseError, match="other weights than follow|another propensity"):
        ps.inference.effect([*releases[:2], *releases[3:]])
    with pytest.raises(ReleaseError, match="release 1 is not"):
        ps.inference.effect([releases[1], releases[0], *releases[2:]])


@pytest.mark.parametrize(
    ("records", "epsilon", "said"),
    [
        (600, 1.0, "noise hides along some column whose outcome is missing"),
        (400, 100.0, "one record could weigh more than .4 of a standard error"),
    ],
)
def test_what_noise_or_few_records_hide_widens_the_interval(records: int, epsilon: float, said: str) -> None:
    table = ps.inference.effect(played(course_of(records, epsilon), *drawn(records, 3), seeded(4)))
    assert any(said in reason for reason in table.widened)
    low, high = table.conf_int()
    assert table.why_not_reported == "" or said in table.why_not_reported
    assert low < 0.1 < high


def test_lines_and_propensity_that_are_both_poor_widen_the_interval(released: Any) -> None:
    """The product of errors counts in full, where noise has left the information clear: lines of a small share."""
    read = course_sums(released[1])
    found = read.nuisances(0)
    assert found.clear > 3
    assert found.of(12_000) == pytest.approx(found.variance * (12_000 / found.records) ** 2)
    X, y = INCOMPLETE["missing, most beyond"].draw(SCHEMA, 10_000, np.random.default_rng(2))
    poor = ps.inference.effect(played(course_of(10_000, 3.0, share=0.002), X, y, seeded(2)))
    usual = ps.inference.effect(played(course_of(10_000, 3.0), X, y, seeded(2)))
    assert poor.r_ is not None
    assert poor.r_ > 0.5
    assert poor.reported
    assert np.diff(poor.conf_int()) > 1.1 * np.diff(usual.conf_int())


def test_an_arm_that_its_probability_does_not_give_is_not_told() -> None:
    X, y = drawn(6_000, 5)
    X[:1_200, 4] = 1
    table = ps.inference.effect(played(course_of(6_000, 8.0), X, y, seeded(6)))
    assert "probability of 0.5" in table.why_not_reported


def test_whole_clinics_are_told_so_though_no_outcome_is_there() -> None:
    X, _ = drawn(40, 7)
    X[:, 4] = 1
    with pytest.warns(UserWarning, match="all 40 records"):
        course_of(40, 3.0).admits(X, np.full(40, np.nan))


def test_blanks_of_a_file_are_missing_outcomes_from_the_plan_to_the_table(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.chdir(tmp_path)
    X, y = drawn(4_000, 8)
    frame = pd.DataFrame(X, columns=[*RANGES, "arm"]).assign(y=y)
    for place in range(2):
        frame[place::2].to_csv(f"{place}.csv", index=False)
    assert ",\n" in Path("0.csv").read_text()
    terms = "--clients 2 --vanish 0 --colluders 0 --max-records 9000 --model distributed --unit record"
    plan = (
        "plan init plan.toml --yes --task effect --ranges a=-1:1,b=-1:1,c=-1:1,d=-1:1 --treatment arm --outcome -1:1 "
        f"--probability 0.5 --missing weights --trim 0.5 {terms} --adjacency replace-one --epsilon 12 --delta 1e-6"
    )
    rehearse = "course rehearse course.toml 0.csv 1.csv --target y --out run"
    for line in (plan, "course init course.toml --plan plan.toml", rehearse):
        done = CliRunner().invoke(app, line.split())
        assert done.exit_code == 0, done.output
    assert "left out" not in done.output
    done = CliRunner().invoke(app, ["table", *(f"run/{place}.release" for place in range(6))])
    assert done.exit_code == 0, done.output
    assert "Outcomes are missing at random" in done.output
    assert pytest.approx(4_000, abs=40) == ps.Release.load("run/5.release").moments.N


@pytest.mark.nightly
@pytest.mark.parametrize("records", [2_000, 10_000])
@pytest.mark.parametrize("epsilon", [1.0, 8.0])
def test_nightly_the_audit_finds_no_miss_beyond_the_claim(records: int, epsilon: float) -> None:
    from threat_models.audits.effect_worlds import audit_effect_intervals

    assert not audit_effect_intervals(course_of(records, epsilon), seeded(9), runs=sized(100, 200)).violated
