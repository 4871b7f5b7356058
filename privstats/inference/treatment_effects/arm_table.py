"""Tabulate outcomes by arm, then the effects (CONSORT 17a)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from privstats.errors import ReleaseError
from privstats.inference.description import Description
from privstats.inference.reporting import HIDDEN
from privstats.inference.summary import RowTable, Summary, ends_of, number_of
from privstats.inference.treatment_effects.adjusted import AdjustedMean
from privstats.inference.treatment_effects.arms import (
    ArmOutcome,
    LeftOut,
    Total,
    arm_labels,
    arm_names,
    arm_outcomes,
    excluded_records,
    together,
    with_adjusted,
)
from privstats.inference.treatment_effects.influence_sums import CourseSums
from privstats.inference.treatment_effects.summary import caution_of, records_of, source_of
from privstats.kinds import EffectSchema
from privstats.schema import narrowed

if TYPE_CHECKING:
    from collections.abc import Sequence

    from privstats.inference.treatment_effects.rows import EffectRows
    from privstats.inference.treatment_effects.table import EffectTable

_NOTES = (
    "Numbers analysed and events describe these records; SE is the standard error of the noise in a number. The "
    "arms add up to the records of the table that have an outcome.",
    "Risks and means by arm are not adjusted, unless the row says so; their intervals are about the population, and "
    "hold however the arms differ in spread. The effects below them are adjusted.",
)
_ADJUSTED = (
    "An adjusted risk or mean averages its arm's regression line over the columns of both arms (standardisation, the "
    "g-formula). Both differ by the difference; a ratio is estimated for itself, and is near their quotient. The "
    "arms of a trial differ by chance alone, so adjusted numbers hold whether the lines are right or wrong."
)

_LEFT_OUT = (
    "Excluded records and those analysed make up an arm. Noise may turn a few into 0, and 0 into a few. People in no "
    "file belong in the flow chart."
)


@dataclass(frozen=True, eq=False)
class ArmTable(RowTable):
    """Outcomes by arm, the treated first, followed by the effects in all records.

    Example:
        >>> from privstats import randomness
        >>> schema = ps.EffectSchema.of(
        ...     {"age": (20, 90)}, treatment="arm", outcome={"cured": (0, 1)}, probability=0.5
        ... )
        >>> privacy = ps.Privacy(model="central", unit="record", adjacency="add-remove", epsilon=8.0, delta=1e-6)
        >>> course = ps.Effect.start(schema, ps.Cohort(2, 2, 4_000), privacy)
        >>> arm, place = np.arange(4_000) % 2, np.arange(4_000) // 2 % 10
        >>> X, y = np.column_stack([np.linspace(20, 90, 4_000), arm]), place < 3 + 2 * arm
        >>> releases = ps.simulate(course, [(X[::3], y[::3]), (X[1::3], y[1::3])], rng=randomness.seeded(0))
        >>> table = ps.inference.effects(releases).by_arm()
        >>> [(row.arm, round(row.mean, 1)) for row in table.arms]
        [('treated', 0.5), ('others', 0.3)]
    """

    arms: tuple[ArmOutcome, ...]
    effects: tuple[EffectTable, ...]
    alpha: float
    left_out: tuple[LeftOut, ...] = ()

    @property
    def reported(self) -> bool:
        """Whether any row is reported."""
        return any(each.reported for each in self.arms) or any(each.reported for each in self.effects)

    def to_rows(self) -> list[dict[str, object]]:
        """Return rows by arm and effect; NaN where hidden."""
        rows: list[dict[str, object]] = []
        for place, effect in enumerate(self.effects):
            for arm in self.arms[2 * place : 2 * place + 2]:
                numbers: dict[str, object] = {"n": arm.analysed.value, "n_std_error": arm.analysed.error}
                events = (math.nan, math.nan) if arm.events is None else (arm.events.value, arm.events.error)
                numbers |= {"n_event": events[0], "n_event_std_error": events[1]}
                result = {"estimate": arm.mean, "conf_low": arm.low, "conf_high": arm.high, "reported": arm.reported}
                rows.append({"outcome": arm.outcome, "group": arm.arm, "metric": arm.measure, **numbers, **result})
                if arm.adjusted:
                    numbers = {**numbers, "n_event": math.nan, "n_event_std_error": math.nan}
                    rows.append({**rows[-1], "metric": f"adjusted {arm.measure}", **numbers, **arm.adjusted.to_row()})
            for measure, each in effect.measures:
                row = each.to_row(self.alpha)
                ends = {name: row[name] for name in ("estimate", "conf_low", "conf_high", "reported")}
                none = dict.fromkeys(("n", "n_std_error", "n_event", "n_event_std_error"), math.nan)
                treated, others = arm_names(self._schema)
                compared = {"level": treated, "compared_with": others}
                rows.append({"outcome": effect.name, "group": "", "metric": measure, **none, **ends, **compared})
        empty = ("n_event", "n_event_std_error", "estimate", "conf_low", "conf_high")
        hidden: dict[str, object] = dict.fromkeys(empty, math.nan)
        for gone in self.left_out:
            for metric, number in (("no outcome", gone.outcome), ("a column unread", gone.column)):
                line: dict[str, object] = {
                    "metric": f"left out: {metric}",
                    "n": number.value,
                    "n_std_error": number.error,
                    **hidden,
                    "reported": True,
                }
                rows.append({"outcome": "", "group": gone.arm, **line})
        return rows

    def summary(self) -> Summary:
        """Return the table."""
        first, alpha = self.effects[0], self.alpha
        rows = [
            row
            for place, effect in enumerate(self.effects)
            for row in (*self._arms(self.arms[2 * place : 2 * place + 2]), *self._effect(effect))
        ]
        notes = (*_NOTES, *[_ADJUSTED] * any(each.adjusted for each in self.arms), *[_LEFT_OUT] * bool(self.left_out))
        what = "risk" if all(each.events for each in self.arms) else "mean"
        return source_of(first, alpha).summary(
            "Outcomes by arm",
            ("", "analysed", "events", what, *ends_of(alpha)),
            rows,
            head=self._head(),
            notes=notes,
            methods="",
            caution=caution_of(first),
            about=Description(counts=(records_of(first),), facts=self._facts),
        )

    @property
    def _schema(self) -> EffectSchema:
        schema = self.effects[0].release.plan.schema
        return narrowed(schema, EffectSchema, ReleaseError("these releases measure no effect"))

    @property
    def _facts(self) -> tuple[tuple[str, str], ...]:
        """The outcome, where the rows do not name it."""
        name = self.effects[0].name
        return () if len(self.effects) > 1 or not name else (("outcome", name),)

    def _head(self) -> list[tuple[str, str]]:
        if not self.left_out:
            return []

        def phrase(several: Sequence[Total]) -> str:
            return together(several).text

        arms = ", ".join(f"{each.arm} {each.both.text}" for each in self.left_out)
        outcome, column = ([getattr(each, name) for each in self.left_out] for name in ("outcome", "column"))
        why = f"no outcome {phrase(outcome)}, another column unread {phrase(column)}"
        return [("left out", f"{phrase(outcome + column)}: {arms}"), ("because", why)]

    def _arms(self, arms: Sequence[ArmOutcome]) -> list[tuple[str, ...]]:
        rows, adjusted = [], []
        for arm, label in zip(arms, arm_labels(self._schema), strict=True):
            name = f"{arm.outcome}, {label}" if arm.outcome and len(self.effects) > 1 else label
            events = HIDDEN if arm.events is None else arm.events.text
            rows.append((name, arm.analysed.text, events, *_ends(arm)))
            if arm.adjusted:
                adjusted.append((f"{name}, adjusted", "", "", *_ends(arm.adjusted)))
        return rows + adjusted

    def _effect(self, effect: EffectTable) -> list[tuple[str, ...]]:
        rows = []
        treated, others = arm_names(self._schema)
        what = "risk" if any(each.events for each in self.arms if each.outcome == effect.name) else "mean"
        between = {"difference": f"{treated} less {others}", "ratio": f"{treated} over {others}"}
        for name, each in effect.measures:
            low, high = map(float, each.conf_int(self.alpha))
            ends = (HIDDEN, "-inf", "inf") if each.why_at(self.alpha) else map(number_of, (each.estimate, low, high))
            rows.append((f"  {what} {name}, {between[name]}", "", "", *ends))
        return rows


def _ends(arm: ArmOutcome | AdjustedMean) -> tuple[str, ...]:
    if not arm.reported:
        return HIDDEN, "-inf", "inf"
    return tuple(map(number_of, (arm.mean, arm.low, arm.high)))


def by_arm(rows: EffectRows, read: CourseSums, alpha: float) -> ArmTable:
    """Return both arms' outcomes and effects."""
    effects = tuple(each for each in rows if not each.subgroup)
    pairs = [arm_outcomes(read, place, alpha) for place in range(read.schema.outcomes)]
    arms = tuple(
        arm
        for place, (pair, effect) in enumerate(zip(pairs, effects, strict=True))
        for arm in with_adjusted(read, place, pair, effect, alpha)
    )
    return ArmTable(arms, effects, alpha, excluded_records(read))
