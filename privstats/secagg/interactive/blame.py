"""Whether a session can go on at the end of a step, and who is named when it cannot.

Pure functions of what the server has seen; they return who is left or raise ``AggregationError``. Names are of two
kinds: proven (``server_checks``, ``unmasking``), and accused, where the server cannot tell which of two clients lies.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping

from privstats.errors import AggregationError, RemoteProtocolError
from privstats.secagg.interactive.checks import check_proven
from privstats.secagg.interactive.graph import Graph
from privstats.secagg.interactive.parameters import Parameters, StepName
from privstats.secagg.wire import Refusal

__all__ = [
    "Failed",
    "accused",
    "accusers",
    "admitted",
    "quorums",
    "require_clients",
    "require_dealers",
    "signers",
    "tolerance",
]

Failed = Mapping[int, tuple[int, ...]]
"""By client: the owners whose shares it says it could not use."""


def require_clients(remaining: Iterable[int], step: StepName, graph: Graph) -> None:
    """Enough clients are left, and each has enough neighbours among them."""
    here, parameters = frozenset(remaining), graph.parameters
    if len(here) < parameters.min_survivors:
        raise AggregationError(
            step, "too_few_clients", f"{len(here)} answered, the plan needs {parameters.min_survivors}"
        )
    if graph.least_degree(here) < parameters.quorum:
        raise AggregationError(step, "isolated", "a client is left with too few neighbours to be unmasked")


def tolerance(parameters: Parameters) -> int:
    """The most disputes that a client may have and go on.

    A dispute is between an owner and a holder that could not use its shares. One of the two lies, and which cannot be
    told; whoever has more disputes than there are liars lies. In the complete graph as many may lie as may collude, or
    one. In a sparse one it is half of the shares that a neighbourhood has to spare.
    """
    spare = (parameters.neighbours - parameters.threshold) // 2
    return max(1, parameters.colluders if parameters.complete else spare)


def admitted(checked: Collection[int], failed: Failed, graph: Graph) -> frozenset[int]:
    """Who goes on to mask: those who checked, without whoever has too many disputes or too few good holders.

    One after the other, the one with most disputes first, because disputes end with either of the two.

    Guarantee: in the complete graph, while at most :func:`tolerance` clients lie and t honest others hold each one's
    shares, nobody honest is left out; and where more than t go on, t of them can use the shares of everybody who was
    disputed and goes on (where exactly t do, an owner has only t - 1 others).
    """
    here = set(checked)
    disputes = {client: set[int]() for client in here}
    for holder in here.intersection(failed):
        for owner in here.intersection(failed[holder]):
            disputes[holder].add(owner)
            disputes[owner].add(holder)
    while here:
        worst = max(sorted(here), key=lambda client: len(disputes[client]))
        if len(disputes[worst]) <= tolerance(graph.parameters):
            worst = next((owner for owner in sorted(here) if _starved(owner, here, failed, graph)), -1)
        if worst < 0:
            break
        here.discard(worst)
        for other in disputes.pop(worst):
            disputes[other].discard(worst)
    return frozenset(here)


def _starved(owner: int, here: Collection[int], failed: Failed, graph: Graph) -> bool:
    """Whether disputes leave the owner's keys with fewer than t holders who could give them back."""
    holders = [holder for holder in graph.neighbours(owner) if holder in here]
    good = sum(owner not in failed.get(holder, ()) for holder in holders)
    return good < graph.parameters.threshold <= len(holders)


def require_dealers(checked: Collection[int], failed: Failed, graph: Graph) -> frozenset[int]:
    """Who goes on; raises where they are too few, naming the disputes if it is for them."""
    dealers = admitted(checked, failed, graph)
    try:
        require_clients(dealers, "check", graph)
    except AggregationError:
        if len(dealers) == len(checked):
            raise
        names = "; ".join(str(accusation) for accusation in accused(failed))
        raise AggregationError("check", "unproven_boxes", f"too few clients can go on: {names}") from None
    return dealers


def signers(survivors: Iterable[int], failed: Failed, graph: Graph) -> list[int]:
    """The survivors that can agree to the list of all survivors, in increasing order; the others need not be asked.

    A client to which too few of them proved that they take part must refuse the list (:func:`check_proven`), although
    nobody but the owner of a bad box, or the client itself, is to blame.
    """
    listed = frozenset(survivors)
    willing = [client for client in sorted(listed) if _can_agree(client, listed, failed, graph)]
    if len(willing) < graph.parameters.threshold:
        names = "; ".join(str(error) for error in accused(failed))
        raise AggregationError("mask", "unproven_boxes", f"too few clients can agree to a list of survivors: {names}")
    return willing


def _can_agree(client: int, listed: frozenset[int], failed: Failed, graph: Graph) -> bool:
    if client not in failed:
        return True  # the list as a whole has been checked
    try:
        check_proven(listed, graph, client, failed[client])
    except Refusal:
        return False
    return True


def quorums(
    signed: Collection[int], neighbours: Callable[[int], Iterable[int]], parameters: Parameters
) -> dict[int, tuple[int, ...]]:
    """By client, in increasing order: a quorum of neighbours that signed. A signer with fewer cannot unmask."""
    shown: dict[int, tuple[int, ...]] = {}
    for client in sorted(signed):
        found = tuple(other for other in neighbours(client) if other in signed)[: parameters.quorum]
        if len(found) == parameters.quorum:
            shown[client] = found
    if len(shown) < parameters.threshold:
        raise AggregationError(
            "agree",
            "too_few_signatures",
            f"{len(shown)} clients can be shown enough signatures, {parameters.threshold} are needed",
        )
    return shown


def accused(failed: Failed) -> tuple[RemoteProtocolError, ...]:
    """One unproven error per owner whose box somebody could not use, with the names of those who say so."""
    owners = sorted({owner for each in failed.values() for owner in each})
    return tuple(_accusation(owner, sorted(holder for holder in failed if owner in failed[holder])) for owner in owners)


def accusers(failed: Failed, parameters: Parameters) -> tuple[RemoteProtocolError, ...]:
    """One unproven error per holder that disputes shares which so few dispute that all of them may lie."""
    votes = Counter(owner for each in failed.values() for owner in each)
    most = tolerance(parameters)
    doubtful = {holder: [owner for owner in failed[holder] if votes[owner] <= most] for holder in sorted(failed)}
    return tuple(_doubt(holder, owners) for holder, owners in doubtful.items() if owners)


def _doubt(holder: int, owners: list[int]) -> RemoteProtocolError:
    names = ", ".join(str(owner) for owner in owners)
    detail = f"it says that it could not use the shares of clients {names}; whether it lies or they do cannot be told"
    return RemoteProtocolError(holder, "check", "accuser", detail, proven=False)


def _accusation(owner: int, holders: list[int]) -> RemoteProtocolError:
    names = ", ".join(str(holder) for holder in holders)
    detail = f"its shares could not be used by clients {names}; whether it lies or they do cannot be told"
    return RemoteProtocolError(owner, "share", "accused", detail, proven=False)
