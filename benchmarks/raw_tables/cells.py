"""Raw tables as they are: declared columns, no range, cut points found under the same promise.

    python -m benchmarks.raw_tables.cells --save --keep                  # go on with what is not there yet
    python -m benchmarks.raw_tables.cells --figures docs/images          # draw the saved results

What is told is what a code book says: which columns are numbers, the values of the others, and how many records there
are. "given cuts" are the quantiles of the whole table; "moved" is the same table with every number in 999 to 1,001; all
but "whole" miss a tenth of the cells.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression

import privstats as ps
from benchmarks.measuring import Tables, command
from benchmarks.raw_tables.known import Known
from benchmarks.raw_tables.running import DELTA, Way, Ways, options, tables_of
from benchmarks.raw_tables.sets import Split
from privstats import heads
from privstats.course.alone import single_party_plan

__all__ = ["WAYS", "Array", "behind_counts", "declared", "default", "found_by"]

Edges: TypeAlias = Mapping[str, tuple[float, ...]]
Array: TypeAlias = NDArray[np.float64]


def declared(known: Known, edges: Edges | None = None, **options: Any) -> ps.Cells:
    """The columns as a code book has them, with cut points where it has these."""
    columns = [
        ps.Numeric(name, None if edges is None else edges[name]) if category is None else _listed(name, category.values)
        for name, category in known.book.items()
    ]
    return ps.Cells(tuple(columns), **options)


def _listed(name: str, values: Sequence[str | float]) -> ps.Categories | ps.Numeric:
    """A category of texts or integers; of other numbers a column with a cut at each listed one but the first."""
    if any(isinstance(value, str) for value in values):
        return ps.Categories(name, tuple(map(str, values)))
    numbers = sorted(map(float, values))
    if all(number.is_integer() for number in numbers):
        return ps.Categories(name, tuple(map(int, numbers)))
    return ps.Numeric(name, tuple(numbers[1:]))


def fitted(head: Any, cells: ps.Cells, split: Split, epsilon: float, records: int) -> Array:
    """Probabilities of a head that one party fits on its table as it is."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that a count tells little here, or that records are few
        head.fit_private(
            split.gaps,
            split.y,
            **_given(head, cells),
            epsilon=epsilon,
            delta=DELTA,
            adjacency="add-remove",
            classes=(0, 1),
            expected_records=records,
            ledger="uncharged",
        )
        return np.asarray(head.predict_proba(split.gaps_test)[:, 1])


def _given(head: Any, cells: ps.Cells) -> Mapping[str, Any]:
    """The columns where nothing else is chosen, else the map; LDA's sums are centred in both."""
    if cells == ps.Cells(cells.columns):
        return {"columns": cells.columns}
    return {"transform": (cells,), "clip_norm": 1.0, "centred": isinstance(head, heads.LDA)}


def found_by(head: Callable[[], Any], *, ramp: bool) -> Way:
    """The recipe as it comes, of this head, with the ramp or without."""

    def way(known: Known, splits: Sequence[Split], epsilon: float) -> list[Array]:
        cells = declared(known, ramp=ramp)
        return [fitted(head(), cells, split, epsilon, len(split.y)) for split in splits]

    return way


def whole(known: Known, splits: Sequence[Split], epsilon: float) -> list[Array]:
    """No cell is missing but those that always were."""
    same = [replace(split, gaps=split.whole, gaps_test=split.whole_test) for split in splits]
    return default(known, same, epsilon)


def default(known: Known, splits: Sequence[Split], epsilon: float) -> list[Array]:
    """The recipe as it comes."""
    return [fitted(heads.RefinedSoftmax(), declared(known), split, epsilon, records=len(split.y)) for split in splits]


def given_cuts(known: Known, splits: Sequence[Split], epsilon: float) -> list[Array]:
    """The quantiles of the whole table stand in the plan, and nothing is counted."""
    cells = declared(known, known.edges)
    return [fitted(heads.RefinedSoftmax(), cells, split, epsilon, len(split.y)) for split in splits]


def moved(known: Known, splits: Sequence[Split], epsilon: float) -> list[Array]:
    """Every number lies between 999 and 1,001, so that magnitudes tell nothing."""
    same = [replace(split, gaps=known.moved(split.gaps), gaps_test=known.moved(split.gaps_test)) for split in splits]
    return default(known, same, epsilon)


def stated_tenfold(known: Known, splits: Sequence[Split], epsilon: float) -> list[Array]:
    """``expected_records`` is ten times the number of records."""
    cells = declared(known)
    return [fitted(heads.RefinedSoftmax(), cells, split, epsilon, 10 * len(split.y)) for split in splits]


def half_counted(known: Known, splits: Sequence[Split], epsilon: float) -> list[Array]:
    """Counts of cut points get half of mu^2, and not a fifth."""
    return [behind_counts(declared(known), split, epsilon, share=0.5) for split in splits]


def behind_counts(
    cells: ps.Cells,
    split: Split,
    epsilon: float,
    share: float | None = None,
    rest: Callable[[Any], Any] = lambda course: course,
) -> Array:
    """Probabilities of the recipe with another share for its counts, or with other rounds."""
    schema = ps.ClassSchema(2, statistics="NAB", clip_norm=1.0, transform=(cells,))
    privacy = ps.Privacy(model="central", unit="record", adjacency="add-remove", epsilon=epsilon, delta=DELTA)
    plan = single_party_plan(schema, privacy)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # as where nothing is chosen
        course: Any
        if cells.open:
            course = ps.Binned.within(plan, "rounds", expected_records=len(split.y), share=share)
            course = replace(course, then=rest(course.then))
        else:
            course = rest(ps.Rounds.within(plan, expected_records=len(split.y)))
        releases = ps.private_releases(course, split.gaps, split.y, ledger="uncharged")
        head = heads.RefinedSoftmax().fit_releases(releases)
        return np.asarray(head.predict_proba(split.gaps_test)[:, 1])


def without_noise(known: Known, splits: Sequence[Split], _: float) -> list[Array]:
    """A logistic regression on the very rows, with given cuts and without privacy: what is in them to be found."""
    cells = declared(known, known.edges)
    found = []
    for split in splits:
        rows, tested = (cells.apply(cells.codes(frame)) for frame in (split.gaps, split.gaps_test))
        model = LogisticRegression(C=30, max_iter=2_000).fit(rows, split.y)
        found.append(model.predict_proba(tested)[:, 1])
    return found


WAYS = Ways(
    private={
        "signs": found_by(heads.RefinedSoftmax, ramp=False),
        "signs and ramp": found_by(heads.RefinedSoftmax, ramp=True),
        "whole": whole,
        "signs, LDA": found_by(heads.LDA, ramp=False),
        "signs and ramp, LDA": found_by(heads.LDA, ramp=True),
        "given cuts": given_cuts,
        "moved": moved,
        "ten times the records": stated_tenfold,
        "half for the counts": half_counted,
    },
    exact={"the same rows, no privacy": without_noise},
)
"""By name; all but "whole" miss a tenth of the cells, and all behind "LDA" are the recipe as it comes."""


def _options(parser: argparse.ArgumentParser) -> None:
    options(parser)
    parser.add_argument("--figures", type=Path, help="draw the saved results into this folder, and stop")


def tables(chosen: argparse.Namespace) -> Tables:
    """As ``running`` has them, or the picture."""
    if chosen.figures is not None:
        from benchmarks.raw_tables.story import draw

        draw(chosen.figures)
        return
    yield from tables_of(WAYS, "raw_tables.cells", chosen)


if __name__ == "__main__":
    command("raw_tables.cells", __doc__, tables, _options)
