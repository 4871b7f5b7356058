"""Add sentences, pages, tasks, sources and proofs to plans.

The rows by their entry points: ``PlanNote`` (``privstats.notes``), ``FurtherPage`` (``privstats.pages``),
``FurtherFindings`` (``privstats.findings``), ``PlanTask`` (``privstats.tasks``), ``StudySource``
(``privstats.sources``) and ``Prover`` (``privstats.provers``). docs/how_to_add.md has the steps under "A row of a door"
and "A source or a task of plan init".
"""

from typing import TYPE_CHECKING

from privstats.lazy_names import lazy_names

if TYPE_CHECKING:
    from privstats.cli.parts.plan_tasks import Declared as Declared
    from privstats.cli.parts.plan_tasks import PlanTask as PlanTask
    from privstats.cli.parts.plan_tasks import Question as Question
    from privstats.encoding.ring import Group as Group
    from privstats.encoding.ring import Lanes as Lanes
    from privstats.plan.cohort import Headroom as Headroom
    from privstats.plan.document import read_text as read_text
    from privstats.plan.provers import Prover as Prover
    from privstats.plan.validity import Claim as Claim
    from privstats.review.plan_notes import PlanNote as PlanNote
    from privstats.secagg.protocols import PROTOCOLS as PROTOCOLS
    from privstats.workflows.report.further import AdjacentFile as AdjacentFile
    from privstats.workflows.report.further import FurtherFindings as FurtherFindings
    from privstats.workflows.report.further import FurtherPage as FurtherPage
    from privstats.workflows.sources import Study as Study
    from privstats.workflows.sources import StudySource as StudySource
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "privstats.cli.parts.plan_tasks": ["Declared", "PlanTask", "Question"],
            "privstats.encoding.ring": ["Group", "Lanes"],
            "privstats.plan.cohort": ["Headroom"],
            "privstats.plan.document": ["read_text"],
            "privstats.plan.provers": ["Prover"],
            "privstats.plan.validity": ["Claim"],
            "privstats.review.plan_notes": ["PlanNote"],
            "privstats.secagg.protocols": ["PROTOCOLS"],
            "privstats.workflows.report.further": ["AdjacentFile", "FurtherFindings", "FurtherPage"],
            "privstats.workflows.sources": ["Study", "StudySource"],
        },
    )
