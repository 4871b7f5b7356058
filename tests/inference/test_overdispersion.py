"""The dispersion of a negative binomial model from two sums of rounds: bounds, statsmodels, intervals, files."""

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy.stats import nbinom, poisson
from typer.testing import CliRunner

import privstats as ps
from benchmarks.inference import dispersion as bench
from benchmarks.inference import references
from privstats import inference as inf
from privstats.cli.main import app
from privstats.dp import joint_mu, sensitivity
from privstats.errors import PlanError, SchemaError
from privstats.inference.regression import overdispersion
from privstats.moments import exact_moments
from privstats.randomness import seeded
from privstats.review.certificate import certificate_text
from privstats.review.certificate_checker import Refused, check
from privstats.schema.public_values import Values
from tests.inference import test_score
from tests.inference.person_time import BOUND, assert_bounded, at, drawn, exact, person_sums, played, rehearsed, world
from tests.inference.person_time import SCHEMA as PLAIN
from tests.made import refused
from threat_models.audits.gradients import worst_attempt

SCHEMA = replace(PLAIN, overdispersion="estimated")
LETTERS = "gHJQV"


def test_sums_are_squared_residuals_and_means_and_the_others_stay() -> None:
    X, y = world(3_000, 0, 1.0)
    w = np.array([0.3, -0.2, 0.1])
    moments: Any = ps.measure(SCHEMA, X, y, published=at(w))
    m = np.minimum(np.exp(np.c_[X, np.ones(len(X))] @ Values.rounded(w).real), 12.0) * y[:, 1] / BOUND
    r = np.minimum(y[:, 0], 12.0) - m
    assert pytest.approx((r**2).sum(), rel=2e-3) == moments.real().Q
    assert pytest.approx((m**2).sum(), rel=2e-3) == moments.real().V
    plain: Any = ps.measure(PLAIN, X, y, published=at(w))
    for letter in "gHJ":
        np.testing.assert_array_equal(getattr(moments, letter), getattr(plain, letter))
    halves: Any = [ps.measure(SCHEMA, X[k::2], y[k::2], published=at(w)) for k in range(2)]
    assert halves[0] + halves[1] == moments


@given(st.data())
def test_every_record_keeps_the_joint_bound_whatever_is_published(data: Any) -> None:
    parts, finite = drawn(data, SCHEMA)
    fits = parts[-1]
    assert (np.abs(fits) <= SCHEMA.grid_steps).all()
    assert (fits == np.rint(fits)).all()
    assert (fits[:, 1] >= 0).all()
    assert (fits[~finite] == 0).all()
    assert_bounded(data, SCHEMA, parts, SCHEMA, LETTERS)


@pytest.mark.parametrize("adjacency", ["add-remove", "replace-one"])
@pytest.mark.parametrize("letters", ["Q", "V", LETTERS])
def test_the_search_comes_close_to_the_bound_and_not_beyond(adjacency: Any, letters: str) -> None:
    schema = replace(SCHEMA, transform=(), feature_names=None, rate=None, grid_bits=16)
    sigma = {s: sensitivity(schema, s, "add-remove") for s in letters}
    claimed = joint_mu(schema, sigma, adjacency)
    found = max(worst_attempt(schema, sigma, adjacency, seeded(start), 60)[0] for start in range(3))
    assert found <= claimed
    assert found > 0.6 * claimed


@pytest.mark.parametrize("alpha", [0.3, 1.5])
def test_exact_sums_give_the_moment_estimate_of_the_pooled_records(alpha: float) -> None:
    sm = pytest.importorskip("statsmodels.api", reason="compares with statsmodels, which is not installed")
    X, y = world(20_000, 0, alpha)
    schema = replace(SCHEMA, grid_bits=18)
    table = exact(schema, X, y)
    counts = np.minimum(y[:, 0], 12)
    fit = sm.GLM(counts, sm.add_constant(X), sm.families.Poisson(), exposure=y[:, 1]).fit()
    theirs = ((counts - fit.mu) ** 2 - counts).sum() / (fit.mu**2).sum()
    found = table.overdispersion
    assert found.reported
    assert found.value == pytest.approx(theirs, rel=0.01)
    assert found.low < alpha < found.high
    plain = exact(replace(schema, overdispersion=None), X, y)
    np.testing.assert_allclose(table.params, plain.params, atol=0.02 * plain.bse.min())
    text = " ".join(str(table.summary()).split())
    assert f"overdispersion {found.value:.3g} ({found.low:.3g} to {found.high:.3g})" in text
    assert "m + alpha m^2" in text


def test_intervals_hold_under_noise_and_noise_or_early_ends_hide_them() -> None:
    for known in (bench.World("usual", 1.0, 20_000, 30.0), bench.World("counts cut at 4", 1.0, 60_000, 8.0, cut=4.0)):
        row = bench.estimated(known, 40)
        assert row["reported"] > 0.8
        assert row["missed"] <= 0.2  # 8 of 40: with probability 4e-4 at a rate of .05
    hidden = inf.poisson(played(SCHEMA, 3_000, 1.0, rounds=5, frailty=1.0))
    assert not hidden.overdispersion.reported
    assert "overdispersion -" in " ".join(str(hidden.summary()).split())
    early = ps.Newton.start(replace(SCHEMA, rate=0.001), *references.terms(20_000), rounds=1)
    assert not inf.poisson(references.released(early, *world(20_000, 0, 1.0))).overdispersion.reported


CUT = (bench.World("counts cut at 20", 10.0, 60_000, 8.0), bench.World("counts cut at 6", 1.0, 60_000, 8.0, cut=6.0))
UNCUT = (bench.World("usual", 1.0, 60_000, 8.0), bench.World("usual", 3.0, 120_000, 3.0))


@pytest.mark.parametrize("known", [*CUT, *UNCUT], ids=lambda known: f"{known.name} {known.alpha}")
def test_a_table_states_the_share_of_counts_that_were_cut(known: bench.World) -> None:
    """Where .1 % of the counts are cut, intervals of coefficients miss in 8 to 64 %."""
    course, (chance, rng) = bench.course_of(known, estimated=True), bench._generators(known)
    for _ in range(4):
        table = inf.poisson(bench.played(known, course, bench.Distinct.drawn(known, chance), rng))
        assert table.overdispersion is not None
        assert table.overdispersion.reported
        found = table.saturation_
        assert found is not None
        text = " ".join(str(table.summary(exponentiate=True)).split())
        sentence = f"Warning: if counts are negative binomial, about {100 * found.targets:.2g}% of them are above"
        assert (sentence in text) is (known in CUT)
        if known in CUT:
            assert 0.6 < found.targets / bench._cut_share(known) < 1.7
        else:
            assert found.targets < 1e-4


@given(st.floats(-3, 1), st.floats(-2, 1), st.integers(1, 60), st.booleans())
def test_the_stated_share_is_that_above_the_bound(log_a: float, log_mean: float, whole: int, half: bool) -> None:
    """Of counts that all have one mean, from their dispersion after the cut."""
    a, mean, bound = 10**log_a, 10**log_mean, whole + 0.5 * half
    after = overdispersion._after_cut(a, mean, bound)
    assume(after > 0.01)
    known = overdispersion.share_above(max(after, 1e-6), mean, bound)
    assert known == pytest.approx(nbinom(1 / a, 1 / (1 + a * mean)).sf(bound), rel=1e-3, abs=1e-9)


@pytest.mark.parametrize("bound", [12.0, 20.5, 40.0])
def test_without_overdispersion_the_stated_share_is_that_of_a_poisson_law(bound: float) -> None:
    assert overdispersion.share_above(0.0, 0.8, bound) == pytest.approx(poisson(0.8).sf(bound), rel=1e-2, abs=1e-12)


@given(st.floats(-5, 2.9), st.floats(-3, 2), st.floats(0.3, 300))
def test_the_dispersion_after_a_cut_is_that_of_all_probabilities(log_a: float, log_mean: float, bound: float) -> None:
    a, mean, whole = 10**log_a, 10**log_mean, math.ceil(bound)
    law, counts = nbinom(1 / a, 1 / (1 + a * mean)), np.arange(whole)
    shares, values = np.append(law.pmf(counts), law.sf(whole - 1)), np.append(counts, bound)
    m = shares @ values
    expected = shares @ ((values - m) ** 2 - values) / m**2
    assert overdispersion._after_cut(a, mean, bound) == pytest.approx(expected, rel=1e-6, abs=1e-6)


@pytest.mark.parametrize("bound", [1e9, 1e12])
def test_a_large_target_bound_takes_no_memory(bound: float) -> None:
    """All counts below the bound were listed: 1e9 of them are 8 GB."""
    high = overdispersion._before_cut(0.5, bound / 20, bound)
    assert high == pytest.approx(0.5, rel=1e-3)
    assert overdispersion._before_cut(0.5, bound / 2, bound) > 0.6


@pytest.mark.parametrize("declared", [None, 0.3])
def test_distinct_records_times_their_number_are_the_sums_of_all_records(declared: float | None) -> None:
    known = bench.World("usual", 1.0, 2_000, 8.0, declared=declared)
    plan = bench.course_of(known, estimated=declared is None).first
    distinct = bench.Distinct.drawn(known, np.random.default_rng(0))
    X, y = (np.repeat(each, distinct.number, axis=0) for each in (distinct.columns, distinct.goals))
    assert len(X) == 2_000
    assert distinct.measured(plan) == exact_moments(plan.schema, X, y, published=plan.published)


def test_drawn_counts_have_the_mean_and_variance_of_the_world() -> None:
    known = bench.World("usual", 1.0, 4_000_000, 8.0, cut=60.0)
    distinct = bench.Distinct.drawn(known, np.random.default_rng(0))
    counts, years = distinct.goals.T
    mean = years * np.exp(known.truth[0] + distinct.columns @ known.truth[1:])
    number = distinct.number
    assert np.average(counts - mean, weights=number) == pytest.approx(0, abs=3e-3)
    squares = np.average((counts - mean) ** 2, weights=number)
    assert squares == pytest.approx(np.average(mean + mean**2, weights=number), rel=1e-2)


def test_persons_rows_are_summed_and_clipped_together() -> None:
    X, y = world(40)
    ids, order = np.arange(40) // 2, np.random.default_rng(0).permutation(40)
    ours = person_sums(SCHEMA, X, y, ids)
    theirs = person_sums(SCHEMA, X[order], y[order], ids[order])
    assert all((ours.arrays[s] == theirs.arrays[s]).all() for s in LETTERS)
    assert all(ours.arrays[s].sum() > 0 for s in "QV")


WRONG: list[tuple[dict[str, Any], str]] = [
    ({"overdispersion": "yes"}, "overdispersion must be 'estimated', or omitted, got 'yes'"),
    ({"overdispersion": 1.0}, "overdispersion must be 'estimated', or omitted, got 1.0"),
    ({"errors": "model"}, "set family='poisson' and errors='robust', or omit it"),
    ({"negative_binomial": 1.0}, "overdispersion estimates what negative_binomial declares: state one of them"),
]


@pytest.mark.parametrize(("changes", "words"), WRONG)
def test_what_cannot_be_estimated_is_one_clear_sentence(changes: dict[str, Any], words: str) -> None:
    refused(SchemaError, words, replace, SCHEMA, **changes)


def test_a_course_needs_an_intercept() -> None:
    bare = replace(SCHEMA, exposure=None, exposure_bound=None, transform=(), features=2, rate=None)
    refused(PlanError, "overdispersion needs an intercept", ps.Newton.start, bare, *references.terms(4_000))


def test_the_sums_are_in_the_digest_the_budget_and_the_certificate(tmp_path: Path) -> None:
    course = test_score.course_of(SCHEMA, 4_000, 8.0)
    ps.course.write(tmp_path / "course.toml", course)
    assert ps.course.read(tmp_path / "course.toml").digest == course.digest
    assert course.digest != test_score.course_of(PLAIN, 4_000, 8.0).digest
    (tmp_path / "plan.toml").write_text(course.first.to_toml())
    listed = CliRunner().invoke(app, ["audit", "budget", str(tmp_path / "plan.toml")])
    assert listed.exit_code == 0, listed.output
    assert {row.split()[0] for row in listed.output.splitlines() if row.strip()} >= {*LETTERS}
    plan, certificate = course.first.to_toml(), certificate_text(course.first)
    assert check(plan, certificate).startswith("holds")
    refused(Refused, "", check, plan.replace('overdispersion = "estimated"\n', ""), certificate)
    shares = ps.dp.default_shares(SCHEMA)
    assert math.fsum(shares.values()) == pytest.approx(1)
    assert shares["Q"] == shares["V"] == 0.025


def test_two_csv_files_become_a_dispersion(tmp_path: Path, privstats: Any) -> None:
    _, releases = rehearsed(tmp_path, privstats, SCHEMA, 1.0)
    for more in ((), ("--exponentiate",), ("--quasi-poisson",)):
        assert "0 for a Poisson model" in privstats("table", *releases, *more, cwd=tmp_path, code=0).stdout
