"""A random intercept from a release with a column per site, and what its reader refuses."""

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import privstats as ps
from privstats import session
from privstats.contrib.site_levels import random_intercept
from privstats.randomness import seeded
from privstats.transforms import Centre, ConstantFeature, Scale
from tests import made
from tests.made import refused

SITES = 20
NAMES = ("age", "dose", *(f"site {k}" for k in range(SITES)))
MAPS = (Centre((50.0, 0.0, *[0.0] * SITES)), Scale((30.0, 1.0, *[1.0] * SITES)))


def schema(**changes: Any) -> ps.RidgeSchema:
    settings = {"clip_norm": 3**0.5, "target_bound": 6.0, "transform": MAPS, "feature_names": NAMES, "grid_bits": 16}
    return ps.RidgeSchema(2 + SITES, **{**settings, **changes})


def records(size: int = 150, tau: float = 0.8) -> tuple[Any, Any]:
    rng = np.random.default_rng(0)
    site = np.repeat(np.arange(SITES), size)
    age, dose = rng.uniform(20, 80, len(site)), rng.choice([-1.0, 1.0], len(site))
    y = 0.02 * (age - 50) - 0.5 * dose + tau * rng.normal(size=SITES)[site] + rng.normal(size=len(site))
    return np.column_stack([age, dose, np.eye(SITES)[site]]), y


def exact(**changes: Any) -> ps.Release:
    measured = schema(**changes)
    return ps.Release.exact(measured, ps.measure(measured, *records()))


def noisy(epsilon: float, **changes: Any) -> ps.Release:
    measured, (X, y) = schema(), records()
    promise = made.promise(epsilon=epsilon, delta=1e-6, **changes)
    plan = made.plan(measured, ps.Cohort(2, 2, 2 * len(y)), promise)
    parts = [ps.measure(measured, X[k::2], y[k::2], unreadable=plan.unreadable) for k in range(2)]
    return session.aggregate_unmasked(plan, parts, seeded(1))


def test_coefficients_are_per_original_unit() -> None:
    fit = random_intercept(exact(), sites=NAMES[2:])
    assert fit.names == ("const", "age", "dose")
    assert (np.abs(fit.params[1:] - [0.02, -0.5]) < [0.004, 0.06]).all()
    low, high = fit.tau_interval()
    assert 0.3 < low < fit.tau < high < 1.5
    assert fit.sites == SITES
    assert fit.nobs == pytest.approx(150 * SITES, abs=1)
    assert (fit.noise_bse == 0).all()
    assert fit.tau_interval(0.5)[0] > low


def test_records_are_counted_by_the_1_that_the_grid_holds() -> None:
    """With a clip norm of 60 and 12 bits a 1 is 68 of 68.27 steps, which counted 2,976 of 3,000 records."""
    fit = random_intercept(exact(clip_norm=60.0, grid_bits=12), sites=NAMES[2:])
    assert fit.nobs == pytest.approx(3_000, rel=1e-9)


def test_slopes_and_noise_are_in_units_of_the_1_that_the_grid_holds() -> None:
    coarse, fine = (random_intercept(exact(clip_norm=60.0, grid_bits=bits), sites=NAMES[2:]) for bits in (12, 20))
    np.testing.assert_allclose(coarse.params[1:], fine.params[1:], rtol=0.01)
    measured = schema(clip_norm=1.9, grid_bits=6)
    (X, y), promise = records(), made.promise(epsilon=8.0, delta=1e-6)
    plan = made.plan(measured, ps.Cohort(2, 2, 2 * len(y)), promise)
    parts = [ps.measure(measured, X[k::2], y[k::2], unreadable=plan.unreadable) for k in range(2)]
    release = session.aggregate_unmasked(plan, parts, seeded(1))
    sums, one = random_intercept(release, sites=NAMES[2:]).fit.sums, measured.on_grid(1.0)
    assert one == pytest.approx(1.0094, abs=1e-4)
    assert sums.sigma_G == pytest.approx(release.sigma["G"] / one**2)
    assert sums.sigma_h == pytest.approx(release.sigma["h"] / one)
    np.testing.assert_allclose(sums.sy, np.asarray(release.moments.h).reshape(-1)[2:] / one)


def test_it_agrees_with_a_dummy_per_site_and_with_the_exact_reader() -> None:
    """Large sites: a random intercept's slopes are those of fixed levels."""
    fit, fixed = random_intercept(exact(), sites=NAMES[2:]), ps.inference.ols(exact(), records=150 * SITES)
    np.testing.assert_allclose(fit.params[1:], fixed.params[:2], rtol=0.02)
    np.testing.assert_allclose(fit.bse[1:], fixed.bse[:2], rtol=0.02)


def test_intervals_grow_with_noise_and_the_summary_states_tau() -> None:
    fits = [random_intercept(noisy(epsilon), sites=NAMES[2:]) for epsilon in (2.0, 16.0)]
    assert (fits[0].noise_bse > fits[1].noise_bse).all()
    low, high = fits[1].conf_int().T
    truth = [-1.0, 0.02, -0.5]
    assert ((low < truth) & (truth < high))[1:].all()
    head, foot = dict(fits[1].summary().head), " ".join(fits[1].summary().foot)
    assert head["tau"].startswith(f"{fits[1].tau:.3g} (95% interval ")
    assert head["tau"].endswith(f"standard deviation of levels, from {SITES} of {SITES} sites")
    assert "R-squared" not in head
    assert "Warning: tau's interval assumes normal levels: with exponential or heavy-tailed ones it missed" in foot
    assert "tau, the standard deviation" not in foot
    assert "90% interval" in dict(fits[1].summary(0.1).head)["tau"]
    assert fits[1].pvalues[2] < 0.01
    assert fits[1].wald_test(np.eye(3)[1:]) < 0.01
    (low, high), half = fits[1].conf_int(about="sums")[2], fits[1].conf_int()[2]
    assert half[0] < low < high < half[1]


def test_noise_hides_everything_with_a_reason() -> None:
    fit = random_intercept(noisy(0.4), sites=NAMES[2:])
    assert not fit.reported.any()
    assert math.isnan(fit.tau)
    assert (fit.conf_int() == [-math.inf, math.inf]).all()
    assert (fit.pvalues == 1).all()
    assert "tau" not in dict(fit.summary().head)
    said = str(fit.summary())
    assert "noise hides the sums by site, so no coefficient is reported" in said
    assert "levels, is not reported" in said


def test_persons_averages_report_a_tau_that_allows_for_shared_residuals() -> None:
    X, y = records()
    measured = schema()
    promise = made.promise(epsilon=16.0, delta=1e-6, unit="person", person_clip="average")
    plan = made.plan(measured, ps.Cohort(2, 2, 2 * len(y)), promise)
    ids = np.arange(len(y)) // 2  # two rows of one site each
    parts = [
        ps.measure(
            measured, X[half], y[half], persons=ids[half], person_clip=plan.person_clip, unreadable=plan.unreadable
        )
        for half in (slice(None, len(y) // 2), slice(len(y) // 2, None))
    ]
    fit = random_intercept(session.aggregate_unmasked(plan, parts, seeded(1)), sites=NAMES[2:])
    assert fit.reported.all()
    low, high = fit.tau_interval()
    assert 0.3 < low < fit.tau < high < 1.6
    one = replace(fit.fit, sums=replace(fit.fit.sums, averaged=False)).tau(0.05)
    assert one[0] == pytest.approx(low)
    assert one[1] < high
    assert "tau is the middle of what the sums allow" in " ".join(fit.notes)


def test_targets_beyond_the_bound_hide_the_coefficients() -> None:
    fit = random_intercept(exact(target_bound=0.8), sites=NAMES[2:])
    assert not fit.reported.any()
    assert random_intercept(exact(target_bound=0.8), sites=NAMES[2:], unclipped=True).reported.all()


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ({"sites": NAMES[2:4]}, "sites must name at least 3 columns, got 2"),
        ({"sites": NAMES[1:], "columns": ["dose"]}, "columns names 'dose', which is a site"),
        ({"sites": NAMES}, "columns must name at least one column"),
        ({"sites": NAMES[0:4], "columns": ["dose"]}, "columns names 'dose', which is a site"),
        ({"sites": ("age", *NAMES[2:]), "columns": ["dose"]}, "maps the site column 'age'"),
        ({"sites": "site 0"}, "sites must be a list of column names or numbers"),
        ({"sites": None}, "sites must be a list of column names or numbers"),
        ({"sites": ["nowhere"]}, "'nowhere' is no column"),
    ],
)  # fmt: skip
def test_what_it_refuses(words: dict[str, Any], sentence: str) -> None:
    refused(ps.ReleaseError, sentence, random_intercept, exact(), **words)


def test_a_constant_column_is_refused() -> None:
    measured = ps.RidgeSchema(5, clip_norm=2.0, target_bound=2.0, transform=(ConstantFeature(1.0),))
    X = np.column_stack([np.linspace(-1, 1, 30), np.eye(3)[np.arange(30) % 3]])
    release = ps.Release.exact(measured, ps.measure(measured, X, X[:, 0]))
    refused(ps.ReleaseError, "no ConstantFeature", random_intercept, release, sites=[1, 2, 3])


def test_collinear_columns_are_refused() -> None:
    X, y = records()
    measured = ps.RidgeSchema(3 + SITES, clip_norm=2.0, target_bound=6.0)
    twice = np.column_stack([X[:, 1], X[:, 1], X[:, 1] * 0, X[:, 2:]]) * 0.5
    twice[:, 3:] *= 2
    release = ps.Release.exact(measured, ps.measure(measured, twice, y))
    sites = list(range(3, 3 + SITES))
    refused(ps.ReleaseError, "collinear, or one is 0", random_intercept, release, sites=sites)
    refused(ps.ReleaseError, "collinear, or one is 0", random_intercept, release, sites=sites, columns=[0, 2])
    assert random_intercept(release, sites=sites, columns=[0]).reported.all()


def test_no_release_is_refused() -> None:
    refused(ps.ReleaseError, "release must be a Release", random_intercept, "x", sites=[0, 1, 2])


ALL = NAMES[2:]


def read(X: Any, y: Any, noise: bool = False, **changes: Any) -> Any:
    """Return a reader of these records, exact or at epsilon 8."""
    measured = schema(**changes)
    if not noise:
        release = ps.Release.exact(measured, ps.measure(measured, X, y))
    else:
        plan = made.plan(measured, ps.Cohort(2, 2, 2 * len(y)), made.promise(epsilon=8.0, delta=1e-6))
        parts = [ps.measure(measured, X[k::2], y[k::2], unreadable=plan.unreadable) for k in range(2)]
        release = session.aggregate_unmasked(plan, parts, seeded(1))
    return lambda **words: random_intercept(release, **{"sites": ALL, **words})


@pytest.mark.parametrize("noise", [False, True])
def test_shortened_rows_are_refused_though_a_caller_says_that_none_are(noise: bool) -> None:
    """At a clip norm of 1 a row's 1 is shortened as well, and fewer than half of the records were counted."""
    for norm in (1.0, 1.2):
        refused(ps.ReleaseError, "rows were shortened to clip_norm", read(*records(), noise, clip_norm=norm))
        refused(ps.ReleaseError, "rows were shortened", read(*records(), noise, clip_norm=norm), unclipped=True)
    assert read(*records(), noise, clip_norm=3.1**0.5)().nobs == pytest.approx(3_000, abs=0.01 if not noise else 400)


@pytest.mark.parametrize("noise", [False, True])
def test_a_site_column_of_a_half_is_refused(noise: bool) -> None:
    X, y = records()
    X[:, 2:] /= 2
    refused(ps.ReleaseError, "site columns are not 0 and 1", read(X, y, noise))


@pytest.mark.parametrize("bits", [6, 8, 12, 20])
def test_the_grids_own_shortening_is_not_refused_and_room_for_it_mends_the_count(bits: int) -> None:
    X, y = records()
    X[:, 0] = np.where(X[:, 0] > 50, 80, 20)  # rows of length 3**.5
    assert 2_800 < read(X, y, grid_bits=bits)().nobs <= 3_000 + 1e-6
    room = 3**0.5 / (1 - (2 + SITES) ** 0.5 / 2 / 2**bits)
    assert read(X, y, grid_bits=bits, clip_norm=room * (1 + 1e-9))().nobs == pytest.approx(3_000)


@pytest.mark.parametrize("noise", [False, True])
def test_records_in_two_sites_or_in_none_are_refused(noise: bool) -> None:
    X, y = records()
    twice = X.copy()
    twice[: len(X) // 20, 3] = 1  # all of the first site's, in the second as well
    refused(ps.ReleaseError, "sites 'site 0' and 'site 1' share records", read(twice, y, noise, clip_norm=2.0))
    some = read(X, y, noise)
    refused(ps.ReleaseError, "column 'site 19' is in neither sites nor", some, sites=ALL[:-1], columns=["age", "dose"])
    assert some(columns=["age"]).names == ("const", "age")
    assert some(sites=ALL[:-1]).names == ("const", "age", "dose", "site 19")  # its level as a column is not left out


def test_noise_alone_refuses_no_sound_release() -> None:
    """Seven promises; at the strongest noise, counts are hidden and the reader may say so."""
    for epsilon in (0.4, 0.7, 1.0, 2.0, 4.0, 8.0, 16.0):
        assert random_intercept(noisy(epsilon), sites=ALL).sites == SITES


def test_strong_noise_cannot_tell_a_column_from_a_site_unless_the_plan_maps_it() -> None:
    strong = noisy(1.0)
    refused(ps.ReleaseError, "column 'dose' is in neither", random_intercept, strong, sites=ALL, columns=["age"])
    assert random_intercept(strong, sites=ALL, columns=["dose"]).names == ("const", "dose")


def test_exact_sums_have_no_line_for_r_squared() -> None:
    assert "R-squared" not in str(random_intercept(exact(), sites=ALL).summary())


def test_what_is_assumed_is_said() -> None:
    said = " ".join(random_intercept(exact(), sites=ALL).summary().foot)
    assert "levels independent of columns and site sizes" in said
    assert "each record has 1 in exactly one named site and 0 in the others" in said
