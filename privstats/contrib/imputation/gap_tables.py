"""Read a table of counts with cells for gaps, and fit its log-linear model."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privstats.contrib.imputation.log_linear import Fit, Layout, fitted
from privstats.contrib.imputation.measured import degrees_of, require_measured
from privstats.errors import ReleaseError
from privstats.extend.readers import CONSTANT as INTERCEPT
from privstats.extend.records import is_list
from privstats.extend.support import Array
from privstats.inference.counts.table import count_table
from privstats.kinds import CountSchema
from privstats.release import Release
from privstats.schema import Variable, narrowed

MAX_CELLS = 4_096
"""Maximum number of cells of a table without its gaps."""


@dataclass(frozen=True, eq=False)
class GapTable:
    """A table's fitted model; the outcome is its last variable.

    Attributes:
        names, values: of each variable, and of its values, the reference first.
        chosen: places of the regression's variables.
        records_sigma: standard error of the noise in ``records``.
        missing: share of gaps by name.
    """

    names: tuple[str, ...]
    values: tuple[tuple[str, ...], ...]
    chosen: tuple[int, ...]
    fit: Fit
    records: float
    records_sigma: float
    missing: Mapping[str, float]

    @property
    def listed(self) -> str:
        """The variables as words."""
        return f"the table crosses {', '.join(self.names)}"

    @property
    def assumed(self) -> str:
        """What intervals assume."""
        return "values missing at random given the table's other variables, no product of three variables" + (
            " but those declared" * bool(self.fit.layout.products) + " in the cells' log probabilities"
        )

    @property
    def notes(self) -> tuple[str, ...]:
        """Warnings of every table."""
        shares = ", ".join(f"{name} {100 * share:.0f} %" for name, share in self.missing.items())
        return (
            f"missing: {shares or 'nothing'}; no sum can test that values are missing at random: where a gap depends "
            "on the value itself, complete cases may be right and this table wrong",
        )

    def hidden(self, what: str) -> str:
        """Return why some are not reported."""
        if not self.fit.converged:
            return f"no {what} is reported: noise hides the counts, or gaps hide how two variables are related"
        return (
            f"a {what} is not reported where noise moves its log odds by more than a sixth, or where hardly a record "
            "tells of it: cross fewer variables or values, or release more records"
        )

    def design(self, interactions: Sequence[tuple[str, str]]) -> tuple[tuple[str, ...], Array, NDArray[np.intp]]:
        """Return the regression's columns: names, values ``(K, m)``, and the parameter of each with the outcome."""
        layout, last = self.fit.layout, len(self.names) - 1
        names, parts, own = [INTERCEPT], [np.ones((layout.codes.shape[1], 1))], [layout.places((last,))]
        pairs = [tuple(map(self.names.index, pair)) for pair in interactions]
        for places in (*((each,) for each in self.chosen), *pairs):
            names += [" x ".join(words) for words in itertools.product(*map(self._terms, places))]
            parts.append(layout.product(places))
            own.append(layout.places((*places, last)))
        return tuple(names), np.hstack(parts), np.concatenate(own)

    def _terms(self, place: int) -> list[str]:
        first, *others = self.values[place]
        return [f"{self.names[place]}: {value} vs {first}" for value in others]


def read(
    release: Release,
    outcome: str,
    columns: Sequence[str] | None,
    reference: Mapping[str, str],
    interactions: Sequence[tuple[str, str]],
) -> GapTable:
    """Return the smallest table that crosses the columns with the outcome, fitted; None: the only one with it."""
    require_measured(release, "cells")
    check_columns(outcome, columns)
    names = _names(release, outcome, columns)
    table = count_table(release, *names)
    chosen = tuple(j for j, name in enumerate(names[:-1]) if columns is None or name in columns)
    values, counts = _in_order(table.variables, table.counts, reference)
    if len(values[-1]) != 2:
        raise ReleaseError(f"the outcome {outcome!r} has {len(values[-1])} values, and odds are of two: count two")
    products = _products(names, chosen, interactions)
    layout = Layout(tuple(map(len, values)), tuple(bool(each.missing) for each in table.variables), products)
    if math.prod(layout.levels) > MAX_CELLS:
        raise ReleaseError(
            f"the table has {math.prod(layout.levels):,} cells without gaps, and at most {MAX_CELLS:,} are imputed: "
            "cross fewer variables or values"
        )
    records = float(counts.sum())
    taken = layout.features.shape[1] + 1
    sigma = table.sigma * math.sqrt(counts.size)
    degrees_of(records, sigma, taken, "cross fewer variables")
    missing = {
        name: float(np.clip(np.take(counts, -1, axis=axis).sum() / records, 0.0, 1.0))
        for axis, name in enumerate(names)
        if layout.gaps[axis]
    }
    return GapTable(names, values, chosen, fitted(layout, counts.reshape(-1), table.sigma), records, sigma, missing)


def check_columns(outcome: object, columns: object) -> None:
    """Refuse names that are no list of different variables."""
    if not isinstance(outcome, str):
        raise ReleaseError(f"outcome must be the name of a variable, got {outcome!r}")
    if columns is None:
        return
    if not is_list(columns) or not columns or not all(isinstance(each, str) for each in columns):
        raise ReleaseError("columns must be a list of different variables, such as ['age']")
    if len(set(columns)) < len(columns):
        raise ReleaseError("columns names a variable twice; name each once")
    if outcome in columns:
        raise ReleaseError(f"columns names the outcome {outcome!r}; leave it out")


def plain_tables(schema: CountSchema) -> Sequence[tuple[str, ...]]:
    """Return the tables of counts alone: those of numbers stand last."""
    return schema.tables[: len(schema.tables) - len(schema.numbers or ())]


def _names(release: Release, outcome: str, columns: Sequence[str] | None) -> tuple[str, ...]:
    """Return the variables of the smallest table that crosses the columns with the outcome, the outcome last."""
    refusal = ReleaseError("imputation through cells reads count tables; measure a CountSchema")
    schema = narrowed(release.plan.schema, CountSchema, refusal)
    plain = plain_tables(schema)
    wanted = {outcome, *(columns or ())}
    holding = [table for table in plain if wanted <= set(table) and len(table) > 1]
    if not holding or (columns is None and len(holding) > 1):
        tables = "; ".join(" x ".join(table) for table in plain)
        found = "no table crosses" if not holding else "several tables cross"
        raise ReleaseError(f"{found} {', '.join(sorted(wanted))} with others; name columns of one of: {tables}")
    names = min(holding, key=lambda each: math.prod(schema.shape(each)))
    return (*(name for name in names if name != outcome), outcome)


def _in_order(
    variables: Sequence[Variable], counts: Array, reference: Mapping[str, str]
) -> tuple[tuple[tuple[str, ...], ...], Array]:
    """Return each variable's values with the reference first, and the counts in that order."""
    names, values = [variable.name for variable in variables], []
    if unknown := [name for name in reference if name not in names[:-1]]:
        raise ReleaseError(f"reference names {unknown[0]!r}, which is no column of the table: {', '.join(names[:-1])}")
    for axis, variable in enumerate(variables):
        own = known_values(variable)
        first = str(reference.get(variable.name, own[0]))
        if first not in own:
            raise ReleaseError(f"reference of {variable.name!r} must be one of {', '.join(own)}, got {first!r}")
        order = [own.index(first), *(place for place, value in enumerate(own) if value != first)]
        counts = np.take(counts, [*order, *range(len(own), counts.shape[axis])], axis=axis)
        values.append(tuple(own[place] for place in order))
    return tuple(values), counts


def known_values(variable: Variable) -> list[str]:
    """Return a variable's values, without its gaps."""
    cells: Any = variable.cells
    return [str(cell) for cell in (cells[:-1] if variable.missing else cells)]


def _products(
    names: Sequence[str], chosen: Sequence[int], interactions: Sequence[tuple[str, str]]
) -> tuple[tuple[int, ...], ...]:
    """Return the places of each interaction's columns and of the outcome."""
    allowed = [names[place] for place in chosen]
    for pair in interactions if is_list(interactions) else [interactions]:
        if not is_list(pair) or len(pair) != 2 or pair[0] == pair[1] or not set(pair) <= set(allowed):
            raise ReleaseError(
                f"interactions must be pairs of different columns of {', '.join(allowed)}, such as [('arm', 'sex')]"
            )
    if len({frozenset(pair) for pair in interactions}) < len(interactions):
        raise ReleaseError("interactions names a pair twice; name it once")
    return tuple((names.index(first), names.index(second), len(names) - 1) for first, second in interactions)
