"""The theorem on devices (docs/proofs/one_upload.md): one honest member of the panel keeps the promise.

Runs of the real machines with one device and one honest member; every other code and member is the adversary's, who
knows all streams and draws no noise. The device's data are there or not; the adversary guesses which, from all it has.
A lower bound on mu and epsilon follows, as in ``canary``, and is compared with the promise in the plan.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from privstats import secagg, session
from privstats.dp import clip_client, gaussian_epsilon
from privstats.encoding import RingVector
from privstats.engines import loopback
from privstats.errors import PlanError
from privstats.kinds import CountSchema
from privstats.plan import Cohort, Plan
from privstats.progress import track
from privstats.randomness import Generator
from privstats.secagg.machines import Peer
from privstats.secagg.protocols import protocol_of
from privstats.session.machines import Contribution
from threat_models.audits.canary import GROUP_MU, lower_bounds
from threat_models.audits.canary_unit import canary_shift
from threat_models.audits.counts import counted_vectors
from threat_models.audits.target import Target
from threat_models.audits.verdict import Report

Row: TypeAlias = tuple[str, str, int, float, float, float, float, float, str]

Draw: TypeAlias = Callable[[bytes], NDArray[np.int64]]
"""The noise of the honest helper, in steps of the grid, from 32 secret bytes: for doubles in tests."""

_Noise: TypeAlias = Callable[[bytes], RingVector]
_CODES = 3
_LEAST = 2
_STARTS = 4
_FEWEST = 80
_TOLERANCE = 1e-9
_COLUMNS = (
    "honest",
    "codes",
    "runs",
    "mu claimed",
    "mu at least",
    "eps claimed",
    "eps at least",
    "by one device",
    "verdict",
)


def audit_devices(
    target: Target, rng: Generator, *, runs: int = 10_000, confidence: float = 0.95, draw: Draw | None = None
) -> Report:
    """Lower bounds against an adversary that holds all codes but one and all members but one.

    Half of the runs have an honest helper, half an honest leader; in every other run the device's data are the worst
    unit that a search finds, else nothing. A device's report is sent in both, because who answers is public.

    Args:
        target: a plan with ``model="panel"``. Its cohort does not matter, which is the claim: three codes are played.
        rng: of the search; keys and noise come from the operating system.
        runs: of both kinds together.
        confidence: of the whole table.
        draw: in place of the honest helper's noise, for a double.

    Raises:
        PlanError: another model, or too few runs for a bound.
    """
    if not target.of_panel:
        raise PlanError(
            f"no member of a panel adds noise under model={target.privacy.model!r}, so this promise rests on others "
            "too: audit canary measures it"
        )
    if runs < _FEWEST:
        raise PlanError(f"runs must be at least {_FEWEST}, got {runs}: fewer bound nothing")
    stage = _Stage(_small(target.plan), draw)
    shift, levels = _unit(target, rng), target.levels()
    separation = math.sqrt(float(np.sum((shift / levels) ** 2)))
    direction = shift / levels**2 / separation
    rows = []
    for honest, play in (("a helper", stage.helper_is_honest), ("the leader", stage.leader_is_honest)):
        seen = np.array([direction @ play(shift * (run % 2)) for run in track(honest, range(runs // 2))])
        rows.append(_row(target, honest, seen[::2], seen[1::2], separation, 1 - (1 - confidence) / 2))
    notes = (
        f"{runs} runs of one device and one honest member; all other members, {_CODES - 1} of {_CODES} codes and the "
        f"device's own are the adversary's; {confidence:.0%} confidence for the table",
        f"lower bound on mu: of {_copies(separation)} such devices at once, divided by their number, or of one if "
        "larger",
    )
    violated = any(row[-1] == "violates" for row in rows)
    return Report("devices", _COLUMNS, tuple(rows), notes, violated, json_only=("codes", "by one device", "verdict"))


@dataclass(frozen=True)
class _Stage:
    """The stage for all runs: the members' and the codes' identities."""

    plan: Plan
    draw: Draw | None

    @cached_property
    def members(self) -> list[secagg.Identity]:
        return [secagg.Identity.generate(os.urandom) for _ in self.plan.panel]

    @cached_property
    def codes(self) -> list[secagg.Identity]:
        return [secagg.Identity.generate(os.urandom) for _ in range(_CODES)]

    @cached_property
    def played(self) -> Plan:
        """The plan with a panel whose keys the audit has."""
        return replace(self.plan, panel=tuple(each.public.hex() for each in self.members))

    def helper_is_honest(self, vector: NDArray[np.int64]) -> NDArray[np.int64]:
        """The sum over helper 1's list, less all that is known: the device's vector and that helper's noise."""
        total, _ = self._sum(vector, self._honest)
        return total.lift()

    def leader_is_honest(self, vector: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the leader's published vector, in grid steps, where no helper drew noise."""
        total, survivors = self._sum(vector, None)
        return session.release(replace(self.played, min_count=0, merge={}), total, survivors, None, "uncharged").vector

    @cached_property
    def _honest(self) -> _Noise | None:
        """Return the honest helper's noise function: the plan's own, or a double's."""
        double, encode = self.draw, self.played.ring.encode
        if double is None:
            return session.helper_noise(self.played)
        return lambda seed: encode(double(seed))

    def _sum(self, vector: NDArray[np.int64], draw: _Noise | None) -> tuple[RingVector, tuple[int, ...]]:
        """One run: the device at place 0, silence of the sum at the other codes' places."""
        plan = self.played
        roster = secagg.Roster(
            tuple(each.public for each in self.codes), server=self.members[0].public, run=os.urandom(16)
        )
        masking: Any = plan.masking  # of a protocol with a panel
        keys = [secagg.HelperKeys(each, place, masking, roster) for place, each in enumerate(self.members)]
        panel = secagg.Panel(tuple(each.public for each in self.members), tuple(each.offer for each in keys))
        sent = [plan.ring.encode(vector), *(plan.ring.zeros() for _ in self.codes[1:])]
        clients = [self._device(each, place, roster, panel) for place, each in enumerate(sent)]
        helpers = [self._helper(each, roster, panel, draw if each.place == 1 else None) for each in keys[1:]]
        leader = session.server(plan, roster, keys=keys[0], panel=panel)
        outcome = loopback.run(leader, clients, helpers=helpers)
        return outcome.total, outcome.survivors

    def _device(self, vector: RingVector, place: int, roster: secagg.Roster, panel: secagg.Panel) -> Peer:
        contribution = Contribution(self.played.digest, vector)
        own: dict[str, Any] = {"index": place, "identity": self.codes[place]}
        return session.client(self.played, contribution, roster=roster, panel=panel, charge="uncharged", **own)

    def _helper(self, keys: secagg.HelperKeys, roster: secagg.Roster, panel: secagg.Panel, draw: _Noise | None) -> Peer:
        """A helper with its noise, or one whose noise is nothing: the adversary takes off what it knows."""
        helper = protocol_of(self.played.masking).machines.helper
        if helper is None:
            raise PlanError("no helper adds noise under this plan's protocol")
        silent = self.played.ring.zeros
        noise = draw or (lambda _: silent())
        named: dict[str, Any] = {"panel": panel, "noise": noise}
        return helper(self.played.masking, keys=keys, roster=roster, **named)


def _small(plan: Plan) -> Plan:
    """The plan for three codes, two of which suffice; devices are left out, because its numbers are of another n."""
    cohort = Cohort(_CODES, _LEAST, max(plan.cohort.max_records, _CODES))
    return replace(plan, cohort=cohort, min_count=0, merge={}, devices=None)


def _unit(target: Target, rng: Generator) -> NDArray[np.int64]:
    """The flat vector of the worst unit that a search finds, in wire steps, or the worst exchange of two."""
    schema, privacy = target.schema, target.privacy
    if not isinstance(schema, CountSchema):
        return canary_shift(target, target.sigma, rng)
    vectors = counted_vectors(schema, np.random.default_rng(int.from_bytes(rng.bytes(8), "big")), _STARTS)
    held = vectors.astype(np.int64) * (privacy.max_records_per_client or 1)
    held = np.stack([clip_client(schema, privacy, each) for each in held])
    if privacy.adjacency == "replace-one":
        held = (held[:, None] - held[None]).reshape(-1, held.shape[1])
    farthest: NDArray[np.int64] = held[np.argmax(np.linalg.norm(held, axis=1))]
    return farthest


def _row(
    target: Target,
    honest: str,
    out: NDArray[np.float64],
    present: NDArray[np.float64],
    separation: float,
    confidence: float,
) -> Row:
    """One member's bounds: of one device, and of a group of equal ones, whose shift adds up exactly."""
    copies, delta = _copies(separation), target.promise.delta
    single = lower_bounds(out, present, confidence, delta)
    group = lower_bounds(out, present + (copies - 1) * separation, confidence, delta).mu / copies
    claimed = target.promise.mu
    result = max(single.mu, group)
    verdict = "violates" if result > claimed * (1 + _TOLERANCE) else "no evidence"
    epsilons = gaussian_epsilon(claimed, delta), gaussian_epsilon(result, delta) if result > 0 else 0.0, single.epsilon
    return honest, f"1 of {_CODES}", len(out) + len(present), claimed, result, *epsilons, verdict


def _copies(separation: float) -> int:
    return max(1, round(GROUP_MU / separation))
