"""Masked SLOT-Align: one sum of client Gaussians, further sums to their barycentre, and the transport map."""

from typing import TYPE_CHECKING

from privstats.lazy_names import lazy_names

if TYPE_CHECKING:
    from privstats.contrib.alignment.course import Alignment as Alignment
    from privstats.contrib.alignment.course import Reference as Reference
    from privstats.contrib.alignment.course import Rule as Rule
    from privstats.contrib.alignment.course import barycentre as barycentre
    from privstats.contrib.alignment.course import distance as distance
    from privstats.contrib.alignment.course import next_reference as next_reference
    from privstats.contrib.alignment.course import transport as transport
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "privstats.contrib.alignment.course": [
                "Alignment",
                "Reference",
                "Rule",
                "barycentre",
                "distance",
                "next_reference",
                "transport",
            ]
        },
    )
