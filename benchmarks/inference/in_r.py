"""Run R on tables, to compare our numbers with its packages' on the same records."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

__all__ = ["in_r", "r_version"]

_VERSION = 'cat(if (requireNamespace("{0}", quietly = TRUE)) as.character(packageVersion("{0}")) else "")'
_PRINT = 'say <- function(name, value) cat(sprintf("%s\\t%.17g\\n", name, value), sep = "")\n'


@cache
def r_version(package: str) -> str:
    """Return the version of an installed R package; empty where R or the package is not installed."""
    return "" if shutil.which("Rscript") is None else _ran("-e", _VERSION.format(package)).strip()


def in_r(script: str, **tables: Mapping[str, Any]) -> dict[str, float]:
    """Return the numbers that a script reports by ``say(name, value)``.

    Args:
        script: R code, which finds each table as a data frame of its name. Both arguments of ``say`` may be vectors.
        tables: columns by name, each table of equally many rows.
    """
    from privstats.printable import csv_text

    with TemporaryDirectory() as folder:
        lines = []
        for name, table in tables.items():
            rows = zip(*(map(_cell, column) for column in table.values()), strict=True)
            Path(folder, f"{name}.csv").write_text(csv_text([[*table], *rows]))
            lines.append(f'{name} <- read.csv("{folder}/{name}.csv")\n')
        Path(folder, "script.R").write_text("".join([_PRINT, *lines, script]))
        printed = _ran(f"{folder}/script.R")
    pairs = (line.split("\t") for line in printed.splitlines() if "\t" in line)
    return {name: float(value) for name, value in pairs}


def _cell(value: Any) -> object:
    if isinstance(value, str):
        return value
    return "NA" if value != value else repr(float(value))


def _ran(*words: str) -> str:
    done = subprocess.run(["Rscript", "--vanilla", *words], capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"R ended with exit code {done.returncode}: {done.stderr.strip()[-500:]}")
    return done.stdout
