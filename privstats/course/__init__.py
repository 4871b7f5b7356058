"""Courses: plans that follow one another under one budget, each chosen from what was released before."""

from typing import TYPE_CHECKING

from privstats.lazy_names import lazy_names

if TYPE_CHECKING:
    from privstats.course.analysis import Analysis as Analysis
    from privstats.course.analysis import Margin as Margin
    from privstats.course.base import Course as Course
    from privstats.course.base import DisjointRounds as DisjointRounds
    from privstats.course.base import Releases as Releases
    from privstats.course.base import Round as Round
    from privstats.course.base import history as history
    from privstats.course.base import iter_rounds as iter_rounds
    from privstats.course.base import run as run
    from privstats.course.base import verify_next as verify_next
    from privstats.course.binned import Binned as Binned
    from privstats.course.centred import Centred as Centred
    from privstats.course.document import read as read
    from privstats.course.document import write as write
    from privstats.course.effect import Effect as Effect
    from privstats.course.hazard import Hazard as Hazard
    from privstats.course.looks import Looks as Looks
    from privstats.course.newton import Newton as Newton
    from privstats.course.planned import Single as Single
    from privstats.course.rounds import PartyRounds as PartyRounds
    from privstats.course.rounds import Rounds as Rounds
    from privstats.course.spending import authorize as authorize
    from privstats.course.spending import spend as spend
    from privstats.course.standardised import Standardised as Standardised
    from privstats.secagg.roster import run_of_round as run_of_round
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "privstats.course.analysis": ["Analysis", "Margin"],
            "privstats.course.base": [
                "Course",
                "DisjointRounds",
                "Releases",
                "Round",
                "history",
                "iter_rounds",
                "run",
                "verify_next",
            ],
            "privstats.course.binned": ["Binned"],
            "privstats.course.centred": ["Centred"],
            "privstats.course.document": ["read", "write"],
            "privstats.course.effect": ["Effect"],
            "privstats.course.hazard": ["Hazard"],
            "privstats.course.looks": ["Looks"],
            "privstats.course.newton": ["Newton"],
            "privstats.course.planned": ["Single"],
            "privstats.course.rounds": ["PartyRounds", "Rounds"],
            "privstats.course.spending": ["authorize", "spend"],
            "privstats.course.standardised": ["Standardised"],
            "privstats.secagg.roster": ["run_of_round"],
        },
    )
