"""Plan refinement rounds."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privstats.course.base import exceeds
from privstats.course.pair_codes import SEARCH_SHARE, codes_in
from privstats.course.pair_rounds import JOINT_ROUNDS, PAIR_ROUNDS, PairRounds, paired_of, pairs_pay
from privstats.course.phases import Past, Phase, Phases
from privstats.course.planned import Phased, require_plan
from privstats.course.promise import CALIBRATION_SHARE, Promise, part_of, record_mu, rounded_down
from privstats.course.recipes import (
    ModuleRounds,
    Recipe,
    SoftmaxRounds,
    advised_clip,
    advised_rounds,
    recipe_for,
    total_mu,
)
from privstats.dp import Privacy
from privstats.errors import PlanError
from privstats.estimates.recipes import CELL_CLIPS, GRADIENT_CLIP
from privstats.kinds import ClassSchema, PartySchema, PartyUpdateSchema
from privstats.plan import Plan
from privstats.python_values import python_value
from privstats.schema import Schema
from privstats.schema.public_values import Published, Values

_MOST_ROUNDS = 64


@dataclass(frozen=True)
class Rounds(Phased):
    """A first release, then ``rounds`` masked gradients, each at weights that follow from earlier releases.

    The first plan is round 0, released unchanged: its promise is a part of the course's, and :meth:`within` divides a
    total promise. Its cohort, model, unit, adjacency, protocol and panel hold for all rounds. If it has a ``validity``,
    later sessions prove the norm of their sums. A regression with a Gram matrix that noise would hide has a session
    after the first release, :attr:`mean`. Retries repeat it where it costs no more than a round; else it is tried once,
    and the rounds go on without it.

    Args:
        first: of a ``ClassSchema`` with N, A and B of rows of norm 1, or a ``RidgeSchema`` of one target. End the
            transform in ``UnitNorm``: the recipe counts records by the trace of B.
        rounds: T; a regression gains up to 24 at small budgets.
        expected_records: n, stated publicly, never counted from the records. None: ``cohort.max_records``.
        retries: budgeted rounds for those without a sum. Each makes all others noisier.
        release_share: f, the first release's part of the mu^2 that a calibration leaves; None: the recipe's.
        calibrated: whether a masked sum of eleven numbers sets ``RefinedSoftmax.temperature_``, at 1 % of mu^2.
        module: name of a :class:`~privstats.schema.modules.Module` that replaces the linear softmax.
        clip: c, the norm to which a linear softmax's residuals are clipped: .3, .5, .7 or 1. :meth:`within` sets .3, or
            follows a public rule for ``Cells`` or two classes.
        pairs: whether a session behind the first T - 3 rounds searches all pairs of a table's columns for effects, at a
            quarter of the mu^2 behind the first release. Later rounds fit the pairs that pass
            (:class:`~privstats.course.pair_codes.PairCodes`). For ``Cells`` of 3 to 64 columns and two classes;
            :meth:`within` follows a public rule.
        promise: the owners' total promise, for files and audits; comparing courses ignores it.

    Guarantee:
        All rounds and retries together are mu-GDP with :attr:`mu`, for the unit and adjacency of the first plan: every
        round's noise is sized for its own mu at any weights and map, and rounds compose (:class:`Course`). A client in
        fewer rounds spent less. Trust is the first plan's: central, if the server draws every round's noise;
        distributed, if in every round ``min_survivors - colluders`` honest clients survive, ``colluders`` counting
        every party that the server could call in any of them; local, no party. The search for pairs has a place of its
        own, so that a session's price follows from its place, whatever a server invents of earlier ones.

    Example:
        >>> schema = ps.ClassSchema(2, 2, "NAB", clip_norm=1.0, transform=(ps.transforms.UnitNorm(),))
        >>> privacy = ps.Privacy(model="central", unit="record", adjacency="add-remove", epsilon=3.0, delta=1e-5)
        >>> plan = ps.Plan(schema=schema, cohort=ps.Cohort(2, 2, 1_000), privacy=privacy)
        >>> course = ps.Rounds.within(plan, rounds=4)
        >>> course.most, round(course.epsilon(1e-5), 3)  # sessions, and what all of them cost together
        (5, 3.0)
    """

    label = "rounds"
    first: Plan
    rounds: int = 4
    expected_records: int | None = None
    retries: int = 0
    release_share: float | None = None
    promise: Promise | None = field(default=None, compare=False)
    calibrated: bool = field(default=False, metadata={"usual": False})
    module: str | None = None
    clip: float = field(default=GRADIENT_CLIP, metadata={"usual": GRADIENT_CLIP})
    pairs: bool = field(default=False, metadata={"usual": False})

    def _require(self) -> None:
        require_plan("first", self.first)
        _check_number("rounds", self.rounds, 1)
        _check_number("retries", self.retries, 0)
        if self.expected_records is not None:
            _check_number("expected_records", self.expected_records, 1, 1 << 40)
        share = self.release_share
        if share is not None and (type(share) is not float or not 1 / 64 <= share <= 0.9):
            raise PlanError("release_share must be a number from 1/64 to .9; leave it out for the recipe's")
        if self.first.min_count:
            raise PlanError("rounds need the sums of every class; leave min_count and merge out of the first plan")
        if type(self.calibrated) is not bool:
            raise PlanError(f"calibrated must be True or False, got {self.calibrated!r}")
        clips = sorted(set(CELL_CLIPS.values()))
        softmax = isinstance(self.first.schema, ClassSchema) and self.module is None
        if self.clip not in clips or not (softmax or self.clip == GRADIENT_CLIP):
            raise PlanError(
                f"clip must be one of {', '.join(map(str, clips))} for a linear softmax and be left out for "
                f"anything else, got {self.clip!r}; Rounds.within chooses one"
            )
        if codes_in(self) is not None:
            raise PlanError("rounds of pairs set their own module: leave module out, and set pairs=True")
        if type(self.pairs) is not bool:
            raise PlanError(f"pairs must be True or False, got {self.pairs!r}")
        _ = self.template  # forces the noise of a round
        _ = self.calibration
        _ = self.search

    @classmethod
    def within(
        cls,
        whole: Plan,
        rounds: int | None = None,
        *,
        expected_records: int | None = None,
        retries: int = 0,
        calibrated: bool = False,
        module: str | None = None,
        pairs: bool | None = None,
    ) -> Rounds:
        """Return the course that keeps a plan's promise in total.

        Args:
            whole: the first plan, with the total promise.
            rounds: T; None: 4, and 6 for a softmax from mu .7 on (:func:`~privstats.estimates.recipes.advised_rounds`).
                With pairs None means 7.
            pairs: None follows a public rule: on for two classes, ``Cells`` of 3 to 64 columns and ``n mu / (C
                sqrt d)`` of at least 150, with ``rounds`` None and without a calibration, module or ``validity``.
        """
        mu, records, free = record_mu(whole), python_value(expected_records) or whole.cohort.max_records, rounds is None
        rounds, retries = (
            advised_rounds(whole.schema, mu) if rounds is None else python_value(rounds),
            python_value(retries),
        )
        _check_number("rounds", rounds, 1)
        _check_number("retries", retries, 0)
        remaining = 1 - CALIBRATION_SHARE if calibrated else 1.0
        own = mu * math.sqrt(remaining)
        if pairs is None:
            pairs = free and not calibrated and module is None and pairs_pay(whole, records, own)
        if pairs and free:
            rounds = PAIR_ROUNDS
        constants = recipe_for(whole, records, own, rounds + retries, module).constants
        clip = advised_clip(whole, records, own) if module is None else GRADIENT_CLIP
        share = rounded_down(constants.release_share)  # one number for both parts, which add up to 1 then
        privacy = part_of(whole, share * remaining, constants.release_shares)
        first = replace(whole, privacy=privacy)
        return cls(first, rounds, expected_records, retries, share, Promise.of(whole), calibrated, module, clip, pairs)

    @property
    def records(self) -> int:
        """n, public."""
        return self.expected_records or self.first.cohort.max_records

    @cached_property
    def recipe(self) -> Recipe:
        """The rounds' recipe."""
        if self.release_share is None:
            mu = total_mu(self.first, self.records, self._divided)
        else:
            mu = rounded_down(record_mu(self.first) / math.sqrt(self.release_share))
        recipe = recipe_for(self.first, self.records, mu, self._divided, self.module, self.clip)
        return PairRounds.after(recipe) if self.pairs and isinstance(recipe, SoftmaxRounds) else recipe

    @cached_property
    def template(self) -> Plan:
        """A round's plan at placeholder weights."""
        return self._round(self.recipe.schema)

    @cached_property
    def search(self) -> Plan | None:
        """The plan of the session for all pairs at placeholder weights, if any."""
        if not self.pairs:
            return None
        if not isinstance(self.recipe, PairRounds) or self.calibrated or self.first.validity is not None:
            raise PlanError("pairs belong to a linear softmax without calibration or proofs of sums: leave pairs out")
        if self.rounds <= JOINT_ROUNDS:
            raise PlanError(f"pairs have {JOINT_ROUNDS} rounds behind their session and some before it: raise rounds")
        part = SEARCH_SHARE * (1 / self._share - 1)
        return self._after(self.recipe.schema_of(self.recipe.searching), part_of(self.first, part, self.recipe.shares))

    @cached_property
    def joint(self) -> Plan | None:
        """The plan of a round with chosen pairs at placeholder weights; its price is that of any other round."""
        if self.search is None or not isinstance(self.recipe, PairRounds):
            return None
        return self._round(self.recipe.schema_of(self.recipe.joint))

    def _round(self, schema: Schema) -> Plan:
        part = ((1 - self.recipe.mean_share) / self._share - 1) / self._divided
        part *= 1 - SEARCH_SHARE if self.pairs else 1.0
        return self._after(schema, part_of(self.first, part, self.recipe.shares))

    @cached_property
    def mean(self) -> Plan | None:
        """The plan of the sum of the rows' directions, if any.

        Nothing in it depends on the first release.
        """
        schema, share = self.recipe.mean, self.recipe.mean_share
        if schema is None or not share:
            return None
        return replace(self.first, schema=schema, privacy=part_of(self.first, share / self._share, None))

    @cached_property
    def calibration(self) -> Plan | None:
        """The plan of the calibration at placeholder weights, if any."""
        if not self.calibrated:
            return None
        if self.module is not None:
            raise PlanError("calibrated reads the scores of a linear softmax: leave calibrated out, or module")
        if not isinstance(self.recipe, SoftmaxRounds):
            raise PlanError("calibrated is about the probabilities of classes, and a regression has none: leave it out")
        if self.first.validity is not None:
            raise PlanError("no statement reads the sums of a calibration: leave calibrated out, or validity")
        part = CALIBRATION_SHARE / (1 - CALIBRATION_SHARE) / self._share
        return self._after(self.recipe.calibration, part_of(self.first, part, None))

    def _after(self, schema: Schema, privacy: Privacy) -> Plan:
        validity = self.first.validity
        proved = None if validity is None else validity.about(schema)
        return replace(self.first, schema=schema, privacy=privacy, published=Published.placeholder(), validity=proved)

    @cached_property
    def phases(self) -> Phases:
        """The first release, any mean, the rounds with any search for pairs among them, and any calibration."""
        begun = Phase("first release", self.first, tries=1, needed=True)
        if self.mean is not None:  # of a regression, which has neither pairs nor a calibration
            # A retry's place is priced as a round, so it serves a mean that costs no more.
            retries = 0 if exceeds(self.mean, self.template) else self.retries
            mean = Phase("mean", self.mean, tries=1 + retries)
            rounds = Phase("round", self.template, self.rounds, published=self._published)
            return Phases((begun, mean, rounds), self.retries - retries)
        phases = [begun]
        phases += self._phases_with_pairs or [
            Phase("round", self.template, self.rounds, self._divided, published=self._published)
        ]
        if self.calibration is not None:
            # A place that no round needed any more serves it again.
            phases.append(Phase("calibration", self.calibration, published=self._published))
        return Phases(tuple(phases))

    @property
    def _phases_with_pairs(self) -> list[Phase]:
        """The rounds with the search for pairs among them; empty without a search."""
        if self.search is None or self.joint is None:
            return []
        # The search has one place, and with it one price, whichever of the sessions before it have a sum.
        before, longer = self.rounds - JOINT_ROUNDS, max(self.template, self.joint, key=lambda plan: plan.layout.size)
        early = Phase("early round", self.template, None, before, published=self._published)
        search = Phase("search", self.search, tries=1, published=self._published_for_search)
        tries = self._divided - before
        form = self._with_chosen_pairs
        later = Phase(
            "round", longer, self.rounds, tries, with_sums_of=(early.name,), form=form, published=self._published
        )
        return [early, search, later]

    def _with_chosen_pairs(self, past: Past) -> Plan:
        return self.template if self.joint is None or paired_of(self.recipe, past.released) is None else self.joint

    def _published(self, past: Past) -> Published:
        return past.publish(self.recipe.values(past.released))

    def _published_for_search(self, past: Past) -> Published:
        assert isinstance(self.recipe, PairRounds)  # noqa: S101  a course without pairs has no such phase
        return past.publish(self.recipe.search_values(past.released))

    @property
    def _facts(self) -> dict[str, Any]:
        facts, recipe = super()._facts, self.recipe
        # Another version of the module's package may compute other weights from the same releases.
        return {**facts, "revision": recipe.network.revision} if isinstance(recipe, ModuleRounds) else facts

    @property
    def _divided(self) -> int:
        return self.rounds + self.retries

    @property
    def _share(self) -> float:
        if self.release_share is not None:
            return self.release_share
        share, own = self.recipe.constants.release_share, (record_mu(self.first) / self.recipe.mu) ** 2
        return share if math.isclose(share, own, rel_tol=1e-6) else own


def _check_number(field: str, value: object, least: int, most: int = _MOST_ROUNDS) -> None:
    if type(value) is not int or not least <= value <= most:
        raise PlanError(f"{field} must be an integer from {least} to {most}, got {value!r}; choose one")


_ROUNDS = 2
_LENGTH = 16.0  # length of the published weights, for every data set (benchmarks/peers/numbers.md)


@dataclass(frozen=True)
class PartyRounds(Phased):
    """A sum of directions, then one of updates from it: P1, and P2 at ``W = 16 P1 / |P1|``, each at half of mu^2.

    Where noise hides P1, W is a random direction, and P1 + P2 is still as accurate as one sum at all of mu^2.

    Args:
        first: the plan of the first round, of a ``PartySchema``.
        promise: the owners' total promise, for files and audits.

    Guarantee:
        Both rounds together are mu-GDP with :attr:`mu` = sqrt(2) times the first plan's, for whole parties and its
        adjacency: a round's bound holds for every W (:class:`~privstats.PartyUpdateSchema`), and rounds compose
        (:class:`Course`).

    Example:
        >>> privacy = ps.Privacy(
        ...     model="central",
        ...     unit="client",
        ...     max_records_per_client=1,
        ...     adjacency="add-remove",
        ...     epsilon=8.0,
        ...     delta=1e-5,
        ... )
        >>> whole = ps.Plan(schema=ps.PartySchema(3, 4), cohort=ps.Cohort(20, 20, 20), privacy=privacy)
        >>> course = ps.PartyRounds.within(whole)
        >>> course.most, round(course.epsilon(1e-5), 3)  # of both rounds together
        (2, 8.0)
    """

    label = "parties"
    first: Plan
    promise: Promise | None = field(default=None, compare=False)

    def _require(self) -> None:
        _require_parties(self.first)

    @classmethod
    def within(cls, whole: Plan) -> PartyRounds:
        """Return the course that keeps a plan's promise in total."""
        _require_parties(whole)
        return cls(replace(whole, privacy=part_of(whole, 1 / _ROUNDS, None)), Promise.of(whole))

    @cached_property
    def update(self) -> Plan:
        """The second round's plan, at placeholder weights."""
        schema = PartyUpdateSchema.of(_require_parties(self.first))
        return replace(self.first, schema=schema, published=Published.placeholder())

    @cached_property
    def phases(self) -> Phases:
        """The directions, which a session without a sum repeats in the place of the updates, and the updates."""
        return Phases((Phase("directions", self.first), Phase("updates", self.update, published=_start)))


def _require_parties(plan: object) -> PartySchema:
    if not isinstance(plan, Plan) or type(plan.schema) is not PartySchema:
        raise PlanError(
            "two rounds of parties need a Plan of a PartySchema; use Rounds for a ClassSchema or RidgeSchema"
        )
    record_mu(plan)  # refuses a plan without DP
    return plan.schema


def _start(past: Past) -> Published:
    """Scale the noisy sum to a fixed length, because its own depends more on cohort and noise than on the classes.

    ``fsum`` makes bits equal on every machine.
    """
    (directions,) = past.of("directions")
    total: NDArray[np.float64] = np.asarray(directions.moments.P, np.float64)
    length = math.sqrt(math.fsum(np.square(total).ravel()))
    return past.publish({"W": Values.rounded(_LENGTH * total / (length or 1.0))})
