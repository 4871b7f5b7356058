"""Whether a session can go on at the end of a step, and who is named when it cannot.

Pure functions of what the server has seen; they return who is left or raise ``AggregationError``. Names are of two
kinds: proven (``server_checks``, ``unmasking``), and accused, where the server cannot tell which of two clients lies.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping

from privstats.errors import AggregationError, RemoteProtocolError
from privstats.secagg.interactive.client_checks import check_proven
from privstats.secagg.interactive.graph import Graph
from privstats.secagg.interactive.names import StepName
from privstats.secagg.interactive.parameters import Parameters
from privstats.secagg.wire import Refusal

__all__ = ["Failed", "accused", "quorums", "require_clients", "signers"]

Failed = Mapping[int, tuple[int, ...]]
"""By client: the owners whose boxes it says it could not use."""


def require_clients(remaining: Iterable[int], step: StepName, graph: Graph) -> None:
    """Enough clients are left, and each has enough neighbours among them."""
    here, parameters = frozenset(remaining), graph.parameters
    if len(here) < parameters.min_survivors:
        raise AggregationError(
            step, "too_few_clients", f"{len(here)} answered, the plan needs {parameters.min_survivors}"
        )
    if graph.least_degree(here) < parameters.quorum:
        raise AggregationError(step, "isolated", "a client is left with too few neighbours to be unmasked")


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


def _accusation(owner: int, holders: list[int]) -> RemoteProtocolError:
    names = ", ".join(str(holder) for holder in holders)
    detail = f"its boxes could not be used by clients {names}; whether it lies or they do cannot be told"
    return RemoteProtocolError(owner, "share", "accused", detail, proven=False)
