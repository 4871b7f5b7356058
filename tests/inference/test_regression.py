"""``ols`` from the public surface: against statsmodels, through the library's own path, and what it refuses."""

import math

import numpy as np
import pytest

import privstats as ps
from privstats import inference as inf
from privstats import session
from privstats.errors import ReleaseError, SchemaError
from privstats.randomness import seeded
from privstats.transforms import Centre, CentreRows, ConstantFeature, Scale
from tests import made

CONSTANT = ConstantFeature(1.0)


def records(n=400, d=3, seed=0):
    """Records on the grid of ``schema``, so that rounding changes nothing."""
    rng = np.random.default_rng(seed)
    X = np.clip(np.round(rng.normal(size=(n, d)) * 300), -1024, 1024) / 1024
    y = np.clip(np.round((X @ np.linspace(0.4, -0.2, d) + 0.2 + rng.normal(size=n) * 0.3) * 1024), -2048, 2048) / 1024
    return X, y


def schema(d=3, **changes):
    settings = {"clip_norm": 4.0, "target_bound": 4.0, "grid_bits": 12, "transform": (CONSTANT,)}
    return ps.RidgeSchema(d + 1, **(settings | changes))


def exact(X, y, **changes):
    chosen = schema(X.shape[1], **changes)
    return ps.Release.exact(chosen, ps.measure(chosen, X, y))


def noisy(X, y, epsilon=3.0, model="central", clients=4, seed=1, **changes):
    chosen = schema(X.shape[1], **changes)
    plan = made.plan(chosen, ps.Cohort(clients, clients, 4 * len(X)), made.promise(model, epsilon=epsilon, delta=1e-6))
    parts = [ps.measure(chosen, X[k::clients], y[k::clients]) for k in range(clients)]
    return session.aggregate_unmasked(plan, parts, seeded(seed))


def test_without_noise_it_is_statsmodels():
    sm = pytest.importorskip("statsmodels.api", reason="compares with statsmodels, which is not installed")
    X, y = records()
    table, theirs = inf.ols(exact(X, y)), sm.OLS(y, sm.add_constant(X)).fit()
    assert table.names == ("const", "x0", "x1", "x2")
    pairs = {
        "params": theirs.params,
        "bse": theirs.bse,
        "tvalues": theirs.tvalues,
        "pvalues": theirs.pvalues,
        "nobs": theirs.nobs,
        "df_resid": theirs.df_resid,
        "scale": theirs.scale,
        "rsquared": theirs.rsquared,
        "condition_number": theirs.condition_number,
    }
    for name, expected in pairs.items():
        assert np.allclose(getattr(table, name), expected, rtol=1e-10, atol=0), name
    for alpha in (0.2, 0.05, 0.01):
        assert np.allclose(table.conf_int(alpha), theirs.conf_int(alpha), rtol=1e-10, atol=1e-14)
    rows = np.array([[0, 1, 0, -1], [0, 0, 1, 1.0]])
    assert table.wald_test(rows) == pytest.approx(float(theirs.f_test(rows).pvalue), rel=1e-9)
    ours, test = table.t_test(rows[0], 0.5), theirs.t_test((rows[:1], np.array([0.5])))
    assert (ours.value, ours.pvalue) == pytest.approx((float(test.effect[0]), float(test.pvalue)), rel=1e-9)


@pytest.mark.parametrize(("value", "clip_norm"), [(1.0, 3.7), (2.0, 60.0), (-0.3, 40.0)])
def test_the_constant_is_read_as_the_sums_hold_it(value, clip_norm):
    """Records are counted, and intercepts reported, by the constant that was rounded to the grid as rows are."""
    X, y = records()
    release = exact(X, y, transform=(ConstantFeature(value),), clip_norm=clip_norm)
    table = inf.ols(release)
    assert table.nobs == pytest.approx(400, rel=1e-12)
    plain = inf.ols(exact(X, y))
    assert np.allclose(table.params, plain.params, rtol=0, atol=0.1 * plain.bse)
    head = ps.heads.Ridge(penalty=1e-9).fit_release(release)
    assert head.predict(X).mean() == pytest.approx(y.mean(), abs=1e-3)


@pytest.mark.parametrize("value", [1e-9, -5e-324])
def test_a_constant_below_the_grid_is_refused(value):
    made.refused(SchemaError, "ConstantFeature must be at least 0.00098", schema, transform=(ConstantFeature(value),))


@pytest.mark.parametrize(("name", "bits", "most"), [("longley", 20, 1e-3), ("star98", 20, 1e-3), ("star98", 12, 0.3)])
def test_real_columns_are_statsmodels_as_far_as_the_grid_is_fine(name, bits, most):
    sm = pytest.importorskip("statsmodels.api", reason="compares with statsmodels, which is not installed")
    data = getattr(sm.datasets, name).load_pandas()
    X, y = np.asarray(data.exog, float), np.asarray(data.endog, float).reshape(len(data.exog), -1)[:, 0]
    y = y - y.mean()
    low, high = X.min(axis=0), X.max(axis=0)
    maps = (Centre(tuple((low + high) / 2)), Scale(tuple((high - low) / 2)), CONSTANT)
    bounds = {"clip_norm": math.sqrt(X.shape[1] + 1), "target_bound": 3 * np.abs(y).max()}
    table, theirs = inf.ols(exact(X, y, transform=maps, grid_bits=bits, **bounds)), sm.OLS(y, sm.add_constant(X)).fit()
    off = np.abs(table.params - theirs.params) / theirs.bse
    assert off.max() < most
    assert any("raise grid_bits" in note for note in table.notes) == (off.max() > 0.05)


def test_coefficients_are_per_unit_of_the_columns_as_they_came_in():
    X, y = records()
    raw = 50 + 32 * X
    maps = (Centre((50.0, 50.0, 50.0)), Scale((32.0, 32.0, 32.0)), CONSTANT)
    table, plain = inf.ols(exact(raw, y, transform=maps)), inf.ols(exact(X, y))
    assert np.allclose(table.params[1:], plain.params[1:] / 32)
    assert table.params[0] == pytest.approx(plain.params[0] - (plain.params[1:] * 50 / 32).sum())
    assert np.allclose(table.pvalues[1:], plain.pvalues[1:], rtol=1e-8)
    design = np.c_[np.ones(len(raw)), raw]
    covariance = table.scale * np.linalg.inv(design.T @ design)
    assert np.allclose(table.bse, np.sqrt(np.diag(covariance)), rtol=1e-8)


def test_a_submodel_is_the_regression_on_its_columns():
    X, y = records()
    part = inf.ols(exact(X, y, feature_names=("age", "dose", "site")), columns=["site", "age"])
    assert part.names == ("const", "site", "age")
    assert np.allclose(part.params, inf.ols(exact(X[:, [2, 0]], y)).params)
    assert "2 of 3 released columns" in str(part.summary())


def test_one_of_several_targets_has_wider_intervals_and_says_so():
    X, y = records()
    both = inf.ols(exact(X, np.c_[y, y[::-1]], targets=2), target=0)
    alone = inf.ols(exact(X, y))
    assert np.allclose(both.params, alone.params)
    assert (both.bse > alone.bse).all()
    assert both.rsquared is None
    assert "all targets together" in both.notes[0]


def test_without_a_constant_the_number_of_records_is_given():
    sm = pytest.importorskip("statsmodels.api", reason="compares with statsmodels, which is not installed")
    X, y = records()
    bare = ps.RidgeSchema(3, clip_norm=4.0, target_bound=4.0)
    release = ps.Release.exact(bare, ps.measure(bare, X, y))
    table, theirs = inf.ols(release, records=len(X)), sm.OLS(y, X).fit()
    assert np.allclose(table.bse, theirs.bse, rtol=1e-9)
    assert table.rsquared == pytest.approx(theirs.rsquared)
    with pytest.raises(ReleaseError, match="pass records="):
        inf.ols(release)


@pytest.mark.parametrize(("model", "clients"), [("central", 4), ("distributed", 4), ("local", 4)])
def test_intervals_cover_through_the_library_s_own_path(model, clients):
    """Of 240 intervals at 95 %, fewer than .88 would be no luck."""
    slopes, covers, reported = np.array([0.1, 0.4, 0.1, -0.2]), [], []
    for run in range(60):
        rng = np.random.default_rng(100 + run)
        X = np.clip(rng.normal(size=(4_000, 3)) * 0.4, -1, 1)
        y = X @ slopes[1:] + slopes[0] + rng.normal(size=len(X)) * 0.3
        settings = {"clip_norm": 2.0, "target_bound": 2.0}
        table = inf.ols(noisy(X, y, 3.0 if model != "local" else 30.0, model, clients, seed=run, **settings))
        low, high = table.conf_int().T
        covers.append((low <= slopes) & (slopes <= high))
        reported.append(table.reported)
    assert np.mean(covers) > 0.88
    assert np.mean(reported) > 0.9


def test_small_cohorts_under_strong_noise_are_not_told():
    X, y = records(500)
    tables = [inf.ols(noisy(X, y, 0.5, seed=seed)) for seed in range(10) if _readable(noisy(X, y, 0.5, seed=seed))]
    assert tables
    assert np.mean([table.reported for table in tables]) < 0.3
    assert any("-inf" in str(table.summary()) for table in tables)


def _readable(release):
    try:
        inf.ols(release)
    except ReleaseError:
        return False
    return True


def test_folds_hold_where_the_variance_depends_on_the_columns():
    rng, covers = np.random.default_rng(0), {"folds": [], "nonrobust": []}
    for _ in range(60):
        x = np.clip(rng.normal(size=1_000) * 0.4, -1, 1)
        y = 0.5 * x + rng.normal(size=1_000) * (0.05 + np.abs(x))
        release = exact(np.c_[x, rng.uniform(-1, 1, 1_000)], y, folds=20)
        for cov_type, found in covers.items():
            low, high = inf.ols(release, cov_type=cov_type).conf_int()[1]
            found.append(low <= 0.5 <= high)
    assert np.mean(covers["folds"]) > 0.88
    assert np.mean(covers["nonrobust"]) < 0.85


def test_folds_are_taken_where_there_are_some_and_refused_where_records_repeat():
    X, y = records()
    assert inf.ols(exact(X, y, folds=10)).cov_type == "folds"
    noised = inf.ols(noisy(X, y, 8.0, folds=10))
    assert noised.cov_type == "folds"
    assert "have one variance" not in str(noised)
    assert "have one variance" in " ".join(str(inf.ols(noisy(X, y, 8.0))).split())
    assert any("plan folds=20" in note for note in inf.ols(noisy(X, y, 8.0)).notes)
    assert not any("folds=20" in note for note in noised.notes)
    assert not any("folds=20" in note for note in inf.ols(noisy(X, y, 8.0), cov_type="nonrobust").notes)
    repeated = exact(np.tile(X[:4], (100, 1)), np.tile(y[:4], 100), folds=10)
    assert inf.ols(repeated).cov_type == "nonrobust"
    assert "records repeat" in inf.ols(repeated).cov_reason
    with pytest.raises(ReleaseError, match="records repeat"):
        inf.ols(repeated, cov_type="folds")


def test_standard_errors_of_folds_are_a_delete_one_jackknife():
    X, y = records()
    release = exact(X, y, folds=8)
    moments = release.moments
    left = [
        np.linalg.solve(moments.G - G, (moments.h - h)[:, 0])
        for G, h in zip(moments.fold_G, moments.fold_h, strict=True)
    ]
    whole = np.linalg.solve(moments.G, moments.h[:, 0])
    expected = np.sqrt(7 / 8 * np.square(np.array(left) - whole).sum(axis=0))
    assert np.allclose(inf.ols(release, cov_type="folds").bse, expected[[3, 0, 1, 2]])


def test_clipped_targets_a_coarse_grid_and_collinear_columns_are_noted():
    X, y = records()
    assert inf.ols(exact(X, y), cov_type="nonrobust").notes == ()
    clipped = inf.ols(exact(X, y, target_bound=0.4))
    assert clipped.saturation_.targets > 0.1
    assert "raise target_bound" in clipped.notes[0]
    assert not clipped.reported.any()
    assert "raise grid_bits" in inf.ols(exact(X, y, grid_bits=3)).notes[0]
    twice = inf.ols(exact(np.c_[X, X[:, 0]], y), cov_type="nonrobust")
    (note,) = twice.notes
    assert "collinear: x0, x3 " in note
    assert twice.reported.tolist() == [True, False, True, True, False]


def test_holm_leaves_the_intercept_apart():
    table = inf.ols(exact(*records()))
    adjusted = table.pvalues_adjusted()
    assert math.isnan(adjusted[0])
    assert (adjusted[1:] >= table.pvalues[1:]).all()


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (lambda r: inf.ols("release"), "must be a Release"),
        (lambda r: inf.ols(r, columns=["height"]), "is no column"),
        (lambda r: inf.ols(r, columns=[0, 0]), "names a column twice"),
        (lambda r: inf.ols(r, columns="x0"), "must be a list"),
        (lambda r: inf.ols(r, columns=[True]), "is no column"),
        (lambda r: inf.ols(r, target=1), "from 0 to 0"),
        (lambda r: inf.ols(r, cov_type="HC1"), "cov_type must be"),
        (lambda r: inf.ols(r, cov_type="folds"), "fewer than 8 folds"),
        (lambda r: inf.ols(r).conf_int(0.0), "alpha must be"),
        (lambda r: inf.ols(r).conf_int(0.7), "alpha must be"),
        (lambda r: inf.ols(r).conf_int(about="truth"), "about must be"),
        (lambda r: inf.ols(r).pvalues_adjusted("bonferroni"), "method must be"),
        (lambda r: inf.ols(r).t_test([1.0]), "one finite number for each"),
        (lambda r: inf.ols(r).wald_test([[0, 1, 0, 0], [0, 2, 0, 0]]), "linearly independent"),
    ],
)
def test_a_wrong_call_gets_a_sentence(wrong, words):
    with pytest.raises(ReleaseError, match=words):
        wrong(exact(*records()))


def test_releases_that_hold_no_regression_are_refused():
    X, y = records()
    classes = ps.ClassSchema(2, 3, "NAB", 2.0)
    with pytest.raises(ReleaseError, match="sums of a RidgeSchema"):
        inf.ols(ps.Release.exact(classes, ps.measure(classes, X, (y > 0).astype(int))))
    with pytest.raises(ReleaseError, match="belongs to no column"):
        inf.ols(exact(X, y, transform=(CentreRows(), CONSTANT)))
    with pytest.raises(ReleaseError, match="name one with"):
        inf.ols(exact(X, np.c_[y, y], targets=2))
    with pytest.raises(ReleaseError, match="too few to estimate"):
        inf.ols(exact(X[:4], y[:4]))
    clipped = made.plan(
        schema(),
        ps.Cohort(2, 2, 1_000),
        ps.Privacy(
            model="central",
            unit="client",
            adjacency="add-remove",
            epsilon=8.0,
            delta=1e-6,
            max_records_per_client=300,
            client_clip=5.0,
        ),
    )
    release = session.aggregate_unmasked(clipped, [ps.measure(schema(), X[k::2], y[k::2]) for k in range(2)], seeded(0))
    with pytest.raises(ReleaseError, match="client_clip"):
        inf.ols(release)
