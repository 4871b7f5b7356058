"""Roots are scipy's to the last bit, so that no noise level and no digest moved when its import went."""

from __future__ import annotations

import math
import platform

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from scipy.optimize import brentq

from privstats import dp
from privstats.dp import gaussian
from privstats.dp.brent import root
from privstats.errors import PrivstatsError

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
    except RuntimeError:  # halvings from 1 to 1e-281 take more than 500 steps
        with pytest.raises(PrivstatsError, match="no root was found in 500 steps"):
            root(function, low, high)
    else:
        assert alike(root(function, low, high), theirs)


@given(st.floats(1e-6, 30), st.floats(1e-12, 0.1))
def test_epsilon_and_mu_are_those_of_scipys_roots(mu, delta):
    ours = dp.gaussian_epsilon(mu, delta)
    back = dp.gaussian_mu(ours, delta)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(gaussian, "root", scipys)
        assert alike(ours, dp.gaussian_epsilon(mu, delta))
        assert alike(back, dp.gaussian_mu(ours, delta))


def test_an_end_that_is_a_root_is_returned():
    assert root(lambda x: x, 0.0, 3.0) == 0.0
    assert root(lambda x: x - 3, 0.0, 3.0) == 3.0


def test_a_step_function_is_halved_to_its_step():
    assert root(lambda x: -math.inf if x < math.pi else 1.0, 0.0, 9.0) == pytest.approx(math.pi, rel=1e-15)


@pytest.mark.parametrize("function", [lambda x: 1.0, lambda x: math.nan if 0 < x < 1 else x - 0.5])
def test_what_has_no_root_is_refused(function):
    with pytest.raises(PrivstatsError, match="this is a bug"):
        root(function, 0.0, 1.0)
