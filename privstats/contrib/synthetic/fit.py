"""Fit the maximum-entropy model to a course's releases."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privstats.contrib.synthetic.cells import lump, occupied
from privstats.contrib.synthetic.course import Counted, Pairs, Synthetic, counted, measured
from privstats.contrib.synthetic.distances import Distance, Moved, estimate
from privstats.contrib.synthetic.junction_tree import Array, JunctionTree
from privstats.contrib.synthetic.model import Codes, Model, fitted, margins, systematic
from privstats.contrib.synthetic.projection import projected
from privstats.contrib.synthetic.proportional import Beliefs
from privstats.course import Releases
from privstats.errors import PlanError, ReleaseError
from privstats.schema import Bins, Variable

_REFITS, _STEP = 2, 0.25
"""Fits to counts with further noise, and its standard deviations. A larger step would pass for more than noise."""


@dataclass(frozen=True, eq=False)
class Fit:
    """A model fitted to a course's releases.

    Attributes:
        fine: variables with the first session's cells.
        variables: with the model's cells.
        model: over the model's cells.
        inside: per variable, the weight of each fine cell.
        pairs: of the model.
        sessions: released tables.
    """

    fine: tuple[Variable, ...]
    variables: tuple[Variable, ...]
    model: Model
    inside: tuple[Array, ...]
    pairs: Pairs
    sessions: tuple[Counted, ...]

    def fine_cells(self, codes: Codes, rng: np.random.Generator) -> Codes:
        """Draw each row's fine cells given its model cells."""
        out = np.empty_like(codes)
        for axis in range(len(self.fine)):
            out[:, axis] = systematic(codes[:, axis], self._weights(axis), rng)
        return out

    def shares(self, variables: Sequence[Variable]) -> Array:
        """Return the expected shares of one table of the rows, in the cells of its ``variables``."""
        places = self._places(variables)
        out = projected(Beliefs(self.model.tree, self.model.beliefs), places)
        for axis, (place, variable) in enumerate(zip(places, variables, strict=True)):
            weights = self._weights(place)
            known = weights / np.maximum(weights.sum(axis=1, keepdims=True), np.finfo(np.float64).tiny)
            cells = np.zeros((len(known), len(variable.cells)))
            np.add.at(cells.T, lump(self.fine[place], variable), known.T)
            out = np.moveaxis(np.tensordot(out, cells, (axis, 0)), -1, axis)
        return np.asarray(out)

    def again(self, sessions: Sequence[Counted]) -> Fit:
        """Return the fit to other counts of the same tables, in the same cells and pairs."""
        with warnings.catch_warnings(action="ignore"):
            return _fit(self.fine, self.variables, self.pairs, sessions, self.model)

    def distances(self, fine: Codes) -> Iterator[Distance]:
        """Return the distance of rows, in fine cells, from each released table."""
        moved = [self._moved(np.random.default_rng(seed)) for seed in range(_REFITS)]
        for session in self.sessions:
            for table, counts in session.tables.items():
                variables = tuple(map(session.schema.variable, table))
                expected = self.shares(variables)
                shifts = [
                    Moved(signs[session.session, table], (fit.shares(variables) - expected) / _STEP)
                    for fit, signs in moved
                ]
                yield self._distance(fine, variables, session, counts, shifts)

    def _distance(
        self, fine: Codes, variables: tuple[Variable, ...], session: Counted, counts: Array, moved: Sequence[Moved]
    ) -> Distance:
        pairs = list(zip(self._places(variables), variables, strict=True))
        cells = [lump(self.fine[place], variable)[fine[:, place]] for place, variable in pairs]
        flat = np.ravel_multi_index(cells, counts.shape)
        rows = (np.bincount(flat, minlength=counts.size) / len(fine)).reshape(counts.shape)
        result = estimate(rows, counts, session.sigma, self.model.records, moved, _empty_ends(variables, rows))
        records = max(float(counts.sum()), 1.0)
        merged = [place for place, variable in pairs if len(variable.cells) < len(self.fine[place].cells)]
        few = dict(pairs)
        return Distance(
            columns=tuple(variable.name for variable in variables),
            session=session.session,
            value=min(float(np.abs(rows - counts / records).sum() / 2), 1.0),
            exact=result.exact,
            low=result.low,
            high=result.high,
            cells=tuple(variable.cells for variable in variables),
            released=counts / records,
            rows=rows,
            noise=session.sigma / records,
            merged=tuple((few[at].name, len(few[at].cells), len(self.fine[at].cells)) for at in merged),
            merging=min(sum(self._merging(at, few[at]) for at in merged), 1.0),
        )

    def _moved(self, rng: np.random.Generator) -> tuple[Fit, Mapping[Any, Array]]:
        signs = {
            (each.session, table): rng.choice([-1.0, 1.0], counts.shape)
            for each in self.sessions
            for table, counts in each.tables.items()
        }
        sessions = [
            replace(
                each,
                tables={
                    table: counts + _STEP * each.sigma * signs[each.session, table]
                    for table, counts in each.tables.items()
                },
            )
            for each in self.sessions
        ]
        return self.again(sessions), signs

    def _merging(self, place: int, variable: Variable) -> float:
        """Return what merging one column can add to a distance: chance that two rows of a cell differ inside it."""
        # Let R(x) be the records' shares, and s(x) the rows' inside their model cell. In declared cells records and
        # rows then differ by at most 1 - sum R(x) s(x) more, whatever other column follows from x. In cells that merge
        # those of the model, fine cells of the rows follow from other columns, too.
        if variable != self.variables[place]:
            return 1.0
        shares, lumps = self._alone[place], lump(self.fine[place], variable)
        return float(1 - (np.square(shares) / np.maximum(np.bincount(lumps, shares), 1e-300)[lumps]).sum())

    @cached_property
    def _alone(self) -> tuple[Array, ...]:
        return tuple(self.shares((variable,)) for variable in self.fine)

    def _places(self, variables: Sequence[Variable]) -> tuple[int, ...]:
        names = [variable.name for variable in self.fine]
        return tuple(names.index(variable.name) for variable in variables)

    def _weights(self, place: int) -> Array:
        """Return weights of fine cells, ``(model cells, fine cells)``."""
        fine, own = self.fine[place], self.variables[place]
        table = np.zeros((len(own.cells), len(fine.cells)))
        table[lump(fine, own), np.arange(len(fine.cells))] = self.inside[place]
        return table


def fit_of(course: Synthetic, releases: Releases) -> Fit:
    """Fit the model to a course's releases.

    Raises:
        ReleaseError, PlanError: as of :func:`~privstats.contrib.synthetic.rows.synthetic`.
    """
    if not isinstance(course, Synthetic):
        raise ReleaseError(f"course must be a Synthetic course, got {type(course).__name__}; give that of the releases")
    if len(releases) != course.most or not any(releases):
        raise ReleaseError(f"give the releases of all {course.most} sessions, in order, of which one has a sum")
    try:
        course.next(releases)
    except PlanError as error:
        raise ReleaseError(f"these releases are not of this course: {error}") from None
    for place, release in enumerate(releases):
        if release is not None and release.plan != course.next(releases[:place]) and place:
            raise ReleaseError(f"release {place} is not of this course; give those of its own sessions, in order")
    variables, pairs = course.variables(releases), course.pairs(releases)
    return _fit(course.schema.variables, variables, pairs, counted(releases))


def _fit(
    fine: tuple[Variable, ...],
    variables: tuple[Variable, ...],
    pairs: Pairs,
    sessions: Sequence[Counted],
    start: Model | None = None,
) -> Fit:
    names = [variable.name for variable in variables]
    tree = JunctionTree(
        tuple(len(each.cells) for each in variables), tuple((names.index(a), names.index(b)) for a, b in pairs)
    )
    measurements = measured(variables, sessions)
    held = [each for each in measurements if tree.holds(each.variables)]
    others = [each for each in measurements if not tree.holds(each.variables)]
    model = fitted(tree, [*held, *margins(others)], start)
    first = next((each for each in sessions if each.session == 0), None)
    inside = tuple(_inside(each, own, first) for each, own in zip(fine, variables, strict=True))
    return Fit(fine, variables, model, inside, pairs, tuple(sessions))


def _inside(fine: Variable, own: Variable, first: Counted | None) -> Array:
    """Return fine cells' counts, shrunk to their model cell's mean (positive-part James-Stein)."""
    if first is None:
        return np.ones(len(fine.cells))
    counts, sigma = occupied(fine, first.tables[fine.name,], first.sigma)
    lumps, out = lump(fine, own), np.empty(len(fine.cells))
    for cell in range(len(own.cells)):
        held = counts[lumps == cell]
        apart = held - held.mean() if len(held) else held
        squares = float(np.square(apart).sum())
        shrunk = max(0.0, 1 - (len(held) - 1) * sigma**2 / squares) if squares > 0 else 0.0
        out[lumps == cell] = held - apart * (1 - shrunk)
    return np.maximum(out, 0.0) + 1e-9


def _empty_ends(variables: Sequence[Variable], rows: Array) -> NDArray[np.bool_]:
    """Return which cells of one number's table lie outside of all rows."""
    empty = np.zeros(rows.shape, np.bool_)
    if len(variables) == 1 and isinstance(variables[0], Bins):
        inner = len(variables[0].edges) - 1
        held = np.flatnonzero(rows[:inner])
        first, last = (held[0], held[-1]) if len(held) else (inner, inner)
        empty[:first] = True
        empty[last + 1 : inner] = True
    return empty
