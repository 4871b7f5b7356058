"""Compute cut points for columns with unknown ranges."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any, TypeAlias

from privstats.course.base import Releases, mu_of
from privstats.course.kinds import COURSE_KINDS
from privstats.course.phases import Past, Phase, Phases
from privstats.course.planned import Phased, Planned, Single
from privstats.course.promise import Promise, count_plan, part_of, promised, record_mu, rounded_down
from privstats.errors import PlanError, SchemaError
from privstats.estimates.cut_points import (
    FINER_ENDS,
    Occupied,
    cut_points,
    first_edges,
    public_cuts,
    refined,
    updated,
)
from privstats.estimates.recipes import SoftmaxRecipe
from privstats.kinds import ClassSchema, CountSchema
from privstats.moments import Moments, exact_moments
from privstats.plan import Plan
from privstats.python_values import python_value
from privstats.records.reading import Unreadable
from privstats.release import Release
from privstats.schema import COUNT_SCALE, Bins
from privstats.schema.public_values import Published
from privstats.transforms import Cells, Dates

if TYPE_CHECKING:
    from privstats.course.centred import Centred
    from privstats.course.newton import Newton
    from privstats.course.rounds import Rounds
    from privstats.intake.accepted import RecordsLike, TargetsLike

Rest: TypeAlias = "Plan | Centred | Rounds | Newton"
Grid: TypeAlias = Mapping[str, tuple[float, ...]]
"""The edges of the cells of each open column, the outer ones too."""

_BEHIND = ("centred", "rounds", "newton")
"""Kinds of courses that can follow: of one plan, which all parties measure on the same records."""
_MOST_SESSIONS = 6
_MOST, _MOST_DAYS = 40, 18
"""Powers of two beyond which the first grid has one cell: of numbers, and of days from 1970, which end at year 9999."""
_CLEAR_FROM, _NAMED = 20.0, 6
_PAIR, _EVEN_SIGNS = 2, 7
_FINER_ENDS_FROM = 80.0
"""s of the rounds from which on open columns get finer ends (benchmarks/raw_tables/numbers.md)."""


@dataclass(frozen=True)
class Counting:
    """Settings of the counts.

    Attributes:
        spacing: exponents of 2 between two edges of the first grid.
        cells: per column in later sessions.
        share: part of mu^2.
        sessions: number of count sessions.
    """

    spacing: int
    cells: int
    share: float
    sessions: int


_COLUMNS_REMEMBERED = 4_096  # cached, because every later plan requests the cut points again
_updated = lru_cache(_COLUMNS_REMEMBERED)(updated)
_refined = lru_cache(_COLUMNS_REMEMBERED)(refined)
_cut_points = lru_cache(_COLUMNS_REMEMBERED)(cut_points)

_USUAL = Counting(spacing=2, cells=32, share=0.2, sessions=4)


@dataclass(frozen=True)
class Binned(Phased):
    """Counts of a table's open columns in a few sessions, then a plan or a course behind the cut points.

    The plan's transform starts with :class:`~privstats.Cells`; columns with open edges are counted. The first session's
    cells are magnitudes (1e-6 to 1e12, both signs); later cells follow from earlier counts. A count session without a
    sum changes no cells; a column that no session shows gets public cut points.

    Args:
        then: a plan, or a course of one, that runs with the cut points.
        expected_records: n, stated publicly, never counted from the records.
        share: the counts' part of mu^2, 1/64 to .9; None: a fifth.
        sessions: of counts, 1 to 6; None: 4.
        finer_ends: whether four of 11 cut points divide the outer eighths; :meth:`within` follows a public rule.

    Guarantee:
        All sessions together are mu-GDP with :attr:`mu`, for the unit and adjacency of the plan. A record counts 1 in
        exactly one cell of each of J open columns, at any edges, so J, and 2 J for two records, is the square of a
        count session's sensitivity (``CountSchema``). Edges are a function of released counts and public numbers. The
        rest is sized for its own mu at any cut points, because rows of ``Cells`` have norm 1; and sessions compose
        (:class:`Course`). False counts of a party move the cut points and the model's quality, but no noise.

    Example:
        >>> cells = ps.Cells((ps.Numeric("age"), ps.Numeric("sodium", (135, 145))))
        >>> schema = ps.ClassSchema(2, cells.width, "NAB", clip_norm=1.0, transform=(cells,))
        >>> privacy = ps.Privacy(model="central", unit="record", adjacency="add-remove", epsilon=3.0, delta=1e-6)
        >>> plan = ps.Plan(schema=schema, cohort=ps.Cohort(2, 2, 10_000), privacy=privacy)
        >>> course = ps.Binned.within(plan, expected_records=5_000)
        >>> course.most, course.first.schema.task, round(course.epsilon(1e-6), 3)
        (5, 'counts', 3.0)
    """

    label = "binned"
    then: Rest
    expected_records: int = field(kw_only=True)
    share: float | None = field(default=None, kw_only=True)
    sessions: int | None = field(default=None, kw_only=True)
    promise: Promise | None = field(default=None, compare=False, kw_only=True)
    finer_ends: bool = field(default=False, metadata={"usual": False}, kw_only=True)

    def _require(self) -> None:
        if not isinstance(self.then, Plan) and getattr(self.then, "label", None) not in _BEHIND:
            raise PlanError(
                f"then must be a Plan, or a course of one (Centred, Rounds, Newton), got {type(self.then).__name__}"
            )
        _check_numbers(self.expected_records, self.share, self.sessions)
        promised(self._plan)
        if type(self.finer_ends) is not bool or (self.finer_ends and self._cells.signs != _EVEN_SIGNS + FINER_ENDS):
            raise PlanError(
                f"finer_ends must be True or False, and belongs to signs={_EVEN_SIGNS + FINER_ENDS}, got "
                f"{self.finer_ends!r} with signs={self._cells.signs}; Binned.within sets both"
            )
        _ = self.first  # forces the noise of a count session

    @classmethod
    def within(
        cls,
        whole: Plan,
        then: str | None = None,
        *,
        expected_records: int,
        share: float | None = None,
        sessions: int | None = None,
        finer_ends: bool | None = None,
        **options: Any,
    ) -> Binned:
        """Divide a plan's total promise over the sessions.

        Args:
            whole: the plan behind the cut points, with the total promise.
            then: ``"centred"``, ``"rounds"`` or ``"newton"``, the course that follows; None: the plan itself.
            finer_ends: whether open columns get 11 cut points instead of 7, four of them in the outer eighths. None
                follows a public rule: on for rounds of two classes over ``Cells`` with seven ``signs``, and ``n mu /
                (C sqrt d)`` of the rounds of at least 80.
            options: further arguments of that course's ``within``.
        """
        n, portion, many = python_value(expected_records), python_value(share), python_value(sessions)
        _check_numbers(n, portion, many)
        record_mu(whole)  # refuses a plan without DP
        part = _USUAL.share if portion is None else portion
        remaining = replace(whole, privacy=part_of(whole, 1 - part, getattr(whole.privacy, "shares", None)))
        if finer_ends is None:
            finer_ends = then == "rounds" and options.get("module") is None and ends_pay(remaining, n)
        if finer_ends:
            remaining = _with_finer_ends(remaining)
        rest = _divided(remaining, then, n, options)
        sessions = many or _USUAL.sessions
        return cls(
            rest,
            expected_records=n,
            share=part,
            sessions=sessions,
            finer_ends=finer_ends,
            promise=Promise.of(whole),
        )

    @cached_property
    def _rest(self) -> Phased:
        return Single(self.then) if isinstance(self.then, Plan) else self.then

    @property
    def _plan(self) -> Plan:
        return _origin(self._rest)

    @cached_property
    def signal_to_noise(self) -> float:
        """Cohort records over a count's noise SD (of all parties) at a fifth of mu^2 in four sessions."""
        counted = _USUAL.share if self.share is None else self.share
        return _signal(self._plan, self.expected_records, (self._rest.mu / mu_of(self._plan)) ** 2 / (1 - counted))

    @property
    def remark(self) -> str:
        """Advice for the owners if counts are too noisy; else empty."""
        if self.signal_to_noise >= _CLEAR_FROM:
            return ""
        many = ", ".join(self.columns[:_NAMED]) + (", ..." if len(self.columns) > _NAMED else "")
        return (
            f"{self.expected_records:,} records, the promise and {len(self.columns)} open columns leave a full cell "
            f"{self.signal_to_noise:.2g} deviations of its noise, and {_CLEAR_FROM:g} are clear: state the edges of "
            f"some columns ({many}), or read fewer"
        )

    @cached_property
    def counting(self) -> Counting:
        """Settings of the counts."""
        share = _USUAL.share if self.share is None else self.share
        return replace(_USUAL, share=share, sessions=self.sessions or _USUAL.sessions)

    @cached_property
    def first(self) -> Plan:
        """The plan of the first counts."""
        return self._counts(self._first_grid)

    @cached_property
    def _first_grid(self) -> Grid:
        most = {column.name: _MOST_DAYS if isinstance(column, Dates) else _MOST for column in self._cells.columns}
        return {name: first_edges(self.counting.spacing, most[name]) for name in self.columns}

    @property
    def _cells(self) -> Cells:
        return open_cells(self._plan)

    @property
    def columns(self) -> tuple[str, ...]:
        """Counted columns' names."""
        return self._cells.open

    @cached_property
    def phases(self) -> Phases:
        """The counts, at the same price at any cut points, then the phases of what runs behind the cut points."""
        sessions, rest = self.counting.sessions, self._rest.phases
        behind = (self._phase_behind(at, phase) for at, phase in enumerate(rest.phases))
        return Phases((Phase("counts", self.first, tries=1), *self._finer_counts(sessions - 1), *behind), rest.retries)

    def _finer_counts(self, sessions: int) -> tuple[Phase, ...]:
        if not sessions:
            return ()
        cells = tuple(map(float, range(self.counting.cells + 1)))
        plan = self._counts(dict.fromkeys(self.columns, cells))
        # Without a sum of the first counts their grid, which has more cells, is counted again.
        return (Phase("finer counts", plan, None, sessions, form=self._counts_after, longest=self.first),)

    def _counts_after(self, past: Past) -> Plan:
        return self._counts(self._after(past.releases)[0])

    def _phase_behind(self, at: int, phase: Phase) -> Phase:
        """Return a phase of what runs behind the cut points, which follow from the counts."""

        def published(past: Past) -> Published:
            own, later = self._behind_counts(past)
            publish = own.phases.phases[at].published
            assert publish is not None  # noqa: S101  the phase publishes at any cut points, or at none
            return publish(later)

        def form(past: Past) -> Plan:
            own, later = self._behind_counts(past)
            return own.phases.phases[at].formed(later)

        return replace(phase, form=form, published=phase.published and published)

    def _behind_counts(self, past: Past) -> tuple[Phased, Past]:
        """Return the course behind the cut points, and the sessions of it so far."""
        sessions = self.counting.sessions
        edges = self.cut_points(past.releases[:sessions])
        return self._behind(edges), Past(past.releases[sessions:], past.phases[sessions:])

    def cut_points(self, counts: Releases) -> dict[str, tuple[float, ...]]:
        """Return open columns' cut points by name.

        Args:
            counts: in order; None for no sum.
        """
        return _closed(self._cells, self._after(counts)[1], self.finer_ends)

    @cached_property
    def _known(self) -> dict[int, tuple[Releases, tuple[Grid, Mapping[str, Occupied]]]]:
        return {}

    def _after(self, counts: Releases) -> tuple[Grid, Mapping[str, Occupied]]:
        before = self._known.get(len(counts))
        if before is None or any(one is not other for one, other in zip(before[0], counts, strict=True)):
            before = self._known[len(counts)] = (tuple(counts), self._estimated_from(counts))
        return before[1]

    def _estimated_from(self, counts: Releases) -> tuple[Grid, Mapping[str, Occupied]]:
        grid, known = dict(self._first_grid), dict[str, Occupied]()
        for place, release in enumerate(counts):
            if release is None:
                continue
            if release.plan != self._counts(grid):
                raise PlanError(f"release {place} is not of this course; give those of its own sessions, in order")
            known |= _occupied(release, known)
            grid |= {name: _refined(each, self.counting.cells) for name, each in known.items()}
        return grid, known

    def _counts(self, grid: Grid) -> Plan:
        share, rest = self.counting.share, (self._rest.mu / mu_of(self._plan)) ** 2
        return _count_plan(self._plan, grid, rest * share / (1 - share) / self.counting.sessions)

    @cached_property
    def _last_behind(self) -> list[tuple[object, Phased]]:
        return []

    def _behind(self, edges: Mapping[str, Sequence[float]]) -> Phased:
        """Return the course behind these cut points; the last one is stored, because every later plan requests it."""
        for known, course in self._last_behind:
            if known == edges:
                return course
        course = self._build_behind(edges)
        self._last_behind[:] = [(edges, course)]
        return course

    def _build_behind(self, edges: Mapping[str, Sequence[float]]) -> Phased:
        origin, *_ = fields(self._rest)  # type: ignore[arg-type]
        plan = self._plan
        cells, *maps = plan.schema.transform
        assert isinstance(cells, Cells)  # noqa: S101  open_cells has refused others
        schema = replace(plan.schema, transform=(cells.with_edges(edges), *maps))  # type: ignore[type-var]
        return replace(self._rest, **{origin.name: replace(plan, schema=schema)})  # type: ignore[type-var]

    def admits(
        self,
        X: RecordsLike,
        y: TargetsLike | None,
        unreadable: Unreadable = "refuse",
        measured: Callable[..., Moments] = exact_moments,
    ) -> None:
        """Refuse records early that a later session would refuse: counts read no targets."""
        signs = self._cells.signs
        plan = _origin(self._behind(dict.fromkeys(self.columns, public_cuts(signs))))
        schema: Any = plan.schema
        if isinstance(schema, ClassSchema):  # second moments would cost a pass, and refuse no record
            schema = replace(schema, statistics="NA")
        measured(schema, X, y, published=plan.published, unreadable=unreadable)


def ends_pay(plan: Plan, records: int) -> bool:
    """Return whether finer ends are on by the public rule, for rounds with this plan's promise.

    On for two classes, ``Cells`` alone with seven signs, s of at least 80, and rows that may have four more entries a
    column.
    """
    try:
        _with_finer_ends(plan)
    except (PlanError, SchemaError):
        return False
    schema: Any = plan.schema
    recipe = SoftmaxRecipe(schema.classes, open_cells(plan).width, records, record_mu(plan))
    return bool(schema.classes == _PAIR and recipe.signal >= _FINER_ENDS_FROM)


def _with_finer_ends(plan: Plan) -> Plan:
    cells, schema = open_cells(plan), plan.schema
    if not isinstance(schema, ClassSchema) or schema.transform != (cells,) or cells.signs != _EVEN_SIGNS:
        raise PlanError(f"finer ends belong to classes over Cells alone with signs={_EVEN_SIGNS}: leave finer_ends out")
    wider = replace(cells, signs=_EVEN_SIGNS + FINER_ENDS)
    return replace(plan, schema=replace(schema, features=wider.width, transform=(wider,)))


def open_cells(plan: Plan) -> Cells:
    """Return a plan's open ``Cells``."""
    maps = plan.schema.transform
    if not maps or not isinstance(maps[0], Cells):
        raise PlanError("cut points are those of declared columns: give a plan whose transform starts with Cells(...)")
    if not maps[0].open:
        raise PlanError("all edges are public, so there is nothing to count: run the plan itself")
    return maps[0]


def _origin(course: Planned) -> Plan:
    origin, *_ = fields(course)  # type: ignore[arg-type]
    plan: Plan = getattr(course, origin.name)
    return plan


def _divided(plan: Plan, then: object, records: int, options: Mapping[str, Any]) -> Rest:
    if then is not None and then not in _BEHIND:
        raise PlanError(f"then must be {', '.join(map(repr, _BEHIND))} or None for the plan as it is, got {then!r:.40}")
    takes = () if then is None else COURSE_KINDS[str(then)].options
    if unknown := sorted(set(options) - set(takes)):
        raise PlanError(
            f"{then or 'a plan'} has no {', '.join(unknown)}: leave it out, or name the course that has it as then"
        )
    if then is None:
        return plan
    known = {"expected_records": records} if "expected_records" in takes else {}
    course: Rest = COURSE_KINDS[str(then)].within(plan, **{**known, **options})
    return course


def _count_plan(plan: Plan, edges: Grid, part: float) -> Plan:
    bins = tuple(Bins(name, cut, missing=True) for name, cut in edges.items())
    return count_plan(plan, CountSchema(bins, tuple((name,) for name in edges), transform=(open_cells(plan),)), part)


def _signal(plan: Plan, records: int, part: float) -> float:
    edges = dict.fromkeys(open_cells(plan).open, (-1.0, 0.0, 1.0))  # any number of cells has the same noise
    noise = _count_plan(plan, edges, part * _USUAL.share / _USUAL.sessions).noise
    assert noise is not None  # noqa: S101  a plan without DP has been refused
    return rounded_down(records / noise.released_sigma(plan.cohort.clients)["T"])


def cut_points_after(cells: Cells, counts: Releases, *, finer_ends: bool = False) -> dict[str, tuple[float, ...]]:
    """Return open columns' cut points by name.

    Args:
        counts: in order; None for no sum.
    """
    occupied: dict[str, Occupied] = {}
    for release in counts:
        occupied |= {} if release is None else _occupied(release, occupied)
    return _closed(cells, occupied, finer_ends)


def _closed(cells: Cells, occupied: Mapping[str, Occupied], finer_ends: bool) -> dict[str, tuple[float, ...]]:
    return {name: _cut_points(occupied.get(name), cells.signs, finer_ends=finer_ends) for name in cells.open}


def follow_from(closed: object, opened: Cells, counts: Releases) -> bool:
    """Return whether a declaration's cut points follow from these counts, with finer ends or without."""
    rules = (False, True) if opened.signs == _EVEN_SIGNS + FINER_ENDS else (False,)
    return any(closed == opened.with_edges(cut_points_after(opened, counts, finer_ends=rule)) for rule in rules)


def _occupied(release: Release, known: Mapping[str, Occupied]) -> dict[str, Occupied]:
    schema, sigma = release.plan.schema, release.sigma["T"] * COUNT_SCALE
    assert isinstance(schema, CountSchema)  # noqa: S101  its plan is a course's
    places, rest = {}, release.vector.tolist()
    for variable in schema.variables:  # one table per variable, in this order
        edges: tuple[float, ...] = variable.edges  # type: ignore[union-attr]
        counts, rest = rest[: len(edges) - 1], rest[len(edges) :]  # the last cell counts gaps
        places[variable.name] = _updated(known.get(variable.name), edges, tuple(counts), sigma)
    return {name: occupied for name, occupied in places.items() if occupied is not None}


def _check_numbers(records: object, share: object, sessions: object) -> None:
    if type(records) is not int or not 1 <= records <= 1 << 40:
        raise PlanError(f"expected_records must be an integer from 1 to {1 << 40}, got {records!r}; state one")
    if share is not None and (type(share) is not float or not 1 / 64 <= share <= 0.9):
        raise PlanError(f"share must be a number from 1/64 to .9, got {share!r}; leave it out for the usual one")
    if sessions is not None and (type(sessions) is not int or not 1 <= sessions <= _MOST_SESSIONS):
        raise PlanError(f"sessions must be an integer from 1 to {_MOST_SESSIONS}, got {sessions!r}; leave it out")
