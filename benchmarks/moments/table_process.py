"""Measures one file of a raw table in a process of its own and prints what it took, as JSON.

    python -m benchmarks.moments.table_process ward.csv 30

Processor seconds of reading and measuring, and the most memory that the process ever held (VmHWM of Linux), before the
first record was read, with all that is imported for it, and at the end. ``getrusage`` would count what the process that
started this one had held, too.
"""

from __future__ import annotations

import argparse
import json
import re
import time
from pathlib import Path

import privstats as ps
from benchmarks.moments.declared import cells_of
from privstats.moments import RecordFile
from privstats.records.from_file import records_in

__all__ = ["taken"]


def taken(path: str, columns: int) -> dict[str, float]:
    """Seconds, and megabytes before and at most."""
    cells = cells_of(columns)
    schema = ps.ClassSchema(2, cells.width, "NAB", 1.0, transform=(cells,))
    file = RecordFile(path, "ill")
    _ = file.columns  # of a Parquet file with the import of its reader
    before, begun = _megabytes(), time.process_time()
    ps.measure(schema, *records_in(file, schema.reading, "leave out"), unreadable="leave out")
    seconds, most = time.process_time() - begun, _megabytes()
    return {"s": seconds, "MB before": before, "MB at most": most, "MB over": most - before}


def _megabytes() -> float:
    said = re.search(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text())
    return int(said[1]) * 1024 / 1e6 if said else 0.0


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("path")
    parser.add_argument("columns", type=int)
    chosen = parser.parse_args()
    print(json.dumps(taken(chosen.path, chosen.columns)))
