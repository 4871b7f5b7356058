"""State the options of a row, or open a door of your own: a read-only table that other packages extend.

docs/how_to_add.md lists all doors with their entry points under "A row of a door".
"""

from typing import TYPE_CHECKING

from privstats.lazy_names import lazy_names

if TYPE_CHECKING:
    from privstats.doors import Door as Door
    from privstats.doors import is_row as is_row
    from privstats.row_fields import RowError as RowError
    from privstats.row_options import Option as Option
    from privstats.row_options import RowOptions as RowOptions
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "privstats.doors": ["Door", "is_row"],
            "privstats.row_fields": ["RowError"],
            "privstats.row_options": ["Option", "RowOptions"],
        },
    )
