"""Encode an upload's signed statements, hashes and derived keys, each under its own label.

Fields are of fixed length or come last, so no two statements share an encoding.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence

from privstats import domains
from privstats.secagg.keys import hkdf
from privstats.secagg.transcript import MerkleTree, root_of
from privstats.secagg.wire import Labels, index

_LABELS = Labels(domains.UPLOAD)
prefix, labelled = _LABELS.prefix, _LABELS.labelled


def derive(secret: bytes | bytearray, label: str, context: bytes) -> bytes:
    """Derive a 32-byte key for one purpose, in this run only."""
    return hkdf(secret, context, domains.UPLOAD_KEYS + label.encode(), 32)


def panel_digest(members: Iterable[tuple[bytes, bytes]]) -> bytes:
    """Hash identity and box key of leader and helpers, in this order."""
    return labelled("panel", *(identity + box_key for identity, box_key in members))


def context_of(parameters: bytes, roster: bytes, panel: bytes) -> bytes:
    """Hash suite, plan, parameters, roster, run and panel, for every message."""
    return labelled("context", parameters, roster, panel)


def offer_statement(label: str, parameters: bytes, roster: bytes, place: int, box_key: bytes, until: int) -> bytes:
    """Return the statement that offers a box key until a Unix time in seconds."""
    return prefix(label) + parameters + roster + bytes([place]) + box_key + until.to_bytes(8, "big")


def box_info(context: bytes, sender: int, receiver: int) -> bytes:
    """Return HPKE's ``info``, which binds a box to sender, receiver and run."""
    return prefix("box") + context + index(sender) + bytes([receiver])


def leaf(receiver: int, box: bytes | memoryview) -> bytes:
    """Return a box's Merkle leaf."""
    return labelled("box-hash", bytes([receiver]), box)


def boxes_root(boxes: Sequence[bytes | memoryview]) -> bytes:
    """Return the root over the panel's boxes, the leader's first."""
    return _tree(boxes).root


def proofs(boxes: Sequence[bytes | memoryview]) -> list[bytes]:
    """Return each box's siblings on its path to the root."""
    tree = _tree(boxes)
    return [tree.proof(frozenset({place})) for place in range(len(boxes))]


def root_from(receiver: int, box: bytes | memoryview, proof: bytes, members: int) -> bytes:
    """Compute the root from one member's box and its proof."""
    return root_of({receiver: leaf(receiver, box)}, members, proof)


def report_statement(context: bytes, sender: int, root: bytes) -> bytes:
    """Return what a client signs: ``root`` commits to its boxes."""
    return prefix("report") + context + index(sender) + root


def proved_statement(context: bytes, sender: int, root: bytes, commits: bytes, parts: bytes) -> bytes:
    """Return what a client signs over a report with a proof."""
    return prefix("proved-report") + context + index(sender) + root + labelled("proof-said", parts, commits)


def seed_commitment(context: bytes, sender: int, place: int, seed: bytes) -> bytes:
    """Return a client's commitment to the seed of the helper at this place."""
    return labelled("proof-commit", context, index(sender), bytes([place]), seed)


def batch_statement(context: bytes, place: int, digest: bytes) -> bytes:
    """Return what the leader signs over a batch; ``digest`` excludes the signature."""
    return prefix("batch") + context + bytes([place]) + digest


def proved_checked_statement(context: bytes, place: int, batch: bytes, bitmap: bytes, answers: bytes) -> bytes:
    """Return :func:`checked_statement` with answers to the accepted proofs."""
    return prefix("proved-checked") + context + bytes([place]) + batch + hashlib.sha256(answers).digest() + bitmap


def checked_statement(context: bytes, place: int, batch: bytes, bitmap: bytes) -> bytes:
    """Return what a helper signs over a batch's accepted reports; ``batch`` is the message's hash."""
    return prefix("checked") + context + bytes([place]) + batch + bitmap


def roll_of(listed: Iterable[tuple[int, bytes]]) -> bytes:
    """Hash the clients in the sum *and their reports*: senders in order, each statement's hash."""
    return labelled("roll", *(index(sender) + digest for sender, digest in listed))


def survivors_statement(context: bytes, roll: bytes, bitmap: bytes) -> bytes:
    """Return what the leader signs over the clients in the sum."""
    return prefix("survivors") + context + roll + bitmap


def reveal_statement(context: bytes, place: int, roll: bytes, answer: bytes | bytearray | memoryview) -> bytes:
    """Return what a helper signs over its one answer."""
    return revealed_statement(context, place, roll, hashlib.sha256(answer).digest())


def revealed_statement(context: bytes, place: int, roll: bytes, digest: bytes) -> bytes:
    """Return a revealed answer's statement from its SHA-256 alone."""
    return prefix("reveal") + context + bytes([place]) + roll + digest


def abandoned_statement(context: bytes, place: int) -> bytes:
    """Return what a helper signs after destroying its box key without an answer."""
    return prefix("abandoned") + context + bytes([place])


def _tree(boxes: Sequence[bytes | memoryview]) -> MerkleTree:
    return MerkleTree({place: leaf(place, box) for place, box in enumerate(boxes)}, len(boxes))
