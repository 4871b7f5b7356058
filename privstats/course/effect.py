"""Plan the sessions of a treatment effect."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from privstats.course.analysis import Analysis
from privstats.course.newton import weights_after
from privstats.course.phases import Past, Phase, Phases
from privstats.course.planned import Phased, require_plan
from privstats.course.promise import Promise, part_of
from privstats.dp import NoPrivacy, Privacy
from privstats.errors import PlanError, RecordError, ReleaseError
from privstats.estimates.denoise import Array
from privstats.estimates.effect import ArmSums, outcome_lines, ratio_guess
from privstats.intake.accepted import RecordsLike, TargetsLike
from privstats.kinds import EffectSchema, RidgeSchema, ScoreSchema
from privstats.moments import Moments, exact_moments
from privstats.plan import Cohort, Plan
from privstats.records.reading import Unreadable
from privstats.release import Release
from privstats.schema import Schema, narrowed
from privstats.schema.public_values import Published, Values
from privstats.transforms import ByArm, ConstantFeature

_ODDS = 4.0  # 1 / (p (1 - p)) at p = 1/2


def zero_values(schema: EffectSchema) -> dict[str, Values]:
    """Return zeros, the published values before any release."""
    return {name: Values(np.zeros(shape, np.int64), 0) for name, shape in schema.needs.items()}


def propensity_schema(schema: EffectSchema) -> ScoreSchema:
    """Return the schema of a propensity round: the arm on all columns, or presence of the outcome per arm."""
    names = schema.feature_names
    return ScoreSchema(
        schema.features if schema.missing else schema.width,
        clip_norm=schema.clip_norm,
        transform=schema.transform,
        feature_names=names,
        outcomes=schema.outcomes if schema.outcomes > 1 else None,
        missing="outcome" if schema.missing else None,
    )


def published_values(schema: EffectSchema, have: Sequence[Release]) -> dict[str, Values]:
    """Return the last session's values: the lines, and w where one is fitted."""
    if not have:
        return zero_values(schema)
    line = {name: published_line(schema, have[-1], place) for place, name in enumerate(schema.lines)}
    if not schema.fits_propensity:
        return line
    return {**line, "w": weights_after(propensity_schema(schema), have[:-1])[-1]}


def published_line(schema: EffectSchema, outcome: Release, place: int = 0) -> Values:
    """Return one outcome's two lines and guessed effect, from the outcome session's release.

    They share one array, because machines may differ by a part of its largest entry (:meth:`Values.near`).
    """
    sums = arm_sums(schema, outcome, place)
    lines = outcome_lines(sums, schema.half)
    if schema.measure:
        lines[-1] = ratio_guess(sums, lines, schema.half) if schema.measure == "ratio" else 1.0
    return Values.rounded(lines)


def arm_sums(schema: EffectSchema, outcome: Release, place: int = 0) -> ArmSums:
    """Return outcome sums by arm, about the middle of the outcome range."""
    refusal = ReleaseError("this release is of no outcome session; give the releases of one Effect course, in order")
    if narrowed(outcome.plan.schema, RidgeSchema, refusal) != schema.rows:
        raise refusal
    h = np.asarray(outcome.moments.h).reshape(schema.features, -1)[:, place]
    d, sigma, constant = schema.width, outcome.sigma, _constant(schema)
    blocks = _by_arm(schema, np.asarray(outcome.moments.G))
    centred = [each[:, -1] * (schema.middle / constant) for each in blocks]
    return ArmSums(
        G=blocks,
        h=(h[:d] - centred[0], h[d:] - centred[1]),
        constant=constant,
        sigma_G=float(sigma.get("G", 0.0)),
        sigma_h=float(sigma.get("h", 0.0)),
    )


def assigned_sums(schema: EffectSchema, first: Release) -> ArmSums:
    """Return all records' sums by arm, with or without an outcome; h is 0.

    A propensity's first round has w = 0: its information is a fourth of the Gram matrix.
    """
    none = np.zeros(schema.width)
    return ArmSums(
        G=_by_arm(schema, _ODDS * np.asarray(first.moments.H)),
        h=(none, none),
        constant=_constant(schema),
        sigma_G=_ODDS * float(first.sigma.get("H", 0.0)),
        sigma_h=0.0,
    )


def _by_arm(schema: EffectSchema, G: Array) -> tuple[Array, Array]:
    """Return each arm's symmetric block; entries between arms are noise alone."""
    d = schema.width
    treated, others = ((G[part, part] + G[part, part].T) / 2 for part in (slice(0, d), slice(d, 2 * d)))
    return treated, others


def _constant(schema: EffectSchema) -> float:
    *_, constant, _ = schema.transform
    assert isinstance(constant, ConstantFeature)  # noqa: S101  the schema has refused others
    return constant.value


_MOST_RETRIES = 16
_MOST_SHARE = 0.3
_MOST_ROUNDS = 16
_ROUNDS = 4
_WHOLE_CLINIC = 20  # records in one arm that do not come about by chance
_PROPENSITY = 0.4  # share of mu^2
_ROUND, _LINES = "propensity", "outcome lines"  # names of phases
LOOK = "look"
"""Name of a look's phase, before its number."""


@dataclass(frozen=True)
class Effect(Phased):
    """The sessions of a treatment effect; the last sums influence values at what the others published.

    In a randomised trial both arms' outcome lines come first and only shorten the interval, which holds for any lines.
    If not randomised, rounds of a logistic regression of the arm come before, at two fifths of mu^2. In a trial with
    missing outcomes, such rounds model the outcome's presence per arm.

    Args:
        plan: the last session's plan, as :meth:`start` builds it, of an ``EffectSchema``.
        share: the outcome session's part of mu^2, up to .3; 0 omits it from a trial. With retries it has at least a
            propensity round's part, because a lost session may move such a round to its place.
        rounds: of the propensity; None: 4, or none if no propensity is fitted.
        retries: budgeted sessions, each at the last one's price, for those without a sum.
        analysis: declared before the first session; None: every row is exploratory. With ``looks``, the last session
            comes once per look, each with an equal part of the budget, and sums all records so far. The outcome lines
            of the first look serve all looks.

    Guarantee:
        All sessions and retries together are mu-GDP with :attr:`mu`, for the plan's unit and adjacency: all bounds hold
        for every published value, and sessions compose (:class:`Course`).

    Example:
        >>> schema = ps.EffectSchema.of({"age": (20, 90)}, treatment="arm", outcome=(0, 1), probability=0.5)
        >>> privacy = ps.Privacy(model="central", unit="record", adjacency="add-remove", epsilon=3.0, delta=1e-6)
        >>> course = ps.Effect.start(schema, ps.Cohort(2, 2, 5_000), privacy)
        >>> [plan.schema.task for plan in course.priced], round(course.epsilon(1e-6), 3)
        (['ridge', 'effect'], 3.0)
    """

    label = "effect"
    plan: Plan
    share: float = field(default=0.1, metadata={"usual": 0.1})
    rounds: int | None = None
    retries: int = field(default=0, metadata={"usual": 0})
    promise: Promise | None = field(default=None, compare=False)
    analysis: Analysis | None = None

    def _require(self) -> None:
        schema = _require_effect(self.plan)
        _check_numbers(schema, self.share, self.rounds, self.retries)
        _check_analysis(schema, self.analysis)
        _check_looks(schema, self.analysis, self.retries)
        started = Published.of(zero_values(schema))
        if self.plan.published is None or self.plan.published.sha256 != started.sha256:
            raise PlanError("the plan publishes other values than the course starts from; use Effect.start")
        object.__setattr__(self, "plan", replace(self.plan, published=started))
        _ = self.outcome, self.propensity  # forces the noise of all

    @classmethod
    def start(
        cls,
        schema: EffectSchema,
        cohort: Cohort,
        privacy: Privacy,
        *,
        adjust: bool = True,
        share: float = 0.1,
        rounds: int | None = None,
        retries: int = 0,
        analysis: Analysis | None = None,
    ) -> Effect:
        """Divide a total promise over the sessions.

        Args:
            privacy: the total promise, retries included.
            adjust: False omits a trial's outcome lines.
        """
        if isinstance(privacy, NoPrivacy) or not isinstance(privacy, Privacy):
            raise PlanError("influence values need differential privacy: give privacy=Privacy(...)")
        plan = cls.full_plan(schema=schema, cohort=cohort, privacy=privacy)
        return cls.within(plan, share=share if adjust else 0.0, rounds=rounds, retries=retries, analysis=analysis)

    @classmethod
    def within(
        cls,
        whole: Plan,
        *,
        share: float = 0.1,
        rounds: int | None = None,
        retries: int = 0,
        analysis: Analysis | None = None,
    ) -> Effect:
        """Divide a plan's total promise over the sessions.

        Args:
            whole: the last session's plan from :meth:`full_plan`, with the total promise.
        """
        schema = _require_effect(whole)
        _check_numbers(schema, share, rounds, retries)
        _check_analysis(schema, analysis)
        last = _last_part(schema, share, rounds, retries) / _looks_of(analysis)
        part = part_of(whole, last, getattr(whole.privacy, "shares", None))
        return cls(replace(whole, privacy=part), float(share), rounds, retries, Promise.of(whole), analysis)

    @staticmethod
    def full_plan(*, schema: EffectSchema, **terms: Any) -> Plan:
        """Return a plan at values of 0, for :meth:`within`."""
        return Plan(schema=schema, **{**terms, "published": Published.of(zero_values(schema))})

    @property
    def schema(self) -> EffectSchema:
        """Schema of the last session."""
        return _require_effect(self.plan)

    @property
    def before(self) -> int:
        """Number of propensity rounds."""
        return (self.rounds or _ROUNDS) if self.schema.fits_propensity else 0

    @cached_property
    def outcome(self) -> Plan | None:
        """The plan of the outcome lines, if any."""
        part = _outcome_part(self.schema, self.share, self.rounds, self.retries)
        return self._part(self.schema.rows, part, None) if self.share else None

    @cached_property
    def propensity(self) -> Plan | None:
        """The first propensity plan, if any."""
        if not self.before:
            return None
        score = propensity_schema(self.schema)
        return self._part(score, _PROPENSITY / self.before, Published.of({"w": weights_after(score, ())[0]}))

    @property
    def looks(self) -> int:
        """Number of looks; 1 without interim looks."""
        return _looks_of(self.analysis)

    def look_of(self, place: int) -> int | None:
        """Return the look, from 0, of the session at a place; None for the outcome lines, which come first."""
        return None if place < bool(self.share) else place - bool(self.share)

    @property
    def _facts(self) -> dict[str, Any]:
        """The fields in the digest, of an analysis without empty margins and looks: such courses keep theirs."""
        facts = super()._facts
        if self.analysis is None:
            return facts
        later = {"margins": self.analysis.margins, "looks": self.analysis.looks}
        stated = {name: value for name, value in asdict(self.analysis).items() if name not in later or later[name]}
        return {**facts, "analysis": stated}

    def _part(self, schema: Schema, part: float, published: Published | None) -> Plan:
        last = _last_part(self.schema, self.share, self.rounds, self.retries) / self.looks
        privacy = part_of(self.plan, part / last, None)
        return replace(self.plan, schema=schema, privacy=privacy, published=published)

    @property
    def first(self) -> Plan:
        """The first session's plan."""
        return self.phases.first

    @cached_property
    def phases(self) -> Phases:
        """Any rounds of the propensity, any outcome lines, and the effect, which needs all of them."""
        phases = []
        if self.propensity is not None:
            phases.append(Phase(_ROUND, self.propensity, self.before, needed=True, published=self._published_weights))
        if self.outcome is not None:
            phases.append(Phase(_LINES, self.outcome, needed=True))
        if self.looks > 1:
            lines = () if self.outcome is None else (Phase(_LINES, self.outcome, sums=None, tries=1),)
            return Phases((*lines, *(self._look(number) for number in range(1, self.looks + 1))))
        last = Phase("effect", self.plan, needed=True, published=self._published_lines)
        return Phases((*phases, last), self.retries)

    def _look(self, number: int) -> Phase:
        """Return a look's phase: a look without a sum is skipped."""
        return Phase(f"{LOOK} {number}", self.plan, sums=None, tries=1, published=self._published_lines)

    def _published_weights(self, past: Past) -> Published:
        return past.publish({"w": weights_after(propensity_schema(self.schema), past.of(_ROUND))[-1]})

    def _published_lines(self, past: Past) -> Published:
        return past.publish(published_values(self.schema, [*past.of(_ROUND), *past.of(_LINES)]))

    def admits(
        self,
        X: RecordsLike,
        y: TargetsLike | None,
        unreadable: Unreadable = "refuse",
        measured: Callable[..., Moments] = exact_moments,
    ) -> None:
        """Refuse records early that a later session would refuse.

        Warns:
            UserWarning: twenty or more records of a trial are all in one arm; stays with the data holder.

        Raises:
            RecordError: an unreadable record, an arm other than 0 and 1, or no subgroup.
        """
        if isinstance(X, Iterator):  # an iterator of batches would be read twice
            X = list(X)
        try:
            self._warn_of_one_arm(X, y, unreadable, measured)
            if self.schema.subgroups is not None:  # earlier sessions do not read subgroups
                measured(self.schema, X, y, unreadable=unreadable, published=self.plan.published)
        except RecordError as error:
            raise RecordError(f"{error}; the arm {self._arm} must be 0 or 1 in every record") from None

    def _warn_of_one_arm(
        self, X: RecordsLike, y: TargetsLike | None, unreadable: Unreadable, measured: Callable[..., Moments]
    ) -> None:
        if self.schema.missing and self.propensity is not None:
            published = self.propensity.published
            rounds = measured(self.propensity.schema, X, y, unreadable=unreadable, published=published)
            _warn_of_one_arm(self.schema, _summed(rounds, "H"), rounds.records)
            return
        rows = measured(self.schema.rows, X, y, unreadable=unreadable)
        _warn_of_one_arm(self.schema, _summed(rows, "G"), rows.records)

    @property
    def _arm(self) -> str:
        names, last = self.schema.feature_names, self.schema.transform[-1]
        column = last.column if isinstance(last, ByArm) else 0
        return repr(names[column]) if names else f"in column {column}"


def _require_effect(plan: object) -> EffectSchema:
    require_plan("plan", plan)
    assert isinstance(plan, Plan)  # noqa: S101  refused before
    refusal = PlanError("plan must be of an EffectSchema; build the course with Effect.start(schema, ...)")
    schema = narrowed(plan.schema, EffectSchema, refusal)
    if not schema.transform:
        raise PlanError("the schema must have a transform that ends in ByArm; build it with EffectSchema.of")
    return schema


def _check_numbers(schema: EffectSchema, share: Any, rounds: Any, retries: Any) -> None:
    if type(share) not in (int, float) or not 0 <= share <= _MOST_SHARE:
        raise PlanError(f"share must be a number from 0 to {_MOST_SHARE:g}, got {share!r}; .1 is usual")
    if type(retries) is not int or not 0 <= retries <= _MOST_RETRIES:
        raise PlanError(f"retries must be an integer from 0 to {_MOST_RETRIES}, got {retries!r}")
    if rounds is not None and (type(rounds) is not int or not 2 <= rounds <= _MOST_ROUNDS):
        raise PlanError(f"rounds must be an integer from 2 to {_MOST_ROUNDS}, got {rounds!r}; 4 are usual")
    if not schema.fits_propensity and rounds is not None:
        raise PlanError("rounds applies only where the treatment was not randomised; omit it for a trial")
    if schema.fits_propensity and not share:
        where = "outcomes may be missing" if schema.missing else "the treatment was not randomised"
        raise PlanError(f"share must be above 0 where {where}: the interval relies on outcome models")
    price = max(_outcome_part(schema, share, rounds, retries), _round_part(schema, rounds))
    if retries and _last_part(schema, share, rounds, retries) < price:
        more = ", more rounds" if schema.fits_propensity else ""
        raise PlanError(
            f"{retries} retries leave the last session less than another's price: take fewer retries{more}, "
            "or a smaller share"
        )


def _check_analysis(schema: EffectSchema, analysis: object) -> None:
    if analysis is None:
        return
    if not isinstance(analysis, Analysis):
        raise PlanError(
            f"analysis must be an Analysis, got {type(analysis).__name__}; build it with ps.course.Analysis"
        )
    subgroups = tuple(each.name for each in schema.subgroups or ())
    analysis.check(schema.outcome_names or (), subgroups, schema.estimand, schema.measure or "difference")


def _looks_of(analysis: Analysis | None) -> int:
    return 1 if analysis is None or analysis.looks is None else analysis.looks.number


def _check_looks(schema: EffectSchema, analysis: Analysis | None, retries: int) -> None:
    if _looks_of(analysis) == 1:
        return
    if schema.fits_propensity or schema.measure is not None or schema.groups is not None:
        raise PlanError(
            "looks are for a difference in a randomised trial of complete outcomes, without measure and groups: omit "
            "looks, or these"
        )
    if retries:
        raise PlanError(f"retries must be 0 with looks, got {retries}: a look without a sum is skipped")


def _warn_of_one_arm(schema: EffectSchema, G: Any, records: int | None) -> None:
    # One arm alone suggests that clinics, not persons, were assigned.
    d = schema.width
    treated, control = int(G[d - 1, d - 1]), int(G[2 * d - 1, 2 * d - 1])
    if schema.probability is None or min(treated, control) or (records or 0) < _WHOLE_CLINIC:
        return
    arm = "treated" if treated else "untreated"
    warnings.warn(
        f"all {records} records here are {arm}: where whole clinics or wards were assigned, records are not the "
        "units of the trial, and its intervals are too short; this number stays here",
        UserWarning,
        stacklevel=3,
    )


def _summed(moments: Moments, letter: str) -> Any:
    row = next(row for row in moments.schema.sent if row.letter == letter)
    sums = moments.sums(row)
    return sums.reshape(-1, *sums.shape[-2:]).sum(axis=0)


def _round_part(schema: EffectSchema, rounds: int | None) -> float:
    """Return a propensity round's part of mu^2."""
    return _PROPENSITY / (rounds or _ROUNDS) if schema.fits_propensity else 0.0


def _outcome_part(schema: EffectSchema, share: float, rounds: int | None, retries: int) -> float:
    """Return the outcome session's part of mu^2; its place admits a propensity round that a lost session moved."""
    return max(share, _round_part(schema, rounds)) if retries else share


def _last_part(schema: EffectSchema, share: float, rounds: int | None, retries: int) -> float:
    propensity = _PROPENSITY if schema.fits_propensity else 0.0
    return (1 - _outcome_part(schema, share, rounds, retries) - propensity) / (1 + retries)
