"""The section for a reviewer: every factor of the publication, in its order, with the plan's own numbers."""

import pytest

import privstats as ps
from privstats.workflows.report import Statement, page_of
from privstats.workflows.report.review import review_table
from tests import made
from tests.course.cases import rounds
from tests.workflows.report.conftest import PLAN
from tests.workflows.report.test_explanations import flat

FACTORS = [
    *("epsilon", "unit of privacy", "algorithms and their proof", "accuracy", "bias", "trust model"),
    *("implementation", "security and access", "data collection"),
]


@pytest.mark.parametrize("plan", [PLAN, made.plan(PLAN.schema, PLAN.cohort)])
def test_factors_stand_from_the_top_of_the_pyramid_to_its_base(plan):
    rows = flat(review_table(plan))
    assert [row[0] for row in rows] == FACTORS
    assert all(cell for row in rows for cell in row)


def test_the_numbers_are_the_plans(changed):
    told = {row[0]: row[1] for row in flat(review_table(PLAN))}
    assert f"epsilon {PLAN.budget().epsilon:.4g} at delta" in told["epsilon"]
    assert "A person with several records has less" in told["unit of privacy"]
    assert all(f"{row.statistic} {row.sigma:.3g}" in told["accuracy"] for row in PLAN.noise.rows)
    whole = made.promise(unit="client", max_records_per_client=9)
    told = {row[0]: row[1] for row in flat(review_table(changed(privacy=whole)))}
    assert told["unit of privacy"] == "One party with all its records, added or taken away."


def test_a_page_without_a_promise_says_none():
    told = {row[0]: row[1] for row in flat(review_table(made.plan(PLAN.schema, PLAN.cohort)))}
    assert (told["epsilon"][:4], told["unit of privacy"]) == ("None", "None.")


def test_a_course_is_reviewed_as_a_whole():
    course = rounds()
    page = page_of(Statement(course.first, course=course))
    assert f"Of all releases of the course together: mu {course.mu:.4g}" in page
    assert "NIST SP 800-226" in page
    assert isinstance(course, ps.Rounds)
