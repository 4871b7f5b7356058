"""The row of the engine of records in parts: files of tables, and collections of Dask, Spark and Ray."""

import os
from typing import Any

from privstats.extend.records import RecordsEngine


def _holds(X: Any) -> bool:
    from privstats.extend.records import is_table, path_of
    from privstats.intake.frames import engine_of
    from privstats.moments import RecordFile

    if isinstance(X, str | os.PathLike):
        return is_table(path_of(X))
    if isinstance(X, RecordFile):
        return X.is_table
    return bool(engine_of(X[0] if isinstance(X, list) and X else X))


PARTS = RecordsEngine("parts", _holds, "privstats.contrib.parts.door:measure")
