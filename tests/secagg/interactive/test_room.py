"""A random graph without room for the clients that a lying server may exclude is refused with what to write."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from privstats.encoding import Ring
from privstats.errors import PlanError
from privstats.secagg import Parameters
from privstats.secagg.interactive.random_graph import largest_min_survivors


def solve(clients: int, min_survivors: int, colluders: int = 0, graph: str = "robust") -> Parameters:
    numbers = {"clients": clients, "min_survivors": min_survivors, "colluders": colluders}
    return Parameters.solve(**numbers, graph=graph, ring=Ring(((1, 8),)), plan_digest=bytes(32))


@pytest.mark.parametrize(
    ("numbers", "sentence"),
    [
        (
            (300, 300),
            "min_survivors=300 of 300 clients leaves a random graph no room for clients that a lying server excludes "
            "from the sum; write min_survivors = 298",
        ),
        (
            (20, 19),
            "min_survivors=19 of 20 clients leaves a random graph no room for clients that a lying server excludes "
            'from the sum; write min_survivors = 18 or graph = "complete"',
        ),
        (
            (6, 5),
            "no robust graph of at most 255 neighbours tolerates 0 colluders and 1 dropouts among 6 clients: write "
            'graph = "complete"',
        ),
    ],
)
def test_a_plan_that_needs_all_or_nearly_all_its_clients_is_refused_with_what_to_write(numbers, sentence: str) -> None:
    with pytest.raises(PlanError, match=f"^{re.escape(sentence)}$"):
        solve(*numbers)


@given(st.integers(4, 400), st.integers(0, 16), st.sampled_from(["robust", "sparse"]), st.data())
def test_what_a_refusal_says_to_write_is_accepted_and_is_the_largest(
    clients: int, colluders: int, graph: str, data: st.DataObject
) -> None:
    colluders = min(colluders, clients // 4)
    minimum = data.draw(st.integers((clients + colluders) // 2 + 1, clients))
    try:
        assert solve(clients, minimum, colluders, graph).min_listed <= clients
    except PlanError as refusal:
        said = str(refusal)
    else:
        return
    if named := re.search(r"write min_survivors = (\d+)", said):
        largest = int(named[1])
        assert largest < minimum
        assert solve(clients, largest, colluders, graph).min_listed <= clients
        with pytest.raises(PlanError):
            solve(clients, largest + 1, colluders, graph)
    elif "no room" in said:
        assert largest_min_survivors(clients, colluders=colluders, robust=graph == "robust") is None
        assert said.endswith(('write graph = "complete"', "lower colluders"))
    if 'graph = "complete"' in said:
        assert solve(clients, minimum, colluders, "complete").complete
