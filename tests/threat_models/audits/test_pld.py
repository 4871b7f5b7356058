"""The budget of a plan agrees with an accountant that we did not write."""

import pytest

import privstats as ps
from tests import made

pld = pytest.importorskip("dp_accounting.pld.pld_privacy_accountant", reason="dp-accounting is not installed")
dp_event = pytest.importorskip("dp_accounting.dp_event")


@pytest.mark.ci
@pytest.mark.slow
@pytest.mark.parametrize("epsilon", [1.0, *(pytest.param(each, marks=pytest.mark.nightly) for each in (0.1, 10.0))])
@pytest.mark.parametrize("model", [pytest.param("central", marks=pytest.mark.nightly), "distributed"])
def test_the_joint_epsilon_is_that_of_googles_pld_accountant(epsilon, model):
    """Each statistic as its own Gaussian release, composed by dp-accounting: within 1e-3 of ours."""
    plan = made.plan(
        ps.ClassSchema(10, 64, "NABD", clip_norm=1.0, grid_bits=14),
        ps.Cohort(10, 8, 5_000),
        made.promise(model, epsilon=epsilon),
    )
    budget = plan.budget()
    accountant = pld.PLDAccountant(value_discretization_interval=1e-5 * max(1, epsilon))
    for row in budget.rows:
        accountant.compose(dp_event.GaussianDpEvent(row.sigma / row.sensitivity))
    assert accountant.get_epsilon(budget.delta) == pytest.approx(budget.epsilon, abs=1e-3)
