"""A course of synthetic rows for the tests of every kind of course."""

import privstats as ps
from privstats.contrib.synthetic.columns import schema_of
from privstats.contrib.synthetic.course import Synthetic
from tests.course.announced_samples import CourseSample
from tests.course.cases import promise


def counts_plan(epsilon: float = 1.0, columns: str = "abcd") -> ps.Plan:
    schema = schema_of([ps.Truth(name) for name in columns])
    return ps.Plan(schema=schema, cohort=ps.Cohort(2, 2, 2_000), privacy=promise(epsilon=epsilon))


SAMPLE = CourseSample(
    course=Synthetic.within(counts_plan()),
    whole=counts_plan(),
    changed={
        "plan": counts_plan(1.1),
        "share": 0.25,
        "screen": 0.25,
        "levels": 8,
        "columns": tuple(ps.Truth(name, gaps=(9,)) for name in "abcd"),
    },
    more=[Synthetic.within(counts_plan(columns="abc"))],
)
