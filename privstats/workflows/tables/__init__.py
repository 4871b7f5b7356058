"""Read a table of estimates from releases, by the name of its reader, as ``privstats table`` prints it.

A reader is a row, :class:`TableReader`: the statistics that it reads, its options, and why it refuses a plan. Other
packages announce rows under the entry points ``privstats.readers``.
"""

from typing import TYPE_CHECKING

from privstats.lazy_names import lazy_names

if TYPE_CHECKING:
    from privstats.workflows.tables.options import Options as Options
    from privstats.workflows.tables.reader import TableReader as TableReader
    from privstats.workflows.tables.reading import read as read
    from privstats.workflows.tables.result import TableResult as TableResult
    from privstats.workflows.tables.rows import READERS as READERS
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "privstats.workflows.tables.options": ["Options"],
            "privstats.workflows.tables.reader": ["TableReader"],
            "privstats.workflows.tables.reading": ["read"],
            "privstats.workflows.tables.result": ["TableResult"],
            "privstats.workflows.tables.rows": ["READERS"],
        },
    )
