"""Openings of noise in layers: one per client, for the survivors that proved to it that they take part."""

import pytest

from privstats.encoding import Ring
from privstats.errors import LocalProtocolError, PlanError, RemoteProtocolError
from privstats.secagg import Client, Parameters, Server
from privstats.secagg.interactive import messages
from privstats.secagg.machines import layer_seeds, opening
from tests.secagg.interactive.cohorts import PLAN, Cohort, cohort_of, finish, forge, play_until, read
from tests.secagg.interactive.inside import inside
from tests.secagg.interactive.transcripts import spoil

LEVELS = (4, 5, 6)
LAYERS = len(LEVELS) - 1
KEY = bytes(range(32))


def layered() -> Cohort:
    return cohort_of(6, 4, 1, levels=LEVELS)


def values(root: bytes) -> list[bytes]:
    """The whole chain, from the lowest."""
    return [opening(root, LAYERS, opened) for opened in range(LAYERS + 1)]


def test_with_all_there_every_layer_is_opened() -> None:
    cohort = layered()
    finish(cohort, play_until(cohort, "unmask"))
    opened = cohort.server.openings
    assert {client: each.left_for for client, each in opened.items()} == dict.fromkeys(range(6), 6)
    for client, each in opened.items():
        assert each.seeds == layer_seeds(cohort.noise_root(client), LAYERS)


@pytest.mark.parametrize(("gone", "left"), [({5}, 5), ({4, 5}, 4)])
def test_as_many_layers_are_opened_as_clients_are_in_the_sum(gone: set[int], left: int) -> None:
    cohort = layered()
    finish(cohort, play_until(cohort, "agree", {"mask": gone}))
    opened = cohort.server.openings
    assert set(opened) == set(range(6)) - gone
    assert {each.left_for for each in opened.values()} == {left}
    assert {len(each.seeds) for each in opened.values()} == {LEVELS.index(left)}


def test_who_vanishes_before_the_last_answer_opens_nothing() -> None:
    cohort = layered()
    outbox = play_until(cohort, "unmask")
    total, survivors = finish(cohort, {client: message for client, message in outbox.items() if client != 3})
    assert survivors == tuple(range(6))
    assert (total == cohort.sum_over(survivors)).all()
    assert set(cohort.server.openings) == {0, 1, 2, 4, 5}


def test_a_client_does_not_count_a_survivor_that_proved_nothing_to_it() -> None:
    """A server could list a client that has left; its noise is then in no sum, and others must not open for it."""
    cohort = layered()
    outbox = play_until(cohort, "share")
    cohort.answer(outbox)
    spoil(cohort.server, 4, 1)
    finish(cohort, dict(cohort.server.end_step()))
    opened = cohort.server.openings
    for client in (1, 4):  # nor its owner the holder: they share no mask
        seeds = layer_seeds(opening(cohort.noise_root(client), LAYERS, 1), 1)
        assert (opened[client].left_for, opened[client].seeds) == (5, seeds)
    assert {opened[client].left_for for client in (0, 2, 3, 5)} == {6}


def test_an_opening_tells_nothing_above_it() -> None:
    chain = values(bytes(range(32)))
    assert len(set(chain)) == LAYERS + 1
    seeds = layer_seeds(chain[-1], LAYERS)
    assert layer_seeds(chain[1], 1) == seeds[:1]
    assert seeds[1] not in (chain[1], *layer_seeds(chain[1], 1))
    assert layer_seeds(chain[0], 0) == ()
    assert opening(chain[2], 2, 0) == opening(chain[1], 1, 0) == chain[0]  # one way, down to the commitment


@pytest.mark.parametrize("shown", [0, 2])
def test_a_liar_opens_neither_more_nor_less_than_the_list_says(shown: int) -> None:
    """Another value of its own chain, or of another one: a proven fault, and its noise stays as it is."""
    cohort = layered()
    outbox = play_until(cohort, "agree", {"mask": {5}})
    cohort.answer(outbox)
    outbox = dict(cohort.server.end_step())
    ((_, answer),) = cohort.clients[2].receive(outbox[2])
    honest = read(cohort, 2, answer, messages.UnmaskWithOpening)
    chain = values(cohort.noise_root(2))
    assert honest.opening == chain[1]
    for lie in (chain[shown], bytes(32)):
        told = messages.UnmaskWithOpening(*(*(getattr(honest, f) for f in honest.__struct_fields__[:-1]), lie))
        with pytest.raises(RemoteProtocolError, match="seeds of noise") as refusal:
            cohort.server.receive(2, forge(cohort, 2, told))
        assert (refusal.value.peer, refusal.value.code, refusal.value.proven) == (2, "bad_opening", True)
    finish(cohort, {client: message for client, message in outbox.items() if client != 2})
    assert set(cohort.server.openings) == {0, 1, 3, 4}
    assert [fault.code for fault in cohort.server.faults] == ["bad_opening"]


def test_an_opening_is_sent_once_repeated_and_then_wiped() -> None:
    cohort = layered()
    outbox = play_until(cohort, "unmask")
    client, root = cohort.clients[0], inside(cohort.clients[0]).state.noise_root
    assert bytes(root) == cohort.noise_root(0)
    first = client.receive(outbox[0])
    assert client.receive(outbox[0]) == first
    assert bytes(root) == bytes(32)
    assert not inside(client).state.noise_root
    with pytest.raises(RemoteProtocolError, match="not_expected"):
        client.receive(outbox[1])
    with pytest.raises(LocalProtocolError):
        client.export(KEY)


@pytest.mark.parametrize("step", ["advertise", "check", "mask", "agree", "unmask"])
def test_a_resumed_client_commits_to_and_opens_the_same_chain(step: str) -> None:
    cohort = layered()
    outbox = play_until(cohort, step)
    sealed = cohort.clients[0].export(KEY)
    cohort.clients[0] = Client.resume(sealed, KEY, **cohort.place(0))
    finish(cohort, outbox)
    assert cohort.server.openings[0].seeds == layer_seeds(cohort.noise_root(0), LAYERS)


def test_a_resumed_server_has_the_commitments_and_the_openings() -> None:
    cohort = layered()
    outbox = play_until(cohort, "unmask")
    for client in (0, 1):
        ((_, answer),) = cohort.clients[client].receive(outbox.pop(client))
        cohort.server.receive(client, answer)
    kept = {"parameters": cohort.parameters, "roster": cohort.roster, "identity": cohort.aggregator}
    cohort.server = Server.resume(cohort.server.export(KEY), KEY, **kept)
    finish(cohort, outbox)
    assert {client: len(each.seeds) for client, each in cohort.server.openings.items()} == dict.fromkeys(range(6), 2)


def test_a_session_that_fails_keeps_no_opening() -> None:
    cohort = layered()
    outbox = play_until(cohort, "unmask")
    ((_, answer),) = cohort.clients[0].receive(outbox[0])
    cohort.server.receive(0, answer)
    cohort.server.abandon()
    assert cohort.server.openings == {}


def test_an_opening_shows_no_seed_to_a_printer() -> None:
    cohort = layered()
    finish(cohort, play_until(cohort, "unmask"))
    shown = repr(cohort.server.openings)
    assert not any(repr(seed)[2:-1] in shown for each in cohort.server.openings.values() for seed in each.seeds)


@pytest.mark.parametrize("levels", [(4,), (4, 6, 5), (3, 6), (4, 5), (4, 4, 6)])
def test_levels_that_no_client_could_follow_are_refused(levels: tuple[int, ...]) -> None:
    with pytest.raises(PlanError, match="must rise from min_survivors=4 to clients=6"):
        cohort_of(6, 4, 1, levels=levels)


def test_a_graph_in_which_a_client_does_not_see_all_others_has_no_layers() -> None:
    with pytest.raises(PlanError, match="on a complete graph only"):
        Parameters.solve(
            clients=300, min_survivors=270, colluders=10, ring=Ring(((1, 8),)), plan_digest=PLAN, levels=(270, 300)
        )


@pytest.mark.parametrize(("levels", "root"), [((), bytes(32)), (LEVELS, b""), (LEVELS, bytes(31))])
def test_a_client_has_a_root_exactly_where_there_are_layers(levels: tuple[int, ...], root: bytes) -> None:
    cohort = cohort_of(6, 4, 1, levels=levels)
    with pytest.raises(LocalProtocolError, match="noise_root is 32 bytes where"):
        cohort.client(0, noise_root=root)
