"""Every bug of the table, and the same audits on the same plans without one. For the nightly run."""

from __future__ import annotations

import pytest

from tests.mutation.catalogue import MUTANTS
from tests.mutation.measuring import AUDITS, audits_under, failures_under, objections

pytestmark = pytest.mark.nightly


@pytest.mark.parametrize("name", MUTANTS)
def test_no_bug_is_unseen(name):
    assert failures_under(name)
    wanted = MUTANTS[name].audits
    assert all(report.violated for report in audits_under(name, wanted).values())


@pytest.mark.parametrize("plan", sorted({mutant.plan for mutant in MUTANTS.values()}))
def test_without_a_bug_no_audit_objects_and_the_unit_tests_pass(plan):
    assert not any(report.violated for report in objections(plan, tuple(AUDITS)).values())
