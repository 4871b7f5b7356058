"""Rates per exposure, and quasi-Poisson errors: sums, bounds, refusals, statsmodels, and intervals at their level."""

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import privstats as ps
from benchmarks.inference import rates as bench
from privstats import inference as inf
from privstats.course.newton import weights_after
from privstats.dp import joint_mu
from privstats.errors import PlanError, RecordError, ReleaseError, SchemaError
from privstats.moments import exact_moments
from privstats.randomness import seeded
from privstats.review.certificate import certificate_text
from privstats.review.certificate_checker import Refused, check
from privstats.schema.public_values import Published, Values
from privstats.transforms import ConstantFeature, Levels
from tests import made
from tests.inference import test_score
from tests.inference.person_time import (
    BOUND,
    FILES,
    SCHEMA,
    SLOPES,
    assert_bounded,
    at,
    drawn,
    exact,
    person_sums,
    played,
    rehearsed,
    world,
)
from tests.made import refused
from threat_models.audits.gradients import worst_attempt

PLAIN = replace(SCHEMA, exposure=None, exposure_bound=None, rate=None)


def test_a_grid_that_is_coarse_beside_the_mean_count_is_a_fact_with_the_bits_that_suffice() -> None:
    rare = replace(SCHEMA, rate=0.02)
    (fact,) = (each for each in rare.facts if "truncated toward 0" in each)
    assert "by about 0.01:" in fact
    assert "set grid_bits = 15" in fact
    assert not any("truncated toward 0" in each for each in replace(rare, grid_bits=15).facts)
    assert not any("truncated toward 0" in each for each in replace(SCHEMA, rate=None).facts)


@pytest.mark.parametrize("grid_bits", [12, 20])
def test_no_more_bits_than_a_grid_can_have_are_proposed(grid_bits: int) -> None:
    """Of 20 bits the fact proposed 20."""
    rare = replace(SCHEMA, rate=1e-4, grid_bits=grid_bits)
    (fact,) = (each for each in rare.facts if "truncated toward 0" in each)
    assert ("set grid_bits = 20," in fact) == (grid_bits == 12)
    bound = float(fact.rpartition("target_bound of at most ")[2])
    enough = replace(rare, grid_bits=20, target_bound=bound)
    assert not any("truncated toward 0" in each for each in enough.facts)
    assert any("truncated toward 0" in each for each in replace(enough, target_bound=1.02 * bound).facts)


def test_a_finer_grid_takes_the_shift_of_rare_events_away() -> None:
    X, y = world(40_000, 0)
    y[:, 0] = np.random.default_rng(1).binomial(y[:, 0].astype(int), 0.1)  # a tenth of the events
    rare = replace(SCHEMA, rate=0.02)
    coarse, fine = (exact(schema, X, y).params[0] for schema in (rare, replace(rare, grid_bits=18)))
    assert coarse - fine == pytest.approx(12 / 2**13 / np.average(y[:, 0]), rel=0.5)


@pytest.mark.parametrize("clip_norm", [2.0, 5**0.5])
def test_first_weights_follow_from_the_declared_constant(clip_norm):
    """They are in every plan and release of a stored course: the grid that rounds the constant does not move them."""
    (first,) = weights_after(replace(SCHEMA, clip_norm=clip_norm), [])
    assert first.real == pytest.approx([0.0, 0.0, math.log(0.2 * BOUND)], abs=1e-6)


def test_sums_are_score_and_information_to_the_grid() -> None:
    X, y = world(3_000)
    w = Values.rounded(np.array([0.3, -0.2, 0.1]))
    moments: Any = ps.measure(SCHEMA, X, y, published=Published.of({"w": w}))
    U = np.c_[X, np.ones(len(X))]
    m = np.minimum(np.exp(U @ w.real), 12.0) * y[:, 1] / BOUND
    r = np.minimum(y[:, 0], 12.0) - m
    assert np.abs(moments.real().g - r @ U).max() < 2e-4 * len(X) * 12
    assert np.abs(moments.real().H - (U * m[:, None]).T @ U).max() < 1e-3 * len(X) * 12
    exact = (U * np.square(r)[:, None]).T @ U
    assert np.abs(moments.real().J - exact).max() < 0.01 * exact.max()
    halves: Any = [ps.measure(SCHEMA, X[k::2], y[k::2], published=at(w.real)) for k in range(2)]
    assert halves[0] + halves[1] == moments


def test_at_the_largest_exposure_the_sums_are_those_without_one() -> None:
    X, y = world(2_000)
    w = at([0.3, -0.2, 0.1])
    full = np.c_[y[:, 0], np.full(len(y), BOUND)]
    ours: Any = ps.measure(SCHEMA, X, full, published=w)
    plain: Any = ps.measure(PLAIN, X, y[:, 0], published=w)
    for letter in "gHJ":
        np.testing.assert_array_equal(getattr(ours, letter), getattr(plain, letter))


@given(st.data())
def test_every_record_keeps_the_bounds_whatever_is_published_and_whatever_the_exposure(data: Any) -> None:
    parts, _ = drawn(data, SCHEMA)
    assert_bounded(data, SCHEMA, parts, SCHEMA)


@pytest.mark.parametrize("adjacency", ["add-remove", "replace-one"])
def test_the_search_does_not_pass_the_bound(adjacency: Any) -> None:
    schema = replace(SCHEMA, transform=(), feature_names=None, rate=None, grid_bits=16)
    sigma = {"g": 1.0, "H": 1.0, "J": 50.0}
    claimed = joint_mu(schema, sigma, adjacency)
    assert claimed == joint_mu(replace(schema, exposure=None, exposure_bound=None), sigma, adjacency)
    found = max(worst_attempt(schema, sigma, adjacency, seeded(start), 60)[0] for start in range(3))
    assert 0.5 < found / claimed <= 1


def test_little_noise_gives_statsmodels_rates() -> None:
    sm = pytest.importorskip("statsmodels.api", reason="compares with statsmodels, which is not installed")
    X, y = world(20_000)
    table = inf.poisson(played(SCHEMA, 20_000, 100.0))
    theirs = sm.GLM(y[:, 0], sm.add_constant(X), sm.families.Poisson(), exposure=y[:, 1]).fit(cov_type="HC0")
    assert np.abs(table.params - theirs.params).max() < 0.5 * theirs.bse.min()
    assert np.allclose(table.bse, theirs.bse, rtol=0.1)
    text = " ".join(str(table.summary()).split())
    assert "exposure years: coefficients" in text
    assert "log rates are linear in the columns, and mean counts are proportional to years" in text
    low, high = table.conf_int()[0]
    assert low < SLOPES[0] < high
    ignored = sm.GLM(y[:, 0], sm.add_constant(X), sm.families.Poisson()).fit(cov_type="HC0")
    assert abs(ignored.params[1] - table.params[1]) > 5 * theirs.bse[1]  # the treated are followed for a shorter time


def test_quasi_poisson_errors_are_statsmodels() -> None:
    """Their multiple is the sum of squares over the sum of means, where statsmodels' is Pearson's mean."""
    sm = pytest.importorskip("statsmodels.api", reason="compares with statsmodels, which is not installed")
    X, counts = bench.multiples(20_000, 3.0, np.random.default_rng(0))
    schema = replace(PLAIN, rate=1.0, feature_names=("a", "b"))
    releases = test_score.played(test_score.course_of(schema, 20_000, 100.0, 6), X, counts, 0)
    robust, quasi = inf.poisson(releases), inf.poisson(releases, quasi_poisson=True)
    theirs = sm.GLM(np.minimum(counts, 12), sm.add_constant(X), sm.families.Poisson()).fit(scale="X2")
    assert np.allclose(quasi.bse, theirs.bse, rtol=0.06)
    np.testing.assert_array_equal(quasi.params, robust.params)
    assert quasi.cov_type == "quasi-Poisson"
    assert "the variance of counts with equal columns is one multiple of their mean" in str(quasi.assumed)
    assert quasi.dispersion == robust.dispersion


def test_quasi_poisson_needs_a_multiple_that_noise_does_not_hide() -> None:
    model = played(replace(SCHEMA, errors="model"), 4_000, 30.0)
    refused(ReleaseError, 'needs rounds with errors="robust"', inf.poisson, model, quasi_poisson=True)
    noisy = played(SCHEMA, 6_000, 1.0)
    refused(ReleaseError, "noise hides the variance over the mean", inf.poisson, noisy, quasi_poisson=True)


@pytest.mark.parametrize("wrong", [0.0, -1.0, BOUND + 1e-9, math.inf, math.nan])
def test_an_exposure_out_of_range_is_refused_or_left_out(wrong: float) -> None:
    X, y = world(50)
    w = at([0.3, -0.2, 0.1])
    bad = y.copy()
    bad[7, 1] = wrong
    without: Any = ps.measure(SCHEMA, np.delete(X, 7, axis=0), np.delete(y, 7, axis=0), published=w)
    kept: Any = exact_moments(SCHEMA, X, bad, published=w, unreadable="leave out")
    assert kept == without
    assert kept.records == 49
    if math.isfinite(wrong):
        words = "exposures in 'years' must be above 0 and at most exposure_bound, 10"
        refused(RecordError, words, ps.measure, SCHEMA, X, bad, published=w)
        with pytest.warns(UserWarning, match="exposure that is not above"):
            ps.measure(SCHEMA, X, bad, published=w, unreadable="leave out")


def test_a_gap_in_the_counts_or_the_exposures_is_named_by_its_column() -> None:
    X, y = world(50)
    y[7, 1] = y[9, 0] = math.nan
    with pytest.warns(UserWarning, match="count: 1 .*; 'years': 1 "):
        ps.measure(SCHEMA, X, y, published=at([0.3, -0.2, 0.1]), unreadable="leave out")


def test_persons_rows_of_person_time_are_summed_and_clipped_together() -> None:
    X, y = world(40)
    ids, bad, keep = np.arange(40) // 2, y.copy(), np.arange(40) != 5
    bad[5, 1] = 0.0
    ours = person_sums(SCHEMA, X, bad, ids, unreadable="leave out")
    theirs = person_sums(SCHEMA, X[keep], y[keep], ids[keep])
    assert all((ours.arrays[s] == theirs.arrays[s]).all() for s in "gHJ")


WRONG: list[tuple[dict[str, Any], str]] = [
    ({"exposure_bound": None}, "exposure and exposure_bound go together"),
    ({"exposure": None}, "exposure and exposure_bound go together"),
    ({"exposure": "age"}, "exposure names 'age', a column too"),
    ({"exposure": 3}, "exposure must be the name of a column"),
    ({"exposure_bound": -1.0}, "exposure_bound must be"),
    ({"family": "logistic", "target_bound": None, "rate": None}, "exposure is for rates of counts"),
    ({"rate": 2.0}, "rate must be below the largest outcome over exposure_bound, 10, 1.2"),
]


@pytest.mark.parametrize(("changes", "words"), WRONG)
def test_what_is_no_exposure_is_one_clear_sentence(changes: dict[str, Any], words: str) -> None:
    refused(SchemaError, words, replace, SCHEMA, **changes)


def test_a_course_of_rates_needs_an_intercept() -> None:
    schema = replace(SCHEMA, transform=(), features=2, rate=None)
    refused(PlanError, "needs an intercept", ps.Newton.start, schema, ps.Cohort(2, 2, 10_000), made.promise())


def test_files_keep_the_exposure_and_a_certificate_holds(tmp_path: Path) -> None:
    course = test_score.course_of(SCHEMA, 4_000, 8.0)
    ps.course.write(tmp_path / "course.toml", course)
    back = ps.course.read(tmp_path / "course.toml")
    assert (back, back.digest) == (course, course.digest)
    text = course.first.to_toml()
    assert check(text, certificate_text(course.first)).startswith("holds")
    refused(Refused, "", check, text.replace('exposure = "years"\n', ""), certificate_text(course.first))
    assert "the exposure years" in SCHEMA.record


def test_columns_of_texts_become_rate_ratios(tmp_path: Path, privstats: Any) -> None:
    """As for effects and hazards: two texts are 0 and 1, and each further text is compared with the first."""
    n = 8_000
    frame = pd.DataFrame(
        {"arm": np.resize(["placebo", "drug"], n), "smoking": np.resize(["never", "former", "now"], n)}
    )
    frame["falls"] = np.random.default_rng(0).poisson(np.where(frame.arm == "drug", 0.5, 1.0))
    texts = (ps.Categories("arm", ("placebo", "drug")), ps.Categories("smoking", ("never", "former", "now")))
    maps = (Levels(texts, (), (1,)), ConstantFeature(1.0))
    schema = ps.ScoreSchema(
        4, 3**0.5, family="poisson", target_bound=8.0, feature_names=("arm", "smoking"), transform=maps
    )
    ps.course.write(tmp_path / "course.toml", course := test_score.course_of(schema, n, 50.0, 5))
    assert check(course.first.to_toml(), certificate_text(course.first)).startswith("holds")
    for place, name in enumerate(("north", "south")):
        frame[place::2].to_csv(tmp_path / f"{name}.csv", index=False)
    how: dict[str, Any] = {"cwd": tmp_path, "code": 0}
    privstats("course", "rehearse", "course.toml", "north.csv", "south.csv", "--target", "falls", "--out", "out", **how)
    releases = sorted(f"out/{each.name}" for each in (tmp_path / "out").glob("*.release"))
    privstats("table", *releases, "--out", "table.csv", **how)
    assert "texts" in privstats("table", *releases, **how).stdout
    table = pd.read_csv(tmp_path / "table.csv").set_index("term")
    assert [*table.index] == ["const", "arm", "smoking: former", "smoking: now"]
    assert (np.abs(table.estimate - [0, math.log(0.5), 0, 0]) < 4 * table.std_error).all()
    refused(
        SchemaError,
        "outcomes of Levels must be empty",
        replace,
        schema,
        transform=(Levels(texts, (ps.Categories("falls", ("no", "yes")),), (1,)), *maps[1:]),
    )


def test_two_csv_files_become_rates(tmp_path: Path, privstats: Any) -> None:
    done, releases = rehearsed(tmp_path, privstats, SCHEMA)
    assert "6 of 6 sessions ended" in done.stdout + done.stderr
    for more in ((), ("--quasi-poisson",)):
        text = privstats("table", *releases, "--exponentiate", *more, cwd=tmp_path, code=0).stdout
        assert "rates per unit of it" in text
        assert ("quasi-Poisson" in text) == bool(more)
    words = ("course", "rehearse", "course.toml", *FILES, "--out", "none")
    same = privstats(*words, "--target", "years", cwd=tmp_path, code=2)
    assert "exposure, 'years'" in same.stderr
    wrong = privstats(*words, cwd=tmp_path, code=2)
    assert "column to predict with --target" in wrong.stderr


@pytest.mark.nightly
@pytest.mark.timeout(900)
@pytest.mark.parametrize("world", bench.WORLDS, ids=lambda world: world.name)
def test_intervals_keep_their_level(world: Any) -> None:
    row = bench.measured(world, 200)
    assert row["reported"] > 0.9
    assert row["worst row"] <= 0.11  # 22 of 200: with probability 4e-4 at a rate of .05
