"""List heads, the statistics they need and the bounds of their parameters, without loading scikit-learn."""

from typing import TYPE_CHECKING

from privstats.lazy_names import lazy_names

if TYPE_CHECKING:
    from privstats.heads.registry.entries import HEADS as HEADS
    from privstats.heads.registry.entries import MODULE as MODULE
    from privstats.heads.registry.entries import NONE as NONE
    from privstats.heads.registry.entries import PRIORS as PRIORS
    from privstats.heads.registry.entries import SHRINKAGE as SHRINKAGE
    from privstats.heads.registry.entries import SUBSPACE as SUBSPACE
    from privstats.heads.registry.entries import SWITCH as SWITCH
    from privstats.heads.registry.entries import WEIGHT as WEIGHT
    from privstats.heads.registry.entries import Bounds as Bounds
    from privstats.heads.registry.entries import Constraints as Constraints
    from privstats.heads.registry.entries import Entry as Entry
    from privstats.heads.registry.entries import Number as Number
    from privstats.heads.registry.entries import Task as Task
    from privstats.heads.registry.entries import Text as Text
    from privstats.heads.registry.entries import Whole as Whole
    from privstats.heads.registry.entries import able as able
    from privstats.heads.registry.entries import check_parameters as check_parameters
    from privstats.heads.registry.entries import check_value as check_value
    from privstats.heads.registry.entries import head_class as head_class
    from privstats.heads.registry.entries import named as named
    from privstats.heads.registry.of_releases import suited as suited
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "privstats.heads.registry.entries": [
                "HEADS",
                "MODULE",
                "NONE",
                "PRIORS",
                "SHRINKAGE",
                "SUBSPACE",
                "SWITCH",
                "WEIGHT",
                "Bounds",
                "Constraints",
                "Entry",
                "Number",
                "Task",
                "Text",
                "Whole",
                "able",
                "check_parameters",
                "check_value",
                "head_class",
                "named",
            ],
            "privstats.heads.registry.of_releases": ["suited"],
        },
    )
