"""Readers of files: CSV, Parquet and Arrow files of records, declared columns, and the records that a split kept out.

Nothing here decides what a record adds: a reader hands ``moments`` rows, and the reasons why others are unreadable.
"""

from typing import TYPE_CHECKING

from privstats.lazy_names import lazy_names

if TYPE_CHECKING:
    from privstats.intake.record_files import RecordFile as RecordFile
    from privstats.intake.record_files import Records as Records
else:
    __getattr__, __dir__ = lazy_names(__name__)
