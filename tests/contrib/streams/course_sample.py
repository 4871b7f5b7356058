"""A stream for the tests of every kind of course."""

from tests.contrib.streams.streams import plan_of, stream_of
from tests.course.announced_samples import CourseSample
from tests.course.cases import plan_of as whole_plan

SAMPLE = CourseSample(
    course=stream_of(4, "tree"),
    whole=whole_plan(),
    changed={
        "plan": plan_of(epsilon=4.1),
        "epochs": 8,
        "mechanism": "increments",
        "deletions": True,
        "repeats": 1,
    },
    implied=frozenset({"allow_disclosing_leavers"}),
)
