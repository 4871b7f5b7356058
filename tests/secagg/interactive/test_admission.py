"""Who goes on after the dealings: liars may accuse and spoil as they like, honest clients are not left out for it."""

from collections.abc import Collection, Mapping
from itertools import combinations, product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from privstats.errors import AggregationError
from privstats.secagg import Parameters
from privstats.secagg.interactive.blame import accusers, admitted, require_dealers, tolerance
from privstats.secagg.interactive.graph import Graph
from privstats.secagg.masking_facts import masking_facts
from tests.secagg.interactive.cohorts import RING, Cohort, cohort_of

CLIENTS, LIARS = 14, 2


def graph_of(clients: int = CLIENTS, min_survivors: int = 10, colluders: int = LIARS) -> Graph:
    cohort = cohort_of(clients, min_survivors, colluders)
    return Graph(cohort.parameters, cohort.roster)


GRAPH = graph_of()
T = GRAPH.parameters.threshold
clients = st.integers(0, CLIENTS - 1)


@st.composite
def disputed(draw):
    """Liars accuse whom they like and spoil whose boxes they like; honest clients accuse liars only."""
    liars = draw(st.sets(clients, max_size=LIARS))
    failed = {liar: set(draw(st.sets(clients.filter(lambda other, liar=liar: other != liar)))) for liar in liars}
    for holder in set(range(CLIENTS)) - liars:
        failed[holder] = {liar for liar in liars if draw(st.booleans())}
    checked = set(range(CLIENTS)) - draw(st.sets(clients, max_size=2))
    return liars, checked, {holder: tuple(sorted(owners)) for holder, owners in failed.items() if owners}


@given(disputed())
def test_as_many_liars_as_may_collude_get_nobody_honest_left_out(case) -> None:
    """Where one more than t is left to hold each one's shares; where just t are, both liars may get one left out."""
    liars, checked, failed = case
    assert T == 9
    honest = checked - admitted(checked, failed, GRAPH) - liars
    if len(checked) > T + LIARS + 1:
        assert not honest
    assert len(honest) <= 1
    assert all(sum(each in failed.get(liar, ()) for liar in liars) == LIARS for each in honest)


@pytest.mark.parametrize(("accusers", "present"), [(1, range(9, 15)), (2, range(9, 15)), (3, range(10, 15))])
@pytest.mark.parametrize("least", [10, 11, 12, 13])
def test_what_several_accusers_reach(accusers: int, present: range, least: int) -> None:
    """One liar gets nobody left out while t + 2 are present. Several do while just t hold the shares beside them, but
    not where min_survivors leaves room for them: there the shares suffice for every session that is promised."""
    graph = graph_of(15, least, 3)
    t = graph.parameters.threshold
    assert t == 10
    for here in present:
        failed = dict.fromkeys(range(accusers), (here - 1,))
        held = here - 1 - accusers
        out = here - 1 not in admitted(range(here), failed, graph)
        if here - 1 < t:
            assert not out, "every other is needed to lift its masks anyway"
        elif accusers == 1:
            assert out == (held < t)
        else:
            assert out == (held < t or (held == t and here - 1 > least))


def test_two_who_accuse_two_get_neither_left_out_where_it_is_as_likely_that_they_are_lied_to() -> None:
    """Whoever disputes with two is no witness: the pair may lie, or the other pair."""
    graph = graph_of(10, 7, 2)
    assert admitted(range(10), {0: (8,), 1: (8,)}, graph) == set(range(10)) - {8}
    assert admitted(range(10), {0: (8, 9), 1: (8, 9)}, graph) == set(range(10))
    assert admitted(range(10), {0: (8,), 1: (8,), 8: (5,)}, graph) == set(range(10)) - {8}
    assert admitted(range(10), {0: (8, 9), 1: (8,)}, graph) == set(range(10))


@given(st.dictionaries(clients, st.sets(clients, max_size=CLIENTS).map(sorted).map(tuple)), st.sets(clients))
def test_whoever_goes_on_has_few_disputes_and_enough_good_holders(failed, gone) -> None:
    """Whatever is said, by however many."""
    checked = set(range(CLIENTS)) - gone
    failed = {holder: tuple(owner for owner in owners if owner != holder) for holder, owners in failed.items()}
    here = admitted(checked, failed, GRAPH)
    assert here <= checked
    for owner in here:
        holders = here - {owner}
        accusers = {holder for holder in holders if owner in failed.get(holder, ())}
        accused = holders.intersection(failed.get(owner, ()))
        assert len(accusers | accused) <= tolerance(GRAPH.parameters)
        assert len(holders) < T or len(holders - accusers) >= T


@given(st.sets(clients))
def test_without_disputes_everybody_goes_on(gone) -> None:
    checked = set(range(CLIENTS)) - gone
    assert admitted(checked, {}, GRAPH) == checked


@pytest.mark.parametrize(
    ("failed", "left_out"),
    [
        ({0: (5,)}, set()),
        ({0: (5,), 1: (5,)}, set()),
        ({0: (5,), 1: (5,), 2: (5,)}, {5}),
        ({5: (0, 1)}, set()),
        ({5: (0, 1, 2)}, {5}),
        (
            {
                5: tuple(i for i in range(CLIENTS) if i not in (5, 6)),
                6: tuple(i for i in range(CLIENTS) if i not in (5, 6)),
            },
            {5, 6},
        ),
    ],
    ids=["one", "two", "an owner", "two at a holder", "a holder", "two who accuse everybody"],
)
def test_who_is_left_out(failed: dict[int, tuple[int, ...]], left_out: set[int]) -> None:
    assert set(range(CLIENTS)) - admitted(range(CLIENTS), failed, GRAPH) == left_out


def test_whoever_has_too_few_good_holders_is_left_out_within_the_tolerance() -> None:
    """Of four holders all four are needed."""
    graph = graph_of(5, 5, 2)
    assert (graph.parameters.threshold, tolerance(graph.parameters)) == (4, 2)
    assert admitted(range(5), {0: (3,)}, graph) == {0, 1, 2, 4}


@pytest.mark.parametrize("colluders", [0, 5])
def test_a_client_of_a_random_graph_goes_on_with_one_dispute_and_not_with_two(colluders: int) -> None:
    """However many may collude, and however many disputes its neighbourhood could spare."""
    cohort = Cohort(Parameters(40, 12, 30, colluders, 20, RING, b"p" * 32))
    graph = Graph(cohort.parameters, cohort.roster)
    around = graph.neighbours(0)
    assert tolerance(graph.parameters) == 1
    assert admitted(range(40), {around[0]: (0,)}, graph) == set(range(40))
    assert admitted(range(40), dict.fromkeys(around[:2], (0,)), graph) == set(range(1, 40))
    assert admitted(range(40), {0: around[:1]}, graph) == set(range(40))
    assert admitted(range(40), {0: around[:2]}, graph) == set(range(1, 40))


def test_too_few_end_the_session_with_the_disputes_if_these_are_why() -> None:
    graph = graph_of(6, 6, 1)
    with pytest.raises(AggregationError, match=r"unproven_boxes.*client 5 may have .* by clients 0, 1;"):
        require_dealers(range(6), {0: (5,), 1: (5,)}, graph, full_list=False)
    with pytest.raises(AggregationError, match="too_few_clients"):
        require_dealers(range(5), {}, graph, full_list=False)


@pytest.mark.parametrize(("clients", "min_survivors", "colluders", "warned"), [(10, 7, 2, True), (10, 9, 2, False)])
def test_a_plan_in_which_liars_can_get_an_honest_client_left_out_says_so(
    clients: int, min_survivors: int, colluders: int, warned: bool
) -> None:
    """With min_survivors of t + max(1, c) and one client more, as many liars leave t holders; below, they do not."""
    graph, liars = graph_of(clients, min_survivors, colluders), max(1, colluders)
    here = range(min_survivors + 1)
    framed = dict.fromkeys(here[-liars:], (0,))
    assert (0 not in admitted(here, framed, graph)) == warned
    said = [fact for fact in masking_facts(graph.parameters) if fact.startswith("WARNING")]
    assert [f"min_survivors to at least {graph.parameters.threshold + liars}," in each for each in said] == [
        True
    ] * warned


WIDE = Cohort(Parameters(40, 13, 24, 6, 24, RING, b"p" * 32))
RANDOM = Graph(WIDE.parameters, WIDE.roster)
NARROW = Cohort(Parameters(14, 6, 8, 1, 10, RING, b"p" * 32))
RING_OF_14 = Graph(NARROW.parameters, NARROW.roster)


def by_the_page(checked: Collection[int], failed: Mapping[int, tuple[int, ...]], graph: Graph) -> set[int]:
    """Who goes on in a random graph, from docs/wire/interactive.md alone."""
    t, here, paid = graph.parameters.threshold, set(checked), set[int]()
    pairs = {frozenset((holder, owner)) for holder, owners in failed.items() for owner in owners}

    def against(client: int) -> list[int]:
        found = [min(pair - {client}) for pair in pairs if client in pair and pair <= here]
        return sorted(found, key=order)

    def order(client: int) -> tuple[int, bool, int]:
        return -sum(client in pair and pair <= here for pair in pairs), client not in paid, client

    while here:
        first = min(here, key=order)
        if len(against(first)) > 1:
            unpaid = [other for other in against(first) if other not in paid]
            if first not in paid and unpaid:
                paid.add(unpaid[0])
            elif first not in paid:
                first = against(first)[0]
            here.discard(first)
            continue
        near = {client: len(here.intersection(graph.neighbours(client))) for client in here}
        alone = [client for client in sorted(here) if near[client] - len(against(client)) < t <= near[client]]
        if not alone:
            break
        here.discard(alone[0])
    return here


@st.composite
def lies_on(draw, graph: Graph, most: int):
    """Liars of a random graph accuse whom they like, and honest clients only them."""
    n = graph.parameters.clients
    liars = draw(st.sets(st.integers(0, n - 1), max_size=most))
    honest = st.sampled_from([client for client in range(n) if client not in liars][:6])  # few, so that lies meet
    failed: dict[int, set[int]] = {}
    for liar in liars:
        for accused in draw(st.sets(honest | st.sampled_from(sorted(liars)), max_size=8)) - {liar}:
            if accused in graph.neighbours(liar):
                owner, holder = (liar, accused) if draw(st.booleans()) else (accused, liar)
                failed.setdefault(holder, set()).add(owner)
    return liars, {holder: tuple(sorted(owners)) for holder, owners in failed.items()}


def known_to(clients: Collection[int]) -> set[int]:
    """The neighbours that all of these have."""
    return set.intersection(*(set(RANDOM.neighbours(client)) for client in clients)) - set(clients)


@given(lies_on(RANDOM, 5))
def test_liars_of_a_random_graph_cost_no_more_honest_clients_than_they_are(case) -> None:
    """Five and as many leave each client t + 1 neighbours; a client alone against all costs nobody."""
    liars, failed = case
    here = admitted(range(40), failed, RANDOM)
    assert RANDOM.min_degree(here) > RANDOM.parameters.threshold
    out = set(range(40)) - here
    assert len(out - liars) <= len(liars)
    assert len(liars) > 1 or not out - liars


@pytest.mark.ci
@pytest.mark.parametrize("first", [0, 20, -3])
def test_three_liars_with_every_list_cost_three_at_most_and_the_rule_is_that_of_the_page(first: int) -> None:
    """Every list of the first four whom three liars know, who have low, middle and high places."""
    places = list(range(40))[first:]
    liars = next(three for three in combinations([*places, *range(40)], 3) if len(known_to(three)) >= 4)
    victims = sorted(known_to(liars))[:4]
    places = list(product(liars, victims))
    worst = 0
    for told in range(1 << len(places)):
        failed: dict[int, tuple[int, ...]] = {}
        for bit, (liar, victim) in enumerate(places):
            if told >> bit & 1:
                failed[liar] = (*failed.get(liar, ()), victim)
        here = admitted(range(40), failed, RANDOM)
        worst = max(worst, len(set(victims) - here))
        if told % 7 == 0:
            assert here == by_the_page(range(40), failed, RANDOM)
    assert worst <= 3


@given(lies_on(RANDOM, 5))
def test_where_lists_are_signed_whole_nobody_in_dispute_goes_on_and_liars_cost_no_more(case) -> None:
    liars, failed = case
    here = admitted(range(40), failed, RANDOM, full_list=True)
    assert not any(here.intersection(failed.get(holder, ())) for holder in here)
    assert len(set(range(40)) - here - liars) <= len(liars)


def test_whoever_accuses_with_fewer_than_may_collude_is_named() -> None:
    """Two of six colluders have an honest client left out; both are on record."""
    failed = {1: (0,), 2: (0,)}
    assert [fault.peer for fault in accusers(failed, WIDE.parameters)] == [1, 2]


@given(lies_on(RING_OF_14, 4), st.sets(st.integers(0, 13), max_size=4))
def test_who_goes_on_in_a_random_graph_is_as_the_page_says(case, gone) -> None:
    _, failed = case
    checked = set(range(14)) - gone
    here = admitted(checked, failed, RING_OF_14)
    assert here == by_the_page(checked, failed, RING_OF_14)
    for client in here:
        near = here.intersection(RING_OF_14.neighbours(client))
        disputes = {other for other in near if client in failed.get(other, ()) or other in failed.get(client, ())}
        assert len(disputes) <= 1
        assert len(near) < 6 or len(near) - len(disputes) >= 6


@pytest.mark.parametrize("accuser", [False, True])
def test_a_client_with_too_few_to_mask_with_is_left_out_where_the_session_would_end(accuser: bool) -> None:
    """Of its neighbours just t are there, and one of them is in dispute with it, whoever of both complains."""
    client, near = 0, RING_OF_14.neighbours(0)
    checked = set(range(14)) - set(near[:4])
    failed = {client: (near[4],)} if accuser else {near[4]: (client,)}
    assert len(checked.intersection(near)) == 6
    assert client in admitted(checked, {}, RING_OF_14)
    assert client not in admitted(checked, failed, RING_OF_14)
