"""Measure records that outgrow one machine in parts, on one's own engine; or sum a leader's settled parts on a cluster.

``measure`` is the door for a party's records: Dask, DuckDB, Arrow and Parquet go through it. ``Partitioned`` is what
any other engine calls, with ``in_several_parts`` under a promise per person. ``sql`` lets a data base count the
records. ``part_sums`` is a leader's.
"""

from typing import TYPE_CHECKING

from privstats.lazy_names import lazy_names

if TYPE_CHECKING:
    from privstats.contrib.parts.door import measure as measure
    from privstats.contrib.parts.partitioned import Partitioned as Partitioned
    from privstats.contrib.parts.partitioned import PartSum as PartSum
    from privstats.contrib.parts.partitioned import in_several_parts as in_several_parts
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "privstats.contrib.parts.door": ["measure"],
            "privstats.contrib.parts.partitioned": ["Partitioned", "PartSum", "in_several_parts"],
        },
    )
