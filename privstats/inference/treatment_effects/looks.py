"""Read a trial's interim looks: a boundary for each, from alpha that was divided before the first."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from scipy.special import ndtr, ndtri

from privstats.course import Effect
from privstats.course.looks import Looks
from privstats.errors import ReleaseError
from privstats.estimates.boundaries import median_unbiased, next_boundary, spent
from privstats.inference.description import Law, numbers_of
from privstats.inference.releases import all_sessions
from privstats.inference.reporting import HIDDEN
from privstats.inference.summary import RowTable, Summary, chance_of, framed, number_of
from privstats.inference.treatment_effects.influence_sums import course_sums
from privstats.inference.treatment_effects.rows import EffectRows, effect_rows, require_own
from privstats.inference.treatment_effects.summary import caution_of, description_of, records_of, source_of
from privstats.inference.treatment_effects.table import EffectTable
from privstats.release import Release

_SMALLEST = 1e-12  # of the levels for which an interval is computed
_LARGEST = 37.0  # absolute statistic that a float's p-value still shows
_STOPPED = (
    "The effect as read at the look that stopped a trial is too far from 0 on average, because a trial stops where "
    "chance helps. The median-unbiased estimate is too large in half of all trials, stopped early or not, and its "
    "interval misses in {}% of them, if the assumptions hold, by the stagewise ordering of all results (Tsiatis, "
    "Rosner and Mehta 1984)."
)
_NAMES = {"obrien-fleming": "O'Brien and Fleming's", "pocock": "Pocock's"}


class Look(NamedTuple):
    """One look at the primary outcome.

    Attributes:
        number: from 1.
        time: declared share of alpha's clock.
        spent: alpha spent up to this look, two-sided.
        boundary: of the absolute statistic; infinite where nothing is spent yet.
        level: the same as a two-sided level; a p-value below it crosses the boundary.
        noise_share: part of the estimate's variance that is noise.
        table: the primary outcome's effect in all records so far, with usual intervals.
        conf_low, conf_high: repeated confidence interval; infinite where hidden.
        crossed: whether the p-value is below the level.

    Example:
        >>> from privstats import randomness
        >>> schema = ps.EffectSchema.of({"age": (20, 90)}, treatment="arm", outcome={"fall": (0, 1)}, probability=0.5)
        >>> privacy = ps.Privacy(model="central", unit="record", adjacency="add-remove", epsilon=8.0, delta=1e-6)
        >>> declared = ps.course.Analysis(primary=("fall",), looks=ps.course.Looks(2, "obrien-fleming"))
        >>> course = ps.Effect.start(schema, ps.Cohort(2, 2, 4_000), privacy, analysis=declared)
        >>> arm, one_in_three = np.arange(4_000) % 2, np.arange(4_000) // 2 % 3 == 0
        >>> X, releases, rng = np.column_stack([np.linspace(20, 90, 4_000), arm]), [], randomness.seeded(0)
        >>> for round_ in ps.course.iter_rounds(course, releases):
        ...     so_far = slice(2_000 if round_.place < 2 else 4_000)  # the first look comes at half of the records
        ...     records = (X[so_far], one_in_three[so_far])
        ...     shards = [tuple(each[k::3] for each in records) for k in (0, 1)]
        ...     releases.append(ps.simulate(round_.plan, shards, rng=rng))
        >>> first, second = ps.inference.looks(releases, course)
        >>> round(first.boundary, 2), first.crossed, round(second.spent, 4)
        (2.96, False, 0.05)
    """

    number: int
    time: float
    spent: float
    boundary: float
    level: float
    noise_share: float
    table: EffectTable
    conf_low: float
    conf_high: float
    crossed: bool


class FinalEffect(NamedTuple):
    """A trial's effect that counts at which look the trial stopped.

    Attributes:
        number: the look that stopped the trial, from 1.
        estimate: median unbiased: too large in half of trials, in outcome units.
        conf_low, conf_high: interval at the analysis' alpha.

    Example:
        >>> ps.inference.FinalEffect(2, 0.07, 0.01, 0.13).estimate
        0.07
    """

    number: int
    estimate: float
    conf_low: float
    conf_high: float


@dataclass(frozen=True, eq=False)
class LookTable(RowTable):
    """A trial's looks so far.

    The claim is that in at most alpha of trials the interval of *any* look misses, under the assumptions of
    :func:`effect` and of equal effects over the time of recruitment.

    Example:
        >>> from privstats import randomness
        >>> schema = ps.EffectSchema.of({"age": (20, 90)}, treatment="arm", outcome={"fall": (0, 1)}, probability=0.5)
        >>> privacy = ps.Privacy(model="central", unit="record", adjacency="add-remove", epsilon=8.0, delta=1e-6)
        >>> declared = ps.course.Analysis(primary=("fall",), looks=ps.course.Looks(2, "obrien-fleming"))
        >>> course = ps.Effect.start(schema, ps.Cohort(2, 2, 4_000), privacy, analysis=declared)
        >>> arm, one_in_three = np.arange(4_000) % 2, np.arange(4_000) // 2 % 3 == 0
        >>> X, releases, rng = np.column_stack([np.linspace(20, 90, 4_000), arm]), [], randomness.seeded(0)
        >>> for round_ in ps.course.iter_rounds(course, releases):
        ...     so_far = slice(2_000 if round_.place < 2 else 4_000)  # the first look comes at half of the records
        ...     records = (X[so_far], one_in_three[so_far])
        ...     shards = [tuple(each[k::3] for each in records) for k in (0, 1)]
        ...     releases.append(ps.simulate(round_.plan, shards, rng=rng))
        >>> table = ps.inference.looks(releases, course)
        >>> len(table), table.stopped is None, table.at(2)["fall"].reported
        (2, True, True)
    """

    rounds: tuple[Look, ...]
    course: Effect
    releases: tuple[Release | None, ...]

    def __iter__(self) -> Iterator[Look]:
        return iter(self.rounds)

    def __len__(self) -> int:
        return len(self.rounds)

    @property
    def lacking(self) -> tuple[int, ...]:
        """Numbers of the looks before the last one that have no release here."""
        have = {each.number for each in self.rounds}
        return tuple(number for number in range(1, self.rounds[-1].number) if number not in have)

    @property
    def stopped(self) -> Look | None:
        """The first look that crosses its boundary, or None."""
        return next((each for each in self.rounds if each.crossed), None)

    @property
    def final(self) -> FinalEffect | None:
        """The effect of a trial that stopped at a crossing, or after its last look; None while it goes on.

        Estimates and intervals read at that look do not count that the look was chosen by its result. With boundaries
        c_j, the look k and its statistic z, the estimate is the effect at which

        ``sum over j < k of P(Z_j >= c_j, no crossing before j) + P(Z_k >= z, no crossing before k)``

        is 1/2, and both ends of the interval are the effects at which it is alpha/2 and 1 - alpha/2 (stagewise
        ordering: Tsiatis, Rosner and Mehta 1984; Jennison and Turnbull 2000, 8.4; R's rpact). The joint law counts each
        look's noise (``estimates.boundaries``). The interval excludes 0 exactly where a boundary is crossed.
        """
        analysis = self.course.analysis
        assert analysis is not None  # noqa: S101  looks() has refused others
        assert analysis.looks is not None  # noqa: S101  likewise
        over = self.rounds[-1] if self.rounds[-1].number == analysis.looks.number else None
        look = self.stopped or over
        if look is None or look.table.hidden:
            return None
        return _final([each for each in self.rounds if each.number <= look.number], analysis.alpha)

    @property
    def reported(self) -> bool:
        """Whether any look reports its interval."""
        return any(math.isfinite(each.conf_low) for each in self.rounds)

    def at(self, number: int) -> EffectRows:
        """Return all outcomes and subgroups at a look, exploratory: their intervals do not count the looks.

        Raises:
            ReleaseError: no such look has a sum.
        """
        for place, release in enumerate(self.releases):
            if release is not None and self.course.look_of(place) == number - 1:
                return _rows(self.course, self.releases, place)
        have = ", ".join(str(each.number) for each in self.rounds) or "none"
        raise ReleaseError(f"number must be a look with a sum ({have}), got {number!r}")

    def summary(self) -> Summary:
        """Return the table of looks."""
        return _summary(self)

    def to_rows(self) -> list[dict[str, object]]:
        """Return a row per look; the interval is that of the look's level.

        The row of the look at which the trial ended also has :attr:`final`.
        """
        final = self.final
        return [
            {
                "look": each.number,
                **numbers_of((records_of(each.table),)),
                "estimate": each.table.estimate if math.isfinite(each.conf_low) else math.nan,
                "std_error": each.table.bse,
                "noise_std_error": each.table.noise_bse,
                "df": each.table.df,
                "p_value": each.table.pvalue,
                "nominal_level": each.level,
                "boundary": each.boundary,
                "conf_low": each.conf_low,
                "conf_high": each.conf_high,
                "crossed": each.crossed,
                **_final_columns(final if final is not None and final.number == each.number else None),
                "reported": math.isfinite(each.conf_low),
            }
            for each in self.rounds
        ]

    def to_frame(self) -> Any:
        """Return a ``DataFrame`` of :meth:`to_rows`."""
        return framed(self.to_rows())


def looks(releases: Sequence[Release | None], course: Effect) -> LookTable:
    """Return the looks so far of a course whose analysis declares :class:`~privstats.course.looks.Looks`.

    Alpha spent up to look k follows from the declared times. The boundary c_k of look k solves

    ``P(|Z_1| < c_1, ..., |Z_(k-1)| < c_(k-1), |Z_k| >= c_k) = alpha_k - alpha_(k-1)``

    where the effect is 0. Records of earlier looks are in later sums, and each look has noise of its own, so the
    correlation of Z_j and Z_k is ``v_j / sqrt((v_j + w_j)(v_k + w_k))``, with sampling variances v and noise variances
    w of the sums (``estimates.boundaries``). The interval of a look is that of its level (Jennison and Turnbull
    1989). A look without a sum spends nothing.

    Args:
        releases: of every session so far, in order; None for one without a sum.

    Raises:
        ReleaseError: no looks are declared, the releases are not of this course, or no look has a sum.

    Example:
        >>> from privstats import randomness
        >>> schema = ps.EffectSchema.of({"age": (20, 90)}, treatment="arm", outcome={"fall": (0, 1)}, probability=0.5)
        >>> privacy = ps.Privacy(model="central", unit="record", adjacency="add-remove", epsilon=8.0, delta=1e-6)
        >>> declared = ps.course.Analysis(primary=("fall",), looks=ps.course.Looks(2, "obrien-fleming"))
        >>> course = ps.Effect.start(schema, ps.Cohort(2, 2, 4_000), privacy, analysis=declared)
        >>> arm, one_in_three = np.arange(4_000) % 2, np.arange(4_000) // 2 % 3 == 0
        >>> X, releases, rng = np.column_stack([np.linspace(20, 90, 4_000), arm]), [], randomness.seeded(0)
        >>> for round_ in ps.course.iter_rounds(course, releases):
        ...     so_far = slice(2_000 if round_.place < 2 else 4_000)  # the first look comes at half of the records
        ...     records = (X[so_far], one_in_three[so_far])
        ...     shards = [tuple(each[k::3] for each in records) for k in (0, 1)]
        ...     releases.append(ps.simulate(round_.plan, shards, rng=rng))
        >>> [look.crossed for look in ps.inference.looks(releases, course)]
        [False, False]
    """
    analysis = course.analysis if isinstance(course, Effect) else None
    if analysis is None or analysis.looks is None:
        raise ReleaseError("course must be an Effect course whose analysis declares looks; read others with effects")
    listed = tuple(all_sessions(releases))
    require_own(course, listed)
    found: list[Look] = []
    for place, release in enumerate(listed):
        if release is not None and (number := course.look_of(place)) is not None:
            (outcome,) = analysis.primary
            table = replace(_rows(course, listed, place)[_named(course, outcome), ""], declared="primary")
            found.append(_look(found, number, table, analysis.looks, analysis.alpha))
    if not found:
        raise ReleaseError("no look has a release, so there is nothing to read; go on with the course")
    return LookTable(tuple(found), course, listed)


def _named(course: Effect, outcome: str) -> str:
    return outcome if course.schema.outcome_names else ""


def _rows(course: Effect, releases: Sequence[Release | None], place: int) -> EffectRows:
    lines = list(releases[:1]) if course.share else []
    plans = tuple(None if each is None else each.plan for each in releases[: place + 1])
    sessions = [*lines, *[None] * (place - len(lines)), releases[place]]
    return effect_rows(course_sums(sessions, look=True), plans)


def _look(before: Sequence[Look], place: int, table: EffectTable, declared: Looks, alpha: float) -> Look:
    time = declared.clock[place]
    total = float(spent(declared.spending, (time,), alpha)[0])
    boundary, level = math.inf, 0.0
    if not table.hidden:
        _, sampling, noise = _variances([each.table for each in before] + [table])
        earlier = [each.boundary for each in before]
        used = before[-1].spent if before else 0.0
        boundary = next_boundary(earlier, sampling, noise, total - used)
        level = 2 * float(ndtr(-boundary))
    low, high = table.conf_int(level).tolist() if level > _SMALLEST else (-math.inf, math.inf)
    crossed = table.pvalue < level
    share = table.ratio.noise / table.ratio.variance if table.ratio.variance > 0 else 1.0
    return Look(place + 1, time, total, boundary, level, share, table, low, high, crossed)


def _variances(tables: Sequence[EffectTable]) -> tuple[float, list[float], list[float]]:
    """Return one record's sampling variance at the last look, and the sums' sampling and noise variances by look."""
    last = tables[-1].ratio
    by_record = (last.variance - last.noise) / max(last.W, 1.0)
    sampling = [by_record * max(each.ratio.W, 1.0) for each in tables]
    return by_record, sampling, [each.ratio.noise for each in tables]


def _final(looks: Sequence[Look], alpha: float) -> FinalEffect:
    """Return the effect after the last of these looks.

    The statistic is the normal one of the look's p-value, as its boundary is. Where that p-value has few degrees, the
    estimate after one look would be nearer to 0 than the effect read there. So ``unit`` makes the two equal.
    """
    tables = [each.table for each in looks]
    by_record, sampling, noise = _variances(tables)
    effect, chance = tables[-1].estimate, tables[-1].pvalue
    statistic = math.copysign(min(-float(ndtri(chance / 2)) if chance else _LARGEST, _LARGEST), effect)
    read = by_record * statistic * math.sqrt(sampling[-1] + noise[-1]) / sampling[-1]
    unit = by_record * (effect / read if read else 1.0)
    bounds = [each.boundary for each in looks[:-1]]
    estimate, low, high = (unit * each for each in median_unbiased(bounds, statistic, sampling, noise, alpha))
    least, most = (float(each) for each in np.clip((low, high), *tables[-1]._possible))
    return FinalEffect(looks[-1].number, estimate, least, most)


def _final_columns(final: FinalEffect | None) -> dict[str, float]:
    """Return the columns of the effect that counts the looks; NaN in the row of any other look."""
    values = (math.nan,) * 3 if final is None else (final.estimate, final.conf_low, final.conf_high)
    return dict(zip(("final_estimate", "final_low", "final_high"), values, strict=True))


def _summary(looks: LookTable) -> Summary:
    course, last = looks.course, looks.rounds[-1].table
    analysis = course.analysis
    assert analysis is not None  # noqa: S101  looks() has refused others
    assert analysis.looks is not None  # noqa: S101  likewise
    source, kind = source_of(last, analysis.alpha), _NAMES[analysis.looks.spending]
    (outcome,) = analysis.primary
    _, *foot = source.foot
    rule = (
        f"Alpha {analysis.alpha:g} is spent over {analysis.looks.number} looks by {kind} function (Lan and DeMets "
        "1983), as declared before the first session"
    )
    claim = (
        f"In at most {100 * analysis.alpha:g}% of trials the interval of any of the looks misses, if the assumptions "
        f"hold; it is that of the look's level. '{HIDDEN}' means not reported: noise hides it, or no alpha is spent "
        "yet."
    )
    stopped = looks.stopped
    verdict = (
        "no boundary is crossed"
        if stopped is None
        else f"the boundary is crossed at look {stopped.number} (P {chance_of(stopped.table.pvalue)})"
    )
    law = Law.of([each.table.df for each in looks.rounds], "by Satterthwaite (1946)", estimated=True, inverted=True)
    # Arms are not counted: the outcome session summed the records of the first look alone.
    counts = (records_of(last),)
    about = replace(description_of([("", last)], last), counts=counts, law=law, noisy_rows=last.nobs_sigma > 0)
    final, stated = looks.final, _STOPPED.format(f"{100 * analysis.alpha:g}")
    unbiased = () if final is None else (("after the looks", _finally(final, looks)),)
    return Summary(
        title=source.title(f"Looks at the effect on {outcome}"),
        promise=source.promise,
        head=(
            *about.head,
            ("looks", f"{len(looks)} of {analysis.looks.number}; {verdict}"),
            *unbiased,
            *([("lacking", _lacking(looks))] if looks.lacking else []),
            ("course", f"digest {course.digest[:16]}..."),
        ),
        columns=(
            *("look", "records", "effect", "std err", "noise SE", *law.columns, "|z| from", "level", law.heading),
            *("[low", "high]", ""),
        ),
        rows=tuple(_cells(each, law.cells(place)) for place, each in enumerate(looks.rounds)),
        foot=(
            claim,
            *about.foot,
            f"{rule}. Boundaries count that looks share records and that each has noise of its own.",
            "The effect is assumed to be the same for early and late records. A trial that goes on after a crossing, "
            "or stops without one, keeps the claim. The budget of all looks was charged before the first; stopping "
            "early gives nothing back.",
            *(() if final is None else (stated,)),
            *foot,
        ),
        methods=source.methods(
            f"{rule}; {verdict}. {about.methods}"
            f"{'' if final is None else f' {_capital(_finally(final, looks))}. {stated}'}",
            claim=claim,
        ),
        about=about,
        caution=_lacking(looks) if looks.lacking else caution_of(last),
    )


def _finally(final: FinalEffect, looks: LookTable) -> str:
    """Return the estimate of a trial that ended, next to the one read at its look."""
    read = next(each.table for each in looks if each.number == final.number)
    low, high = (number_of(each) for each in read.conf_int())
    return (
        f"median-unbiased effect {number_of(final.estimate)} [{number_of(final.conf_low)}, "
        f"{number_of(final.conf_high)}]; as read at look {final.number} {number_of(read.estimate)} [{low}, {high}]"
    )


def _capital(text: str) -> str:
    return f"{text[0].upper()}{text[1:]}"


def _lacking(looks: LookTable) -> str:
    numbers = ", ".join(map(str, looks.lacking))
    return (
        f"look {numbers} has no release here, so its alpha goes to the next; if it had a sum, pass its release too, or "
        "these boundaries are wrong"
    )


def _cells(look: Look, degrees: tuple[str, ...]) -> tuple[str, ...]:
    table, known = look.table, math.isfinite(look.conf_low)
    numbers = [table.estimate, table.bse, table.noise_bse]
    shown = [number_of(each) for each in numbers] if known else [HIDDEN] * 3
    bound = f"{look.boundary:.3f}" if math.isfinite(look.boundary) else HIDDEN
    ends = (number_of(look.conf_low), number_of(look.conf_high)) if known else ("-inf", "inf")
    level = chance_of(look.level) if look.level else HIDDEN
    verdict = "crossed" if look.crossed else ""
    first = (str(look.number), records_of(table).short, *shown, *degrees)
    return (*first, bound, level, chance_of(table.pvalue), *ends, verdict)
