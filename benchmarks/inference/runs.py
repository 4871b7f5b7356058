"""Shared parts of benchmarks that run a course hundreds of times a cell: options, tables of partial runs, ends of
shares."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from typing import Any

from benchmarks.measuring import RESULTS
from threat_models.bounds import clopper_pearson

__all__ = ["add_options", "ends", "others_of", "stored"]


def add_options(parser: argparse.ArgumentParser) -> None:
    """``--runs`` and ``--only``."""
    parser.add_argument("--runs", type=int, default=500, help="releases per cell")
    parser.add_argument("--only", default="", help="tables whose title has this word; the others stay as they are")


def others_of(name: str) -> Callable[[argparse.Namespace], dict[str, Any]]:
    """The committed tables of a benchmark that a run with ``--only`` or ``--more`` leaves as they are."""

    def others(options: argparse.Namespace) -> dict[str, Any]:
        some = options.only or getattr(options, "more", False) or getattr(options, "row", None)
        return stored(name) if some else {}

    return others


def stored(name: str) -> dict[str, Any]:
    """Return the committed tables of a benchmark by title; none where it has no results."""
    path = RESULTS / f"{name}.json"
    saved = json.loads(path.read_text()) if path.exists() else {}
    return {title: rows for title, rows in saved.items() if title != "machine"}


def ends(hits: float, runs: int) -> dict[str, float]:
    """The 95 % interval of a share."""
    low, high = clopper_pearson(hits, runs, 0.95)
    return {"low end": low, "high end": high}
