"""A Merkle tree over all advertisements: clients compute the root from their neighbours' part and a proof.

The tree covers all roster indices, padded to a power of two; an index without an advertisement has zeros. Clients that
received different advertisements of any client compute different roots, and no box opens between them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from privstats.secagg.wire import HASH_BYTES, Refusal, labelled

_ABSENT = bytes(HASH_BYTES)


class MerkleTree:
    """The server's full tree: ``levels[0]`` are the leaves, ``levels[-1]`` is the root alone."""

    def __init__(self, leaves: Mapping[int, bytes], size: int) -> None:
        level = [leaves.get(place, _ABSENT) for place in range(_width(size))]
        self.levels = [level]
        while len(level) > 1:
            level = [_node(level[place], level[place + 1]) for place in range(0, len(level), 2)]
            self.levels.append(level)

    @property
    def root(self) -> bytes:
        """The hash of all leaves."""
        return self.levels[-1][0]

    def proof(self, known: frozenset[int]) -> bytes:
        """Return the siblings, by level from the left, that turn the ``known`` leaves into the root."""
        siblings: list[bytes] = []
        for level in self.levels[:-1]:
            siblings += [level[place ^ 1] for place in sorted(known) if place ^ 1 not in known]
            known = frozenset(place // 2 for place in known)
        return b"".join(siblings)


def root_of(leaves: Mapping[int, bytes], size: int, proof: bytes) -> bytes:
    """Compute the root over ``size`` indices from some leaves and their exact proof, or raise ``Refusal``."""
    siblings = (proof[start : start + HASH_BYTES] for start in range(0, len(proof), HASH_BYTES))
    level, width = dict(leaves), _width(size)
    while width > 1:
        for place in sorted(place ^ 1 for place in level if place ^ 1 not in level):
            level[place] = _next(siblings)
        level = {place // 2: _node(level[place], level[place + 1]) for place in level if place % 2 == 0}
        width //= 2
    if next(siblings, None) is not None:
        raise Refusal("wrong_length", "the proof has more hashes than the transcript needs")
    return level[0]


def _next(siblings: Iterator[bytes]) -> bytes:
    sibling = next(siblings, b"")
    if len(sibling) != HASH_BYTES:
        raise Refusal("wrong_length", "the proof has fewer hashes than the transcript needs")
    return sibling


def _width(size: int) -> int:
    return 1 << (size - 1).bit_length()


def _node(left: bytes, right: bytes) -> bytes:
    return labelled("node", left, right)
