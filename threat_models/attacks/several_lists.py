"""Attack 14 on a random graph: a server shows several survivor lists to several arcs of the circle.

A client sees its neighbours alone. If their signatures on its list were enough, a server without one client of its own
could let distant arcs open different lists, and read the exact sum over far fewer clients than ``min_survivors``. The
search below models who signs and opens which list; :func:`play` then shows the lists to the real machines. A lie that
never succeeds proves nothing: the tests play the same lists to clients that count their neighbours' signatures alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, cast

import msgspec
import numpy as np
from numpy.typing import NDArray

from privstats.errors import AggregationError, RemoteProtocolError
from privstats.plan import Plan
from privstats.randomness import Generator
from privstats.secagg import Parameters
from privstats.secagg.interactive import messages
from privstats.secagg.interactive.blame import shown_signers
from privstats.secagg.interactive.client_secrets import self_stream
from privstats.secagg.interactive.graph import Graph
from privstats.secagg.interactive.unmasking import unmask
from privstats.secagg.prg import add_masks, add_packed
from privstats.secagg.wire import to_bitmap
from threat_models.adversary import Adversary
from threat_models.attack import Examination
from threat_models.attacks.staged import RING, Cohort, Value, answer_of
from threat_models.attacks.unmasking import never
from threat_models.report import Row

Mask = NDArray[np.bool_]

CLIENTS, MIN_SURVIVORS, COLLUDERS = 140, 124, 2
"""The cohort of the tests, whose sessions take some 2 seconds."""

MAX_CLIENTS = 500
"""Maximum number of clients in a played session. A session of 500 takes some 15 seconds, most of them in the search."""


@dataclass(frozen=True)
class Circle:
    """What a lying server knows of one cohort on a random graph before it chooses lists.

    Attributes:
        adjacent: neighbours by client, ``(n, n)``.
        order: the clients along the circle, ``(n,)``.
        colluding: the server's clients, ``(n,)``. They sign every list and give both kinds of shares.
        committee: the clients whose signatures count, ``(n,)``.
        signatures: the number of the committee's signatures that a client needs, its own included; 0 for the rule that
            counts neighbours alone.
    """

    parameters: Parameters
    adjacent: Mask
    order: NDArray[np.int64]
    colluding: Mask
    committee: Mask
    signatures: int

    @classmethod
    def of(cls, graph: Graph, colluding: frozenset[int] = frozenset(), *, neighbours_alone: bool = False) -> Circle:
        """Return the circle of a session's graph."""
        n = graph.parameters.clients
        adjacent = np.zeros((n, n), bool)
        for client in range(n):
            adjacent[client, list(graph.neighbours(client))] = True
        colluders, committee = (np.isin(np.arange(n), list(each)) for each in (colluding, graph.committee))
        signatures = 0 if neighbours_alone else graph.parameters.signatures
        return cls(graph.parameters, adjacent, _order(adjacent), colluders, committee, signatures)

    @cached_property
    def links(self) -> NDArray[np.float32]:
        """``adjacent`` as numbers, so that products count neighbours, ``(n, n)``."""
        return self.adjacent.astype(np.float32)

    @cached_property
    def colluding_neighbours(self) -> NDArray[np.float32]:
        """The number of the server's clients among the neighbours of each client, ``(n,)``."""
        return _count(self.colluding, self.links)


def _count(clients: Mask, links: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return how many of these clients are neighbours of each client, of the shape of ``clients``."""
    return clients.astype(np.float32) @ links


def _order(adjacent: Mask) -> NDArray[np.int64]:
    """Return the circle's order: clients next to each other share the most neighbours."""
    shared = adjacent.astype(np.int64) @ adjacent
    order, ahead = [0], np.ones(len(adjacent), bool)
    while len(order) < len(adjacent):
        ahead[order[-1]] = False
        near = np.flatnonzero(adjacent[order[-1]] & ahead)
        near = near if len(near) else np.flatnonzero(ahead)
        order.append(int(near[shared[order[-1], near].argmax()]))
    return np.array(order)


@dataclass(frozen=True)
class Lists:
    """Survivor lists, and the list that each client is shown.

    Attributes:
        shown: the list's number by client, ``(n,)``.
        missing: the clients that a list lacks, ``(lists, n)``.
    """

    shown: NDArray[np.int64]
    missing: Mask

    def without(self, number: int, client: int) -> Lists:
        """Return these lists, one of them without one client more."""
        missing = self.missing.copy()
        missing[number, client] = True
        return replace(self, missing=missing)


def readable(circle: Circle, lists: Lists) -> Mask | None:
    """Return the smallest set of clients whose sum the server can read, ``(n,)``; None if it can read no sum.

    A client opens the list that it signed after a quorum of its neighbours and enough of the committee signed it. Its
    neighbours then hold shares: of its self-mask from a list with it, of its pair masks from a list without it.
    """
    parameters, listed, links = circle.parameters, ~lists.missing, circle.links
    if (listed.sum(1) < parameters.min_listed).any() or (_count(listed, links)[listed] < parameters.quorum).any():
        return None
    own = np.arange(len(listed))[:, None] == lists.shown
    same = (lists.missing[:, None] == lists.missing[None]).all(2)  # two numbers of one list
    signs = same @ (listed & (own | circle.colluding))
    many = (signs & circle.committee).sum(1, keepdims=True) >= circle.signatures
    opens = own & signs & many & (_count(signs, links) >= parameters.quorum) & ~circle.colluding
    near, both = _count(opens, links), circle.colluding_neighbours
    self_known = opens.any(0) | ((near * listed).sum(0) + both >= parameters.threshold) | circle.colluding
    pairs_known = (near * lists.missing).sum(0) + both >= parameters.threshold
    return _smallest(circle, self_known, pairs_known)


def _smallest(circle: Circle, self_known: Mask, pairs_known: Mask) -> Mask | None:
    """Return the smallest part of the circle that only known masks tie to the rest, if its self-masks are known.

    Clients whose pair masks are unknown hang together: a sum shows only over a connected component of them.
    """
    shown = [part for part in _components(circle.links, ~pairs_known) if self_known[part].all()]
    return min(shown, key=np.count_nonzero) if shown else None


def _components(links: NDArray[np.float32], clients: Mask) -> Iterator[Mask]:
    """Yield the connected components of the graph among ``clients``, each ``(n,)``."""
    left = clients.copy()
    while left.any():
        part, size = np.arange(len(left)) == left.argmax(), 0
        while np.count_nonzero(part) > size:
            size = int(np.count_nonzero(part))
            part |= left & (_count(part, links) > 0)
        left &= ~part
        yield part


def search(circle: Circle, rng: Generator, *, most: int = 6) -> tuple[Lists, Mask]:
    """Return the lists, of up to ``most`` arcs, with the smallest readable sum that a greedy search found.

    Each arc is shown one list. From the middle of the arcs outward, a client is taken off its arc's list as long as the
    server still reads a sum.
    """
    found = [_greedy(circle, arcs, rng) for arcs in range(1, most + 1)]
    return min(found, key=lambda each: int(each[1].sum()))


def _greedy(circle: Circle, arcs: int, rng: Generator) -> tuple[Lists, Mask]:
    n = len(circle.order)
    turned = np.roll(circle.order, int(rng.uint64(1)[0] % np.uint64(n)))
    place = np.empty(n, np.int64)
    place[turned] = np.arange(n)
    lists = Lists(place * arcs // n, np.zeros((arcs, n), bool))
    read = readable(circle, lists)
    if read is None:
        raise ValueError("one list of all clients shows no sum: the parameters need no such client")
    from_middle = np.abs(place * arcs % n - n / 2)
    for client in np.argsort(from_middle, kind="stable").tolist():
        shorter = lists.without(int(lists.shown[client]), client)
        less = readable(circle, shorter)
        if less is not None and less.sum() <= read.sum():
            lists, read = shorter, less
    return lists, read


@dataclass
class ManyClients(Cohort):
    """A cohort on a random graph, and the sum that the attacker aims at.

    Attributes:
        colluding: clients on the server's side.
        aimed: the clients whose sum the server reads, if they are fewer than the plan promises; else empty.
    """

    colluding: frozenset[int] = frozenset()
    aimed: tuple[int, ...] = field(init=False, default=())

    def got(self, vector: Value | None) -> bool:
        """Return whether the attacker holds the exact sum over too few honest clients."""
        return vector is not None and np.array_equal(vector, sum(self.values[client] for client in self.aimed))


def play(cohort: ManyClients, lists: Lists, read: Mask) -> Value | None:
    """Show the lists to the machines and return the sum over ``read``, if they open enough of it."""
    server, parameters = cohort.server, cohort.parameters
    outbox = cohort.play("mask")
    masks = {client: answer_of(cohort.clients[client], message) for client, message in outbox.items()}
    vectors = {client: _opened(cohort, client, mask, messages.Mask).vector for client, mask in masks.items()}
    cohort.step(masks)
    bitmaps = [to_bitmap(np.flatnonzero(~missing).tolist(), parameters.clients) for missing in lists.missing]
    signed = _signatures(cohort, lists, bitmaps)
    answers: dict[int, messages.Unmask] = {}
    for client in range(parameters.clients):
        bitmap = bitmaps[lists.shown[client]]
        own = signed[bitmap]
        if client in own:
            shown = shown_signers(client, own, server._graph)
            agreement = messages.Agreement(server._state.session, shown, b"".join(own[other] for other in shown))
            with suppress(RemoteProtocolError):
                answer = answer_of(cohort.clients[client], server._send(client, agreement)[1])
                answers[client] = _opened(cohort, client, answer, messages.Unmask)
    return _sum_over(cohort, lists, read, vectors, answers)


def _opened(cohort: Cohort, client: int, answer: bytes, kind: type[msgspec.Struct]) -> Any:
    return messages.decode(cohort.server._channel(client).open(memoryview(answer)), kind)


def _signatures(cohort: ManyClients, lists: Lists, bitmaps: list[bytes]) -> dict[bytes, dict[int, bytes]]:
    """Return signatures by list and client: each honest client signs the list it is shown, if it accepts it."""
    signed: dict[bytes, dict[int, bytes]] = {bitmap: {} for bitmap in bitmaps}
    state = cohort.server._state
    for client, number in enumerate(lists.shown.tolist()):
        if client in cohort.colluding:
            for bitmap, missing in zip(bitmaps, lists.missing, strict=True):
                if not missing[client]:
                    statement = messages.survivors_statement(state.transcript, bitmap)
                    signed[bitmap][client] = cohort.identities[client].sign(statement)
        elif not lists.missing[number, client]:
            message = messages.Survivors(state.session, bitmaps[number])
            with suppress(RemoteProtocolError):
                answer = answer_of(cohort.clients[client], cohort.server._send(client, message)[1])
                signed[bitmaps[number]][client] = _opened(cohort, client, answer, messages.Agree).signature
    return signed


def _sum_over(
    cohort: ManyClients, lists: Lists, read: Mask, vectors: Mapping[int, bytes], answers: Mapping[int, messages.Unmask]
) -> Value | None:
    """Take the masks off the sum of some clients, as an honest server does, with the shares of all opened lists."""
    server, state, inside = cohort.server, cohort.server._state, set(np.flatnonzero(read).tolist())
    total = cohort.parameters.ring.zeros()
    for client in inside:
        add_packed(total, memoryview(vectors[client]))
    near = {other for client in inside for other in server._graph.neighbours(client)}
    given = {client: _useful(answer, ~lists.missing[lists.shown[client]], read) for client, answer in answers.items()}
    given |= {client: _of_colluder(cohort, client, read) for client in cohort.colluding}
    outside = [answer.self_key for client, answer in given.items() if client not in inside]
    add_masks(total, plus=[self_stream(key, state.transcript) for key in outside], minus=[])  # ``unmask`` removes these
    state.survivors, state.dealers, state.answers = inside, inside | near, given
    try:
        unmask(total, state, server._graph)
    except AggregationError:  # too few shares
        return None
    return np.asarray(total.lift())


def _useful(answer: messages.Unmask, listed: Mask, read: Mask) -> messages.Unmask:
    """Return an answer with the shares of the kind that the sum over ``read`` needs."""
    size = messages.SECRET_BYTES
    places = [place for place, owner in enumerate(answer.owners) if listed[owner] == read[owner]]
    shares = b"".join(answer.shares[place * size : (place + 1) * size] for place in places)
    return msgspec.structs.replace(answer, owners=tuple(answer.owners[place] for place in places), shares=shares)


def _of_colluder(cohort: ManyClients, client: int, read: Mask) -> messages.Unmask:
    machine, size = cohort.clients[client], messages.SECRET_BYTES
    state = machine._state
    owners = tuple(sorted(state.held))
    shares = b"".join(state.held[owner][:size] if read[owner] else state.held[owner][size:] for owner in owners)
    revealed = machine._secrets().revealed(state.transcript)
    return messages.Unmask(state.session, client, bytes(32), revealed, owners, shares)


def lists_by_arc(cohort: ManyClients) -> Value | None:
    """The server has no client of its own, and shows the lists that would break the rule of neighbours alone."""
    return _attacked(cohort, frozenset())


def lists_with_colluders(cohort: ManyClients) -> Value | None:
    """The plan's colluders sign every list."""
    chosen = np.argsort(cohort.rng.uint64(cohort.parameters.clients))[: cohort.parameters.colluders]
    return _attacked(cohort, frozenset(chosen.tolist()))


def _attacked(cohort: ManyClients, colluding: frozenset[int]) -> Value | None:
    cohort.colluding = colluding
    graph = Graph(cohort.parameters, cohort.roster)
    for alone in (False, True):  # first the lists that the true rule would let open, if there are any
        lists, read = search(Circle.of(graph, colluding, neighbours_alone=alone), cohort.rng)
        cohort.aimed = tuple(np.flatnonzero(read).tolist())
        honest = len(set(cohort.aimed) - colluding)
        if honest < cohort.parameters.min_survivors - cohort.parameters.colluders:
            return play(cohort, lists, read)
    return None


LIES: Mapping[str, Callable[[ManyClients], Value | None]] = {
    "lists by arc": lists_by_arc,
    "lists with colluders": lists_with_colluders,
}
"""Every lie, by name: the sum that it reads, or None."""


def refusal_of(plan: Plan) -> str | None:
    """Return why lists are not shown to a plan's clients; None where they are."""
    if not isinstance(plan.masking, Parameters):
        return "shows lists to clients that answer; here they send one message"
    if plan.masking.complete:
        return "shows lists to distant clients of a random graph; here everyone masks with everyone"
    if not plan.masking.server_may_lie:
        return "shows lists as a server that lies; here the promise holds while the server follows the protocol"
    return None


def played(plan: Plan) -> Parameters:
    """Return the parameters of the sessions that stand for a plan's.

    They are the plan's own with a short vector. A cohort above ``MAX_CLIENTS`` is reduced to that number with equal
    shares of colluders and of clients that may vanish.
    """
    masking = cast("Parameters", plan.masking)  # ``refusal_of`` has checked this
    if masking.clients <= MAX_CLIENTS:
        return replace(masking, ring=RING, levels=())
    gone, colluders = (
        count * MAX_CLIENTS // masking.clients for count in (masking.clients - masking.min_survivors, masking.colluders)
    )
    return Parameters.solve(
        clients=MAX_CLIENTS,
        min_survivors=MAX_CLIENTS - gone,
        colluders=colluders,
        ring=RING,
        plan_digest=masking.plan_digest,
        graph="robust",
    )


def cohort_of(parameters: Parameters) -> str:
    """Describe the cohort and graph of played sessions."""
    return (
        f"{parameters.clients} clients, at least {parameters.min_survivors} survivors, {parameters.colluders} "
        f"colluders, {parameters.neighbours} neighbours"
    )


class SeveralLists(Examination):
    """The rate at which a server with several lists reads a sum over too few clients on a random graph: 0."""

    name = "several-lists"
    number = 14
    goal = "unmasking"
    title = "an attacker who runs the server shows several survivor lists on a random graph to read a smaller sum"
    needs = Adversary(sees="transcript", knows="none", active=True)
    effort = 0.02

    def refusal(self, plan: Plan) -> str | None:
        """Needs a plan whose clients mask with some of the others only, and whose server may lie."""
        return refusal_of(plan)

    def examine(self, plan: Plan, rng: Generator, *, trials: int, confidence: float) -> tuple[Row, ...]:
        """One row per lie, in sessions of the plan's cohort; the masks promise that none succeeds.

        A larger cohort plays fewer sessions, as its searches take longer.
        """
        parameters = played(plan)
        lies = {f"{lie}, {size_of(plan, parameters)}": play for lie, play in LIES.items()}
        share = min(1.0, CLIENTS / parameters.clients)
        return never(self, lies, lambda: ManyClients(rng, parameters=parameters), trials, confidence, share=share)


def size_of(plan: Plan, parameters: Parameters) -> str:
    """Return the number of played clients, and the plan's own number where it is larger."""
    own = "" if parameters.clients == plan.masking.clients else f" for {plan.masking.clients:,}"
    return f"{parameters.clients} clients{own}"
