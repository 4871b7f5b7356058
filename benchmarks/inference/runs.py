"""Shared parts of benchmarks that run a course hundreds of times a cell: options, releases, tables of partial runs,
ends of shares."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Sequence
from typing import Any

import privstats as ps
from benchmarks.measuring import RESULTS, Row, Tables
from privstats import course as courses
from privstats import session
from privstats.moments import exact_moments
from privstats.randomness import Generator
from threat_models.bounds import clopper_pearson

__all__ = ["add_options", "add_row", "ends", "noisy_releases", "others_of", "stored", "table_of"]


def add_options(parser: argparse.ArgumentParser) -> None:
    """``--runs`` and ``--only``."""
    parser.add_argument("--runs", type=int, default=500, help="releases per cell")
    parser.add_argument("--only", default="", help="tables whose title has this word; the others stay as they are")


def add_row(parser: argparse.ArgumentParser) -> None:
    """``--row``."""
    parser.add_argument("--row", type=int, help="this row of each table alone, from 1; stored rows stay as they are")


def noisy_releases(course: Any, parts: Sequence[tuple[Any, ...]], rng: Generator) -> list[ps.Release | None]:
    """Return the noisy releases of a course over each party's records, without the masking protocol."""

    def release(node: courses.Round) -> ps.Release:
        plan = node.plan
        moments = [exact_moments(plan.schema, *each, published=plan.published) for each in parts]
        return session.aggregate_unmasked(plan, moments, rng)

    return courses.run(course, release)


def table_of(
    name: str, title: str, cells: Sequence[tuple[Any, ...]], measure: Callable[..., Row], row: int | None = None
) -> Tables:
    """Yield a table with a row for each cell; with ``--row`` that row is measured alone, between the stored ones.

    Args:
        name: of the benchmark whose stored rows stay.
        row: from 1; None measures all. A table with fewer cells is left out.
    """
    if row is None:
        yield title, [measure(*cell) for cell in cells]
    elif 1 <= row <= len(cells):
        rows = list(stored(name).get(title, []))
        if row > len(rows) + 1:
            raise SystemExit(f"--row must be at most {len(rows) + 1} of {title!r}, whose rows before it are stored")
        yield title, [*rows[: row - 1], measure(*cells[row - 1]), *rows[row:]]


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
