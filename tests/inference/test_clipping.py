"""Clipped targets: how many there may be, the notes about it, and the table that is not reported."""

import math

import numpy as np
import pytest
from scipy.special import ndtr

import privstats as ps
from privstats import inference as inf
from privstats.errors import ClippedWarning
from privstats.heads import Ridge
from privstats.inference.regression.clipping import share_beyond
from tests.inference.test_regression import exact, noisy, schema

CLIPPED = pytest.mark.filterwarnings("ignore::privstats.errors.ClippedWarning")


def steep(spread, n=4_000, seed=0):
    """Targets of slope 2 whose standard deviation is ``spread``."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 1)) * 0.3
    y = 2 * X[:, 0] + rng.normal(size=n) * math.sqrt(max(spread**2 - 0.36, 0.0))
    return X, y


@CLIPPED
@pytest.mark.parametrize("bound", [1.0, 0.5, 0.2, 0.05])
def test_the_share_of_clipped_targets_is_found_however_large_it_is(bound):
    X, y = steep(1.0)
    truth = float((np.abs(y) > bound).mean())
    for release in (exact(X, y, target_bound=bound), noisy(X, y, 8.0, target_bound=bound)):
        table = inf.ols(release)
        assert table.saturation_.targets == pytest.approx(truth, abs=0.04)
        assert not table.reported.any()


@CLIPPED
def test_coefficients_of_clipped_targets_are_not_told_in_any_way():
    X, y = steep(1.0)
    table = inf.ols(exact(X, y, target_bound=0.5))
    assert np.isinf(table.conf_int()).all()
    assert np.isinf(table.conf_int(about="sums")).all()
    assert (table.pvalues == 1).all()
    assert table.wald_test([[0.0, 1.0]]) == 1.0
    test = table.t_test([0.0, 1.0], 3.0)
    assert (test.reported, test.pvalue) == (False, 1.0)
    assert "so no coefficient is reported" in table.notes[0]
    text = " ".join(str(table.summary()).split())
    assert "if targets are normal" in text
    assert "-inf" in text
    assert "were clipped, which" not in text


def test_targets_just_inside_the_bound_are_told_to_whoever_knows_that_none_was_clipped():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (400, 1))
    y = 0.97 * X[:, 0] + rng.uniform(-0.03, 0.03, 400)
    release = exact(X, y, target_bound=1.0)
    assert ps.measure(schema(1, target_bound=1.0), X, y).clip_report.targets_clipped == 0
    assert not inf.ols(release).reported.any()
    table = inf.ols(release, unclipped=True, cov_type="nonrobust")
    assert table.reported.all()
    assert table.notes == ()


def test_a_few_targets_that_may_be_clipped_are_a_condition_and_no_fact():
    X, y = steep(1.0)
    table = inf.ols(exact(X, y, target_bound=2.2))
    assert table.reported.all()
    (note,) = (each for each in table.notes if each.startswith("if targets are normal, "))
    assert "do not show whether" in note


def test_nothing_is_said_where_the_sums_do_not_tell():
    X, y = steep(1.0)
    several = inf.ols(exact(X, np.c_[y, y], targets=2, target_bound=9.0), target=0)
    assert several.saturation_ is None
    bare = ps.RidgeSchema(2, clip_norm=4.0, target_bound=9.0)
    two = np.c_[X, X[::-1]]
    assert inf.ols(ps.Release.exact(bare, ps.measure(bare, two, y)), records=len(X)).saturation_ is None


def test_a_private_fit_tells_its_holder_of_clipped_targets():
    X, y = steep(1.0)
    promise = {"epsilon": 1.0, "delta": 1e-6, "adjacency": "add-remove", "ledger": "uncharged"}
    with pytest.warns(ClippedWarning, match="100% of the targets"):
        Ridge().fit_private(X, y, clip_norm=2.0, target_bound=0.001, **promise)


@pytest.mark.parametrize("mean", [0.0, 0.3, -0.9, 2.0])
@pytest.mark.parametrize("size", [0.02, 0.3, 1.0, 2.0, 5.0, 20.0])
def test_the_share_that_a_clip_cut_is_found_from_the_two_moments_it_left(mean, size):
    rng = np.random.default_rng(1)
    clipped = np.clip(rng.normal(mean, size, 100_000), -1, 1)
    truth = float(ndtr((-1 - mean) / size) + ndtr((mean - 1) / size))
    assert share_beyond(7 * clipped.mean(), 49 * np.square(clipped).mean(), 7.0) == pytest.approx(truth, abs=0.01)


@pytest.mark.parametrize(
    ("mean", "square", "share"),
    [(0.0, 0.0, 0.0), (0.5, 0.25, 0.0), (0.5, 0.2, 0.0), (0.0, 1.0, 1.0), (0.0, 2.0, 1.0), (1.5, 2.0, 1.0)],
)
def test_moments_of_no_spread_or_no_room_have_a_share_too(mean, square, share):
    assert share_beyond(mean, square, 1.0) == share


def test_values_spread_evenly_up_to_the_bound_look_like_a_clip():
    assert share_beyond(0.0, 1 / 3, 1.0) == pytest.approx(0.122, abs=0.001)
