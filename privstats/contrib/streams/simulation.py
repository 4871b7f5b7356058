"""A stream in one process, epoch by epoch, over the real machines, messages and noise.

A client that vanished before sending sends its changes next time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from privstats import session
from privstats.contrib.streams.moments_delta import MomentsDelta
from privstats.contrib.streams.stream import Stream, weighed_release
from privstats.course import Round
from privstats.course import run as follow
from privstats.encoding import RingVector
from privstats.errors import AggregationError, DataError, PlanError
from privstats.extend.courses import Dropouts
from privstats.extend.support import Generator
from privstats.intake.person_ids import names_of
from privstats.moments import Moments, warn_if_clipped
from privstats.plan import Plan
from privstats.randomness import SEED_BYTES
from privstats.release import Release
from privstats.workflows.simulate import measured, summed


def simulated(stream: Stream, epochs: Any, dropouts: Any, rng: Generator) -> list[Release | None]:
    """Return every node's release, as ``simulate``."""
    if not isinstance(epochs, Sequence) or len(epochs) != stream.epochs:
        raise DataError(f"a stream of {stream.epochs} epochs needs a list with the shards of each epoch; pass all")
    gone = () if dropouts is None else dropouts
    if not isinstance(gone, Sequence) or isinstance(gone, str) or len(gone) > stream.most:
        raise PlanError(f"dropouts of this stream must be a list of at most {stream.most} mappings, one per node")
    runner = _Simulated(stream, epochs, [*gone, *[None] * (stream.most - len(gone))], rng, rng.bytes(SEED_BYTES))
    return follow(stream, runner.release)


@dataclass
class _Simulated:
    stream: Stream
    epochs: Sequence[Any]
    dropouts: Sequence[Dropouts | None]
    rng: Generator
    seed: bytes
    sums: list[tuple[RingVector, tuple[int, ...]] | None] = field(default_factory=list)

    def __post_init__(self) -> None:
        none = MomentsDelta.nothing(self.stream.plan.schema, self.stream.plan.person_clip)  # type: ignore[arg-type]
        self.owed = [[none] * self.stream.plan.cohort.clients for _ in range(self.stream.levels)]
        self.none = none
        self.known = [set[str]() for _ in range(self.stream.plan.cohort.clients)]

    def release(self, round_: Round) -> Release | None:
        place = self.stream.nodes[round_.place]
        if place.level == 0:
            self._arrive(place.epoch, round_.plan)
        gone = self.dropouts[round_.place]
        owed = self.owed[place.level]
        try:
            outcome = summed(round_.plan, owed, gone, self.rng)
        except AggregationError as failure:
            self._settle(owed, _sent(round_.plan, gone or {}, failure.step))
            self.sums.append(None)
            return None
        self._settle(owed, outcome.survivors)
        self.sums.append((outcome.total, outcome.survivors))
        known = self.rng.reproducible
        if self.stream.row.correlated:
            return weighed_release(self.stream, self.seed, self.sums, reproducible=known)
        return session.release(
            round_.plan,
            outcome.total,
            outcome.survivors,
            self.rng,
            charge="uncharged",
            openings=outcome.openings,
            allow_reproducible=True,
        )

    def _arrive(self, epoch: int, plan: Plan) -> None:
        arrived = measured(plan, self.epochs[epoch])
        if plan.person_clip is not None:
            self._require_new(epoch)
        if epoch == 0:
            warn_if_clipped(*arrived, stacklevel=8)  # over the course's runner, to the caller of simulate
        changes = [each if isinstance(each, MomentsDelta) else MomentsDelta.of(each) for each in arrived]
        leavers = sum(each.left for each in changes)
        if leavers and not self.stream.deletions:
            raise DataError(f"records leave in epoch {epoch} and the stream has no deletions; set deletions=True")
        self.owed = [[old + new for old, new in zip(level, changes, strict=True)] for level in self.owed]

    def _require_new(self, epoch: int) -> None:
        """Refuse a person's later rows: only all of one person's rows together have a bound."""
        for client, (shard, known) in enumerate(zip(self.epochs[epoch], self.known, strict=False)):
            if not isinstance(shard, Moments) and len(shard) == 3:
                names = {name for name in names_of(shard[2]) if name is not None}
                if again := len(names & known):
                    raise DataError(
                        f"epochs[{epoch}][{client}] holds {again} persons a second time: a person enters once, with "
                        "all rows; omit later rows"
                    )
                known |= names

    def _settle(self, owed: list[MomentsDelta], sent: Sequence[int]) -> None:
        for client in sent:
            owed[client] = self.none


def _sent(plan: Plan, gone: Dropouts, failed: str) -> list[int]:
    steps = plan.masking.steps
    upload = steps.index(plan.masking.upload_step)
    if steps.index(failed) < upload:
        return []
    vanished = {client for step in steps[: upload + 1] for client in gone.get(step, ())}
    return [client for client in range(plan.cohort.clients) if client not in vanished]
