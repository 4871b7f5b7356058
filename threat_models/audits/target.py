"""The target of the audits: a plan, its own noise, and the real path from a client's moments to a release.

The only module of the audits that calls the session. It computes the levels that a release should have from the plan's
declared sigmas and cohort by the auditor's own rules, so a wrong scale or share in the library shows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from privstats import session
from privstats.dp import Noise, Privacy, clip_client
from privstats.encoding import Layout, RingVector, Segment, flatten
from privstats.errors import AggregationError, PlanError, PrivstatsError
from privstats.kinds import CountSchema
from privstats.moments import Moments, PersonMoments
from privstats.plan import Plan
from privstats.progress import track
from privstats.randomness import SEED_BYTES, Generator, secure, seeded
from privstats.release import Release
from privstats.schema import Schema, bare
from privstats.secagg.machines import Opening
from privstats.session.local import opened_among
from threat_models.audits.kinds import as_declared, columns_of, outcome_of, row_part
from threat_models.audits.promise import AuditedPromise, promise_of
from threat_models.made_up import sums_of

_ROUNDING = 1 / 12


@dataclass(frozen=True)
class DrawRule:
    """The auditor's own rule for one model, never the library's: its table is what is audited.

    Attributes:
        at_release: a release adds noise, so that a contribution has none.
        surplus: of all draws together beyond the declared variance, in squared grid steps.
        divided: a draw is a share, and the honest shares together have the declared variance.
    """

    at_release: bool
    surplus: float = _ROUNDING
    divided: bool = False


_DRAWS = {
    "central": DrawRule(at_release=True),
    "distributed": DrawRule(at_release=False, surplus=4.0, divided=True),
    "local": DrawRule(at_release=False),
    "panel": DrawRule(at_release=True),
}


def upload(plan: Plan, moments: Moments, rng: Generator | None, index: int | None = None) -> RingVector:
    """One client's vector before masking: the library's own contribution, clip and noise share included.

    Args:
        index: the client's, where the plan assigns groups or probabilities to clients.
    """
    return session.contribution(plan, of_single_rows(plan, moments), rng, index=index, allow_reproducible=True).vector


def of_single_rows(plan: Plan, moments: Moments) -> Moments:
    """Moments as the plan takes them: under a promise per person each row is of a person of its own."""
    if plan.person_clip is None or isinstance(moments, PersonMoments):
        return moments
    arrays = {row.letter: moments.sums(row) * row.factor for row in moments.schema.sent}
    return PersonMoments(moments.schema, arrays, plan.person_clip, moments.records)


def publish(
    plan: Plan,
    total: RingVector,
    survivors: Sequence[int],
    rng: Generator | None,
    openings: Mapping[int, Opening] | None = None,
) -> Release | str:
    """The public outcome of a sum: the library's own release, or the sentence with which it aborts."""
    named: dict[str, Any] = {"openings": openings, "allow_reproducible": True}
    try:
        return session.release(plan, total, tuple(survivors), rng, "uncharged", **named)
    except AggregationError as abort:
        return str(abort)


def moments_of(schema: Schema, X: NDArray[np.float64], y: NDArray[np.generic], **persons: Any) -> Moments:
    """Moments of vectors that already stand behind the public transform, by the library's own measuring."""
    plain: Any = sums_of(bare(schema), X, y, **persons)
    moments: Moments = replace(plain, schema=schema)
    return moments


@dataclass(frozen=True)
class Target:
    """A plan under audit, in the session that is worst for privacy.

    That session has ``min_survivors`` survivors, of whom ``colluders`` tell the attacker their noise; of a panel that
    draws the noise all members but one do.
    """

    plan: Plan

    @property
    def schema(self) -> Schema:
        """The plan's schema."""
        return self.plan.schema

    @property
    def privacy(self) -> Privacy:
        """The promise under audit, as written."""
        if not isinstance(self.plan.privacy, Privacy):
            raise PlanError(
                "privacy.model is 'none': there is no claim to audit; "
                "`privstats plan check` prints the membership advantage that the plan admits"
            )
        return self.plan.privacy

    @cached_property
    def promise(self) -> AuditedPromise:
        """The promise as a ceiling on mu."""
        return promise_of(self.privacy)

    @property
    def noise(self) -> Noise:
        """The plan's own noise: what it prints and what its clients draw."""
        return cast("Noise", self.plan.noise)  # a plan with a Privacy has one

    @property
    def sigma(self) -> dict[str, float]:
        """Declared noise per statistic, in real units."""
        return {row.statistic: row.sigma for row in self.noise.rows}

    @property
    def layout(self) -> Layout:
        """The flat vector's segments."""
        return self.plan.layout

    @property
    def clients(self) -> int:
        """Parties in the cohort."""
        return self.plan.cohort.clients

    @property
    def min_survivors(self) -> int:
        """Fewest that must remain."""
        return self.plan.cohort.min_survivors

    @property
    def colluders(self) -> int:
        """Number of clients that may share their noise with the attacker."""
        return self.plan.cohort.colluders

    @property
    def honest_shares(self) -> int:
        """Clients whose noise the attacker does not know, in the worst session the plan admits."""
        return self.min_survivors - self.colluders

    @property
    def draw_rule(self) -> DrawRule:
        """The auditor's rule for the plan's model, by its word.

        Raises:
            PlanError: there is none, so no level can be expected.
        """
        model = self.privacy.model
        if model not in _DRAWS:
            raise PlanError(
                f"the audits know the noise of the models {', '.join(_DRAWS)}, and this plan's is {model!r}: its rule "
                "belongs in threat_models/audits/target.py"
            )
        return _DRAWS[model]

    @property
    def at_release(self) -> bool:
        """Whether a release adds noise. Read from the plan's word, not from the library's table of models."""
        return self.draw_rule.at_release

    @property
    def of_panel(self) -> bool:
        """Whether leader and helpers draw the noise, each all of it; read from the plan's word likewise."""
        return self.privacy.model == "panel"

    @cached_property
    def sized_for(self) -> tuple[int, ...]:
        """The numbers of survivors that shares can be left sized for, rising; only the fewest where all noise is kept.

        The auditor's own rule: from all clients down in steps to ten elevenths of the honest ones, at least one, of
        which the last is longer by up to a half where a short one would be left.
        """
        if self.plan.excess_noise == "kept":
            return (self.min_survivors,)
        honest = [self.clients - self.colluders]
        while (most := honest[-1]) > self.honest_shares:
            fewer = max(1, most - -(-10 * most // 11))
            last = fewer > 1 and most * 100 <= self.honest_shares * 115
            honest.append(self.honest_shares if last else max(self.honest_shares, most - fewer))
        return tuple(count + self.colluders for count in reversed(honest))

    def noises(self, survivors: int) -> int:
        """Return the number of draws in a release of this number of clients: the server's, every member's, or every
        client's."""
        if self.of_panel:
            return len(self.plan.panel)
        return 1 if self.at_release else survivors

    @cached_property
    def lenient(self) -> Plan:
        """The plan without a minimum count, so that every entry of a release is its noise plus its sum."""
        return replace(self.plan, min_count=0, merge={})

    @cached_property
    def worst_noise(self) -> int:
        """Contributions that carry noise in the worst session: the honest shares, or one upload in the local model."""
        if self.at_release:
            return 0
        return self.honest_shares if self.draw_rule.divided else 1

    def declared_std(self, segment: Segment, contributions: int, survivors: int | None = None) -> float:
        """Noise the plan declares for an entry of a sum with the noise of so many contributions, in grid steps.

        Distributed: (sigma^2 + 4) n / (min_survivors - colluders), from the cohort as written; where clients open
        layers of their noise, the largest of :attr:`sized_for` up to ``survivors`` instead of the fewest. Off the
        diagonal of a symmetric block sigma is smaller by sqrt 2.
        """
        level = self.sigma[segment.statistic] * _scale_of(self.schema, segment.statistic)
        if self.privacy.pure:
            return level
        variance = (level * level / 2) if segment.name.endswith(".off") else level * level
        sized = max(count for count in self.sized_for if count <= max(self.min_survivors, survivors or 0))
        shares = sized - self.colluders if self.draw_rule.divided else 1
        return float(np.sqrt((variance + self.draw_rule.surplus) * max(1, contributions) / shares))

    def levels(self, contributions: int | None = None, survivors: int | None = None) -> NDArray[np.float64]:
        """:meth:`declared_std` of every entry, ``(size,)``; of the worst session when ``contributions`` is omitted."""
        count = self.worst_noise if contributions is None else contributions
        return np.concatenate([np.full(s.size, self.declared_std(s, count, survivors)) for s in self.layout.segments])

    @cached_property
    def empty(self) -> Moments:
        """The moments of a client without records."""
        return of_single_rows(self.plan, self._empty)

    @property
    def _empty(self) -> Moments:
        schema = self.schema
        if isinstance(schema, CountSchema):
            none: Any = sums_of(bare(schema), {variable.name: [] for variable in schema.read})
            empty: Moments = replace(none, schema=schema)
            return empty
        if schema.needs:
            nothing, y = np.zeros((0, columns_of(schema))), outcome_of(schema).alike(0)
            return sums_of(schema, *as_declared(schema, nothing, y), published=self.plan.published)
        return moments_of(schema, np.zeros((0, schema.features - schema.appended)), outcome_of(bare(schema)).alike(0))

    def exact(self, moments: Moments) -> NDArray[np.int64]:
        """A client's flat vector before its noise: its sums, behind the clip of a whole client where there is one."""
        return clip_client(self.schema, self.privacy, flatten(moments))

    def sums(self, count: int, rng: Generator | None) -> list[RingVector]:
        """Sums of the worst session with no records at all: honest contributions, and silence from colluders."""
        return [self.sum_of([self.empty] * self.worst_noise, rng) for _ in track("summing", range(count))]

    def sum_of(self, parties: Sequence[Moments], rng: Generator | None) -> RingVector:
        """The sum of these parties' contributions in the ring, as the masking protocol would unmask it."""
        total = self.plan.ring.zeros()
        for index, moments in enumerate(parties):
            total.add(upload(self.plan, moments, rng, index))
        return total

    def seen(self, total: RingVector, rng: Generator | None, *, minimum: bool = False) -> Release | str:
        """The release of a sum in the worst session, with the plan's minimum count where ``minimum`` is set."""
        return publish(self.plan if minimum else self.lenient, total, range(self.min_survivors), rng)

    def draw(self, releases: int, rng: Generator | None) -> NDArray[np.int64]:
        """The noise of that many releases of the worst session, ``(releases, size)``, by the real path.

        Of a panel's members the leader and a helper are the honest one in turn.

        Raises:
            PlanError: a session without a record aborts, so that nothing can be seen of its noise.
        """
        answers = self._answers(releases // 2, rng) if self.of_panel else []
        rows = [self.seen(total, rng) for total in track("releasing", self.sums(releases - len(answers), rng))]
        released = [row.vector for row in rows if isinstance(row, Release)]
        if len(released) < len(rows):
            raise PlanError("a session of this plan aborts although no client holds a record: rebuild the plan")
        return np.stack(released + answers)

    def draw_left(self, releases: int, survivors: int, rng: Generator | None) -> NDArray[np.int64]:
        """The noise of that many releases of so many survivors, of whom all but the colluders add theirs and open what
        is too much of it: ``(releases, size)``, by the real path.
        """
        plan, rows = self.lenient, []
        for _ in track("releasing", range(releases)):
            mine = [
                session.contribution(plan, self.empty, rng, allow_reproducible=True)
                for _ in range(survivors - self.colluders)
            ]
            openings = {client: opened_among(plan, part, survivors) for client, part in enumerate(mine)}
            total = plan.ring.zeros()
            for part in mine:
                total.add(part.take())
            seen = publish(plan, total, range(survivors), rng, openings)
            if not isinstance(seen, Release):
                raise PlanError("a session of this plan aborts although no client holds a record: rebuild the plan")
            rows.append(seen.vector)
        return np.stack(rows)

    def _answers(self, count: int, rng: Generator | None) -> list[NDArray[np.int64]]:
        """Return a helper's noise on its answer, over the runs."""
        draw, coins = session.helper_noise(self.plan), secure() if rng is None else rng
        none = self.plan.ring.zeros().lift()
        return [none if draw is None else draw(coins.bytes(SEED_BYTES)).lift() for _ in range(count)]

    @property
    def takes_known_noise(self) -> bool:
        """Whether a session draws, unasked, from a generator whose stream others may know."""
        known, survivors = seeded(0), tuple(range(self.min_survivors))
        calls: tuple[Callable[[], object], ...] = (
            lambda: session.contribution(self.plan, self.empty, known),
            lambda: session.release(self.plan, self.plan.ring.zeros(), survivors, known, "uncharged"),
        )
        return not all(_refused(call) for call in calls)

    @property
    def reuses_noise(self) -> bool:
        """Whether one contribution serves a second session: the difference of the two sums has no noise of it."""
        one = session.contribution(self.plan, self.empty)
        one.take()
        return not _refused(one.take)

    def refuses(self, moments: Moments, rng: Generator) -> bool:
        """Whether the session refuses these records of one client."""
        return _refused(lambda: upload(self.plan, moments, rng))


def target_of(plan: Plan) -> Target:
    """The target that a plan describes.

    Raises:
        PlanError: the plan promises nothing, so there is nothing to falsify; or the audits have no rule for its model.
    """
    target = Target(plan)
    _ = target.draw_rule
    return target


def _refused(call: Callable[[], object]) -> bool:
    try:
        call()
    except PrivstatsError:
        return True
    return False


def _scale_of(schema: Schema, statistic: str) -> float:
    """Grid steps per real unit: a vector of the clip norm has 2**grid_bits steps, a record counts 4096."""
    one = float(2**schema.grid_bits)
    of_letters = row_part("scales", schema, "scale of an audit's own")
    return float(of_letters(schema, one, one / schema.clip_norm)[statistic])
