"""Whole state spaces: three clients in every run, a liar or four in the night; planted bugs break each rule."""

from dataclasses import replace
from typing import Any

import pytest

from privstats.encoding import Ring
from privstats.secagg.interactive import checks, messages
from privstats.secagg.interactive.server import Server
from tests.lengths import sized
from tests.secagg.interactive.cohorts import Cohort, cohort_of
from tests.secagg.interactive.explored.exploring import World, explored
from tests.secagg.interactive.explored.lying_server import LyingServer, judged
from tests.secagg.interactive.inside import inside

ABORTS = {"too_few_clients", "too_few_signatures", "too_few_shares"}
THREE_OF_THREE, TWO_OF_THREE, THREE_OF_FOUR = (3, 3, 1), (3, 2, 0), (4, 3, 0)
BY_NIGHT = pytest.mark.nightly


def small(clients: int, min_survivors: int, colluders: int, **solve: Any) -> Cohort:
    """A cohort with vectors of two entries: machines are resumed tens of thousands of times."""
    return cohort_of(clients, min_survivors, colluders, ring=Ring(((1, 12), (1, 40))), **solve)


@pytest.mark.parametrize("sizes", [THREE_OF_THREE, TWO_OF_THREE, pytest.param(THREE_OF_FOUR, marks=BY_NIGHT)])
def test_every_order_loss_and_repeat_ends_in_the_exact_sum_or_a_named_abort(sizes: tuple[int, int, int]) -> None:
    """Also at another party: a message that goes astray is refused and changes nothing but the count."""
    world = World(small(*sizes))
    found = explored(world, misrouted=sizes == THREE_OF_THREE)
    print(found)
    assert found.aborts == ABORTS
    assert tuple(range(sizes[0])) in found.sums
    assert min(map(len, found.sums)) == sizes[1]


@pytest.mark.parametrize(
    ("sizes", "liar"),
    [
        *(pytest.param(TWO_OF_THREE, liar, marks=BY_NIGHT) for liar in sized((1,), (0, 1, 2))),
        *(pytest.param(THREE_OF_THREE, liar, marks=BY_NIGHT) for liar in (0, 1, 2)),
        *(pytest.param(THREE_OF_FOUR, liar, marks=BY_NIGHT) for liar in sized((), (0,))),
    ],
)
def test_one_lie_of_a_client_at_any_point_breaks_no_sum_and_accuses_nobody_else(
    sizes: tuple[int, int, int], liar: int
) -> None:
    cohort = small(*sizes)
    found = explored(World(cohort, liar), misrouted=sizes != THREE_OF_FOUR)
    print(found)
    assert found.aborts == ABORTS | {"unproven_boxes"}
    assert found.refusals >= {"bad_signature", "bad_share", "withheld", "strangers", "bad_self_key"}
    # Any responses of as many points as the threshold lie on one polynomial: all shares are needed there.
    assert ("misdealt" in found.refusals) == (cohort.parameters.neighbours + 1 > cohort.parameters.threshold)


@pytest.mark.parametrize(
    "sizes", [THREE_OF_THREE, TWO_OF_THREE, (3, 3, 0), *(pytest.param((4, 3, c), marks=BY_NIGHT) for c in (0, 1))]
)
def test_whatever_lists_a_server_shows_to_whom_it_learns_one_sum_over_enough(sizes: tuple[int, int, int]) -> None:
    """And whatever it says about disputes."""
    clients, _, colluders = sizes
    server = LyingServer(small(*sizes), frozenset(range(clients - colluders, clients)))
    found = judged(server, server.walks())
    print(found, server.states, server.told)
    assert found.unmasked > 0
    assert not found.breaches


@pytest.mark.parametrize("sizes", [TWO_OF_THREE, *(pytest.param((4, 3, c), marks=BY_NIGHT) for c in (0, 1))])
def test_whatever_lists_a_server_shows_to_whom_the_sum_keeps_its_noise(sizes: tuple[int, int, int]) -> None:
    """Theorem 6: of every sum that shows, the clients in it have not opened more than they may."""
    clients, fewest, colluders = sizes
    cohort = small(*sizes, levels=tuple(range(fewest, clients + 1)))
    server = LyingServer(cohort, frozenset(range(clients - colluders, clients)))
    walks = server.walks()
    assert any(walk.opened for each in walks.values() for walk in each)
    found = judged(server, walks)
    assert found.unmasked > 0
    assert not found.breaches


def test_clients_that_open_for_whoever_is_listed_leave_too_little_noise(monkeypatch) -> None:
    """The bug that counting the proven prevents: a listed client of which nothing but a box that fails was shown."""
    monkeypatch.setattr("privstats.secagg.interactive.client.opened_layers", lambda levels, _: len(levels) - 1)
    server = LyingServer(small(*TWO_OF_THREE, levels=(2, 3)))
    assert "a sum has too little noise" in judged(server, server.walks()).breaches


@pytest.mark.parametrize(
    ("unchecked", "breach"),
    [
        pytest.param("check_agreement", "two lists were unmasked", marks=BY_NIGHT),
        ("check_survivors", "a sum over too few is known"),
        ("check_refused", "a sum over too few is known"),
    ],
)
def test_a_client_that_does_not_look_gives_a_lying_server_what_it_must_not_have(monkeypatch, unchecked, breach) -> None:
    monkeypatch.setattr(checks, unchecked, lambda *_, **__: None)
    if unchecked == "check_refused":  # and counts only the boxes that opened when it signs
        monkeypatch.setattr(checks, "unproven", lambda state: frozenset(state.dealers).difference(state.held))
    server = LyingServer(small(*TWO_OF_THREE))
    assert breach in judged(server, server.walks()).breaches


@BY_NIGHT
def test_a_server_that_does_not_look_at_shares_sums_wrongly_after_a_lie(monkeypatch) -> None:
    def accepted(server: Server, sender: int, message: messages.Unmask) -> None:
        inside(server).state.answers[sender] = message

    rows = inside(small(*THREE_OF_THREE).server).rows
    monkeypatch.setitem(rows, "unmask", replace(rows["unmask"], accepts=accepted))
    with pytest.raises(AssertionError, match="a sum is wrong"):
        explored(World(small(*THREE_OF_THREE), 0))
