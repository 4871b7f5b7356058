"""The auditor's own privacy curve is the exact one, and reads nothing but the plan's words."""

import mpmath
import pytest

import privstats as ps
from threat_models.audits import promise
from threat_models.audits.promise import delta_of, mu_of, promise_of


@pytest.mark.parametrize("epsilon", [0.001, 0.1, 1.0, 8.0, 100.0])
@pytest.mark.parametrize("delta", [1e-15, 1e-6, 0.1])
def test_mu_is_right_to_nine_digits(epsilon, delta):
    mu = mu_of(epsilon, delta)
    with mpmath.workdps(60):
        m, e = mpmath.mpf(mu), mpmath.mpf(epsilon)
        truth = mpmath.ncdf(-e / m + m / 2) - mpmath.exp(e) * mpmath.ncdf(-e / m - m / 2)
        assert abs(truth / mpmath.mpf(delta) - 1) < 1e-9
    assert delta_of(mu, epsilon) == pytest.approx(delta, rel=1e-9)


def test_no_function_of_the_library_is_asked(monkeypatch):
    """A curve that is wrong in the library leaves the auditor's where it is."""
    before = mu_of(2.0, 1e-7)
    for name in ("gaussian_mu", "gaussian_delta", "gaussian_epsilon", "joint_mu"):
        monkeypatch.setattr(ps.dp, name, None)
        assert not hasattr(promise, name)
    mu_of.cache_clear()
    assert mu_of(2.0, 1e-7) == before


def test_a_unit_is_worth_what_the_plan_declares():
    fields = {"model": "central", "adjacency": "add-remove", "epsilon": 1.0, "delta": 1e-6}
    assert promise_of(ps.Privacy(unit="record", **fields)).records == 1
    assert promise_of(ps.Privacy(unit="client", max_records_per_client=30, **fields)).records == 30
    clipped = ps.Privacy(unit="client", max_records_per_client=30, client_clip=4.0, **fields)
    assert promise_of(clipped).records == 4
