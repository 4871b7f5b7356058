"""Read effects on several outcomes and in subgroups from one ``Effect`` course's releases."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from privstats.course import Analysis, Effect, Margin
from privstats.errors import PlanError, ReleaseError
from privstats.estimates.denoise import Array
from privstats.inference.inversion import holm
from privstats.inference.releases import all_sessions
from privstats.inference.summary import RowTable, Summary, framed
from privstats.inference.treatment_effects.arm_table import ArmTable, by_arm
from privstats.inference.treatment_effects.influence_sums import CourseSums, course_sums, is_look
from privstats.inference.treatment_effects.subgroup_tests import SubgroupTest, equal_effects
from privstats.inference.treatment_effects.table import EffectTable, question
from privstats.kinds import EffectSchema
from privstats.plan import Plan
from privstats.release import Release


class Verdict(NamedTuple):
    """Whether an effect is inside its declared margin.

    Attributes:
        conf_low, conf_high: the effect's interval at the analysis' two-sided level; infinite where hidden.
        p_value: one-sided, of an effect at the margin; for equivalence the larger of both sides (Schuirmann 1987).
            Adjusted by Holm's method over all declared margins.
        shown: whether ``p_value`` is below the one-sided level ``alpha / 2``.

    Example:
        >>> from privstats import randomness
        >>> schema = ps.EffectSchema.of(
        ...     {"age": (20, 90)}, treatment="arm", outcome={"relapse": (0, 1), "fall": (0, 1)}, probability=0.5
        ... )
        >>> privacy = ps.Privacy(model="central", unit="record", adjacency="add-remove", epsilon=8.0, delta=1e-6)
        >>> declared = ps.course.Analysis(primary=("fall",), margins=(ps.course.Margin("fall", -0.1, 0.1),))
        >>> course = ps.Effect.start(schema, ps.Cohort(2, 2, 4_000), privacy, analysis=declared)
        >>> place, arm = np.arange(4_000) // 2 % 10, np.arange(4_000) % 2
        >>> X, y = np.column_stack([np.linspace(20, 90, 4_000), arm]), np.column_stack([place < 3 + 2 * arm, place < 2])
        >>> shards = [(X[::3], y[::3]), (X[1::3], y[1::3])]
        >>> rows = ps.inference.effects(ps.simulate(course, shards, rng=randomness.seeded(0)), course)
        >>> [(verdict.margin.claim, verdict.shown) for verdict in rows.verdicts()]
        [('equivalence', True)]
    """

    margin: Margin
    conf_low: float
    conf_high: float
    p_value: float
    shown: bool

    def to_row(self) -> dict[str, object]:
        """Return the verdict as a row of data; a side without a margin is None."""
        margin = self.margin
        return {
            "test": margin.claim,
            "outcome": margin.outcome,
            "measure": margin.measure,
            "margin_low": margin.low,
            "margin_high": margin.high,
            "conf_low": self.conf_low,
            "conf_high": self.conf_high,
            "p_value": self.p_value,
            "shown": self.shown,
        }


@dataclass(frozen=True, eq=False)
class EffectRows(RowTable):
    """Effects with their intervals: per outcome in all records, then in each subgroup.

    The ``course`` holds the owners' declaration (:class:`~privstats.course.Analysis`), made before the first session.
    Undeclared rows are exploratory.

    Example:
        >>> from privstats import randomness
        >>> schema = ps.EffectSchema.of(
        ...     {"age": (20, 90)},
        ...     treatment="arm",
        ...     outcome={"relapse": (0, 1), "death": (0, 1)},
        ...     probability=0.5,
        ...     subgroups=(ps.Bins("age", (20, 50, 90)),),
        ... )
        >>> privacy = ps.Privacy(model="central", unit="record", adjacency="add-remove", epsilon=8.0, delta=1e-6)
        >>> course = ps.Effect.start(schema, ps.Cohort(2, 2, 4_000), privacy)
        >>> arm = np.arange(4_000) % 2
        >>> X, relapse = np.column_stack([np.linspace(20, 90, 4_000), arm]), np.arange(4_000) // 2 % 10 < 3 + 2 * arm
        >>> y = np.column_stack([relapse, np.arange(4_000) // 2 % 10 < 2])
        >>> shards = [(X[:2_000], y[:2_000]), (X[2_000:], y[2_000:])]
        >>> table = ps.inference.effects(ps.simulate(course, shards, rng=randomness.seeded(0)))
        >>> [(row.name, row.subgroup) for row in table][:3]
        [('relapse', ''), ('relapse', 'age: under 50'), ('relapse', 'age: 50 or more')]
        >>> low, high = table["relapse"].conf_int()
        >>> bool(low < 0.2 < high)
        True
    """

    tables: tuple[EffectTable, ...]
    course: Effect | None = None
    _read: CourseSums | None = None

    def __iter__(self) -> Iterator[EffectTable]:
        return iter(self.tables)

    def __len__(self) -> int:
        return len(self.tables)

    def __getitem__(self, asked: str | tuple[str, str]) -> EffectTable:
        """Return the row of an outcome, perhaps in a subgroup."""
        name, subgroup = (asked, "") if isinstance(asked, str) else asked
        for table in self.tables:
            if (table.name, table.subgroup) == (name, subgroup):
                return table
        rows = ", ".join(repr((table.name, table.subgroup)) for table in self.tables)
        raise ReleaseError(f"no row is of {(name, subgroup)!r}; there are {rows}")

    @property
    def named(self) -> dict[str, EffectTable]:
        """Rows by outcome, subgroup, or both."""
        return {" ".join(filter(None, (each.name, each.subgroup))) or "all": each for each in self.tables}

    @property
    def reported(self) -> bool:
        """Whether any effect is reported at .05."""
        return any(table.reported for table in self.tables)

    @property
    def analysis(self) -> Analysis | None:
        """The declared analysis, or None."""
        return None if self.course is None else self.course.analysis

    def pvalues_adjusted(self, method: str = "holm") -> Array:
        """Return Holm's (1979) p-values over exactly the declared rows, ``(rows,)``; NaN for exploratory ones.

        Primary and secondary rows are adjusted separately. A declared but unreported row counts with p-value 1.

        Raises:
            ReleaseError: another method, or no course was given, or it declares nothing.
        """
        if method != "holm":
            raise ReleaseError(f"method must be 'holm', got {method!r}")
        if self.analysis is None:
            raise ReleaseError(
                "no row is known to be declared before the first session, so none has an adjusted p-value: pass "
                "course= with a course that has an analysis"
            )
        adjusted = np.full(len(self), np.nan)
        for family in ("primary", "secondary"):
            places = _places(self.tables, family)
            adjusted[places] = holm(np.array([self.tables[place].pvalue for place in places]))
        return adjusted

    def verdicts(self) -> tuple[Verdict, ...]:
        """Return a verdict on each declared margin; none where the course declares none.

        A false claim has at most probability ``alpha / 2`` over all margins together. An effect that noise hides is
        never inside its margin.
        """
        if self.analysis is None:
            return ()
        margins, alpha = self.analysis.margins, self.analysis.alpha
        effects = [dict(self[each.outcome].measures)[each.measure] for each in margins]
        one_sided = [_outside(effect, each) for effect, each in zip(effects, margins, strict=True)]
        adjusted = holm(np.array(one_sided)) if margins else np.zeros(0)
        ends = [effect.conf_int(alpha).tolist() for effect in effects]
        return tuple(
            Verdict(each, low, high, float(p), bool(p < alpha / 2))
            for each, (low, high), p in zip(margins, ends, adjusted, strict=True)
        )

    def interactions(self) -> tuple[SubgroupTest, ...]:
        """Return a test of equal effects in the subgroups of each variable, per outcome.

        Only of differences in a trial: without randomisation the errors of one published propensity are in all
        subgroups, and no bound on their correlation is known.
        """
        schema = self.tables[0].release.plan.schema
        if not isinstance(schema, EffectSchema) or schema.probability is None or schema.measure == "ratio":
            return ()
        by: dict[str, list[str]] = {}
        for variable, name, _ in subgroups_of(schema):
            by.setdefault(variable, []).append(name)
        return tuple(
            SubgroupTest(outcome, variable, equal_effects([self[outcome, name] for name in names]))
            for outcome in schema.outcome_names or ("",)
            for variable, names in by.items()
        )

    def by_arm(self, alpha: float = 0.05) -> ArmTable:
        """Return both arms' numbers analysed, events and risks or means, and the effects (CONSORT 17a).

        Raises:
            ReleaseError: the course omitted the outcome lines, or noise hides the records; or it has interim looks,
                whose outcomes by arm are those of the first look's records alone.
        """
        assert self._read is not None  # noqa: S101  effects() has given it
        if is_look(self._read.last):
            raise ReleaseError(
                "outcomes by arm are read from the outcome session, which summed the first look's records alone: omit "
                "--arms, and read a look's effects with inference.looks"
            )
        return by_arm(self, self._read, alpha)

    def conf_int(self, alpha: float = 0.05) -> Array:
        """Return intervals, ``(rows, 2)``; infinite where hidden."""
        return np.stack([table.conf_int(alpha) for table in self.tables])

    def summary(self, alpha: float = 0.05) -> Summary:
        """Return the table."""
        from privstats.inference.treatment_effects.summary import effects_summary

        return effects_summary(self, alpha)

    def to_rows(self, alpha: float = 0.05) -> list[dict[str, object]]:
        """Return each row's numbers by name."""
        adjusted = None if self.analysis is None else self.pvalues_adjusted()
        return [
            {
                "outcome": table.name,
                "subgroup": table.subgroup,
                **row,
                "declared": table.declared,
                **({} if adjusted is None else {"adj_p_value": float(adjusted[place])}),
            }
            for place, table in enumerate(self.tables)
            for row in table.to_rows(alpha)
        ]

    def to_frame(self, alpha: float = 0.05) -> Any:
        """Return a ``DataFrame`` of :meth:`to_rows`."""
        return framed(self.to_rows(alpha))


def effects(releases: Sequence[Release | None], course: Effect | None = None) -> EffectRows:
    """Return the effects on all outcomes, in all records and in each subgroup.

    Each effect is read as by :func:`effect`, subgroups by one variable at a time. Without randomisation a subgroup's
    interval includes the largest variance that the nuisances' errors can add in any part of the records.

    Args:
        releases: of every session of one ``Effect`` course, in order; None for one without a sum.
        course: their course, which holds the declaration. None: every row is exploratory.

    Raises:
        ReleaseError: as for :func:`effect`, or the releases are not of this course.

    Example:
        >>> from privstats import randomness
        >>> outcome = {"relapse": (0, 1), "death": (0, 1)}
        >>> schema = ps.EffectSchema.of({"age": (20, 90)}, treatment="arm", outcome=outcome, probability=0.5)
        >>> privacy = ps.Privacy(model="central", unit="record", adjacency="add-remove", epsilon=8.0, delta=1e-6)
        >>> declared = ps.course.Analysis(primary=("relapse",))
        >>> course = ps.Effect.start(schema, ps.Cohort(2, 2, 4_000), privacy, analysis=declared)
        >>> place, arm = np.arange(4_000) // 2 % 10, np.arange(4_000) % 2
        >>> X, y = np.column_stack([np.linspace(20, 90, 4_000), arm]), np.column_stack([place < 3 + 2 * arm, place < 2])
        >>> releases = ps.simulate(course, [(X[::3], y[::3]), (X[1::3], y[1::3])], rng=randomness.seeded(0))
        >>> table = ps.inference.effects(releases, course)
        >>> [(row.name, row.declared) for row in table], (table.pvalues_adjusted() < 0.001).tolist()
        ([('relapse', 'primary'), ('death', 'exploratory')], [True, False])
    """
    read = course_sums(releases := all_sessions(releases))
    if course is not None:
        require_own(course, releases)
    plans = tuple(None if each is None else each.plan for each in releases)
    return effect_rows(read, plans, course)


def effect_rows(read: CourseSums, plans: tuple[Plan | None, ...], course: Effect | None = None) -> EffectRows:
    """Return the effects of checked sums, declared where the course is given."""
    analysis = None if course is None else course.analysis
    names = read.schema.outcome_names or ("",)
    return EffectRows(
        tuple(
            question(
                read,
                plans,
                place,
                subgroup=name,
                blocks=blocks,
                declared="exploratory" if analysis is None else analysis.family(names[place], variable),
            )
            for place in range(read.schema.outcomes)
            for variable, name, blocks in (("", "", None), *subgroups_of(read.schema))
        ),
        course,
        read,
    )


def _outside(effect: EffectTable, margin: Margin) -> float:
    """Return the one-sided p-value of an effect at or beyond the margin: half the two-sided one on the right side."""
    if effect.hidden:
        return 1.0
    found = []
    for end, inside in ((margin.low, 1), (margin.high, -1)):
        if end is not None:
            half = effect.ratio.pvalue(end) / 2
            found.append(half if inside * (effect.estimate - end) > 0 else 1 - half)
    return max(found)


def _places(tables: Sequence[EffectTable], family: str) -> list[int]:
    return [place for place, table in enumerate(tables) if table.declared == family]


def require_own(course: object, releases: Sequence[Release | None]) -> None:
    """Refuse releases that are not of this course."""
    if not isinstance(course, Effect):
        raise ReleaseError(f"course must be an Effect course, got {type(course).__name__}; read it with course.read")
    try:
        # The last of these checks the last release.
        plans = [course.next(releases[:place]) for place in range(len(releases) + 1)]
    except PlanError as error:
        raise ReleaseError(f"these releases are not of this course: {error}") from None
    for place, (own, release) in enumerate(zip(plans[:-1], releases, strict=True)):
        if own is None or (release is not None and replace(own, published=release.plan.published) != release.plan):
            raise ReleaseError(
                f"release {place} is not of this course; pass the course that its ledgers were charged for"
            )


def subgroups_of(schema: EffectSchema) -> Iterator[tuple[str, str, list[int]]]:
    """Yield every variable's subgroups: variable, name, and blocks of sums."""
    places = np.arange(math.prod(schema.crossed)).reshape(schema.crossed)
    for axis, variable in enumerate(schema.subgroups or ()):
        for cell, name in enumerate(variable.cells):
            yield variable.name, f"{variable.name}: {name}", np.take(places, cell, axis).reshape(-1).tolist()
