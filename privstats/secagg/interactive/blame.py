"""Decide whether the session can continue after a step, and attribute faults to clients.

A fault is proven, or an accusation: the server cannot decide which of two clients is lying.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import islice

from privstats.errors import AggregationError, RemoteProtocolError
from privstats.secagg.interactive.checks import check_proven
from privstats.secagg.interactive.graph import Graph
from privstats.secagg.interactive.parameters import Parameters, StepName
from privstats.secagg.wire import Refusal

Failed = Mapping[int, tuple[int, ...]]
"""Maps a client to the owners whose shares it reported as unusable."""


def both_sides(failed: Failed) -> Failed:
    """Map each client to those in dispute with it."""
    sides: dict[int, set[int]] = {}
    for holder, owners in failed.items():
        for owner in owners:
            sides.setdefault(holder, set()).add(owner)
            sides.setdefault(owner, set()).add(holder)
    return {client: tuple(sorted(others)) for client, others in sides.items()}


def require_clients(remaining: Iterable[int], step: StepName, graph: Graph) -> None:
    """Require enough remaining clients, each with enough neighbours among them."""
    here, parameters = frozenset(remaining), graph.parameters
    if len(here) < parameters.min_listed:
        raise AggregationError(step, "too_few_clients", f"{len(here)} answered, the plan needs {parameters.min_listed}")
    if graph.min_degree(here) < parameters.quorum:
        raise AggregationError(step, "isolated", "a client has too few remaining neighbours to be unmasked")
    if len(graph.committee & here) < parameters.signatures:
        raise AggregationError(
            step,
            "too_few_clients",
            f"{len(graph.committee & here)} members of the committee answered, {parameters.signatures} must sign",
        )


def tolerance(parameters: Parameters, *, full_list: bool = False) -> int:
    """Return the maximum number of disputes of a continuing client.

    A dispute is between an owner and a holder that could not use the owner's shares; one of them is lying. A client
    with more disputes than there are liars is lying. The maximum is max(1, colluders) in the complete graph,
    ``DISPUTES`` on a random graph, and 0 with ``full_list``. Clients then sign no list that names a client in dispute
    with them.
    """
    if full_list:
        return 0
    return parameters.disputes or max(1, parameters.colluders)


def admitted(checked: Collection[int], failed: Failed, graph: Graph, *, full_list: bool = False) -> frozenset[int]:
    """Return the clients that may continue to the mask step.

    Each step removes one client, because a removal ends disputes. The first reason that applies selects it: too many
    disputes, too few good holders because of disputes, or :func:`_suspect`.

    Guarantee:
        On a random graph or with ``full_list``: each liar removes at most one honest client
        (:func:`_too_disputed`). Each client must retain more than t neighbours.

        Otherwise, in the complete graph: no honest client is removed under two conditions. At most :func:`tolerance`
        clients lie, and more than t other honest clients hold each client's shares. With one liar, or with
        min_survivors of at least t plus the tolerance, t such holders are enough. If more than t clients continue, t of
        them can use the shares of every disputed client that continues. (If t continue, each has only t-1 others.)
        Suppose that at least t + 3 clients, and at least min_survivors + 2, sent ``Check``. Then one liar and one other
        client may vanish later, and the remaining clients suffice for the sum (docs/proofs/dealings.md).
    """
    here = set(checked)
    disputes = {client: set[int]() for client in here}
    for holder in here.intersection(failed):
        for owner in here.intersection(failed[holder]):
            disputes[holder].add(owner)
            disputes[owner].add(holder)
    limit = tolerance(graph.parameters, full_list=full_list)
    charged: set[int] | None = set() if graph.parameters.disputes or not limit else None
    while (out := _outcast(disputes, failed, graph, limit, charged)) is not None:
        for other in disputes.pop(out):
            disputes[other].discard(out)
    return frozenset(disputes)


def _outcast(
    disputes: Mapping[int, set[int]], failed: Failed, graph: Graph, limit: int, charged: set[int] | None
) -> int | None:
    order = sorted(disputes)
    disputed = _too_disputed(order, disputes, limit, charged)
    if disputed is not None:
        return disputed
    starved = next((owner for owner in order if _starved(owner, disputes, failed, graph)), None)
    if starved is not None:
        return starved
    return next((owner for owner in order if _suspect(owner, disputes, failed, graph)), None)


# Each removal is *charged* to a client in dispute with the removed one, and no client twice. If all such clients are
# charged, one of them is removed instead. So each removed client is in a pair, no two pairs share a client, and each
# pair has a liar: no more honest clients are removed than there are liars.
def _too_disputed(
    order: Sequence[int], disputes: Mapping[int, set[int]], limit: int, charged: set[int] | None
) -> int | None:
    """Return the client to remove for too many disputes, or None; extend ``charged``, which None disables."""

    def most_disputed(clients: Iterable[int]) -> int:
        return max(sorted(clients), key=lambda client: (len(disputes[client]), client in (charged or ())))

    worst = most_disputed(order) if order else None
    if worst is None or len(disputes[worst]) <= limit:
        return None
    if charged is None or worst in charged:
        return worst
    others = disputes[worst] - charged
    if not others:
        return most_disputed(disputes[worst])
    charged.add(most_disputed(others))
    return worst


def _starved(client: int, disputes: Mapping[int, set[int]], failed: Failed, graph: Graph) -> bool:
    """Return whether disputes leave too few good holders, or too few clients to mask with."""
    holders, accusing = _holders(client, disputes, failed, graph)
    quorum, partners = graph.parameters.quorum, len(holders) - len(disputes[client])
    alone = partners < quorum <= len(holders)
    return alone or len(holders) - len(accusing) < graph.parameters.threshold <= len(holders)


# If a suspect and one more client vanished, too few shares would arrive. One liar cannot cast suspicion on an honest
# client, because one accuser would be honest; two can. So a suspect is removed only if enough clients remain that one
# more may vanish.
def _suspect(owner: int, disputes: Mapping[int, set[int]], failed: Failed, graph: Graph) -> bool:
    """Return whether one owner's lie explains several reports, and only t good holders remain."""
    holders, accusing = _holders(owner, disputes, failed, graph)
    explains = len(accusing) > 1 and all(disputes[holder] == {owner} for holder in accusing)
    none_to_spare = len(holders) - len(accusing) == graph.parameters.threshold
    return explains and none_to_spare and len(disputes) - 1 > graph.parameters.min_listed


def _holders(owner: int, here: Collection[int], failed: Failed, graph: Graph) -> tuple[list[int], list[int]]:
    holders = [holder for holder in graph.neighbours(owner) if holder in here]
    return holders, [holder for holder in holders if owner in failed.get(holder, ())]


def require_dealers(checked: Collection[int], failed: Failed, graph: Graph, *, full_list: bool) -> frozenset[int]:
    """Return continuing clients, or raise, naming disputes."""
    dealers = admitted(checked, failed, graph, full_list=full_list)
    try:
        require_clients(dealers, "check", graph)
    except AggregationError:
        if len(dealers) == len(checked) and not failed:
            raise
        names = "; ".join(str(accusation) for accusation in accused(failed))
        raise AggregationError("check", "unproven_boxes", f"too few clients can go on: {names}") from None
    return dealers


def signers(survivors: Iterable[int], failed: Failed, graph: Graph) -> list[int]:
    """Return the survivors that can sign the list of all survivors.

    A client refuses if too few survivors proved that they take part (:func:`check_proven`).
    """
    listed = frozenset(survivors)
    willing = [client for client in sorted(listed) if _can_agree(client, listed, failed, graph)]
    if len(graph.committee.intersection(willing)) < graph.parameters.signatures:
        names = "; ".join(str(error) for error in accused(failed))
        raise AggregationError("mask", "unproven_boxes", f"too few clients can agree to a list of survivors: {names}")
    return willing


def _can_agree(client: int, listed: frozenset[int], failed: Failed, graph: Graph) -> bool:
    if client not in failed:
        return True  # the full list has been checked
    try:
        check_proven(listed, graph, client, failed[client])
    except Refusal:
        return False
    return True


def require_signatures(signed: Collection[int], graph: Graph) -> list[int]:
    """Return the signers that can be shown enough signatures (:func:`shown_signers`), or raise."""
    parameters, counted = graph.parameters, len(graph.committee.intersection(signed))
    ready = [client for client in sorted(signed) if len(_near(client, signed, graph)) == parameters.quorum]
    if counted < parameters.signatures or len(ready) < parameters.threshold:
        raise AggregationError(
            "agree",
            "too_few_signatures",
            f"{counted} clients signed and {len(ready)} of them can be shown a quorum of neighbours: "
            f"{parameters.signatures} and {parameters.threshold} are needed",
        )
    return ready


def shown_signers(client: int, signed: Collection[int], graph: Graph) -> tuple[int, ...]:
    """Return whose signatures a signer is shown: a quorum of neighbours, then as many of the committee as it needs."""
    near = _near(client, signed, graph)
    counted = graph.committee.intersection((*near, client))
    more = (other for other in sorted(graph.committee.intersection(signed)) if other not in counted)
    return tuple(sorted((*near, *islice(more, max(0, graph.parameters.signatures - len(counted))))))


def _near(client: int, signed: Collection[int], graph: Graph) -> list[int]:
    return list(islice((other for other in graph.neighbours(client) if other in signed), graph.parameters.quorum))


def accused(failed: Failed) -> tuple[RemoteProtocolError, ...]:
    """Return one unproven error per owner of an unusable box."""
    owners = sorted({owner for each in failed.values() for owner in each})
    return tuple(_accusation(owner, sorted(holder for holder in failed if owner in failed[holder])) for owner in owners)


def accusers(failed: Failed, parameters: Parameters) -> tuple[RemoteProtocolError, ...]:
    """Return one unproven error per holder that reports an owner, if so few report that owner that all may lie."""
    votes = Counter(owner for each in failed.values() for owner in each)
    limit = max(1, parameters.colluders)
    doubtful = {holder: [owner for owner in failed[holder] if votes[owner] <= limit] for holder in sorted(failed)}
    return tuple(_doubt(holder, owners) for holder, owners in doubtful.items() if owners)


def _doubt(holder: int, owners: list[int]) -> RemoteProtocolError:
    names = ", ".join(str(owner) for owner in owners)
    detail = f"it reports that it could not use the shares of clients {names}; either it lies or they do"
    return RemoteProtocolError(holder, "check", "accuser", detail, proven=False)


def _accusation(owner: int, holders: list[int]) -> RemoteProtocolError:
    names = ", ".join(str(holder) for holder in holders)
    detail = f"its shares could not be used by clients {names}; either it lies or they do"
    return RemoteProtocolError(owner, "share", "accused", detail, proven=False)
