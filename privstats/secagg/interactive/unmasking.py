"""The server's last step as mathematics: from shares to secrets, from secrets to the masks still in the sum.

Checks every secret against what its owner advertised, so that a lie ends in a name and not in a wrong sum. Called by
the server machine; sends and receives nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import TypeVar

import numpy as np
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

from privstats.encoding import RingVector
from privstats.errors import AggregationError, RemoteProtocolError
from privstats.secagg.interactive.client_secrets import pair_seed, self_stream
from privstats.secagg.interactive.graph import Graph
from privstats.secagg.interactive.messages import SECRET_BYTES, Advertise, Unmask
from privstats.secagg.interactive.state import ServerState
from privstats.secagg.interactive.statements import seed_commitment
from privstats.secagg.keys import public_of
from privstats.secagg.prg import add_masks
from privstats.secagg.shamir import combine
from privstats.secagg.sums import reduce

__all__ = ["require_shares", "unmask"]

_BATCH = 256  # seeds expanded at a time: bounds the ciphers alive at once

T = TypeVar("T")


def require_shares(state: ServerState, graph: Graph) -> None:
    """Enough shares have arrived of every secret that nobody revealed; whether they fit, :func:`unmask` finds out.

    Raises:
        AggregationError: they are too few.
    """
    for owner in (*_silent(state), *_vanished(state)):
        _enough(owner, state.answers, graph)


def unmask(total: RingVector, state: ServerState, graph: Graph, *, threads: int = 1) -> None:
    """Take out of ``total``, in place, the survivors' self-masks and the pair masks of those who vanished.

    Survivors that answered revealed their own seed; other secrets are put together from shares.

    Raises:
        AggregationError: shares are too few, or do not give back what their owner advertised.
    """
    revealed = {client: answer.seed for client, answer in state.answers.items()}
    seeds = revealed | _checked_seeds(_recover(_silent(state), state.answers, graph), state.adverts)
    keys = _checked_keys(_recover(_vanished(state), state.answers, graph), state.adverts)
    for streams in _batches(self_stream(seed, state.transcript) for seed in seeds.values()):
        add_masks(total, minus=streams, threads=threads)
    for batch in _batches(_orphans(keys, state, graph)):
        add_masks(
            total,
            plus=[seed for seed, added in batch if not added],
            minus=[seed for seed, added in batch if added],
            threads=threads,
        )
    reduce(total)


def _recover(owners: Sequence[int], answers: Mapping[int, Unmask], graph: Graph) -> dict[int, bytes]:
    """The secrets that ``threshold`` holders' shares give back, by owner."""
    threshold = graph.parameters.threshold
    secrets: dict[int, bytes] = {}
    for owner in owners:
        found = _enough(owner, answers, graph)
        xs = np.array([point for point, _ in found], np.uint8)
        shares = np.frombuffer(b"".join(share for _, share in found), np.uint8).reshape(threshold, SECRET_BYTES)
        secrets[owner] = combine(xs, shares).tobytes()
    return secrets


def _enough(owner: int, answers: Mapping[int, Unmask], graph: Graph) -> list[tuple[int, bytes]]:
    """Points and shares of the owner's secret, exactly ``threshold`` of them."""
    threshold = graph.parameters.threshold
    found = list(islice(_shares_of(owner, answers, graph), threshold))
    if len(found) < threshold:
        raise AggregationError(
            "unmask", "too_few_shares", f"{len(found)} of {threshold} shares of client {owner}'s secret arrived"
        )
    return found


def _shares_of(owner: int, answers: Mapping[int, Unmask], graph: Graph) -> Iterator[tuple[int, bytes]]:
    for holder in graph.neighbours(owner):
        answer = answers.get(holder)
        if answer is not None and owner in answer.owners:
            place = answer.owners.index(owner) * SECRET_BYTES
            yield graph.point(owner, holder), answer.shares[place : place + SECRET_BYTES]


def _silent(state: ServerState) -> list[int]:
    """Survivors that did not answer, whose self-masks are in the sum."""
    return sorted(state.survivors.difference(state.answers))


def _vanished(state: ServerState) -> list[int]:
    """Clients that shared and did not upload, whose pair masks the survivors' uploads hold."""
    return sorted(state.sharers - state.survivors)


def _checked_seeds(seeds: dict[int, bytes], adverts: Mapping[int, Advertise]) -> dict[int, bytes]:
    """Every recovered self-mask seed must be the one its owner committed to."""
    for owner, seed in seeds.items():
        if seed_commitment(adverts[owner].session, owner, seed) != adverts[owner].commitment:
            raise _misdealt(owner, "self-mask seed")
    return seeds


def _checked_keys(keys: dict[int, bytes], adverts: Mapping[int, Advertise]) -> dict[int, bytes]:
    """Every recovered mask key must reproduce the public key that its owner advertised."""
    for owner, key in keys.items():
        if public_of(key) != adverts[owner].mask_key:
            raise _misdealt(owner, "mask key")
    return keys


def _misdealt(owner: int, what: str) -> AggregationError:
    """The shares passed their commitments, so it is the owner who dealt shares of no secret or of another one."""
    error = AggregationError("unmask", "misdealt", f"client {owner} dealt shares that do not give back its {what}")
    error.__cause__ = RemoteProtocolError(owner, "share", "misdealt", f"its shares do not give back its {what}")
    return error


def _orphans(keys: Mapping[int, bytes], state: ServerState, graph: Graph) -> Iterator[tuple[bytes, bool]]:
    """Seeds of the pair masks between a survivor and one who vanished, and whether the survivor added it."""
    for vanished, key in keys.items():
        private = X25519PrivateKey.from_private_bytes(key)
        for survivor in graph.neighbours(vanished):
            if survivor in state.survivors:
                public = state.adverts[survivor].mask_key
                yield pair_seed(private, public, state.transcript, (vanished, survivor)), vanished > survivor


def _batches(items: Iterable[T]) -> Iterator[list[T]]:
    iterator = iter(items)
    while batch := list(islice(iterator, _BATCH)):
        yield batch
