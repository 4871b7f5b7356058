"""A server that writes plans gets no other random graph, and finds a worse one where a plan is in the seed."""

import numpy as np
import pytest

from privstats.plan import Cohort
from privstats.randomness import seeded
from privstats.secagg import Parameters
from privstats.secagg.interactive import graph as graphs
from privstats.secagg.interactive.graph import Graph
from privstats.secagg.wire import labelled
from threat_models.attack import attacks_named
from threat_models.attacks.searched_graphs import LIES, Search, neighbours, surrounded
from threat_models.attacks.staged import RING
from threat_models.attacks.unmasking import tried

from ..conftest import plan_of

COLLUDERS = 12
PARAMETERS = Parameters.solve(
    clients=300, min_survivors=280, colluders=COLLUDERS, ring=RING, plan_digest=bytes(32), graph="robust"
)


@pytest.fixture
def plan_in_the_seed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The former rule: both digests seed the graph."""

    def table(graph: Graph) -> np.ndarray:
        seed = labelled("graph", graph.parameters.digest, graph.roster.digest)
        return graphs._harary(seed, graph.parameters.clients, graph.parameters.neighbours)

    monkeypatch.setattr(Graph, "_table", property(table))


@pytest.mark.parametrize("lie", LIES)
def test_no_plan_that_a_server_writes_gives_another_graph(lie: str) -> None:
    assert not tried(LIES[lie], Search(seeded(0), PARAMETERS))


@pytest.mark.parametrize("lie", LIES)
def test_a_server_finds_a_worse_graph_where_the_plan_is_in_the_seed(lie: str, plan_in_the_seed: None) -> None:
    search = Search(seeded(0), PARAMETERS)
    agreed = surrounded(search.agreed, COLLUDERS)
    chosen = LIES[lie](search)
    assert search.got(chosen)
    assert (chosen < COLLUDERS).sum(axis=1).max() > agreed


def test_the_attack_examines_plans_on_a_random_graph_alone() -> None:
    (attack,) = attacks_named(["searched-graph"])
    assert attack.refusal(plan_of()) is not None
    rows = attack.examine(plan_of(cohort=Cohort(300, 270, 30_000, 3)), seeded(1), trials=10, confidence=0.95)
    assert [row.measured for row in rows] == [0.0, 0.0]
    assert {row.ceiling for row in rows} == {0.0}
    assert len(neighbours(Search(seeded(0), PARAMETERS).agreed)) == 300
