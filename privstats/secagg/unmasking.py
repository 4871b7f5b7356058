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
from privstats.secagg.graph import Graph
from privstats.secagg.keys import public_of
from privstats.secagg.material import pair_seed, self_stream
from privstats.secagg.messages import SECRET_BYTES, Advertise, Unmask
from privstats.secagg.prg import add_masks
from privstats.secagg.shamir import combine
from privstats.secagg.statements import seed_commitment

__all__ = ["check_keys", "check_seeds", "recover", "remove_masks"]

_BATCH = 256

T = TypeVar("T")


def recover(owners: Sequence[int], answers: Mapping[int, Unmask], graph: Graph) -> dict[int, bytes]:
    """The secrets that ``threshold`` holders' shares give back, by owner.

    Raises:
        AggregationError: an owner's shares are too few.
    """
    threshold = graph.parameters.threshold
    xs = np.zeros((len(owners), threshold), np.uint8)
    shares = np.zeros((len(owners), threshold, SECRET_BYTES), np.uint8)
    for row, owner in enumerate(owners):
        found = list(islice(_shares_of(owner, answers, graph), threshold))
        if len(found) < threshold:
            raise AggregationError(
                "unmask", "too_few_shares", f"{len(found)} of {threshold} shares of client {owner}'s secret arrived"
            )
        xs[row] = [point for point, _ in found]
        shares[row] = [np.frombuffer(share, np.uint8) for _, share in found]
    secrets = (combine(xs[row], shares[row]).tobytes() for row in range(len(owners)))
    return dict(zip(owners, secrets, strict=True))


def _shares_of(owner: int, answers: Mapping[int, Unmask], graph: Graph) -> Iterator[tuple[int, bytes]]:
    for holder in graph.neighbours(owner):
        answer = answers.get(holder)
        if answer is not None and owner in answer.owners:
            place = answer.owners.index(owner) * SECRET_BYTES
            yield graph.point(owner, holder), answer.shares[place : place + SECRET_BYTES]


def check_seeds(seeds: Mapping[int, bytes], adverts: Mapping[int, Advertise]) -> None:
    """Every recovered self-mask seed must be the one its owner committed to."""
    for owner, seed in seeds.items():
        if seed_commitment(adverts[owner].session, owner, seed) != adverts[owner].commitment:
            raise _misdealt(owner, "self-mask seed")


def check_keys(keys: Mapping[int, bytes], adverts: Mapping[int, Advertise]) -> None:
    """Every recovered mask key must reproduce the public key that its owner advertised."""
    for owner, key in keys.items():
        if public_of(key) != adverts[owner].mask_key:
            raise _misdealt(owner, "mask key")


def _misdealt(owner: int, what: str) -> AggregationError:
    culprit = RemoteProtocolError(owner, "share", "misdealt", f"its shares do not give back its {what}")
    error = AggregationError("unmask", "misdealt", f"client {owner} dealt shares that do not give back its {what}")
    error.__cause__ = culprit
    return error


def remove_masks(
    total: RingVector,
    *,
    seeds: Mapping[int, bytes],
    keys: Mapping[int, bytes],
    adverts: Mapping[int, Advertise],
    transcript: bytes,
    graph: Graph,
) -> None:
    """Take out of ``total``, in place, the survivors' self-masks and the pair masks of those who vanished.

    Args:
        seeds: self-mask seed of every survivor.
        keys: mask key of every client that shared but did not survive.
    """
    for streams in _batches(self_stream(seed, transcript=transcript) for seed in seeds.values()):
        add_masks(total, minus=streams)
    for batch in _batches(_orphans(seeds.keys(), keys, adverts, transcript, graph)):
        add_masks(
            total,
            plus=[seed for seed, positive in batch if not positive],
            minus=[seed for seed, positive in batch if positive],
        )


def _orphans(
    survivors: Iterable[int],
    keys: Mapping[int, bytes],
    adverts: Mapping[int, Advertise],
    transcript: bytes,
    graph: Graph,
) -> Iterator[tuple[bytes, bool]]:
    """Seeds of the pair masks between a survivor and one who vanished, and whether the survivor added it."""
    present = frozenset(survivors)
    for vanished, key in keys.items():
        private = X25519PrivateKey.from_private_bytes(key)
        for survivor in graph.neighbours(vanished):
            if survivor in present:
                public, pair = adverts[survivor].mask_key, (vanished, survivor)
                yield pair_seed(private, public, transcript=transcript, pair=pair), vanished > survivor


def _batches(items: Iterable[T]) -> Iterator[list[T]]:
    iterator = iter(items)
    while batch := list(islice(iterator, _BATCH)):
        yield batch
