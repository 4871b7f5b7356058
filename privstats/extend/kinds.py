"""Add a kind of schema: state its statistics, check its values, read its records and hold its sums.

A kind is a class over ``privstats.kinds.ClippedRows`` or ``privstats.kinds.Kind`` under the entry points
``privstats.kinds``. A map of records, a ``privstats.transforms.Transform``, needs no entry point. docs/how_to_add.md
has the steps under "A statistic in a package of your own".
"""

from typing import TYPE_CHECKING

from privstats.lazy_names import lazy_names

if TYPE_CHECKING:
    from privstats.moments.base import containers as containers
    from privstats.records.opened import Opened as Opened
    from privstats.records.reading import Labels as Labels
    from privstats.records.reading import Targets as Targets
    from privstats.records.reading import Unread as Unread
    from privstats.schema.base import Adjacency as Adjacency
    from privstats.schema.base import Statistic as Statistic
    from privstats.schema.checks import REQUIRED as REQUIRED
    from privstats.schema.checks import checked_vectors as checked_vectors
    from privstats.schema.checks import settle as settle
    from privstats.schema.public_values import Published as Published
    from privstats.schema.public_values import Values as Values
    from privstats.transforms.exact import Rows as Rows
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "privstats.moments.base": ["containers"],
            "privstats.records.opened": ["Opened"],
            "privstats.records.reading": ["Labels", "Targets", "Unread"],
            "privstats.schema.base": ["Adjacency", "Statistic"],
            "privstats.schema.checks": ["REQUIRED", "checked_vectors", "settle"],
            "privstats.schema.public_values": ["Published", "Values"],
            "privstats.transforms.exact": ["Rows"],
        },
    )
