"""Solve the public parameters of one aggregation."""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass
from typing import ClassVar, Literal, TypeAlias, get_args

import msgspec

from privstats import domains
from privstats.encoding.ring import Group
from privstats.errors import LocalProtocolError, PlanError
from privstats.secagg.interactive.random_graph import (
    CERTAIN,
    COMMITTEE,
    COMPLETE_LIMIT,
    FailureBounds,
    excludable,
    failure_bounds,
    largest_min_survivors,
    signatures_needed,
    solve_sparse,
)
from privstats.secagg.machines import check_clients, check_levels, working_with
from privstats.secagg.roster import Roster

StepName: TypeAlias = Literal["advertise", "share", "check", "mask", "agree", "unmask", "done", "failed"]

STEP_NAMES: tuple[StepName, ...] = ("advertise", "share", "check", "mask", "agree", "unmask")
UPLOAD_STEP: StepName = "mask"
DISPUTES = 1
"""Maximum number of neighbours in dispute with a client in a random graph: docs/proofs/random_graph.md, 8.

Two clients are in dispute if one of them reports that it could not use the other's shares.
"""

SUITE = domains.SECAGG_4
"""The name of the primitives, under every signature and key."""
_UPWARDS = 1 + 2.0**-32  # above the rounding of the tails' logarithms, which is some 1e-12
GRAPH_RULE = 2
"""The number of the rule that draws a random graph. Rule 1 also put the plan's digest into the seed."""

GraphKind: TypeAlias = Literal["auto", "complete", "sparse", "robust"]


@dataclass(frozen=True)
class Parameters:
    """The public parameters of one aggregation, bound into every signature and key; build them with :meth:`solve`.

    Attributes:
        clients: parties on the roster, n.
        threshold: number t of shares that reconstruct a secret.
        min_survivors: minimum number of clients in a revealed sum.
        colluders: clients that may work with the server and learn only the sum.
        neighbours: clients that each client exchanges masks with, k; ``clients - 1`` is the complete graph.
        plan_digest: 32-byte digest of everything else agreed on.
        server_may_lie: the promise covers a server that chooses who drops out; not in a sparse graph.
        levels: client counts that remaining noise can be sized for; empty without layers.

    Raises:
        PlanError: the numbers contradict each other.

    Example:
        >>> cohort = {"clients": 10, "min_survivors": 8, "colluders": 2, "ring": ps.encoding.Ring(((4, 16),))}
        >>> parameters = ps.secagg.Parameters.solve(**cohort, plan_digest=bytes(32))
        >>> parameters.threshold, parameters.neighbours, parameters.upload_bytes
        (7, 9, 8)
    """

    clients: int
    threshold: int
    min_survivors: int
    colluders: int
    neighbours: int
    ring: Group
    plan_digest: bytes
    server_may_lie: bool = True
    levels: tuple[int, ...] = ()

    protocol: ClassVar[str] = "interactive"
    steps: ClassVar[tuple[str, ...]] = STEP_NAMES
    upload_step: ClassVar[str] = UPLOAD_STEP

    def __post_init__(self) -> None:
        n, t, k = self.clients, self.threshold, self.neighbours
        if n < 2 or not 0 <= self.colluders <= n - 2:
            raise PlanError(
                f"colluders must leave two honest clients: between 0 and clients - 2 = {n - 2}, got {self.colluders}"
            )
        if not t <= self.min_survivors <= n:
            raise PlanError(
                f"min_survivors must be between the threshold {t} and clients {n}, got {self.min_survivors}: "
                "choose one in this range, or lower colluders"
            )
        if not 1 <= k <= n - 1 or k > COMPLETE_LIMIT - 1:
            raise PlanError(
                f"neighbours must be between 1 and {min(n, COMPLETE_LIMIT) - 1}, got {k}: use a sparse graph"
            )
        if self.complete and 2 * t <= n + self.colluders:
            raise PlanError(
                f"the threshold must exceed (clients + colluders) / 2 = {(n + self.colluders) / 2}, got {t}: call solve"
            )
        if not self.complete and not (k % 2 == 0 and k < 2 * t <= 2 * k):
            raise PlanError(f"a sparse graph needs even neighbours k, k/2 < threshold <= k, got {k}, {t}: call solve")
        if n <= COMMITTEE and self.signatures > self.min_survivors:
            raise PlanError(
                f"min_survivors must be at least {self.signatures}, since more than (clients + colluders) / 2 sign one "
                f"survivor list, got {self.min_survivors}: raise it, or lower colluders"
            )
        if len(self.plan_digest) != 32:
            raise PlanError(f"plan_digest must be 32 bytes, got {len(self.plan_digest)}")
        if not self.complete and 2 * self.disputes > k - t:
            raise PlanError(
                f"with disputes={self.disputes} threshold must be at most {k - 2 * self.disputes}, got {t}: call solve"
            )
        if self.min_listed > n:
            raise PlanError(
                f"min_survivors={self.min_survivors} of {n} clients leaves a random graph no room for clients that a "
                f"lying server excludes from the sum; {self._room_remedy}"
            )
        check_levels(self.levels, clients=n, min_survivors=self.min_survivors, complete=self.complete)

    @property
    def complete(self) -> bool:
        """Whether all clients are neighbours."""
        return self.neighbours == self.clients - 1

    @property
    def quorum(self) -> int:
        """Number of *other* clients that must answer: t, or t - 1 in the complete graph."""
        return self.threshold - 1 if self.complete else self.threshold

    @property
    def signatures(self) -> int:
        """Number of the committee's signatures over one survivor list before a client opens its masks.

        So many that no second list can have as many: t in the complete graph, else :func:`signatures_needed`.
        """
        return self.threshold if self.complete else signatures_needed(self.clients, self.colluders)

    @property
    def disputes(self) -> int:
        """Maximum number of neighbours in dispute with a client of a random graph; 0 in the complete graph."""
        return 0 if self.complete else DISPUTES

    @property
    def min_listed(self) -> int:
        """Minimum number of clients on a list that a client signs.

        ``min_survivors``, and more in a random graph. There a lying server can exclude a client from the sum if that
        client is in dispute with all its neighbours in the sum.
        """
        if not self.disputes:
            return self.min_survivors
        return self.min_survivors + excludable(self.clients, self.neighbours, self.disputes)

    @property
    def _room_remedy(self) -> str:
        """What to write where a random graph has no room for the clients that a lying server may exclude."""
        largest = largest_min_survivors(self.clients, colluders=self.colluders, robust=self.server_may_lie)
        ways = [] if largest is None else [f"min_survivors = {largest}"]
        ways += ['graph = "complete"'] if self.clients <= COMPLETE_LIMIT else []
        return f"write {' or '.join(ways)}" if ways else "lower colluders"

    def check_roster(self, roster: Roster) -> None:
        """Refuse a roster of another size, and on a random graph a run name that a party could choose or repeat.

        Under a repeated name distant clients could be shown another run's advertisements (docs/wire/interactive.md).

        Raises:
            LocalProtocolError: the roster does not fit.
        """
        check_clients(self, roster)
        if not self.complete and not roster.derived:
            raise LocalProtocolError(
                "a graph that is not complete needs a run name that no party can choose or repeat: build the roster "
                "with Roster.numbered(publics, server=..., label=..., counter=...), and that of a course's round with "
                "of_round"
            )

    @property
    def bounds(self) -> FailureBounds:
        """The remaining failure probabilities, as log2; -inf in the complete graph."""
        if self.complete:
            return CERTAIN
        return failure_bounds(
            self.clients,
            min_survivors=self.min_survivors,
            colluders=self.colluders,
            neighbours=self.neighbours,
            threshold=self.threshold,
            disputes=self.disputes,
        )

    @property
    def digest(self) -> bytes:
        """32-byte digest of parameters, plan and cryptographic suite."""
        numbers = (self.clients, self.threshold, self.min_survivors, self.colluders, self.neighbours)
        layers = (self.levels,) if self.levels else ()
        graph = () if self.complete else (self.signatures, GRAPH_RULE)
        parts = (SUITE, numbers, self.ring.segments, self.plan_digest, *layers, *graph)
        return hashlib.sha256(domains.SECAGG_PARAMETERS + msgspec.msgpack.encode(parts)).digest()

    @property
    def upload_bytes(self) -> int:
        """Bytes of a masked vector."""
        return self.ring.wire_bytes

    @property
    def failure(self) -> float:
        """Bound on the probability, over graph and committee, that masking reveals more than the sum.

        The union of connectivity, privacy and, if :attr:`server_may_lie`, a lying server and two lists; 0 where
        complete. If :attr:`condition` states that the server follows the protocol, it shows one list. Liveness is
        excluded: a session without a sum reveals no client. The float is at least the exact rational.
        """
        if self.complete:
            return 0.0
        bounds = self.bounds
        counted = [bounds.connectivity, bounds.privacy]
        if self.server_may_lie:
            counted += [bounds.lying_server, bounds.two_lists]
        return math.fsum(2.0**bound for bound in counted) * _UPWARDS

    @property
    def failure_basis(self) -> dict[str, int]:
        """Degree, threshold and signatures of a random graph; empty where complete."""
        if self.complete:
            return {}
        return {"neighbours": self.neighbours, "threshold": self.threshold, "signatures": self.signatures}

    @property
    def remedy(self) -> str:
        """The remedy for too large a :attr:`failure`."""
        return f"expect fewer colluders or dropouts, or use a complete graph of at most {COMPLETE_LIMIT} clients"

    @property
    def condition(self) -> str:
        """The promise's assumption: a clause that follows "while"."""
        honest = "the server follows the protocol, dropouts do not depend on the random graph, and "
        server = "" if self.server_may_lie else honest
        graph = "" if self.complete else ", chosen without knowledge of the random graph"
        committee = " and its committee" if not self.complete and self.clients > COMMITTEE else ""
        return f"{server}{working_with(self.colluders, self.clients)} the server{graph}{committee}"

    @classmethod
    def solve(
        cls,
        *,
        clients: int,
        min_survivors: int,
        colluders: int,
        ring: Group,
        plan_digest: bytes,
        graph: str = "auto",
        helpers: int = 0,
        noisy_helpers: bool = False,
        levels: tuple[int, ...] = (),
    ) -> Parameters:
        """Return the smallest graph and threshold that keep the promise.

        The complete graph has t = floor((n + c) / 2) + 1, so that no two survivor lists can both gather t signatures
        (2t > n + c). Other graphs have the smallest even k of :func:`solve_sparse`.

        Args:
            graph: ``"complete"``; ``"sparse"``; ``"robust"``: sparse, and safe against a server that chooses who drops;
                or ``"auto"``: complete up to 256 clients, robust beyond.
            helpers, noisy_helpers: must be 0 and False.

        Raises:
            PlanError: helpers, an unknown graph, or no threshold fits both dropouts and colluders.

        Guarantee: see ``docs/proofs``, theorems 2, 7 and 8. The complete graph covers a server that lies about who
        takes part; the robust graph does up to :attr:`bounds`. The sparse graph is for a server that follows the
        protocol: its bounds assume that dropouts do not depend on the graph.
        """
        if helpers or noisy_helpers:
            raise PlanError("the interactive protocol has no helpers: omit panel, or choose protocol='split'")
        if graph not in get_args(GraphKind):
            raise PlanError(f"graph must be one of {', '.join(get_args(GraphKind))}, got {graph!r}")
        if graph == "complete" and clients > COMPLETE_LIMIT:
            raise PlanError(f"a complete graph has at most {COMPLETE_LIMIT} clients, got {clients}: use graph='robust'")
        if graph == "complete" or (graph == "auto" and clients <= COMPLETE_LIMIT):
            neighbours, threshold = clients - 1, (clients + colluders) // 2 + 1
        else:
            robust = graph != "sparse"
            solution = solve_sparse(
                clients, min_survivors=min_survivors, colluders=colluders, robust=robust, disputes=DISPUTES
            )
            neighbours, threshold = solution.neighbours, solution.threshold
        numbers = clients, threshold, min_survivors, colluders, neighbours
        return cls(*numbers, ring, plan_digest, graph != "sparse", levels)
