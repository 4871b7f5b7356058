"""Reading: what a value and an id mean, columns by their static types, tables in any container, and files of records.

Three layers, each of which knows nothing of the next: ``meaning`` is pure, ``columns`` and ``person_ids`` read columns,
``tables``, ``frames`` and the readers of files give rows and columns. No record decides how another one is read.
"""

from typing import TYPE_CHECKING

from privstats.lazy_names import lazy_names

if TYPE_CHECKING:
    from privstats.intake.record_files import RecordFile as RecordFile
    from privstats.intake.record_files import Records as Records
else:
    __getattr__, __dir__ = lazy_names(__name__)
