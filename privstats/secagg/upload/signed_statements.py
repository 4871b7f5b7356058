"""Encodings of all signed and hashed statements and derived keys of an upload, each under a label of its own.

All fields are of fixed length or come last, so no two statements share an encoding. Pure functions; clients, leader and
helpers use them, so that the encodings cannot differ.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence

from privstats.secagg.keys import hkdf
from privstats.secagg.transcript import MerkleTree, root_of
from privstats.secagg.wire import Labels, index

_DERIVED = "privstats/upload/"
_LABELS = Labels("privstats/upload/1/")
prefix, labelled = _LABELS.prefix, _LABELS.labelled


def derive(secret: bytes | bytearray, label: str, context: bytes) -> bytes:
    """A key of 32 bytes for the purpose that ``label`` names, in this run only."""
    return hkdf(secret, context, (_DERIVED + label).encode(), 32)


def panel_digest(members: Iterable[tuple[bytes, bytes]]) -> bytes:
    """32 bytes that stand for identity and box key of the leader and of every helper, in this order."""
    return labelled("panel", *(identity + box_key for identity, box_key in members))


def context_of(parameters: bytes, roster: bytes, panel: bytes) -> bytes:
    """32 bytes that stand for suite, plan, parameters, roster, run and panel; each message carries them."""
    return labelled("context", parameters, roster, panel)


def offer_statement(label: str, parameters: bytes, roster: bytes, place: int, box_key: bytes, until: int) -> bytes:
    """Leader (place 0) and helpers sign this to offer a box key for one run, until a second since 1970."""
    return prefix(label) + parameters + roster + bytes([place]) + box_key + until.to_bytes(8, "big")


def box_info(context: bytes, sender: int, receiver: int) -> bytes:
    """HPKE's ``info``: a box opens for this sender, this receiver, this run."""
    return prefix("box") + context + index(sender) + bytes([receiver])


def leaf(receiver: int, box: bytes | memoryview) -> bytes:
    """A box's leaf in the tree of a report's boxes."""
    return labelled("box-hash", bytes([receiver]), box)


def boxes_root(boxes: Sequence[bytes | memoryview], first: int) -> bytes:
    """The root over the boxes for the places from ``first`` on."""
    return _tree(boxes, first).root


def proofs(boxes: Sequence[bytes | memoryview], first: int) -> list[bytes]:
    """Return each box's siblings on the path from its leaf to the root."""
    tree = _tree(boxes, first)
    return [tree.proof(frozenset({place})) for place in range(len(boxes))]


def root_from(receiver: int, box: bytes | memoryview, proof: bytes, boxed: range) -> bytes:
    """Compute the root from one box and its proof; the places that have a box determine the proof's length."""
    return root_of({boxed.index(receiver): leaf(receiver, box)}, len(boxed), proof)


def report_statement(context: bytes, sender: int, enc: bytes, root: bytes) -> bytes:
    """Return what a client signs: ``enc`` opens its body, and is empty where a box does; ``root`` commits to boxes."""
    return prefix("report") + context + index(sender) + enc + root


def proved_statement(context: bytes, sender: int, enc: bytes, root: bytes, commits: bytes, parts: bytes) -> bytes:
    """A client signs this in place of :func:`report_statement` over a report that carries a proof."""
    return prefix("proved-report") + context + index(sender) + enc + root + labelled("proof-said", parts, commits)


def seed_commitment(context: bytes, sender: int, place: int, seed: bytes) -> bytes:
    """A client's commitment to the seed of the helper at a place, where its report carries a proof."""
    return labelled("proof-commit", context, index(sender), bytes([place]), seed)


def batch_statement(context: bytes, place: int, digest: bytes) -> bytes:
    """The leader signs this over a batch for one helper; ``digest`` is of the message up to its signature."""
    return prefix("batch") + context + bytes([place]) + digest


def proved_checked_statement(context: bytes, place: int, batch: bytes, bitmap: bytes, answers: bytes) -> bytes:
    """A helper signs this in place of :func:`checked_statement`, with its answers to the accepted reports' proofs."""
    return prefix("proved-checked") + context + bytes([place]) + batch + hashlib.sha256(answers).digest() + bitmap


def checked_statement(context: bytes, place: int, batch: bytes, bitmap: bytes) -> bytes:
    """A helper signs this over the reports of one batch that it accepts; ``batch`` is the whole message's hash."""
    return prefix("checked") + context + bytes([place]) + batch + bitmap


def roll_of(listed: Iterable[tuple[int, bytes]]) -> bytes:
    """32 bytes that stand for the clients in the sum *and their reports*: senders in order, each statement's hash."""
    return labelled("roll", *(index(sender) + digest for sender, digest in listed))


def survivors_statement(context: bytes, roll: bytes, bitmap: bytes) -> bytes:
    """The leader signs this over the list of clients in the sum."""
    return prefix("survivors") + context + roll + bitmap


def reveal_statement(context: bytes, place: int, roll: bytes, answer: bytes | bytearray | memoryview) -> bytes:
    """A helper signs this over its one answer."""
    return revealed_statement(context, place, roll, hashlib.sha256(answer).digest())


def revealed_statement(context: bytes, place: int, roll: bytes, digest: bytes) -> bytes:
    """Return the statement of a revealed answer from the answer's SHA-256 alone."""
    return prefix("reveal") + context + bytes([place]) + roll + digest


def abandoned_statement(context: bytes, place: int) -> bytes:
    """A helper signs this after its box key is destroyed, if it never gave an answer."""
    return prefix("abandoned") + context + bytes([place])


def _tree(boxes: Sequence[bytes | memoryview], first: int) -> MerkleTree:
    return MerkleTree({place: leaf(place + first, box) for place, box in enumerate(boxes)}, len(boxes))
