"""Read values, ids, columns, tables in any container, and files of records.

No record decides how another one is read.
"""

from typing import TYPE_CHECKING

from privstats.lazy_names import lazy_names

if TYPE_CHECKING:
    from privstats.intake.record_files import RecordFile as RecordFile
    from privstats.intake.record_files import Records as Records
else:
    __getattr__, __dir__ = lazy_names(__name__, {"privstats.intake.record_files": ["RecordFile", "Records"]})
