"""Attacks on alignment rounds: each takes one client's covariance from a weakened double, and fails against ours.

A server that shows its reference to one client alone, that asks for two sums whose lists differ by one client, or that
asks often enough.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations, permutations

import numpy as np
import pytest
from scipy.optimize import least_squares

import privstats as ps
from privstats.course.base import as_next
from privstats.encoding import flatten
from privstats.engines import loopback
from privstats.engines.journal import JournaledClient
from privstats.errors import AggregationError, LocalProtocolError, PlanError, RemoteProtocolError
from privstats.kinds.gaussians import client_gaussian, mean_root, root
from privstats.records.opened import Opened
from privstats.secagg import Client, Identity, Roster
from privstats.session import aggregate_unmasked
from privstats.session.validation import list_arguments
from tests.contrib.alignment.cohort import CLIENTS, COHORT, PROMISE, RADIUS, SCHEMA, D, first, round_plan, shards
from tests.secagg.interactive.inside import inside

VICTIM = 4
PARTS = shards()
IDENTITIES = [Identity.generate(np.random.default_rng(100 + k).bytes) for k in range(CLIENTS)]
SERVER = Identity.generate(np.random.default_rng(99).bytes)
ROSTER = Roster.numbered(tuple(each.public for each in IDENTITIES), server=SERVER.public, label="rounds", counter=0)


def truth():
    """The victim's covariance, which nobody may learn."""
    return client_gaussian(SCHEMA, Opened(SCHEMA.reading, PARTS[VICTIM][0], None)).covariance / SCHEMA.scale**2


def vector(plan, client):
    return plan.ring.encode(flatten(ps.measure(plan.schema, PARTS[client][0], None, published=plan.published)))


def careless(plan, client, parameters=None):
    """The weakened double: it signs any list, and where given takes part under parameters that are not its plan's."""
    place = {"index": client, "identity": IDENTITIES[client], "roster": ROSTER}
    return Client(parameters or plan.masking, vector(plan, client), **place)


def honest(plan, client, agreed=range(CLIENTS)):
    moments = ps.measure(plan.schema, PARTS[client][0], None, published=plan.published)
    place = {"index": client, "identity": IDENTITIES[client], "roster": ROSTER}
    return ps.session.client(plan, moments, agreed=None if agreed is None else tuple(agreed), **place)


def total(plan, clients, dropouts=None):
    """The sum of M over whoever the server gets it over, in real units, and the list."""
    server = ps.session.server(plan, ROSTER, identity=SERVER)
    outcome = loopback.run(server, clients, dropouts=dropouts or {})
    release = ps.session.release(plan, outcome.total, outcome.survivors)
    return release.moments, outcome


def from_root(reference, part):
    """Sigma from M = (S^1/2 Sigma S^1/2)^1/2."""
    inverse = root(reference, -0.5)
    return inverse @ part @ part @ inverse


LARGE = RADIUS**2 * np.eye(D) * 0.99


def test_attack_a_reference_for_the_victim_alone():
    """S to one and 0 to the others: what is masked is the victim's root and twelve zeros."""
    shown = [round_plan(LARGE if client == VICTIM else 0 * LARGE) for client in range(CLIENTS)]
    common = shown[0]
    doubles = [careless(plan, client, common.masking) for client, plan in enumerate(shown)]
    moments, _ = total(common, doubles)
    count = len(PARTS[VICTIM][1])
    assert np.abs(from_root(LARGE, moments.M / count) - truth()).max() < 1e-4 * np.abs(truth()).max()

    ours = [honest(plan, client) for client, plan in enumerate(shown)]
    server = ps.session.server(common, ROSTER, identity=SERVER)
    with pytest.raises(AggregationError):  # the victim's session is of another plan: it is not in the first list
        loopback.run(server, ours, dropouts={})
    assert ours[VICTIM].upload == b""


@pytest.mark.parametrize("second", [4.0, 1.0 + 1e-9], ids=["S and 4 S", "S that hardly moves"])
def test_attack_two_lists_that_differ_by_one(second):
    """Two rounds whose lists differ by the victim: the difference of the sums is its root, scaled."""
    one, other = round_plan(np.eye(D)), round_plan(second * np.eye(D))
    whole, _ = total(one, [careless(one, client) for client in range(CLIENTS)])
    without, outcome = total(other, [careless(other, client) for client in range(CLIENTS)], {"mask": {VICTIM}})
    assert VICTIM not in outcome.survivors
    part = (whole.M - without.M / np.sqrt(second)) / len(PARTS[VICTIM][1])
    assert np.abs(from_root(np.eye(D), part) - truth()).max() < 1e-3 * np.abs(truth()).max()

    total(one, [honest(one, client) for client in range(CLIENTS)])
    clients = [honest(other, client) for client in range(CLIENTS)]
    with pytest.raises(AggregationError):
        total(other, clients, {"mask": {VICTIM}})
    assert all(each.step == "failed" for k, each in enumerate(clients) if k != VICTIM)


@pytest.mark.ci
def test_attack_three_lists_of_large_differences():
    """Lists that differ by many clients are no remedy: two that share one client alone, less the list of both.

    A rule that asked for differences of at least fifteen clients would sign all three of these; ours signs the first.
    """
    many, half = 31, 15
    cohort, among = ps.Cohort(many, half + 1, 3_000), range(many)
    parts = shards(seed=5, clients=many)
    identities = [Identity.generate(np.random.default_rng(200 + k).bytes) for k in range(many)]
    roster = Roster.numbered(tuple(each.public for each in identities), server=SERVER.public, label="many", counter=0)
    plans = [round_plan(S * np.eye(D), among, replace(SCHEMA, rounds=3), cohort) for S in (1.0, 1.5, 2.0)]
    victim = half
    lists = [set(among), set(range(half + 1)), set(range(half, many))]
    assert all(len(one ^ other) >= 15 for one, other in combinations(lists, 2))

    def played(plan, among, ours):
        moments = [ps.measure(plan.schema, X, None, published=plan.published) for X, _ in parts]
        places = [{"index": k, "identity": identities[k], "roster": roster} for k in range(many)]
        if ours:
            clients = [ps.session.client(plan, moments[k], agreed=tuple(range(many)), **places[k]) for k in range(many)]
        else:
            clients = [Client(plan.masking, plan.ring.encode(flatten(moments[k])), **places[k]) for k in range(many)]
        outcome = loopback.run(
            ps.session.server(plan, roster, identity=SERVER), clients, dropouts={"mask": set(range(many)) - among}
        )
        return ps.session.release(plan, outcome.total, outcome.survivors).moments.M

    whole, one, other = (
        played(plan, listed, ours=False) / np.sqrt(plan.published.values["S"].real[0, 0])
        for plan, listed in zip(plans, lists, strict=True)
    )
    hidden = client_gaussian(SCHEMA, Opened(SCHEMA.reading, parts[victim][0], None)).covariance / SCHEMA.scale**2
    part = (one + other - whole) / len(parts[victim][1])
    assert np.abs(from_root(np.eye(D), part) - hidden).max() < 1e-3 * np.abs(hidden).max()
    with pytest.raises(AggregationError):
        played(plans[1], lists[1], ours=True)


def test_a_client_says_why_it_does_not_sign_also_after_a_resume(monkeypatch):
    plan = round_plan(np.eye(D))
    server = ps.session.server(plan, ROSTER, identity=SERVER)
    clients, said = [honest(plan, client) for client in range(CLIENTS)], []
    monkeypatch.setattr(clients[0], "receive", _listening(clients[0].receive, said))
    with pytest.raises(AggregationError):
        loopback.run(server, clients, dropouts={"mask": {VICTIM}})
    assert [(refusal.code, refusal.proven) for refusal in said] == [("other_survivors", False)]
    resumed = honest(plan, 0)
    sealed = resumed.export(bytes(32))
    place = {"index": 0, "identity": IDENTITIES[0], "roster": ROSTER}
    back = Client.resume(sealed, bytes(32), parameters=plan.masking, **place)
    others = [honest(plan, client) for client in range(1, CLIENTS)]
    server = ps.session.server(plan, ROSTER, identity=SERVER)
    with pytest.raises(AggregationError):  # the list that it may sign is remembered in its sealed state
        loopback.run(server, [back, *others], dropouts={"mask": {VICTIM}})
    assert back.step == "failed"


def _listening(receive, said):
    def wrapped(data):
        try:
            return receive(data)
        except RemoteProtocolError as refusal:
            said.append(refusal)
            raise

    return wrapped


def test_the_list_is_the_one_that_this_party_agreed_to(tmp_path):
    """A server may make up a first release over other clients; each party asks its own memory of that sum."""
    course = ps.Alignment(first())
    begun = [_first_client(course.first, client) for client in range(CLIENTS)]
    begun[1] = JournaledClient.create(tmp_path / "client", bytes(range(32)), begun[1])
    assert begun[0].agreed == begun[1].agreed == ()
    server = ps.session.server(course.first, ROSTER, identity=SERVER)
    loopback.run(server, begun, dropouts={"mask": {VICTIM}})
    left = tuple(client for client in range(CLIENTS) if client != VICTIM)
    assert begun[0].agreed == begun[1].agreed == left
    assert begun[VICTIM].agreed == ()
    for among, agreed in ((range(CLIENTS), left), (left[1:], left), (left, ()), (left, None)):
        with pytest.raises(LocalProtocolError, match=r"pass agreed=client.agreed"):
            honest(round_plan(np.eye(D), among), 0, agreed)
    assert honest(round_plan(np.eye(D), left), 0, begun[0].agreed).step == "advertise"


def test_the_first_sum_is_over_its_whole_list_too():
    """Else a server could leave one client out of it, and a round's count less this one is its own."""
    for plan in (first(), round_plan(np.eye(D))):
        assert inside(ps.session.server(plan, ROSTER, identity=SERVER)).state.full_list
    assert inside(_first_client(first(), 0)).state.full_list
    promised = first(replace(SCHEMA, shrinkage=0.1), PROMISE)
    assert list_arguments(promised, None) == {}


def _first_client(plan, client):
    moments = ps.measure(plan.schema, PARTS[client][0], None)
    return ps.session.client(plan, moments, index=client, identity=IDENTITIES[client], roster=ROSTER)


def test_a_release_over_another_list_ends_the_course():
    """A server that got it past everybody would still have to show it to the parties that work out the next plan."""
    course = ps.Alignment(first())
    zero = as_next(course, [], ps.simulate(course.first, PARTS))
    plan = course.next([zero])
    moments = [ps.measure(plan.schema, X, None, published=plan.published) for X, _ in PARTS]
    short = aggregate_unmasked(plan, moments[:12])
    with pytest.raises(PlanError, match="has other clients than the first"):
        course.reference([zero, short])


@pytest.mark.parametrize(("clients", "rounds"), [(2, 2), (3, 4), pytest.param(4, 6, marks=pytest.mark.nightly)])
def test_attack_sums_alone_say_who_gave_what_once_rounds_are_many(clients, rounds):
    """Each client from the first sum and some rounds, at references of the server's choice: no list, no difference."""
    rng = np.random.default_rng(1)
    shapes = [rng.standard_normal((2, 2)) + np.eye(2) for _ in range(clients)]
    hidden = [shape @ shape.T for shape in shapes]
    turns = np.pi * np.arange(rounds) / rounds
    references = [_turned(turn) @ np.diag([1.0, 0.05]) @ _turned(turn).T for turn in turns]
    upper = np.triu_indices(2)

    def sums(given):
        return [sum(given), *(sum(mean_root(root(S), each) for each in given) for S in references)]

    seen = sums(hidden)

    def residual(parameters):
        guess = [m @ m.T for m in parameters.reshape(clients, 2, 2)]
        return np.concatenate([(a - b)[upper] for a, b in zip(sums(guess), seen, strict=True)])

    fits = (_fitted(residual, np.random.default_rng(seed).standard_normal(4 * clients)) for seed in range(60))
    best = next(fit for fit in fits if fit.cost < 1e-16)
    found = [m @ m.T for m in best.x.reshape(clients, 2, 2)]
    errors = [max(np.abs(a - b).max() for a, b in zip(order, hidden, strict=True)) for order in permutations(found)]
    assert min(errors) < 1e-5

    with pytest.raises(PlanError, match="the sums of many rounds over few clients reveal single clients"):
        replace(first(), cohort=ps.Cohort(clients, clients, 3_000))
    with pytest.raises(PlanError, match="use fewer rounds, or more clients"):
        replace(first(), schema=replace(SCHEMA, rounds=3))
    assert replace(first(), cohort=replace(COHORT, clients=17, min_survivors=16), schema=replace(SCHEMA, rounds=3))


def _turned(angle):
    return np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])


def _fitted(residual, start):
    return least_squares(residual, start, xtol=1e-15, ftol=1e-15, gtol=1e-15)
