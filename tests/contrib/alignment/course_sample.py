"""An alignment for the tests of every kind of course."""

import privstats as ps
from privstats.contrib.alignment import Alignment
from tests.contrib.alignment.cohort import PROMISE, PUBLIC, first
from tests.course.announced_samples import CourseSample

SAMPLE = CourseSample(
    course=Alignment(first()),
    whole=first(PUBLIC, PROMISE),
    changed={"first": first(cohort=ps.Cohort(14, 12, 3_000)), "step": "published"},
    private=Alignment(first(PUBLIC, PROMISE)),
    more=[Alignment(first(PUBLIC, PROMISE))],
)
