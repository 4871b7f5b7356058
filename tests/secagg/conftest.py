"""The cohort that most tests of this room play with."""

import pytest

from tests.secagg.interactive.cohorts import Cohort, cohort_of


@pytest.fixture
def cohort() -> Cohort:
    """Six clients, of whom four must survive and one may collude."""
    return cohort_of()
