"""The curve and its inverses against 60-digit arithmetic, and the algebra that must hold."""

import math
import platform

import mpmath
import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from scipy.optimize import brentq
from scipy.special import ndtri

import privstats as ps
from privstats.dp import gaussian
from privstats.dp.gaussian import compose, gaussian_delta, gaussian_epsilon, gaussian_mu, operating_point, root
from tests.made import refused

MU = st.floats(math.log(1e-4), math.log(50)).map(math.exp)
DELTA = st.floats(math.log(1e-15), math.log(0.1)).map(math.exp)


def exact_delta(mu, epsilon):
    with mpmath.workdps(60):
        mu, epsilon = mpmath.mpf(mu), mpmath.mpf(epsilon)
        return mpmath.ncdf(-epsilon / mu + mu / 2) - mpmath.exp(epsilon) * mpmath.ncdf(-epsilon / mu - mu / 2)


def exact_epsilon(mu, delta):
    """The root by bisection, from brackets that do not come from the code under test."""
    with mpmath.workdps(60):
        if exact_delta(mu, 0) <= mpmath.mpf(delta):
            return mpmath.mpf(0)
        low, high = mpmath.mpf(0), mpmath.mpf(mu) * (40 + mpmath.mpf(mu))
        for _ in range(110):
            middle = (low + high) / 2
            low, high = (middle, high) if exact_delta(mu, middle) > delta else (low, middle)
        return (low + high) / 2


@given(mu=MU, delta=DELTA)
@example(mu=1e-4, delta=1e-15)
@example(mu=50.0, delta=1e-15)
@example(mu=50.0, delta=0.1)
@example(mu=1.0, delta=1e-5)
@example(mu=1 - 1e-12, delta=1e-9)
def test_epsilon_agrees_with_sixty_digits_to_nine(mu, delta):
    ours, truth = gaussian_epsilon(mu, delta), exact_epsilon(mu, delta)
    assert abs(ours - truth) <= 1e-9 * truth


@given(mu=MU, epsilon=st.floats(0, 30))
def test_delta_agrees_with_sixty_digits(mu, epsilon):
    truth = exact_delta(mu, epsilon)
    if truth > 1e-290:
        assert abs(gaussian_delta(mu, epsilon) - truth) <= 1e-9 * truth


@given(mu=MU, delta=DELTA)
def test_the_three_functions_invert_each_other(mu, delta):
    epsilon = gaussian_epsilon(mu, delta)
    if epsilon > 1e-6 * mu:
        assert gaussian_delta(mu, epsilon) == pytest.approx(delta, rel=1e-9)
        assert gaussian_mu(epsilon, delta) == pytest.approx(mu, rel=1e-9)


@given(mu=MU, epsilon=st.floats(0, 100), step=st.floats(1e-3, 1))
def test_more_noise_or_more_epsilon_never_costs_delta(mu, epsilon, step):
    assert gaussian_delta(mu, epsilon) >= gaussian_delta(mu, epsilon + step)
    assert gaussian_delta(mu * (1 + step), epsilon) >= gaussian_delta(mu, epsilon)


def test_no_epsilon_is_needed_when_delta_already_covers_the_distance():
    assert gaussian_epsilon(1e-4, 0.1) == 0.0


@given(mus=st.lists(MU, min_size=1, max_size=6))
def test_composition_is_pythagorean_and_no_part_exceeds_the_whole(mus):
    assert compose(mus) == pytest.approx(math.hypot(*mus))
    assert compose(mus) >= max(mus) * (1 - 1e-12)


def test_the_ceiling_of_an_attacker_lies_on_the_trade_off_curve():
    tpr, auc, advantage = operating_point(1.0)
    assert tpr == pytest.approx(float(mpmath.ncdf(mpmath.erfinv(-0.98) * mpmath.sqrt(2) + 1)))
    assert auc == pytest.approx(float(mpmath.ncdf(1 / mpmath.sqrt(2))))
    assert advantage == pytest.approx(gaussian_delta(1.0, 0.0))


@pytest.mark.parametrize(
    ("call", "field"),
    [
        (lambda: gaussian_delta(0.0, 1.0), "mu"),
        (lambda: gaussian_delta(math.inf, 1.0), "mu"),
        (lambda: gaussian_delta(1.0, -1.0), "epsilon"),
        (lambda: gaussian_epsilon(-1.0, 1e-5), "mu"),
        (lambda: gaussian_epsilon(1.0, 0.0), "delta"),
        (lambda: gaussian_mu(1.0, 1.0), "delta"),
        (lambda: gaussian_mu(math.inf, 0.1), "epsilon"),
    ],
)
def test_an_argument_out_of_range_is_named(call, field):
    refused(ValueError, field, call)


@pytest.mark.parametrize("epsilon", [1e4, 1e9, 1e17, 1e100, 1e300])
def test_huge_epsilons_have_their_mu(epsilon):
    """delta = Phi(z) with z = mu / 2 - epsilon / mu, because the second term vanishes; solved for mu."""
    z = float(ndtri(1e-5))
    assert gaussian_mu(epsilon, 1e-5) == pytest.approx(z + math.sqrt(z * z + 2 * epsilon), rel=1e-3)
    assert gaussian_epsilon(gaussian_mu(epsilon, 1e-5), 1e-5) == pytest.approx(epsilon, rel=1e-6)


def test_where_an_epsilon_is_beyond_all_floats_it_is_infinite_and_delta_has_no_bare_error():
    assert gaussian_epsilon(1e160, 1e-5) == math.inf
    for mu, epsilon in ((1.0, 1e9), (1e5, 1e300), (1e-9, 1e9), (1.0, 1e308)):
        assert gaussian_delta(mu, epsilon) == 0


FUSED = platform.machine() not in ("x86_64", "AMD64")  # where compilers may join a product and a sum into one rounding


def scipys(function, low, high):
    return brentq(function, low, high, xtol=1e-300, rtol=4 * np.finfo(float).eps, maxiter=500)


def alike(ours: float, theirs: float) -> bool:
    return math.isclose(ours, theirs, rel_tol=2.0**-48) if FUSED else ours == theirs


@given(st.floats(-8, 8), st.floats(0.01, 30), st.integers(1, 5), st.floats(0.1, 9))
@example(2.5212691345271238e-281, 1.5, 1, 1.0)
def test_a_root_is_scipys_to_the_bit(shift, scale, power, width):
    def function(x):
        return math.atan(scale * (x - shift)) + 1e-3 * (x - shift) ** (2 * power - 1)

    low, high = shift - width, shift + 1.7 * width
    try:
        theirs = scipys(function, low, high)
    except RuntimeError:  # halvings from 1 to 1e-281 take more than 500 iterations
        refused(ps.PrivstatsError, "no root was found in 500 iterations", root, function, low, high)
    else:
        assert alike(root(function, low, high), theirs)


@given(st.floats(1e-6, 30), st.floats(1e-12, 0.1))
def test_epsilon_and_mu_are_those_of_scipys_roots(mu, delta):
    ours = ps.dp.gaussian_epsilon(mu, delta)
    back = ps.dp.gaussian_mu(ours, delta)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(gaussian, "root", scipys)
        assert alike(ours, ps.dp.gaussian_epsilon(mu, delta))
        assert alike(back, ps.dp.gaussian_mu(ours, delta))


def test_an_end_that_is_a_root_is_returned():
    assert (root(lambda x: x, 0.0, 3.0), root(lambda x: x - 3, 0.0, 3.0)) == (0.0, 3.0)


def test_a_step_function_is_halved_to_its_step():
    assert root(lambda x: -math.inf if x < math.pi else 1.0, 0.0, 9.0) == pytest.approx(math.pi, rel=1e-15)


@pytest.mark.parametrize("function", [lambda x: 1.0, lambda x: math.nan if 0 < x < 1 else x - 0.5])
def test_what_has_no_root_is_refused(function):
    refused(ps.PrivstatsError, "this is a bug", root, function, 0.0, 1.0)
