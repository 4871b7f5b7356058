"""Rehearse a study on tables that one may look at; no result is a release."""

from typing import TYPE_CHECKING

from privstats.lazy_names import lazy_names

if TYPE_CHECKING:
    from privstats.workflows.rehearsal.assumed import RehearsalOptions as RehearsalOptions
    from privstats.workflows.rehearsal.page import STAMP as STAMP
    from privstats.workflows.rehearsal.page import UNSURE as UNSURE
    from privstats.workflows.rehearsal.page import Bar as Bar
    from privstats.workflows.rehearsal.page import assumptions as assumptions
    from privstats.workflows.rehearsal.page import bars as bars
    from privstats.workflows.rehearsal.page import before_a_score as before_a_score
    from privstats.workflows.rehearsal.page import costs as costs
    from privstats.workflows.rehearsal.page import facts as facts
    from privstats.workflows.rehearsal.page import next_commands as next_commands
    from privstats.workflows.rehearsal.page import oddities as oddities
    from privstats.workflows.rehearsal.page import promised as promised
    from privstats.workflows.rehearsal.page import scored_on as scored_on
    from privstats.workflows.rehearsal.page import worths as worths
    from privstats.workflows.rehearsal.page import write_page as write_page
    from privstats.workflows.rehearsal.run import Opened as Opened
    from privstats.workflows.rehearsal.run import Rehearsal as Rehearsal
    from privstats.workflows.rehearsal.run import opened as opened
    from privstats.workflows.rehearsal.run import rehearse as rehearse
    from privstats.workflows.rehearsal.run import rehearsed as rehearsed
    from privstats.workflows.rehearsal.run import with_progress as with_progress
    from privstats.workflows.rehearsal.sources import unusual as unusual
    from privstats.workflows.rehearsal.sources import written_as as written_as
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "privstats.workflows.rehearsal.assumed": ["RehearsalOptions"],
            "privstats.workflows.rehearsal.page": [
                "STAMP",
                "UNSURE",
                "Bar",
                "assumptions",
                "bars",
                "before_a_score",
                "costs",
                "facts",
                "next_commands",
                "oddities",
                "promised",
                "scored_on",
                "worths",
                "write_page",
            ],
            "privstats.workflows.rehearsal.run": [
                "Opened",
                "Rehearsal",
                "opened",
                "rehearse",
                "rehearsed",
                "with_progress",
            ],
            "privstats.workflows.rehearsal.sources": ["unusual", "written_as"],
        },
    )
