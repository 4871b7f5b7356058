"""Finished rows of a leakage report in a file, from which a stopped run continues.

The file format is the library's, the rows are this package's; ``LeakageReport.to_json`` writes the report itself.
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
