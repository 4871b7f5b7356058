"""Runs the folders of ``engines.network`` as nodes of Flower; only this package needs the extra ``flower``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from privstats import optional_dependencies
from privstats.lazy_names import lazy_names

optional_dependencies.require("flwr", by="privstats.engines.flower")

if TYPE_CHECKING:
    from privstats.engines.flower.inside import join as join
    from privstats.engines.flower.inside import party_mod as party_mod
    from privstats.engines.flower.inside import run_course as run_course
    from privstats.engines.flower.inside import run_plan as run_plan
    from privstats.engines.network.study import simulated_study as simulated_study
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "privstats.engines.flower.inside": ["join", "party_mod", "run_course", "run_plan"],
            "privstats.engines.network.study": ["simulated_study"],
        },
    )
