"""Plans that the tests of the audits share."""

import privstats as ps
from tests import made
from threat_models.audits.target import Target

DELTA = 1e-5
DIGITS = ps.ClassSchema(10, 64, "NAB", 1.0)
SMALL = ps.ClassSchema(3, 12, "NAB", 1.0)


def plan(schema=SMALL, min_count=0, cohort=None, **change):
    privacy = made.promise(**{"delta": DELTA, **change})
    return made.plan(schema, cohort or ps.Cohort(6, 5, 2000, colluders=2), privacy, min_count=min_count)


def target(schema=SMALL, **change):
    return Target(plan(schema, **change))
