"""Attack 15 on a plan whose reports are proved: one client's lies, over the real machines.

Two questions. Is a sum that breaks the plan's statement accepted, if its sender proves it as well as possible? The
plan's claim is that none is. And how much harm does the worst sum that keeps the statement? Nothing is promised there:
invented records pass. For plans without proofs, ``one_poisoner`` asks what a check of the total detects.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, cast, get_args

import numpy as np
from numpy.typing import NDArray

from privstats import heads, session
from privstats.contrib.proofs.field import Field, P, add, elements, lift, matmul, negative, stream
from privstats.contrib.proofs.field_streams import FieldStreams
from privstats.contrib.proofs.grams import candidates
from privstats.contrib.proofs.moments import Moments
from privstats.contrib.proofs.norm import Norm
from privstats.contrib.proofs.prover import Attempt, Secrets
from privstats.contrib.proofs.statement import Statement
from privstats.dp import NoPrivacy
from privstats.encoding import RingVector, flatten, layout_of
from privstats.engines import loopback
from privstats.errors import AggregationError
from privstats.kinds import ClassSchema, RidgeSchema
from privstats.plan import Plan
from privstats.randomness import Generator
from privstats.release import Release
from privstats.schema import Schema
from privstats.secagg.protocols import protocol_of
from privstats.secagg.upload.client import Client
from privstats.secagg.upload.masking_scheme import Hidden, proving
from privstats.secagg.upload.signed_statements import derive
from threat_models.adversary import Adversary
from threat_models.attack import Examination
from threat_models.attacks.admissible_lies import Level, Scene, readable, worst
from threat_models.bounds import clopper_pearson
from threat_models.data import synthetic_pool
from threat_models.report import Row, judge
from threat_models.world import Pool

Array = NDArray[np.float64]
Vector = NDArray[np.int64]

_LIAR = 0
_MOVES = 20  # of the climb, for each session


class Insisting(FieldStreams):
    """The masking scheme of a client that proves whatever it sends, as well as it can, and never stops itself."""

    def told(self, x: Field) -> tuple[Field, Field]:
        """Return the reported values for these entries: entries and witness."""
        return x, elements(own_witness(self._statement, lift(x)))

    def seeds(self, secret: bytes) -> tuple[bytes, ...]:
        """The helpers' seeds: one each."""
        return tuple(derive(secret, f"seed/{place}", self._context) for place in range(1, self._helpers + 1))

    def attempt(self, shares: tuple[Field, Field], secrets: Secrets) -> Attempt:
        """The first stage of its report."""
        return Attempt(self._statement, *shares, secrets, 0)

    def cover(self, vector: RingVector, root: bytes | bytearray, sender: int) -> Hidden:
        """A report whose hashes, masks and bits are right, for what :meth:`told` says."""
        secret = bytes(root)
        seeds, shares = self.seeds(secret), self.told(np.concatenate(vector.lanes).astype(np.uint64))
        proof = self.attempt(shares, Secrets(self._context, sender, secret, seeds)).finished()
        body, text = proof.blind + proof.body.astype("<u8").tobytes(), proof.transcript
        return Hidden(secret, (memoryview(body),), seeds, b"".join(text.commits), b"".join(text.parts))


def own_witness(statement: Statement, x: Vector, hidden: Vector | None = None) -> Vector:
    """The liar's best: quotients of what it claims; or the nearest factor, and all that the factor leaves."""
    hidden = statement.hidden_of(x) if hidden is None else hidden
    if isinstance(statement, Norm):
        return np.asarray((x + ((1 << statement.shift) >> 1)) >> statement.shift)
    if not isinstance(statement, Moments):
        return x[:0]
    pattern, (rows, columns) = statement.pattern, statement.pattern.inner
    target = np.concatenate([x, hidden])[statement.source].reshape(pattern.blocks, -1)
    witness = np.zeros((pattern.blocks, pattern.width, pattern.width))
    witness[:, rows, columns] = witness[:, columns, rows] = target
    places = np.zeros((pattern.width, pattern.width), np.bool_)
    places[rows, columns] = True
    lower, _ = next(candidates(witness, places, lambda number, size: stream(number.to_bytes(32, "big"), size)))
    products = np.stack([matmul(elements(each), elements(each).T)[rows, columns] for each in lower])
    left = lift(add(elements(_centred(target)).ravel(), negative(products.ravel())))
    return np.concatenate([lower[:, rows, columns].ravel(), left, hidden])


def _centred(values: Vector) -> Vector:
    """The integers between -p/2 and p/2 that stand for the same elements."""
    return np.asarray((values % P + P // 2) % P - P // 2)


@dataclass(frozen=True)
class Sent:
    """The end of one session with liars.

    Attributes:
        total: the sum in grid steps; None where too few clients were left.
        survivors: the clients in it.
        unproved: how many reports the leader refused for their proof.
    """

    total: Vector | None
    survivors: tuple[int, ...]
    unproved: int


def sent(plan: Plan, parts: Sequence[Any], lies: Mapping[int, Vector], rng: Generator) -> Sent:
    """One session of the real machines, in which these clients send what they like, in grid steps."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "validity is experimental")
        parties = session.local_parties(plan, parts, rng)
    for index, lie in lies.items():
        _bend(cast("Client", parties.clients[index]), lie)
    leader: Any = parties.server
    with suppress(AggregationError):
        outcome = loopback.run(leader, parties.clients, helpers=parties.helpers)
        return Sent(outcome.total.lift(), outcome.survivors, leader.unproved)
    return Sent(None, (), leader.unproved)


def _bend(client: Client, lie: Vector) -> None:
    """Give a client's machine another vector, and where reports are proved, no scruples."""
    parameters = client.parameters
    client._vector = parameters.ring.encode(lie)
    if parameters.claim is not None:
        honest = cast(FieldStreams, proving(client._scheme))
        client._scheme = Insisting(honest._group, honest._statement, honest._helpers, honest._context)


def beyond(schema: Schema, own: Vector, times: int = 100) -> dict[str, Vector]:
    """Lies about a client's own sums, by name; with so many times as much no statement admits one of them."""
    segments = layout_of(schema).segments
    letters = np.concatenate([np.full(each.size, each.statistic) for each in segments])
    sums, square = {ClassSchema: ("A", "B"), RidgeSchema: ("h", "G")}[type(schema)]
    return {
        f"sums times {times}": np.where(letters == sums, times * own, own),
        f"sums times -{times}": np.where(letters == sums, -times * own, own),
        f"second moments times {times}": np.where(letters == square, times * own, own),
        f"everything times {times}": times * own,
    }


def _claimed(plan: Plan) -> str:
    return "none" if plan.validity is None else plan.validity.level


class PoisonedSums(Examination):
    """Lies of one client in the plan's own sessions, and the worst that its statement admits."""

    name = "poisoned-sums"
    number = 15
    goal = "poisoning"
    title = "an attacker who is a client proves false sums, or sends the worst ones that its proof admits"
    needs = Adversary(active=True, knows="all-but-one")
    effort = 0.1

    def refusal(self, plan: Plan) -> str | None:
        """Needs a plan with a panel, and sums that the climb reads."""
        if not protocol_of(plan.masking).has_panel:
            return "lies in reports to a panel, and this plan's protocol has none; one-poisoner counts the lies there"
        if not readable(plan.schema):
            return "is written for N, A and B of classes, and for regressions of one target"
        if (claimed := _claimed(plan)) not in get_args(Level):
            return f"knows the lies that {' and '.join(get_args(Level)[1:3])} admit, and the plan proves {claimed}"
        return super().refusal(plan)

    def examine(self, plan: Plan, rng: Generator, *, trials: int, confidence: float) -> tuple[Row, ...]:
        """Two rows: lies beyond the statement that enter a sum, and the accuracy that an admitted one costs."""
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "validity is experimental")
            stage = Stage.of(plan, rng)
            return self._entering(stage, rng, trials, confidence), self._worst(stage, rng, trials)

    def _entering(self, stage: Stage, rng: Generator, trials: int, confidence: float) -> Row:
        plan, entered = stage.plan, 0
        most = stage.records if plan.validity is None else plan.validity.most_records
        lies = list(beyond(plan.schema, flatten(stage.parts[_LIAR]), 100 * -(-most // stage.records)).values())
        for number in range(trials):
            end = sent(plan, stage.parts, {_LIAR: lies[number % len(lies)]}, rng)
            entered += end.unproved == 0
        interval = clopper_pearson(entered, trials, confidence)
        proved = plan.validity is not None
        text = "the plan's reports prove their sums" if proved else "nothing is promised: no report of this plan proves"
        return self._row(
            "false sums taken",
            measured=entered / trials,
            interval=interval,
            baseline=0.0,
            ceiling=0.0 if proved else None,
            verdict=judge(interval, (0.0, 0.0), 0.0 if proved else None),
            note=f"lies about one client's sums, over the machines; {text}",
            worlds=trials,
        )

    def _worst(self, stage: Stage, rng: Generator, trials: int) -> Row:
        """The climb knows all honest sums and the test records; the lie that it finds is sent over the machines."""
        plan, scene = stage.plan, stage.scene()
        level = cast("Level", _claimed(plan))
        lie = worst(scene, level, stage.records, _MOVES * trials, rng).vector(plan.schema)
        honest, result = scene.accuracy(scene.own), scene.accuracy(lie)
        end = sent(plan, stage.parts, {_LIAR: lie}, rng)
        lost = honest - result if _LIAR in end.survivors else 0.0
        return self._row(
            "accuracy lost",
            measured=lost,
            interval=(lost, math.inf),
            baseline=0.0,
            ceiling=None,
            verdict="leaks" if lost > 0 else "no evidence",
            note=f"accuracy {honest:.2f} without the lie and {honest - lost:.2f} with the worst found at level "
            f"{level!r}; {stage.records} invented records always pass",
            worlds=1,
        )

    def _row(self, metric: str, **fields: Any) -> Row:
        return Row(
            attack=self.name,
            number=self.number,
            goal=self.goal,
            adversary=f"{self.needs.describe()}; is a client",
            sees=self.needs.sees,
            metric=metric,
            **fields,
        )


@dataclass(frozen=True, eq=False)
class Stage:
    """Made-up records of a plan's clients, and a test set that the liar knows.

    Attributes:
        plan: under attack.
        parts: what every client measured.
        records: of one client.
        pool: where they come from.
    """

    plan: Plan
    parts: tuple[Any, ...]
    records: int
    pool: Pool

    @classmethod
    def of(cls, plan: Plan, rng: Generator) -> Stage:
        """Build a stage with as many records per client as the plan admits and the pool holds."""
        pool, cohort = synthetic_pool(plan, rng), plan.cohort
        most = [cohort.max_records // cohort.clients, len(pool.y) // cohort.clients]
        most += [plan.validity.most_records] if plan.validity is not None else []
        if not isinstance(plan.privacy, NoPrivacy) and plan.privacy.max_records_per_client is not None:
            most.append(plan.privacy.max_records_per_client)
        share = max(1, min(most))
        rows = [np.arange(share * i, share * (i + 1)) % len(pool.y) for i in range(cohort.clients)]
        return cls(plan, tuple(pool.measure(plan, each) for each in rows), share, pool)

    def scene(self) -> Scene:
        """The liar's knowledge, in exact sums."""
        bare = replace(self.plan, privacy=NoPrivacy())
        vectors = [flatten(part) for part in self.parts]
        others = np.sum([each for index, each in enumerate(vectors) if index != _LIAR], axis=0)
        X, y = self.pool.vectors(self.plan, self.pool.public_X), self.pool.public_y
        records = self.records * self.plan.cohort.clients
        models = {ClassSchema: lambda: classified(X, y), RidgeSchema: lambda: signed(X, y, records)}
        return Scene(bare, others, vectors[_LIAR], models[type(self.plan.schema)](), (X, y))


def classified(X: Array, y: NDArray[Any], head: type[Any] = heads.LDA) -> Callable[[Release], float]:
    """The accuracy of a head on these rows, which are as they enter the sums."""

    def accuracy(release: Release) -> float:
        fitted = head().fit_release(release)
        return float((fitted.classes_[fitted.rule_.scores(X).argmax(axis=1)] == y).mean())

    return accuracy


def signed(X: Array, y: Array, records: int) -> Callable[[Release], float]:
    """Return how often a ridge regression predicts the sign of the target."""

    def accuracy(release: Release) -> float:
        fitted = heads.Ridge(fit_intercept=False, records=records).fit_release(release)
        return float((np.sign(fitted.rule_.scores(X).ravel()) == np.sign(y)).mean())

    return accuracy
