"""Define a treatment effect's sums."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self, TypeAlias, get_args

import numpy as np

from privstats.errors import SchemaError
from privstats.kinds.base import Kind
from privstats.kinds.column_facts import number_facts
from privstats.kinds.effect.checks import (
    EFFECT_TABLE,
    EXCLUSIONS,
    MAX_RATIO,
    RATIO_TABLE,
    TRIAL_TABLE,
    LeftOut,
    Measure,
    Missing,
    check_columns,
    check_design,
    check_maps,
    checked_outcomes,
    checked_range,
    checked_site_groups,
    checked_subgroups,
    ratio_cap,
    rows_of,
    with_balance,
    with_excluded,
)
from privstats.kinds.effect.declared import fields_of
from privstats.kinds.ridge import RidgeSchema
from privstats.kinds.worst import Record, Sums, WorstPair, added, dense, record_of
from privstats.records.reading import Targets
from privstats.records.variables import Variable, plain_variable
from privstats.schema.base import COUNT_SCALE, INFLUENCES, Adjacency, Statistic, by_letter, letters_of
from privstats.schema.checks import REQUIRED, checked_vectors, refused_groups, settle
from privstats.schema.public_values import Values
from privstats.schema.rounds import check_widths
from privstats.transforms import ByArm, Transform

if TYPE_CHECKING:
    from privstats.moments.base import ExactClass, Moments, RealMoments
    from privstats.moments.record_sums import RecordTerms
    from privstats.records.opened import Opened

Estimand: TypeAlias = Literal["ate", "att", "overlap"]

# Sums of products of 20-bit row entries and weights are exact in float64.
_MAX_FEATURES = 1 << 12
_EXPONENTS = range(-64, 65)


@dataclass(frozen=True)
class EffectSchema(Kind):
    """Sums of influence values on a treatment effect, at published outcome lines and a published propensity.

    A record is x, an arm a in {0, 1} and an outcome y in a public range of half-width B. Let m_1 and m_0 be the
    published lines at x, truncated to the range, and p the ``probability`` of a trial or the published propensity. The
    record's influence is ``m_1 - m_0 + a (y - m_1) / p - (1 - a)(y - m_0) / (1 - p)`` minus the published guess of the
    effect. Divided by its maximum C, which follows from public caps, it is t in -1..1. The record adds 1 to N,
    ``(t, 1 - t^2)`` to e, and to W its weight if a propensity is fitted, or a ratio's denominator. The square costs no
    further budget (docs/proofs/influence.md).

    Outcomes have the letters e, f, g and so on. Subgroups have separate sums with full noise; a record is in exactly
    one, so subgroups cost no budget under add-remove.

    Args:
        features: twice the number of columns after the transform, which ends in ``ConstantFeature`` and ``ByArm``.
        clip_norm: R, the norm to which rows are clipped.
        outcome: the public range (low, high), to which all outcomes are truncated.
        outcome_names: up to eight columns of y; None: one.
        subgroups: columns that divide the records, crossed into up to 64 subgroups: ``Categories`` of codes, or
            ``Bins`` that cover every value.
        groups: F, 6 to 64, to test whether effects differ between sites; a site's group is its roster index modulo F.
        probability: of treatment in a trial, .05 to .95, or one per roster index; None: not randomised.
        missing: ``"weights"`` in a trial of one outcome. y may be missing at random given arm and columns. Records
            weigh by the inverse published probability of being observed.
        measure: in a trial ``"ratio"`` of the arms' mean outcomes, or ``"both"``, ratio and difference; None: the
            difference.
        left_out: ``"counted"``: unreadable records are counted with noise, by arm and by whether outcome or column is
            unreadable, free at default shares (CONSORT 13b).
        balance: the last session's budget part for the columns' balance, .05 to .5.
        estimand: ``"ate"``; if not randomised also ``"att"``, of the treated, or ``"overlap"``, weighted by p (1 - p).
        trim: if not randomised, .02 to .4: excludes records with published propensities below it (not for ``"att"``) or
            above 1 minus it. With ``missing``, .2 to .8: the smallest published probability of being observed, in
            either arm.
        grid_bits: f; t has 2**f steps per 1.
        transform, feature_names: as in :class:`ClassSchema`; the arm is an input column.

    Guarantee:
        Unit: one record, for *every* published line and propensity. A record moves (N, W, e) by at most (1, 1, 1) if
        added, removed or exchanged for an unreadable one. Exchanged for a readable one, it moves them by at most (0, 1,
        2), a ratio's W by at most 2. The bound on e holds because ``t^2 + (1 - t^2)^2 <= 1`` (``dp.joint_mu``,
        docs/proofs/influence.md). Squares of several outcomes add up. With subgroups, a replaced record may change its
        subgroup, which moves N, W and each e by at most sqrt 2. An excluded record moves O alone, by 1; exchanged for
        another one, by sqrt 2. With ``balance``, b moves by 1; exchanged, by 2.

    Example:
        >>> schema = ps.EffectSchema.of({"age": (20, 90)}, treatment="arm", outcome=(0, 1), probability=0.5)
        >>> schema.feature_names, schema.statistics, schema.needs
        (('age', 'arm'), 'Ne', {'line': (5,)})
    """

    task: ClassVar[str] = "effect"
    purpose: ClassVar[str] = "how much a treatment changes an outcome, on average over many records"
    no_persons: ClassVar[str] = "the interval of an effect needs one row a person, or person_clip='average'"
    ignorable: ClassVar[str] = "its outcome"
    needs_privacy: ClassVar[str] = (
        "influence values cannot be released without differential privacy: the published models can be chosen so "
        "that one record counts alone; add a Privacy to the plan"
    )
    nonnegative: ClassVar[bool] = False
    proved: ClassVar[str] = f"NWbO{INFLUENCES}"
    nearer: ClassVar[bool] = True
    several_sessions: ClassVar[bool] = True

    features: int = REQUIRED
    clip_norm: float = REQUIRED
    _: KW_ONLY
    outcome: tuple[float, float]
    probability: float | tuple[float, ...] | None = None
    estimand: Estimand = "ate"
    trim: float | None = None
    grid_bits: int = 16
    transform: tuple[Transform, ...] = ()
    feature_names: tuple[str, ...] | None = None
    outcome_names: tuple[str, ...] | None = None
    subgroups: tuple[Variable, ...] | None = None
    groups: int | None = None
    measure: Measure | None = None
    balance: float | None = None
    missing: Missing | None = None
    left_out: LeftOut | None = None

    def __post_init__(self) -> None:
        settle(self, subgroups=checked_subgroups(self.subgroups))
        settle(self, groups=checked_site_groups(self.groups, self.subgroups))
        settle(self, **checked_vectors(self))
        if self.features % 2 or not 4 <= self.features <= _MAX_FEATURES:
            raise SchemaError(
                f"features must be an even number from 4 to {_MAX_FEATURES}, got {self.features}: a constant and at "
                "least one column in each arm; build the schema with EffectSchema.of"
            )
        settle(self, outcome=checked_range(self.outcome))
        if self.estimand not in get_args(Estimand):
            raise SchemaError(f"estimand must be 'ate', 'att' or 'overlap', got {self.estimand!r}")
        settle(self, outcome_names=checked_outcomes(self.outcome_names))
        check_design(self)
        check_maps(self)
        check_columns(self)

    @property
    def site_groups(self) -> int:
        """Number of site groups."""
        return self.groups or 1

    @classmethod
    def of(
        cls,
        columns: Mapping[str, tuple[float, float] | tuple[str, ...]],
        *,
        treatment: str | Mapping[str, tuple[str, str]],
        outcome: tuple[float, float] | Mapping[str, tuple[float, float] | tuple[str, str]],
        probability: float | tuple[float, ...] | None = None,
        estimand: Estimand = "ate",
        trim: float | None = None,
        clip_norm: float | None = None,
        grid_bits: int = 16,
        subgroups: tuple[Variable, ...] | None = None,
        groups: int | None = None,
        measure: Measure | None = None,
        balance: float | None = None,
        missing: Missing | None = None,
        left_out: LeftOut | None = None,
    ) -> Self:
        """Return the schema of columns with public ranges, which are scaled to -1..1.

        Args:
            columns: (low, high) by name, measured before treatment. Two texts instead count as 0 and 1; each of more
                texts is compared with the first (:class:`~privstats.transforms.Levels`).
            treatment: name of the column of arms, 0 or 1; or ``{"arm": ("placebo", "drug")}``.
            outcome: the public range, or one equal range by name; two texts, ``{"recovered": ("no", "yes")}``, are 0
                and 1.
            clip_norm: R; None: sqrt(columns + 1), which clips no record inside its ranges.
        """
        return cls(
            **fields_of(columns, treatment, outcome, clip_norm),
            probability=probability,
            estimand=estimand,
            trim=trim,
            grid_bits=grid_bits,
            subgroups=subgroups,
            groups=groups,
            measure=measure,
            balance=balance,
            missing=missing,
            left_out=left_out,
        )

    @property
    def table(self) -> tuple[Statistic, ...]:
        """The statistics; W is included for ratios and where a propensity is fitted."""
        counts = RATIO_TABLE if self.measure else EFFECT_TABLE if self.fits_propensity else TRIAL_TABLE
        partition = "group of sites" if self.groups else "subgroup" if self.blocks > 1 else ""
        rows = rows_of(with_balance(counts, self.balance), self.outcome_names or (), partition)
        return with_excluded(rows) if self.left_out else rows

    @property
    def statistics(self) -> str:
        """Sent letters."""
        return letters_of(self.table)

    @property
    def goal(self) -> Targets:
        """What y holds."""
        return Targets(self.outcomes, gaps=bool(self.missing))

    @property
    def sizes(self) -> dict[str, int]:
        """Axis lengths; exclusions are arms (others, treated, unknown) by unreadable outcome or column."""
        blocks = {"block": self.blocks} if self.blocks > 1 else {}
        return {"power": 2, "feature": self.width, "exclusion": EXCLUSIONS, **blocks}

    @property
    def outcomes(self) -> int:
        """Number of outcomes."""
        return len(self.outcome_names or ("",))

    @property
    def crossed(self) -> tuple[int, ...]:
        """Number of subgroups per variable."""
        return tuple(len(each.cells) for each in self.subgroups or ())

    @property
    def blocks(self) -> int:
        """Number of blocks."""
        return self.groups or math.prod(self.crossed)

    @property
    def lines(self) -> tuple[str, ...]:
        """Names of the outcomes' published lines."""
        return ("line", *(f"line{place}" for place in range(2, self.outcomes + 1)))

    @property
    def fits_propensity(self) -> bool:
        """Whether a propensity is fitted first."""
        return self.probability is None or self.missing is not None

    @property
    def width(self) -> int:
        """Columns of one arm, the constant included."""
        return self.features // 2

    @property
    def middle(self) -> float:
        """Middle of the outcome range."""
        return (self.outcome[0] + self.outcome[1]) / 2

    @property
    def half(self) -> float:
        """B, half the outcome range."""
        return (self.outcome[1] - self.outcome[0]) / 2

    @property
    def rows(self) -> RidgeSchema:
        """The ridge schema that reads records and fits outcome lines."""
        return RidgeSchema(
            self.features,
            self.outcomes,
            clip_norm=self.clip_norm,
            target_bound=max(map(abs, self.outcome)) * math.sqrt(self.outcomes),
            transform=self.transform,
            feature_names=self.feature_names,
            missing="left out" if self.missing else None,
        )

    @property
    def record(self) -> str:
        """Description of one record."""
        arm = "the arm of a treatment among them" if self.transform else "by the arm of a treatment"
        names = ", ".join(self.outcome_names or ())
        goal = f"the outcomes {names}, each" if self.outcomes > 1 else f"the outcome {names}" if names else "an outcome"
        goal += ", which may be missing," * bool(self.missing) + " from {:g} to {:g}".format(*self.outcome)
        partition = ", ".join(each.name for each in self.subgroups or ())
        return f"{self.columns}, {arm}, and {goal}" + f"; apart by {partition}" * bool(partition)

    def scale_of(self, statistic: str) -> float:
        """Return steps per 1: 2**f."""
        return by_letter(self.sent, statistic)[0].scale(1.0, float(self.grid_steps))

    @property
    def needs(self) -> Mapping[str, tuple[int, ...]]:
        """Each outcome's lines and guessed effect, ``(2 d + 1,)``; w ``(d,)``, or ``(2 d,)`` for missing outcomes."""
        line = dict.fromkeys(self.lines, (self.features + 1,))
        if not self.fits_propensity:
            return line
        return {**line, "w": (self.features if self.missing else self.width,)}

    def check_values(self, values: Mapping[str, Values]) -> None:
        """Refuse values of another shape, wider than 20 bits, tiny or enormous."""
        super().check_values(values)
        check_widths(values, _EXPONENTS)

    @property
    def probabilities(self) -> tuple[float, ...]:
        """Distinct probabilities of a trial, smallest first."""
        pi = self.probability
        return () if pi is None else tuple(sorted(set(pi))) if isinstance(pi, tuple) else (pi,)

    @property
    def min_chances(self) -> tuple[float, float]:
        """A trial's smallest probabilities of treatment and of no treatment."""
        return self.probabilities[0], 1 - self.probabilities[-1]

    @property
    def deepest(self) -> int:
        """Grid steps by which a record's part in a ratio's denominator can fall below 0; the part is at most 1."""
        return math.floor(self.probabilities[-1] * self.grid_steps)

    @property
    def cap(self) -> float:
        """Largest influence in units of B, before the guess is subtracted."""
        if self.probability is not None:
            return 2 / (min(self.min_chances) * (self.trim or 1.0))
        low = self.trim or 0.0
        return {"ate": 2 / low, "att": 2 * (1 - low) / low, "overlap": 2 * (1 - low)}[self.estimand]

    @property
    def largest_weight(self) -> float:
        """The unit of W: a record's largest weight, or largest contribution to a ratio's denominator."""
        of_weights = 0.25 if self.estimand == "overlap" else 1.0
        return 1 / self.min_chances[1] if self.measure else of_weights

    @property
    def arm_weight(self) -> float:
        """Largest weight of a record in its arm."""
        if self.probability is not None:
            return 1 / min(self.min_chances)
        low = self.trim or 0.0
        return {"ate": 1 / low, "att": (1 - low) / low, "overlap": 1 - low}[self.estimand]

    def guess(self, line: Values) -> float:
        """Return the published guess: in -1..1 units of B; a ratio in 1/4..4; for both 1."""
        if self.measure:
            return 1.0 if self.measure == "both" else min(MAX_RATIO, max(1 / MAX_RATIO, float(line.real[-1])))
        return min(1.0, max(-1.0, float(line.real[-1]) / self.half))

    def unit(self, line: Values) -> float:
        """Return C, the unit of t, in outcome units; for a ratio in outcome ranges."""
        if self.measure:
            return ratio_cap(*self.min_chances, self.guess(line))
        return self.half * (self.cap + abs(self.guess(line)) * self.largest_weight)

    # promised, clipped and agrees are unused here: other kinds read them.
    def refuses_cohort(self, clients: int, honest: int, *, promised: bool, clipped: bool, agrees: bool) -> str:  # noqa: ARG002
        """Return why probabilities must be one for each client, and a group must have three honest sites."""
        pi = self.probability
        if isinstance(pi, tuple) and len(pi) != clients:
            return (
                f"schema.probability has {len(pi)} numbers, and cohort.clients is {clients}: give one for each client "
                "of the roster, or one for all"
            )
        return refused_groups(self.site_groups, honest, "a spread between groups needs several sites in each")

    @property
    def column_facts(self) -> tuple[str, ...]:
        """The columns that must hold numbers: the arm, and outcomes from 0 to 1."""
        last = self.transform[-1] if self.transform else None
        arm = (self.feature_names[last.column],) if self.feature_names and isinstance(last, ByArm) else ()
        outcomes = (self.outcome_names or ("the outcome",)) * (self.outcome == (0.0, 1.0))
        return number_facts(self, (*arm, *outcomes))

    @property
    def facts(self) -> tuple[str, ...]:
        """Facts for an officer on missing outcomes, excluded records, several outcomes and subgroups."""
        outcomes, parts = self.outcomes, math.prod(self.crossed)
        names, apart = self.outcome_names or (), [each.name for each in self.subgroups or ()]
        shared = (
            f"the outcomes {', '.join(names)} share the budget: each has about sqrt({outcomes}) times the noise of one"
        )
        divided = (
            f"the records are divided into {parts} subgroups by {', '.join(apart)}: each has the noise of one sum on "
            f"its own records, and all together sqrt({parts}) times as much; what is not declared in a course is "
            "exploratory"
        )
        gaps = (
            "outcomes may be missing: rounds before the last session sum whether a record has one; the table is valid "
            "if only the arm and the columns decide that, which no sum can test"
        )
        counted = (
            "excluded records are counted, by arm and by whether their outcome or a column cannot be read, at no "
            "further cost: each record is in that count or in the other sums"
        )
        return (
            *((gaps,) if self.missing else ()),
            *((counted,) if self.left_out else ()),
            *((shared,) if outcomes > 1 else ()),
            *((divided,) if parts > 1 else ()),
            *self.column_facts,
        )

    def plain_fields(self) -> dict[str, Any]:
        """Return the fields for a plan file."""
        return {} if self.subgroups is None else {"subgroups": [plain_variable(each) for each in self.subgroups]}

    def refuses_persons(self, *, averaged: bool) -> str:
        """Return why persons are refused; averages need all sites to sum alike."""
        alone = self.groups is None and not isinstance(self.probability, tuple)
        if averaged and self.left_out:
            return "excluded records are counted one by one, and a person's rows are averaged"
        if averaged and not alone:
            return "groups of sites, and sites that differ in their probability, sum single rows"
        return "" if averaged else self.no_persons

    @property
    def unsigned(self) -> str:
        """Letters with entries that are never negative."""
        return "NO"

    def move(self, weights: Mapping[str, float], adjacency: Adjacency) -> float:
        """Return mu^2 of one record, for any published values.

        In one block ``t^2 + (1 - t^2)^2 <= 1``, and ``(t - t')^2 (1 + (t + t')^2) <= 4`` for two records. An exchange
        with an excluded record moves N too, and O by 1 if counted. An exchange between two blocks changes both in full
        (docs/proofs/influence.md).
        """
        weight, influence = weights.get("W", 0.0), sum(weights.get(letter, 0.0) for letter in f"b{INFLUENCES}")
        alone, left_out = weights.get("N", 0.0) + weight + influence, weights.get("O", 0.0)
        if adjacency == "add-remove":
            return max(alone, left_out)
        within = max(weight * _below(self) + 4 * influence, 2 * alone * (self.blocks > 1))
        return max(within, alone + left_out, 2 * left_out)

    @classmethod
    def example(cls) -> Self:
        """Return a small schema of this kind."""
        return cls(6, 1.0, outcome=(0.0, 1.0), probability=0.5)

    @classmethod
    def worst(cls) -> WorstPair:
        """Return the rule for two data sets that attain the bound."""
        return WorstPair(_pairs, added(_of_record), left_out=lambda schema: not schema.left_out)

    @classmethod
    def containers(cls) -> tuple[ExactClass, type[RealMoments]]:
        """Return the classes of exact sums and of sums in real units."""
        from privstats.kinds.effect.sums import EffectMoments, RealEffectMoments

        return EffectMoments, RealEffectMoments

    def moments_of(self, records: Opened, values: Mapping[str, Values]) -> Moments:
        """Return the exact sums of influence values."""
        from privstats.kinds.effect.sums import measured_effects

        return measured_effects(self, records, values)

    def terms_of(self, records: Opened, values: Mapping[str, Values]) -> RecordTerms:
        """Return each record's contribution."""
        from privstats.kinds.effect.sums import effect_terms

        return effect_terms(self, records, values)


# --- the sensitivity of a ratio, and the two data sets that the certificate compares


def _below(schema: EffectSchema) -> float:
    """Return the largest squared distance in W: weights are in 0..1, a ratio's ``(w, 1 - w^2)`` have w in -k..1."""
    if schema.measure is None:
        return 1.0
    k, one = schema.deepest, schema.grid_steps
    return ((one + k) ** 2 + ((one * one - k * k) // one) ** 2) / one**2


def _pairs(schema: EffectSchema, _: Mapping[str, float]) -> list[tuple[Record, Record]]:
    R, further = schema.grid_steps, INFLUENCES[1 : schema.outcomes]
    weight = [[0, R]] if "W" in schema.statistics else []

    def record(entry: list[int], o: list[list[int]]) -> Record:
        several: dict[str, Any] = {letter: [entry] for letter in further}
        if schema.balance:
            several["b"] = [[0, entry[1] * (entry[0] == 0)]]
        if schema.left_out:
            several["u"] = []
        return record_of([], t=[entry], o=o, **several)

    largest = record([0, R], weight)
    more = [(largest, {**largest, "cell": 1})] if schema.blocks > 1 else []
    other, k = weight, schema.deepest if schema.measure else 0
    if schema.measure:
        other = [[0, -k], [1, (R * R - k * k) // R]]
    if schema.left_out:
        none: Record = {name: [] for name in largest if name not in ("times", "cell")}
        gone = [{**largest, **none, "u": [[place, 1]]} for place in (0, 1)]
        more += [(gone[0], gone[1]), (gone[0], largest)]
    return [(largest, record([0, -R], other)), (largest, record([1, R], [[1, R]] if schema.measure else [])), *more]


def _of_record(schema: EffectSchema, record: Record) -> Sums:
    cell = record["cell"]
    if schema.left_out and record["u"]:
        return {("O", 0): COUNT_SCALE * dense(record["u"], EXCLUSIONS)}
    weight = {("W", cell): dense(record["o"], 2 if schema.measure else 1)} if "W" in schema.statistics else {}
    further = {(letter, cell): dense(record[letter]) for letter in INFLUENCES[1 : schema.outcomes]}
    if schema.balance:
        further["b", cell] = dense(record["b"], schema.width)
    return {("N", cell): np.array([COUNT_SCALE], object), ("e", cell): dense(record["t"]), **weight, **further}
