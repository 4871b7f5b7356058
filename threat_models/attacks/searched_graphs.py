"""Attack 14 on a random graph: a server writes plans until the graph surrounds a client with its colluders.

In a course the server writes what earlier rounds released, and the next plan holds it. If the plan's digest were in the
graph's seed, each release within the noise would be another graph, and the server could search among them without a
message to any client. An attack that never succeeds proves nothing: the tests play it against that rule.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import cast

import numpy as np

from privstats.plan import Plan
from privstats.randomness import Generator
from privstats.secagg import Parameters, Roster
from privstats.secagg.interactive.graph import Graph
from threat_models.adversary import Adversary
from threat_models.attack import Examination
from threat_models.attacks.staged import Value
from threat_models.attacks.unmasking import never
from threat_models.report import Row

TRIES = 20
"""Plans that the server writes in one search."""


@dataclass
class Search:
    """One roster that the parties fixed, and a server that writes plans for it.

    Attributes:
        agreed: the graph that a client computes for the plan of the parameters.
    """

    rng: Generator
    parameters: Parameters
    agreed: Graph = field(init=False)

    def __post_init__(self) -> None:
        publics = tuple(self.rng.bytes(32) for _ in range(self.parameters.clients))
        self.agreed = Graph(
            self.parameters, Roster.numbered(publics, server=self.rng.bytes(32), label="search", counter=0)
        )

    def got(self, vector: Value | None) -> bool:
        """Return whether these neighbours differ from the agreed graph's."""
        return vector is not None and not np.array_equal(vector, neighbours(self.agreed))


def neighbours(graph: Graph) -> Value:
    """Return every client's neighbours, ``(n, k)``."""
    return np.array([graph.neighbours(client) for client in range(graph.parameters.clients)])


def surrounded(graph: Graph, colluders: int) -> int:
    """Return the largest number of the first ``colluders`` clients among one client's neighbours."""
    return int((neighbours(graph) < colluders).sum(axis=1).max())


def other_plans(search: Search) -> Value | None:
    """Write plans for the agreed roster, and choose the graph with the most colluders around one client."""
    written = (replace(search.parameters, plan_digest=search.rng.bytes(32)) for _ in range(TRIES))
    graphs = (Graph(parameters, search.agreed.roster) for parameters in written)
    colluders = max(1, search.parameters.colluders)
    return neighbours(max(graphs, key=lambda graph: surrounded(graph, colluders)))


def other_plans_of_a_round(search: Search) -> Value | None:
    """Write plans for round 1 of a course, whose roster follows from the agreed one."""
    search.agreed = Graph(search.parameters, search.agreed.roster.of_round(1))
    return other_plans(search)


LIES: Mapping[str, Callable[[Search], Value | None]] = {
    "other plans": other_plans,
    "other plans of a round": other_plans_of_a_round,
}
"""Every lie, by name: the neighbours in the chosen graph."""


class SearchedGraph(Examination):
    """The rate at which a server gets another random graph by what it writes into a plan: 0."""

    name = "searched-graph"
    number = 14
    goal = "unmasking"
    title = "an attacker who runs the server writes plans until a random graph surrounds a client"
    needs = Adversary(sees="transcript", knows="none", active=True)
    effort = 0.1

    def refusal(self, plan: Plan) -> str | None:
        """Needs a plan whose clients mask with some of the others only."""
        if isinstance(plan.masking, Parameters) and not plan.masking.complete:
            return None
        return "searches for a random graph; here no client masks with some of the others only"

    def examine(self, plan: Plan, rng: Generator, *, trials: int, confidence: float) -> tuple[Row, ...]:
        """One row per lie: the share of searches that found another graph than the agreed one."""
        parameters = cast("Parameters", plan.masking)  # ``refusal`` has checked this
        return never(self, LIES, lambda: Search(rng, parameters), trials, confidence, share=self.effort)
