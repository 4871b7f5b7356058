"""Finished rows of a leakage report in a file, so that a stopped run goes on where it was.

Not a report: ``LeakageReport.to_json`` is. The file is the library's, its rows are this package's.
"""

from __future__ import annotations

import os

from privstats.workflows.checkpoint import ResultCache
from threat_models.report import Row

__all__ = ["Results"]


class Results(ResultCache[Row]):
    """Rows by key; in memory only without a path.

    Raises:
        DataError: the file cannot be read or written.
    """

    def __init__(self, path: str | os.PathLike[str] | None) -> None:
        super().__init__(Row, path)
