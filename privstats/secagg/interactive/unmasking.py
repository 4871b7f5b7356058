"""Reconstruct secrets from shares and remove the masks still in the sum.

The server verifies shares and revealed keys against commitments to g and f (``client_secrets``). A silent survivor's
interpolated self-mask key g(0) may differ from the key that masked its vector. That changes this client's own input
alone (docs/proofs/masking.md, 7).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import TypeVar

from privstats.encoding import RingVector
from privstats.errors import AggregationError, RemoteProtocolError
from privstats.secagg.interactive.blame import both_sides
from privstats.secagg.interactive.client_secrets import link_pad, pair_seed, self_stream, xor
from privstats.secagg.interactive.dealing import fits_point
from privstats.secagg.interactive.graph import Graph
from privstats.secagg.interactive.messages import SECRET_BYTES, Unmask
from privstats.secagg.interactive.state import ServerState
from privstats.secagg.prg import add_masks, reduce
from privstats.secagg.scalars import combine, scalar_of, to_bytes

_BATCH = 256  # seeds expanded at a time: bounds the ciphers alive at once

T = TypeVar("T")


def require_shares(state: ServerState, graph: Graph) -> None:
    """Require enough shares of every secret that its owner did not reveal."""
    for owner in (*_silent(state), *_vanished(state)):
        _enough(owner, state, graph)


def unmask(total: RingVector, state: ServerState, graph: Graph, *, threads: int = 1) -> None:
    """Remove survivors' self-masks and vanished clients' pair masks from ``total``, in place.

    Survivors' answers reveal their self-mask key; other secrets are reconstructed.

    Raises:
        AggregationError: shares are too few, or do not fit a commitment.
    """
    revealed = [answer.self_key for answer in state.answers.values()]
    self_keys = [*revealed, *(to_bytes(_interpolated(owner, state, graph)) for owner in _silent(state))]
    for streams in _batches(self_stream(key, state.transcript) for key in self_keys):
        add_masks(total, minus=streams, threads=threads)
    for batch in _batches(_orphans(state, graph)):
        add_masks(
            total,
            plus=[seed for seed, added in batch if not added],
            minus=[seed for seed, added in batch if added],
            threads=threads,
        )
    reduce(total)


def _enough(owner: int, state: ServerState, graph: Graph) -> list[tuple[int, bytes]]:
    threshold = graph.parameters.threshold
    shares = list(islice(_shares_of(owner, state.answers, graph), threshold))
    if len(shares) < threshold:
        missing = f"{len(shares)} of {threshold} shares of client {owner}'s secret arrived"
        names = ", ".join(str(holder) for holder in sorted(state.failed) if owner in state.failed[holder])
        disputed = f"; clients {names} could not use theirs: either they lie or client {owner} does" if names else ""
        raise AggregationError("unmask", "too_few_shares", missing + disputed)
    return shares


def _shares_of(owner: int, answers: Mapping[int, Unmask], graph: Graph) -> Iterator[tuple[int, bytes]]:
    for holder in graph.neighbours(owner):
        answer = answers.get(holder)
        if answer is not None and owner in answer.owners:
            place = answer.owners.index(owner) * SECRET_BYTES
            yield graph.point(owner, holder), answer.shares[place : place + SECRET_BYTES]


def _silent(state: ServerState) -> list[int]:
    """Return survivors without an answer; their self-masks are in the sum."""
    return sorted(state.survivors.difference(state.answers))


def _vanished(state: ServerState) -> list[int]:
    """Return clients without an upload; their pair masks are in survivors' uploads."""
    return sorted(state.dealers - state.survivors)


def _interpolated(owner: int, state: ServerState, graph: Graph, at: int = 0) -> int:
    """Interpolate a polynomial at a point: a survivor's g, else f."""
    points, shares = zip(*_enough(owner, state, graph), strict=True)
    return combine(points, [scalar_of(share) for share in shares], at)


# Pairs in dispute do not mask. Values that holders sent were checked; interpolated ones must fit an undisputed
# commitment. So a falsely verified dealing of f ends the session and cannot change the sum.
def _orphans(state: ServerState, graph: Graph) -> Iterator[tuple[bytes, bool]]:
    """Yield vanished clients' pair seeds, and whether the survivor added the mask.

    A seed follows from the lower client's f, or from the lower client's link and the upper one's f.
    """
    disputes = both_sides(state.failed)
    for vanished in _vanished(state):
        shares = dict(_shares_of(vanished, state.answers, graph))
        for survivor in graph.neighbours(vanished):
            if survivor not in state.survivors or survivor in disputes.get(vanished, ()):
                continue
            point = graph.point(vanished, survivor)
            value = shares.get(point)
            if value is None:
                value = to_bytes(_interpolated(vanished, state, graph, point))
                if not fits_point(value, point, state.dealings[vanished], 1, state.transcript, vanished, survivor):
                    raise _misdealt(vanished)
            lower, upper = sorted((vanished, survivor))
            if lower == vanished:
                seed = pair_seed(value, state.transcript, (lower, upper))
            else:
                seed = xor(state.links[survivor][vanished], link_pad(value, state.transcript, lower, upper))
            yield seed, vanished > survivor


def _misdealt(owner: int) -> AggregationError:
    what = "shares that do not reconstruct its pair secrets"
    error = AggregationError("unmask", "misdealt", f"client {owner} dealt {what}")
    error.__cause__ = RemoteProtocolError(owner, "share", "misdealt", f"it dealt {what}")
    return error


def _batches(items: Iterable[T]) -> Iterator[list[T]]:
    iterator = iter(items)
    while batch := list(islice(iterator, _BATCH)):
        yield batch
