"""The audits of the table on its plans without any bug: what they say of one means nothing if they say it of none."""

import pytest

from tests.mutation.catalogue import MUTANTS
from tests.mutation.measuring import AUDITS, objections

pytestmark = pytest.mark.nightly


@pytest.mark.parametrize("plan", sorted({mutant.plan for mutant in MUTANTS.values() if mutant.plan}))
def test_without_a_bug_no_audit_objects(plan):
    assert not any(report.violated for report in objections(plan, tuple(AUDITS)).values())
