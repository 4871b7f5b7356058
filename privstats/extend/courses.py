"""Add a course: state its row, its rounds, and what its promise costs.

A course is a ``CourseKind`` under the entry points ``privstats.courses``. docs/how_to_add.md has the steps under "A
course in a package of your own".
"""

from typing import TYPE_CHECKING

from privstats.lazy_names import lazy_names

if TYPE_CHECKING:
    from privstats.course.kinds import Changing as Changing
    from privstats.course.kinds import CourseKind as CourseKind
    from privstats.course.phases import Past as Past
    from privstats.course.phases import Phase as Phase
    from privstats.course.phases import Phases as Phases
    from privstats.course.planned import Phased as Phased
    from privstats.course.planned import require_plan as require_plan
    from privstats.course.promise import Promise as Promise
    from privstats.course.promise import Total as Total
    from privstats.course.promise import part_of as part_of
    from privstats.course.promise import promised as promised
    from privstats.course.promise import total_of as total_of
    from privstats.course.terms import Calibrated as Calibrated
    from privstats.course.terms import ExpectedRecords as ExpectedRecords
    from privstats.course.terms import Retries as Retries
    from privstats.course.terms import Rounds as Rounds
    from privstats.course.terms import Share as Share
    from privstats.workflows.simulate import Dropouts as Dropouts
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "privstats.course.kinds": ["Changing", "CourseKind"],
            "privstats.course.phases": ["Past", "Phase", "Phases"],
            "privstats.course.planned": ["Phased", "require_plan"],
            "privstats.course.promise": ["Promise", "Total", "part_of", "promised", "total_of"],
            "privstats.course.terms": ["Calibrated", "ExpectedRecords", "Retries", "Rounds", "Share"],
            "privstats.workflows.simulate": ["Dropouts"],
        },
    )
