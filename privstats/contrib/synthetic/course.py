"""Plan the sessions of a synthetic table: at most three count sessions under one promise.

Released one-way tables merge fine cells. A screening counts all pairs; ``choice`` selects those of the last session.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from itertools import combinations, pairwise
from typing import Any

import numpy as np

from privstats.contrib.synthetic.cells import lump, merged, occupied
from privstats.contrib.synthetic.choice import Screened, chosen_pairs
from privstats.contrib.synthetic.columns import Column, DeclaredFile, column_of, schema_of
from privstats.contrib.synthetic.junction_tree import Array
from privstats.contrib.synthetic.model import Measurement
from privstats.course import Releases
from privstats.course.promise import count_plan
from privstats.errors import PlanError
from privstats.extend.courses import Past, Phase, Phased, Phases, Promise, part_of, promised, require_plan
from privstats.kinds import CountSchema
from privstats.moments import RecordFile
from privstats.plan import Plan
from privstats.release import Release
from privstats.schema import Bins, Variable

Pairs = tuple[tuple[str, str], ...]

_FEW = 3
"""Number of columns up to which all pairs are measured without a screening."""
_MOST_COLUMNS = 60
_SCREENED_LEVELS = 8
_CLEARNESS, _SCREENED_CLEARNESS = 3.0, 6.0
"""Records of a pair's average cell, in standard deviations of its noise."""
_MIN_LEVELS, _MAX_LEVELS = 2, 250
"""One pair of columns of ``_MAX_LEVELS`` cells, others and missing values included, fits into a session."""
_UNCOUNTED_LEVELS, _UNCOUNTED_RECORDS = 16, 65_536.0
"""Maximum number of cells, and assumed number of records, where the first session has no sum."""
_USUAL_ONES, _USUAL_SCREEN = 0.2, 0.2


@dataclass(frozen=True)
class Synthetic(Phased):
    """The sessions from which synthetic rows are drawn: one-way tables, a screening, then the chosen pairs.

    Args:
        plan: of the first session: a ``CountSchema`` with each variable's one-way table, and its part of the promise.
        share: the first session's part of mu^2, 1/64 to .9.
        screen: the screening's part. With three columns or fewer the pairs get it.
        levels: maximum number of cells of a variable in a pair, 2 to 250. By default only noise limits it: a pair's
            average cell holds three standard deviations of its noise.
        columns: tables of ``columns.toml``, by which each party's file is read. Empty: parties code values themselves.
        promise: the owners' promise for all sessions.

    Raises:
        PlanError: not one-way tables of 2 to 60 variables, no DP, delta 0, a number out of range, or a broken promise.

    Guarantee:
        All sessions together are mu-GDP with :attr:`mu`, for the plan's unit and adjacency. A session's sensitivity
        depends on its number of tables alone, and its noise is sized for its own mu. Cells and pairs are functions of
        released counts. Rows are post-processing: any number of rows keeps the promise.

    Example:
        >>> from privstats.contrib.synthetic.columns import schema_of
        >>> from privstats.contrib.synthetic.course import Synthetic
        >>> schema = schema_of([ps.Truth(name) for name in ("smoker", "diabetes", "stroke", "death")])
        >>> privacy = ps.Privacy(model="central", unit="record", adjacency="add-remove", epsilon=1.0, delta=1e-6)
        >>> course = Synthetic.within(ps.Plan(schema=schema, cohort=ps.Cohort(2, 2, 10_000), privacy=privacy))
        >>> course.most, round(course.epsilon(1e-6), 3)
        (3, 1.0)
    """

    label = "synthetic"
    plan: Plan
    share: float = field(default=_USUAL_ONES, kw_only=True)
    screen: float = field(default=_USUAL_SCREEN, kw_only=True)
    levels: int = field(default=_MAX_LEVELS, kw_only=True)
    columns: tuple[Mapping[str, Any], ...] = field(default=(), kw_only=True, hash=False, metadata={"usual": ()})
    promise: Promise | None = field(default=None, compare=False, kw_only=True)

    @classmethod
    def within(
        cls,
        whole: Plan,
        *,
        share: float = _USUAL_ONES,
        screen: float = _USUAL_SCREEN,
        levels: int = _MAX_LEVELS,
        columns: Sequence[Any] = (),
    ) -> Synthetic:
        """Return the course that keeps a plan's promise in total.

        Args:
            whole: one-way tables and the total promise.
            share, screen, levels: as for the class.
            columns: declared columns, or their tables.
        """
        require_plan("whole", whole)
        _check_numbers(share, screen, levels)
        promised(whole)
        first = replace(whole, privacy=part_of(whole, share, None))
        terms: Any = {"share": share, "screen": screen, "levels": levels, "columns": columns}
        return cls(first, **terms, promise=Promise.of(whole))

    @staticmethod
    def full_plan(schema: Sequence[Any], **terms: Any) -> Plan:
        """Return the plan of declared columns' one-way tables, from ``Plan``'s other arguments."""
        return Plan(schema=schema_of(tuple(map(column_of, schema))), **terms)

    def reads(self, file: RecordFile) -> RecordFile:
        """Return a party's file, read by the declared columns, if any."""
        own = {each.name: getattr(file, each.name) for each in fields(RecordFile)}
        return DeclaredFile(**own, declared=self.declared) if self.columns else file

    @cached_property
    def declared(self) -> tuple[Column, ...]:
        """The declared columns."""
        if not isinstance(self.columns, list | tuple):
            raise PlanError(f"columns must be a list of declared columns, got {type(self.columns).__name__}")
        return tuple(map(column_of, self.columns))

    def _require(self) -> None:
        require_plan("plan", self.plan)
        _check_numbers(self.share, self.screen, self.levels)
        promised(self.plan)
        schema = self.plan.schema
        if not isinstance(schema, CountSchema) or schema.numbers or schema.transform or schema.late_entry:
            raise PlanError(
                "a synthetic table is drawn from counts: give a CountSchema without numbers, transform or late_entry"
            )
        names = tuple(variable.name for variable in schema.variables)
        if schema.tables != tuple((name,) for name in names) or not 2 <= len(names) <= _MOST_COLUMNS:
            raise PlanError(
                f"the first session counts each of 2 to {_MOST_COLUMNS} variables by itself: give tables=((name,), "
                "...) of all variables in order, as columns.schema_of does"
            )
        object.__setattr__(self, "columns", tuple(each.to_plan() for each in self.declared))
        if self.columns and schema_of(self.declared) != schema:
            raise PlanError(
                "columns must declare the plan's variables, in order: write plan and course from one columns.toml, by "
                "`privstats plan init --task rows` and `privstats course init --synthetic --columns`"
            )
        _ = self.priced  # forces the noise of every session

    @property
    def first(self) -> Plan:
        """The plan of the one-way tables."""
        return self.plan

    @property
    def schema(self) -> CountSchema:
        """The one-way tables."""
        assert isinstance(self.plan.schema, CountSchema)  # noqa: S101  _require has refused others
        return self.plan.schema

    @property
    def screens(self) -> bool:
        """Whether there is a screening session."""
        return len(self.schema.variables) > _FEW

    @property
    def all_pairs(self) -> Pairs:
        """Every pair of variables."""
        return tuple(combinations((variable.name for variable in self.schema.variables), 2))

    @property
    def _neighbours(self) -> Pairs:
        names = [variable.name for variable in self.schema.variables]
        return tuple(pairwise(names))

    @property
    def _planned(self) -> Pairs:
        """The pairs whose tables must fit into the last session with the most cells."""
        return self._neighbours if self.screens else self.all_pairs

    @cached_property
    def phases(self) -> Phases:
        """One-way tables, any screening, and the chosen pairs; later ones cost the same with any cells and pairs."""
        fine, coarse = self._cells(None)
        longest_screening, longest_pairs = self._longest
        screening = Phase("screening", self._screening(coarse), tries=1, form=self._screened, longest=longest_screening)
        measuring = self._measuring(fine, self._planned)
        pairs = Phase("pairs", measuring, tries=1, form=self._measured, longest=longest_pairs)
        return Phases((Phase("columns", self.first, tries=1), *([screening] if self.screens else []), pairs))

    @cached_property
    def _longest(self) -> tuple[Plan, Plan]:
        """The screening and the pairs with as many cells as any released counts can lead to, for the bytes alone."""
        own, tables = self.schema.variables, tuple[tuple[str, ...], ...](self.all_pairs)
        levels = self._fitting(self.levels, self._planned)
        fitting = self._fitting(levels, self.all_pairs)
        variables = _evenly(own, fitting)
        pairs = combinations(variables, 2)
        room = CountSchema.max_cells - sum(len(one.cells) * len(other.cells) for one, other in pairs)
        if fitting < levels and room:  # fewer pairs with more cells may fill a session: a further table stands for them
            filler = max((variable.name for variable in own), key=len) + "+"
            variables = (*variables, Bins(filler, tuple(map(float, range(room + 1)))))
            tables = (*tables, (filler,))
        measuring = count_plan(self.plan, CountSchema(variables, tables), self._part(self._pairs_share))
        return self._screening(_evenly(own, _screened_levels(levels, len(self.all_pairs)))), measuring

    def _screened(self, past: Past) -> Plan:
        return self._screening(self._cells(past.first("columns"))[1])

    def _measured(self, past: Past) -> Plan:
        return self._measuring(self._cells(past.first("columns"))[0], self.pairs(past.releases))

    def pairs(self, releases: Releases) -> Pairs:
        """Return the last session's pairs; neighbouring columns if the screening had no sum."""
        if not self.screens:
            return self.all_pairs
        release = releases[1] if len(releases) > 1 else None
        if release is None:
            return self._neighbours
        names = [variable.name for variable in self.schema.variables]
        fine, screened = self._cells(self._counts(releases))
        if release.plan != self._screening(screened):
            raise PlanError("release 1 is not of this course; give those of its own sessions, in order")
        tables = {(names.index(a), names.index(b)): table for (a, b), table in tables_of(release).items()}
        pairs = chosen_pairs(
            Screened(
                tables,
                release.sigma["T"],
                tuple(len(each.cells) for each in fine),
                self._noise(self._part(self._pairs_share), 1),
            )
        )
        return tuple((names[a], names[b]) for a, b in pairs)

    def variables(self, releases: Releases) -> tuple[Variable, ...]:
        """Return the model's variables."""
        return self._cells(self._counts(releases))[0]

    def measurements(self, releases: Releases) -> tuple[tuple[Variable, ...], list[Measurement]]:
        """Return the model's variables, and released tables in their cells."""
        model = self.variables(releases)
        return model, measured(model, counted(releases))

    def _counts(self, releases: Releases) -> Release | None:
        release = releases[0] if releases else None
        if release is not None and release.plan != self.first:
            raise PlanError("release 0 is not of this course; give those of its own sessions, in order")
        return release

    def _cells(self, ones: Release | None) -> tuple[tuple[Variable, ...], tuple[Variable, ...]]:
        variables, many = self.schema.variables, len(self.all_pairs)
        held: Mapping[Any, Array] = {} if ones is None else tables_of(ones)
        sigma = 0.0 if ones is None else ones.sigma["T"]
        counts = [
            occupied(each, held[each.name,], sigma)[0] if ones else np.ones(len(each.cells)) for each in variables
        ]
        records = max(float(np.mean([each.sum() for each in counts])), 1.0) if ones else _UNCOUNTED_RECORDS
        planned = self._planned
        most = self._fitting(self.levels if ones else min(self.levels, _UNCOUNTED_LEVELS), planned)
        levels = _levels(records, self._noise(self._part(self._pairs_share), len(planned)), most, _CLEARNESS)
        fine = tuple(merged(each, own, sigma, levels) for each, own in zip(variables, counts, strict=True))
        if not self.screens:
            return fine, fine
        noise = self._noise(self._part(self.screen), many)
        coarse = _screened_levels(_levels(records, noise, levels, _SCREENED_CLEARNESS), many)
        lumped = map(_lumped, variables, fine, counts)
        return fine, tuple(merged(own, held, sigma, coarse) for own, held in zip(fine, lumped, strict=True))

    def _fitting(self, levels: int, pairs: Pairs) -> int:
        """Return at most ``levels``, with which the tables of some pairs fit into one session."""
        declared = {variable.name: len(variable.cells) for variable in self.schema.variables}
        while levels > _MIN_LEVELS and _cells_of(pairs, declared, levels + 2) > CountSchema.max_cells:
            levels -= 1
        return levels

    @property
    def _pairs_share(self) -> float:
        return 1 - self.share - (self.screen if self.screens else 0.0)

    def _part(self, share: float) -> float:
        return share / self.share

    def _noise(self, part: float, tables: int) -> float:
        noise = self.plan.noise
        assert noise is not None  # noqa: S101  a plan without DP has been refused
        one = noise.mu * math.sqrt(part)
        own = noise.released_sigma(self.plan.cohort.clients)["T"] * noise.mu
        return float(own / one * math.sqrt(tables / len(self.schema.tables)))

    def _screening(self, variables: tuple[Variable, ...]) -> Plan:
        return count_plan(self.plan, CountSchema(variables, self.all_pairs), self._part(self.screen))

    def _measuring(self, variables: tuple[Variable, ...], pairs: Pairs) -> Plan:
        named = {name for pair in pairs for name in pair}
        used = tuple(variable for variable in variables if variable.name in named)
        return count_plan(self.plan, CountSchema(used, pairs), self._part(self._pairs_share))


@dataclass(frozen=True, eq=False)
class Counted:
    """One session's noisy tables.

    Attributes:
        session: from 0.
        tables: counts per table of the schema, in its shape.
        sigma: noise standard deviation of a count.
    """

    session: int
    schema: CountSchema
    tables: Mapping[tuple[str, ...], Array]
    sigma: float


def counted(releases: Releases) -> tuple[Counted, ...]:
    """Return the tables of all sessions with a sum."""
    out = []
    for session, release in enumerate(releases):
        if release is not None:
            schema = release.plan.schema
            assert isinstance(schema, CountSchema)  # noqa: S101  of a course
            out.append(Counted(session, schema, tables_of(release), release.sigma["T"]))
    return tuple(out)


def measured(model: Sequence[Variable], sessions: Sequence[Counted]) -> list[Measurement]:
    """Return the sessions' tables in the model's cells."""
    names, out = [variable.name for variable in model], list[Measurement]()
    for session in sessions:
        for table, counts in session.tables.items():
            variables = tuple(map(session.schema.variable, table))
            own = tuple(model[names.index(name)] for name in table)
            held = occupied(variables[0], counts, session.sigma)[0] if len(table) == 1 else counts
            merged_counts, lumps = _in_cells(variables, own, held)
            merge = math.sqrt(_merged_size(variables, own))
            places = tuple(names.index(name) for name in table)
            out.append(Measurement(places, lumps, merged_counts, session.sigma * merge))
    return out


def tables_of(release: Release) -> dict[tuple[str, ...], Array]:
    """Return each table's released counts, in its shape."""
    schema = release.plan.schema
    assert isinstance(schema, CountSchema)  # noqa: S101  a course has refused others
    counts = np.asarray(release.moments.T, np.float64)
    return {table: counts[schema.place(table)].reshape(schema.shape(table)) for table in schema.tables}


def _levels(records: float, noise: float, most: int, clearness: float) -> int:
    return min(max(math.isqrt(int(records / (clearness * noise))), _MIN_LEVELS), most)


def _screened_levels(levels: int, pairs: int) -> int:
    """Return at most this number of levels for a screening, with which the tables of all pairs fit into it."""
    levels = min(levels, _SCREENED_LEVELS)
    while levels > _MIN_LEVELS and pairs * (levels + 2) ** 2 > CountSchema.max_cells:
        levels -= 1
    return levels


def _evenly(variables: tuple[Variable, ...], levels: int) -> tuple[Variable, ...]:
    """Return variables with the most cells that merging to a number of levels leaves."""
    return tuple(merged(each, np.ones(len(each.cells)), 0.0, levels) for each in variables)


def _cells_of(pairs: Pairs, cells: Mapping[str, int], most: int) -> int:
    return sum(min(cells[a], most) * min(cells[b], most) for a, b in pairs)


def _lumped(variable: Variable, model: Variable, counts: Array) -> Array:
    return np.bincount(lump(variable, model), counts, minlength=len(model.cells)).astype(np.float64)


def _in_cells(
    variables: tuple[Variable, ...], model: tuple[Variable, ...], counts: Array
) -> tuple[Array, tuple[Any, ...]]:
    """Return counts no finer than the model's cells, and each model cell's measured cell."""
    lumps = []
    for axis, (variable, own) in enumerate(zip(variables, model, strict=True)):
        if _listed(variable) > _listed(own):
            sums = np.zeros((len(own.cells), *np.delete(counts.shape, axis)))
            np.add.at(sums, lump(variable, own), np.moveaxis(counts, axis, 0))
            counts = np.moveaxis(sums, 0, axis)
            lumps.append(np.arange(len(own.cells)))
        else:
            lumps.append(lump(own, variable))
    return counts, tuple(lumps)


def _listed(variable: Variable) -> int:
    # Cells cannot be compared: a merged variable may have fewer values and a cell for the others.
    return len(variable.edges if isinstance(variable, Bins) else variable.values)


def _merged_size(variables: tuple[Variable, ...], model: tuple[Variable, ...]) -> float:
    sizes = ((len(variable.cells), len(own.cells)) for variable, own in zip(variables, model, strict=True))
    return math.prod(max(1.0, measured / own) for measured, own in sizes)


def _check_numbers(share: object, screen: object, levels: object) -> None:
    for name, value in (("share", share), ("screen", screen)):
        if type(value) is not float or not 1 / 64 <= value <= 0.9:
            raise PlanError(f"{name} must be a number from 1/64 to .9, got {value!r}; leave it out for the usual one")
    if share + screen > 0.95:  # type: ignore[operator]
        raise PlanError("share and screen must leave a twentieth of the promise to the pairs; lower one")
    if type(levels) is not int or not _MIN_LEVELS <= levels <= _MAX_LEVELS:
        raise PlanError(
            f"levels must be an integer from {_MIN_LEVELS} to {_MAX_LEVELS}, got {levels!r}; omit it, and noise alone "
            "limits the cells"
        )
