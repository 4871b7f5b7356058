"""Regression over sites: equal to dummies without noise, and covering with it."""

import numpy as np
import pytest

import privstats as ps
from privstats import inference as inf
from privstats import session
from privstats.errors import ReleaseError
from privstats.inference.regression.restricted_likelihood import LEVELS, Reml, pull_weights
from privstats.inference.regression.sites import _fixed_sums
from privstats.randomness import seeded
from privstats.transforms import Centre, ConstantFeature, Scale, UnitNorm

SLOPES = np.array([0.3, -0.2, 0.1])


def world(sizes, seed=0, slopes=0.0, spread=0.3, noise=0.3):
    """Records of every site on the grid; slopes differ by site with this standard deviation."""
    rng = np.random.default_rng(seed)
    parts = []
    for size in sizes:
        X = np.clip(rng.normal(size=(size, 3)) * 0.4 + rng.normal(size=3) * 0.2, -1, 1)
        own = SLOPES + slopes * rng.normal(size=3)
        y = X @ own + spread * rng.normal() + noise * rng.normal(size=size)
        parts.append((np.round(X * 1024) / 1024, np.clip(np.round(y * 1024) / 1024, -2, 2)))
    return parts


def schema(**changes):
    return ps.SitesSchema(**{"features": 4, "clip_norm": 4.0, **changes})


def release_of(parts, epsilon=None, seed=1, model="central", present=None, **changes):
    chosen = schema(**changes)
    privacy = ps.NoPrivacy()
    if epsilon is not None:
        privacy = ps.Privacy(model=model, unit="record", adjacency="add-remove", epsilon=epsilon, delta=1e-6)
    cohort = ps.Cohort(len(parts), present or len(parts), 2 * sum(len(y) for _, y in parts))
    plan = ps.Plan(schema=chosen, cohort=cohort, privacy=privacy)
    moments = [ps.measure(chosen, *part) for part in parts[: present or len(parts)]]
    return session.aggregate_unmasked(plan, moments, seeded(seed))


SIZES = (1, 40, 7, 100, 60, 33)


def test_without_noise_it_is_least_squares_with_site_dummies():
    sm = pytest.importorskip("statsmodels.api", reason="compares with statsmodels, which is not installed")
    parts = world(SIZES)
    table = inf.fixed_effects(release_of(parts, clip_norm=4.0, grid_bits=20))
    X, y = (np.concatenate(each) for each in zip(*parts, strict=True))
    dummies = np.repeat(np.eye(len(SIZES)), SIZES, axis=0)
    theirs = sm.OLS(y, np.c_[X, dummies]).fit()
    assert table.names == ("x0", "x1", "x2")
    for name in ("params", "bse", "tvalues", "pvalues"):
        assert np.allclose(getattr(table, name), getattr(theirs, name)[:3], rtol=1e-10, atol=0), name
    assert table.df_resid == theirs.df_resid
    assert table.scale == pytest.approx(theirs.scale, rel=1e-10)
    assert np.allclose(table.conf_int(0.01), theirs.conf_int(0.01)[:3], rtol=1e-10)
    rows = np.array([[1, 0, -1.0], [0, 1, 1]])
    wide = np.c_[rows, np.zeros((2, len(SIZES)))]
    assert table.wald_test(rows) == pytest.approx(float(theirs.f_test(wide).pvalue), rel=1e-8)
    assert table.rsquared == pytest.approx(1 - theirs.ssr / np.square(y - dummies @ (dummies.T @ y / SIZES)).sum())
    assert table.noise_bse.tolist() == [0.0] * 3
    assert table.saturation_ is None
    assert table.notes == ()


def test_coefficients_are_per_unit_of_what_came_in():
    parts = world(SIZES)
    raw = [(50 + 32 * X, 100 * y) for X, y in parts]
    maps = (Centre((50.0,) * 3), Scale((32.0,) * 3))
    names = ("age", "dose", "bmi")
    settings = {"grid_bits": 20, "feature_names": names}
    plain = inf.fixed_effects(release_of(parts, **settings), columns=["bmi", "age"])
    table = inf.fixed_effects(release_of(raw, transform=maps, target_scale=100.0, **settings), columns=["bmi", "age"])
    assert table.names == ("bmi", "age")
    assert np.allclose(table.params, plain.params * 100 / 32, rtol=1e-6)
    assert np.allclose(table.pvalues, plain.pvalues, rtol=1e-5)
    assert table.scale == pytest.approx(plain.scale * 1e4, rel=1e-6)
    text = str(table.summary())
    assert "fixed site effects" in text
    assert "same slopes at all sites" in text
    assert "2 of 3 released columns" in text
    assert np.allclose(table.t_test([1.0, -1.0]).value, table.params[0] - table.params[1])


def test_noise_has_the_law_that_the_intervals_take_it_for():
    """V(b) at a large b, where the noise in h, a block of the same symmetric matrix, has 1 / sqrt 2 of its level."""
    parts = world((300,) * 5)
    exact = release_of(parts).moments.Q[0]
    b = np.array([1.5, -2.0, 1.0])
    scores = []
    for seed in range(1_000):
        chance = np.random.default_rng(seed)
        E = chance.normal(size=(4, 4))
        Q = exact + (E + E.T) / 2  # 1 / sqrt 2 off the diagonal
        scores.append((Q[:3, 3] - exact[:3, 3]) - (Q[:3, :3] - exact[:3, :3]) @ b)
    release = release_of(parts, 8.0)
    equations = _fixed_sums(release, None).equations
    unit = release.sigma["Q"]
    assert (equations.sigma_G, equations.sigma_h, equations.sigma_q) == pytest.approx((unit, unit / 2**0.5, unit))
    V = (0.5 + b @ b / 2) * np.eye(3) + np.outer(b, b) / 2
    assert np.allclose(np.cov(np.array(scores).T), V, rtol=0.15, atol=0.15)


def covered(sizes, epsilon, runs, **changes):
    hits, reported = [], []
    for run in range(runs):
        table = inf.fixed_effects(release_of(world(sizes, 100 + run), epsilon, run, **changes))
        low, high = table.conf_int().T
        hits.append((low <= SLOPES) & (high >= SLOPES))
        reported.append(table.reported)
    return float(np.mean(hits)), float(np.mean(reported))


def test_intervals_cover_through_the_library_s_own_path():
    """Of 150 intervals at 95 %, fewer than .88 or all of them would be no luck."""
    rate, reported = covered((200,) * 10, 8.0, 50, clip_norm=2.0)
    assert 0.88 < rate < 1
    assert reported > 0.95


@pytest.mark.nightly
@pytest.mark.parametrize("model", ["central", "distributed"])
@pytest.mark.parametrize("epsilon", [3.0, 8.0])
def test_intervals_cover_in_five_hundred_releases(model, epsilon):
    rate, reported = covered((500,) * 20, epsilon, 500, clip_norm=2.0, model=model)
    assert 0.93 < rate < 0.98
    assert reported > 0.9


def test_groups_hold_where_slopes_differ_and_one_variance_does_not():
    found = {"groups": [], "nonrobust": []}
    for run in range(25):
        release = release_of(world((60,) * 24, run, slopes=0.3), grid_bits=12, groups=8)
        for cov_type, hits in found.items():
            low, high = inf.fixed_effects(release, cov_type=cov_type).conf_int().T
            hits.append((low <= SLOPES) & (high >= SLOPES))
    assert np.mean(found["groups"]) > 0.85
    assert np.mean(found["nonrobust"]) < 0.75


def test_errors_of_groups_are_a_delete_one_jackknife_over_groups_of_places():
    release = release_of(world((40,) * 24), groups=8)
    Q = release.moments.Q
    left = [np.linalg.solve((Q.sum(0) - part)[:3, :3], (Q.sum(0) - part)[:3, 3]) for part in Q]
    whole = np.linalg.solve(Q.sum(0)[:3, :3], Q.sum(0)[:3, 3])
    table = inf.fixed_effects(release)
    assert np.allclose(table.bse, np.sqrt(7 / 8 * np.square(np.array(left) - whole).sum(axis=0)))
    assert table.cov_type == "groups"
    assert "8 groups of sites" in table.cov_reason
    assert "slopes that may differ" in str(table.summary())
    assert inf.fixed_effects(release_of(world((40,) * 24), 8.0, groups=8)).cov_type == "groups"


def test_few_records_under_strong_noise_are_refused_or_not_told():
    with pytest.raises(ReleaseError, match="too few to estimate"):
        inf.fixed_effects(release_of(world((3,) * 4), 0.1))
    table = inf.fixed_effects(release_of(world((60,) * 5), 0.5, 3))
    assert not table.reported.all()
    assert any("noise hides the Gram matrix" in note for note in table.notes)


def test_a_group_without_a_site_is_refused():
    release = release_of(world((40,) * 30), 8.0, groups=6, present=18)
    assert inf.fixed_effects(release).cov_type == "groups"
    gone = ps.Release(release.plan, release.vector, tuple(site for site in range(30) if site % 6 != 2))
    with pytest.raises(ReleaseError, match="site of some group vanished"):
        inf.fixed_effects(gone)
    assert inf.fixed_effects(gone, cov_type="nonrobust").cov_type == "nonrobust"


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (lambda r: inf.fixed_effects("release"), "must be a Release"),
        (lambda r: inf.fixed_effects(r, columns=["height"]), "is no column"),
        (lambda r: inf.fixed_effects(r, cov_type="HC1"), "cov_type must be"),
        (lambda r: inf.fixed_effects(r, cov_type="groups"), "no groups of sites"),
        (lambda r: inf.ols(r), "reads the sums of a RidgeSchema"),
        (lambda r: inf.fixed_effects(release_of(world(SIZES), transform=(UnitNorm(),))), "belongs to no column"),
        (lambda r: inf.fixed_effects(release_of(world(SIZES), pulls=(4.0,))), "need sums with a pull of 0"),
    ],
)
def test_a_wrong_call_gets_a_sentence(wrong, words):
    with pytest.raises(ReleaseError, match=words):
        wrong(release_of(world(SIZES)))


def test_other_releases_are_refused():
    plain = ps.RidgeSchema(3, clip_norm=4.0, target_bound=2.0)
    X, y = world((50,))[0]
    with pytest.raises(ReleaseError, match="reads sums within sites"):
        inf.fixed_effects(ps.Release.exact(plain, ps.measure(plain, X, y)))
    clipped = ps.Privacy(
        model="central", unit="client", adjacency="add-remove", epsilon=8.0, delta=1e-6,
        max_records_per_client=300, client_clip=5.0,
    )  # fmt: skip
    plan = ps.Plan(schema=schema(), cohort=ps.Cohort(3, 3, 900), privacy=clipped)
    release = session.aggregate_unmasked(plan, [ps.measure(schema(), *part) for part in world((50,) * 3)], seeded(0))
    with pytest.raises(ReleaseError, match="client_clip"):
        inf.fixed_effects(release)


PULLS = (0.4, 4.0, 30.0, 400.0)


def clinics(tau, sites=24, seed=0):
    """Two columns that vary within sites and one that varies between them only; levels of deviation tau."""
    rng, parts = np.random.default_rng(seed), []
    for size in rng.integers(20, 400, sites):
        X = np.c_[rng.normal(size=(size, 2)) * 0.5 + rng.normal(size=2) * 0.3, np.full(size, rng.normal() * 0.5)]
        parts.append((X, 0.4 + X @ SLOPES + tau * rng.normal() + 0.5 * rng.normal(size=size)))
    return parts


def intercepts(parts, pulls=PULLS, **changes):
    settings = {"features": 5, "clip_norm": 6.0, "pulls": pulls, "transform": (ConstantFeature(1.0),), "grid_bits": 16}
    return release_of(parts, **{**settings, **changes})


@pytest.mark.ci
@pytest.mark.parametrize(("tau", "pulls", "near"), [(0.1, PULLS, 0.1), (0.5, PULLS, 0.1), (0.3, PULLS[:3], 0.2)])
def test_a_random_intercept_is_near_reml_on_the_pooled_records(tau, pulls, near):
    sm = pytest.importorskip("statsmodels.api", reason="compares with statsmodels, which is not installed")
    parts = clinics(tau)
    table = inf.mixed(intercepts(parts, pulls))
    X, y = (np.concatenate(each) for each in zip(*parts, strict=True))
    theirs = sm.MixedLM(y, sm.add_constant(X), np.repeat(np.arange(24), [len(b) for _, b in parts])).fit(reml=True)
    assert (np.abs(table.params - theirs.fe_params) <= near * theirs.bse_fe).all()
    assert np.allclose(table.bse, theirs.bse_fe, rtol=near)
    assert table.group_var == pytest.approx(float(theirs.cov_re[0, 0]), rel=0.2)
    assert table.scale == pytest.approx(theirs.scale, rel=0.02)
    assert table.errors.degrees.tolist()[::3] == [22.0, 22.0]  # the intercept, and the column between sites
    assert table.errors.degrees[1] > 1_000
    assert "REML (24 sites" in str(table.summary())


def test_exact_weights_give_back_the_pulls_themselves():
    """Where a level is a pull, that pull alone stands for it."""
    weights = pull_weights((LEVELS[10], LEVELS[120]), (10, 1000))
    assert np.allclose(weights[10], (1, 0), atol=1e-4)
    assert np.allclose(weights[120], (0, 1), atol=1e-4)
    assert np.allclose(weights.sum(axis=1), 1)


def test_sums_that_are_exact_put_no_floor_under_the_variance_of_records():
    parts = world((30, 40, 25, 60, 33, 44) * 4, spread=0.02, noise=0.004)
    table = inf.mixed(intercepts(parts), sizes=(20, 100))
    assert table.scale == pytest.approx(0.004**2, rel=0.2), "noise of 1 in h or q would make it 50 times as large"


def test_tests_and_contrasts_of_a_random_intercept():
    table = inf.mixed(intercepts(clinics(0.3)), columns=[0, 2])
    assert table.names == ("const", "x0", "x2")
    contrast = table.t_test([0.0, 1.0, -1.0])
    assert contrast.low < contrast.value < contrast.high
    single = np.array([[0.0, 1.0, 0.0]])
    assert table.wald_test(single) == pytest.approx(table.pvalues[1], rel=1e-6)
    assert table.conf_int(about="sums")[1].tolist() == [table.params[1]] * 2
    assert (table.pvalues[1] < 0.01) == (table.conf_int(0.01)[1, 0] > 0)
    assert table.rsquared is None
    assert table.reported.all()
    assert table.noise_bse.tolist() == [0.0] * 3, "the sums are exact"
    levelled = inf.mixed(intercepts(clinics(1.5)))
    assert "end of the range" in levelled.notes[0]


@pytest.mark.nightly
def test_a_random_intercept_covers():
    truth, hits = np.array([0.4, *SLOPES]), []
    for run in range(150):
        low, high = inf.mixed(intercepts(clinics(0.3, seed=run))).conf_int().T
        hits.append((low <= truth) & (truth <= high))
    assert (np.mean(hits, axis=0) > 0.9).all()


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (lambda: inf.mixed(release_of(world(SIZES))), "two to four pulls above 0"),
        (lambda: inf.mixed(intercepts(clinics(0.3), features=4, transform=())), "ends in ConstantFeature"),
        (lambda: inf.mixed(intercepts(clinics(0.3)), sizes=(10, 10)), "sizes must be"),
        (lambda: inf.mixed(intercepts(clinics(0.3)), sizes=10), "sizes must be"),
        (lambda: inf.mixed(intercepts(clinics(0.3)), columns=["height"]), "is no column"),
        (lambda: inf.mixed(intercepts([(np.c_[X[:, :2], X[:, 0]], y) for X, y in clinics(0.3)])), "collinear"),
    ],
)
def test_a_wrong_call_for_a_random_intercept_gets_a_sentence(wrong, words):
    with pytest.raises(ReleaseError, match=words):
        wrong()


@pytest.mark.parametrize(
    ("sound", "share"), [((99, 100, 101), 0.25), ((99, 100), 0.25), ((100, 101), 0.25), ((100,), 1.0)]
)
def test_levels_without_a_likelihood_say_nothing_of_where_a_slope_varies(sound, share):
    """Their sums are indefinite, and the logarithm of their variance is no number."""
    T = np.stack([-np.eye(3)] * len(LEVELS))
    for place in sound:
        T[place] = np.diag([LEVELS[place] ** share, LEVELS[place] ** share, 1.0])
    moving = Reml(T, 1.0, 100.0).moving(np.eye(2), 100)
    np.testing.assert_allclose(moving, share)


def test_records_that_cannot_be_read_bias_no_slope():
    """As zeros they pulled a slope of columns that are not centred: 2 became 2.3 at a gap in one record of five."""
    rng, chosen = np.random.default_rng(0), schema(features=2, clip_norm=16.0)
    parts, read = [], []
    for _ in range(8):
        x = rng.uniform(2, 4, (400, 1))
        y = 2 * x[:, 0] - 5 + rng.normal(size=400) * 0.1 + rng.normal()
        gaps = rng.random(400) < 0.2
        parts.append((np.where(gaps[:, None], np.nan, x), y))
        read.append((x[~gaps], y[~gaps]))
    plan = ps.Plan(schema=chosen, cohort=ps.Cohort(8, 8, 9_000), privacy=ps.NoPrivacy())
    with pytest.warns(ps.errors.UnreadableRecordsWarning, match="are excluded"):
        moments = [ps.measure(chosen, *part, unreadable="leave out") for part in parts]
    assert moments == [ps.measure(chosen, *part) for part in read]
    table = inf.fixed_effects(session.aggregate_unmasked(plan, moments, seeded(0)))
    assert table.params[0] == pytest.approx(2, abs=0.02)
    assert table.nobs == sum(len(y) for _, y in read)
