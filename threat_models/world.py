"""A world: records, their holders, and the sums of the library's own pipeline; it owns the truth.

Sums come from ``measure``, ``session.contribution`` and ``session.release``; masks are left out for a passive
adversary, because they cancel exactly. An attack never receives a world, only a view of it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privstats import session
from privstats.dp import Privacy
from privstats.encoding import RingVector, flatten
from privstats.errors import DataError
from privstats.kinds import of_records
from privstats.moments import Moments, quantize
from privstats.plan import Plan
from privstats.randomness import SEED_BYTES, Generator
from privstats.release import Release
from privstats.session.local import opened_among
from privstats.session.machines import Contribution
from threat_models.adversary import Adversary, Sees
from threat_models.chance import integer_below, permutation
from threat_models.made_up import sums_of

_FEWEST = 4


@dataclass(frozen=True, eq=False)
class Pool:
    """Records that worlds are drawn from, and a disjoint public sample of the same population.

    Attributes:
        X, y: private records, raw, as they would be measured.
        public_X, public_y: the sample that an adversary may know.
        behind_transform: X is already behind the schema's transform (made-up vectors), so measuring skips it.
    """

    X: NDArray[Any]
    y: NDArray[Any]
    public_X: NDArray[Any]
    public_y: NDArray[Any]
    behind_transform: bool = False

    @classmethod
    def split(cls, X: Any, y: Any, rng: Generator, *, public: float = 1 / 3, behind_transform: bool = False) -> Pool:
        """Shuffle records and set a fraction aside as public.

        Raises:
            DataError: X and y differ in length, or are too few to split.
        """
        X, y = np.asarray(X), np.asarray(y)
        if len(X) != len(y):
            raise DataError(f"X has {len(X)} records and y has {len(y)} labels; give one label per record")
        if len(X) < _FEWEST:
            raise DataError(f"an attack needs at least {_FEWEST} records, some private and some public; got {len(X)}")
        order = permutation(len(X), rng)
        cut = max(1, int(public * len(X)))
        X, y = X[order], y[order]
        return cls(X[cut:], y[cut:], X[:cut], y[:cut], behind_transform)

    def measure(self, plan: Plan, rows: NDArray[np.int64]) -> Moments:
        """Exact sums of some private records, by the library's own ``measure``."""
        clip = plan.person_clip
        persons: Any = {} if clip is None else {"persons": np.arange(len(rows)), "person_clip": clip}  # one row each
        if not self.behind_transform:
            return sums_of(plan.schema, self.X[rows], self.y[rows], **persons)
        small = replace(of_records(plan.schema), transform=())
        bare: Any = sums_of(small, self.X[rows], self.y[rows], **persons)
        moments: Moments = replace(bare, schema=plan.schema)
        return moments

    def vectors(self, plan: Plan, X: NDArray[Any]) -> NDArray[np.float64]:
        """Records as they enter the sums: transformed, clipped, on the grid, in real units; read-only."""
        schema = replace(of_records(plan.schema), transform=()) if self.behind_transform else plan.schema
        out = np.asarray(quantize(schema, X) / plan.schema.scale, np.float64)
        out.setflags(write=False)
        return out

    def of(self, plan: Plan) -> Field:
        """The pool as the plan measures it."""
        public = (self.vectors(plan, self.public_X), self.public_y.copy())
        return Field(self, plan, self.vectors(plan, self.X), public, self.public_X.copy())


@dataclass(frozen=True, eq=False)
class Field:
    """A pool under one plan, its vectors made once.

    Attributes:
        private: vectors of the private records, ``(n, d)``.
        public: vectors and labels of the public sample.
        public_raw: the same records, raw.
    """

    pool: Pool
    plan: Plan
    private: NDArray[np.float64]
    public: tuple[NDArray[np.float64], NDArray[Any]]
    public_raw: NDArray[Any]

    @property
    def y(self) -> NDArray[Any]:
        """Labels or targets of the private records."""
        return self.pool.y

    def measure(self, rows: NDArray[np.int64]) -> Moments:
        """Exact sums of some private records."""
        return self.pool.measure(self.plan, rows)


@dataclass(frozen=True)
class Setting:
    """The settings of the worlds that a game draws.

    Attributes:
        plan: the plan under attack.
        records: records per class (ridge: in all).
        candidates: members, and as many strangers, whose membership is asked; 0 when the goal is another.
        hide_label: the attacked class is what the attack must find.
        dropouts: clients that vanish; None for as many as the plan admits, the worst session for privacy.
    """

    plan: Plan
    records: int
    candidates: int = 0
    dropouts: int | None = None
    hide_label: bool = False

    @property
    def survivors(self) -> int:
        """Clients in the sum."""
        cohort = self.plan.cohort
        return cohort.min_survivors if self.dropouts is None else cohort.clients - self.dropouts


@dataclass(frozen=True, eq=False)
class Session:
    """One aggregation: what every surviving client brought, what helpers added, and what came out."""

    survivors: tuple[int, ...]
    contributions: tuple[RingVector, ...]
    release: Release
    noises: tuple[RingVector, ...] = ()


@dataclass(frozen=True, eq=False)
class World:
    """The truth of one trial. The attributes that a view copies are named as there.

    Attributes:
        members: for each candidate, whether its record is in the sums: what a membership attack must find.
        truth: vectors of the attacked class in the sums, ``(n, d)``: what a reconstruction must find.
        secret: their labels, ``(n,)``: what an inference must find.
        raw, public_raw: the records before transform and clip, for those who can run the encoder.
    """

    plan: Plan
    sessions: tuple[Session, ...]
    candidates: NDArray[np.float64]
    labels: NDArray[Any]
    members: NDArray[np.bool_]
    truth: NDArray[np.float64]
    secret: NDArray[Any]
    raw: NDArray[Any]
    public_raw: NDArray[Any]
    rivals: NDArray[np.float64] | None
    rival_labels: NDArray[Any] | None
    background: NDArray[np.int64] | None
    public: tuple[NDArray[np.float64], NDArray[Any]]
    records: int

    def observed(self, session: Session, sees: Sees, colluders: int) -> NDArray[np.int64]:
        """The flat vector that reaches an adversary, with the colluders' own vectors taken off."""
        last = len(session.survivors) - colluders
        if sees == "cohort":
            return session.contributions[0].lift()
        if sees == "transcript":  # of a panel that draws, with the noise of the one member that is not its own
            return total_of(self.plan, (*session.contributions[:last], *session.noises[:1])).lift()
        vector = session.release.vector.copy()
        for own in session.contributions[last:]:
            vector -= own.lift()
        return vector

    def survivors_unknown(self, sees: Sees, colluders: int) -> int:
        """Clients whose noise is in what the adversary sees and unknown to it."""
        return 1 if sees == "cohort" else len(self.sessions[0].survivors) - colluders


def draw(field: Field, setting: Setting, adversary: Adversary, label: int, member: bool, rng: Generator) -> World:
    """Draw records, give them to clients and run the sessions that the adversary may see.

    Args:
        label: the class under attack (ridge: ignored).
        member: whether the one target of an all-but-one adversary takes part; other games ask about several candidates
            in one world, half of them members, for any value here.
        rng: all randomness of the world; the attack gets another generator.

    Raises:
        DataError: the pool has too few records of the class, or the plan's clients cannot hold them.
    """
    plan = setting.plan
    mine, strangers, rest = _cast(field, setting, label, rng)
    if adversary.knows == "all-but-one":
        return _informed(field, setting, adversary, (mine, strangers, rest), member, rng)
    parts = [rest, mine] if adversary.cohorts == "without-target" else _dealt(mine, rest, setting, adversary)
    sessions = _sessions(field, setting, adversary, parts, rng)
    asked = np.concatenate([mine[: setting.candidates], strangers[: setting.candidates]])
    members = np.arange(len(asked)) < setting.candidates
    order = permutation(len(asked), rng)
    asked, members = asked[order], members[order]
    return World(
        plan=plan,
        sessions=sessions,
        candidates=field.private[asked],
        labels=field.y[asked] if len(asked) else field.y[mine[: 0 if setting.hide_label else 1]],
        members=members,
        truth=field.private[mine],
        secret=field.y[mine],
        raw=field.pool.X[mine],
        public_raw=field.public_raw,
        rivals=None,
        rival_labels=None,
        background=None,
        public=field.public,
        records=len(mine),
    )


def total_of(plan: Plan, vectors: Sequence[RingVector]) -> RingVector:
    """The sum in the ring, as unmasking gives it."""
    total = plan.ring.zeros()
    for vector in vectors:
        total.add(vector)
    return total


def released(pool: Pool, plan: Plan, rows: NDArray[np.int64], rng: Generator) -> Release:
    """The release of some private records, all held by the first of the plan's clients, every client present."""
    empty = pool.measure(plan, np.empty(0, np.int64))
    brought = [pool.measure(plan, rows), *[empty] * (plan.cohort.clients - 1)]
    given = [session.contribution(plan, each, rng, allow_reproducible=True) for each in brought]
    everybody = tuple(range(plan.cohort.clients))
    return _released(plan, dict(zip(everybody, given, strict=True)), _of_helpers(plan, rng), rng)[1]


def _released(
    plan: Plan, given: Mapping[int, Contribution], noises: Sequence[RingVector], rng: Generator
) -> tuple[tuple[RingVector, ...], Release]:
    """The clients' vectors, and the release of their sum, of whose noise they open what is too much."""
    openings = {c: opened_among(plan, part, len(given)) for c, part in given.items() if part.noise_root}
    vectors = tuple(part.take() for part in given.values())
    total, named = total_of(plan, (*vectors, *noises)), dict[str, Any](openings=openings, allow_reproducible=True)
    return vectors, session.release(plan, total, tuple(given), rng, charge="uncharged", **named)


def _of_helpers(plan: Plan, rng: Generator) -> tuple[RingVector, ...]:
    """The noise that every helper adds to its answer; nothing where none does."""
    draw = session.helper_noise(plan)
    return () if draw is None else tuple(draw(rng.bytes(SEED_BYTES)) for _ in range(plan.helpers))


def _informed(
    field: Field,
    setting: Setting,
    adversary: Adversary,
    cast: tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]],
    member: bool,
    rng: Generator,
) -> World:
    """One target; where it is absent, its place is empty or, under replace-one, has a rival."""
    plan, (mine, strangers, rest) = setting.plan, cast
    target, others = mine[:1], np.concatenate([mine[1:], rest])
    swap = isinstance(plan.privacy, Privacy) and plan.privacy.adjacency == "replace-one"
    rival = strangers[:1] if swap else strangers[:0]
    inside = np.concatenate([others, target if member else rival])
    sessions = _sessions(field, setting, adversary, _spread(inside, _holders(setting, len(inside))), rng)
    return World(
        plan=plan,
        sessions=sessions,
        candidates=field.private[target],
        labels=field.y[target],
        members=np.array([member]),
        truth=field.private[target],
        secret=field.y[target],
        raw=field.pool.X[target],
        public_raw=field.public_raw,
        rivals=field.private[rival] if swap else None,
        rival_labels=field.y[rival] if swap else None,
        background=flatten(field.measure(others)),
        public=field.public,
        records=len(mine),
    )


def _cast(
    field: Field, setting: Setting, label: int, rng: Generator
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Members of the attacked class, strangers of that class, and records of the other classes."""
    n, schema = setting.records, of_records(setting.plan.schema)
    wanted = n + max(1, setting.candidates)
    classes = schema.sizes.get("class")
    if classes is None:
        order = permutation(len(field.y), rng)
        _require(len(order), wanted)
        return order[:n], order[n:wanted], order[:0]
    of_class = np.flatnonzero(field.y == label)
    _require(len(of_class), wanted)
    own = of_class[permutation(len(of_class), rng)]
    others = [np.flatnonzero(field.y == c) for c in range(classes) if c != label]
    rest = [rows[permutation(len(rows), rng)[:n]] for rows in others]
    return own[:n], own[n:wanted], np.concatenate(rest)


def _require(there: int, wanted: int) -> None:
    if there < wanted:
        raise DataError(
            f"the attacked class has {there} private records and the game needs {wanted}; "
            "give more data or fewer records per class"
        )


def _dealt(
    mine: NDArray[np.int64], rest: NDArray[np.int64], setting: Setting, adversary: Adversary
) -> list[NDArray[np.int64]]:
    """Random cohorts: every client one record of the class; otherwise as few holders as the plan admits."""
    if adversary.cohorts == "random":
        if len(mine) > setting.plan.cohort.clients:
            raise DataError("random cohorts need at most one record of the attacked class per client; ask for fewer")
        parts = [mine[k : k + 1] for k in range(len(mine))]
        return [np.concatenate([parts[0], rest]), *parts[1:]]
    everything = np.concatenate([mine, rest])
    return _spread(everything, _holders(setting, len(everything)))


def _spread(rows: NDArray[np.int64], holders: int) -> list[NDArray[np.int64]]:
    return [rows[k::holders] for k in range(holders)]


def _holders(setting: Setting, records: int) -> int:
    privacy = setting.plan.privacy
    most = privacy.max_records_per_client if isinstance(privacy, Privacy) else None
    return 1 if most is None else max(1, -(-records // most))


def _sessions(
    field: Field, setting: Setting, adversary: Adversary, parts: Sequence[NDArray[np.int64]], rng: Generator
) -> tuple[Session, ...]:
    plan = setting.plan
    survivors = setting.survivors
    if survivors - adversary.colluders < len(parts):
        raise DataError(
            f"{len(parts)} honest clients must hold the records and {survivors - adversary.colluders} survive; "
            "give fewer records per class, or a plan with more clients"
        )
    empty = field.measure(np.empty(0, np.int64))
    moments = [field.measure(rows) for rows in parts]
    moments += [empty] * (plan.cohort.clients - len(moments))
    out = []
    for turn in range(adversary.releases):
        present = _present(plan, adversary, survivors, turn, rng)
        given = {
            client: session.contribution(plan, moments[client], rng, allow_reproducible=True) for client in present
        }
        noises = _of_helpers(plan, rng)
        vectors, release = _released(plan, given, noises, rng)
        out.append(Session(present, vectors, release, noises))
    return tuple(out)


def _present(plan: Plan, adversary: Adversary, survivors: int, turn: int, rng: Generator) -> tuple[int, ...]:
    """The clients of session ``turn``; the target's client is number 1 where it is left out."""
    everybody = range(plan.cohort.clients)
    if adversary.cohorts == "random":
        least = plan.cohort.min_survivors
        size = least + integer_below(plan.cohort.clients - least + 1, rng)
        return tuple(sorted(int(k) for k in permutation(plan.cohort.clients, rng)[:size]))
    if adversary.cohorts == "without-target" and turn:
        if plan.cohort.clients == plan.cohort.min_survivors:
            raise DataError("no client may vanish under this plan, so no session can be without the target's client")
        return tuple(client for client in everybody if client != 1)
    return tuple(everybody[:survivors])
