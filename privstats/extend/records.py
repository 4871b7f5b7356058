"""Read records as the library does, and add an engine of records: names, columns, values and gaps.

An engine is a ``RecordsEngine`` under the entry points ``privstats.records_engines``. docs/how_to_add.md has the steps
under "An engine of records in a package of your own".
"""

from typing import TYPE_CHECKING

from privstats.lazy_names import lazy_names

if TYPE_CHECKING:
    from privstats.course.records_engines import RecordsEngine as RecordsEngine
    from privstats.intake.columns import Readings as Readings
    from privstats.intake.columns import read as read
    from privstats.intake.declared.dates import DAY_MICROSECONDS as DAY_MICROSECONDS
    from privstats.intake.declared.dates import EPOCH as EPOCH
    from privstats.intake.declared.unlisted import Lost as Lost
    from privstats.intake.frames import in_memory as in_memory
    from privstats.intake.frames import named_target as named_target
    from privstats.intake.meaning import LOST as LOST
    from privstats.intake.meaning import meaning_of as meaning_of
    from privstats.intake.meaning import same as same
    from privstats.intake.table_sources import is_table as is_table
    from privstats.intake.table_sources import path_of as path_of
    from privstats.intake.tables import Codes as Codes
    from privstats.intake.tables import has_order as has_order
    from privstats.intake.tables import is_frame as is_frame
    from privstats.intake.tables import is_list as is_list
    from privstats.intake.tables import names_of_columns as names_of_columns
    from privstats.intake.tables import ordered_columns as ordered_columns
    from privstats.intake.tables import table_of as table_of
    from privstats.moments.persons import Clip as Clip
    from privstats.records.reading import Unreadable as Unreadable
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "privstats.course.records_engines": ["RecordsEngine"],
            "privstats.intake.columns": ["Readings", "read"],
            "privstats.intake.declared.dates": ["DAY_MICROSECONDS", "EPOCH"],
            "privstats.intake.declared.unlisted": ["Lost"],
            "privstats.intake.frames": ["in_memory", "named_target"],
            "privstats.intake.meaning": ["LOST", "meaning_of", "same"],
            "privstats.intake.table_sources": ["is_table", "path_of"],
            "privstats.intake.tables": [
                "Codes",
                "has_order",
                "is_frame",
                "is_list",
                "names_of_columns",
                "ordered_columns",
                "table_of",
            ],
            "privstats.moments.persons": ["Clip"],
            "privstats.records.reading": ["Unreadable"],
        },
    )
