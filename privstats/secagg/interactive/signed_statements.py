"""Encodings of all signed, hashed and authenticated statements, each under a label of its own.

All fields are of fixed length or come last, so no two statements share an encoding. Pure functions of public values
(commitments excepted); both machines use them, so that the encodings cannot differ.
"""

from __future__ import annotations

from privstats.secagg.interactive.graph import Graph
from privstats.secagg.interactive.messages import Advertise
from privstats.secagg.wire import index, labelled, prefix

__all__ = [
    "abort_statement",
    "advert_leaf",
    "advert_statement",
    "box_context",
    "context_of",
    "dealing_statement",
    "open_statement",
    "share_commitment",
    "survivors_statement",
    "transcript_of",
]


def context_of(graph: Graph, session: bytes, server_key: bytes) -> bytes:
    """32 bytes that stand for suite, plan, parameters, roster, session and the server's session key."""
    return labelled("context", graph.parameters.digest, graph.roster.digest, session, server_key)


def open_statement(context: bytes) -> bytes:
    """The server signs this to open a session; the context fixes suite, plan, roster, session and its key."""
    return prefix("open") + context


def abort_statement(context: bytes, code: int) -> bytes:
    """The server signs this to end a session early."""
    return prefix("abort") + context + bytes([code])


def advert_statement(context: bytes, sender: int, box_key: bytes, mask_key: bytes, self_key: bytes) -> bytes:
    """The statement that a client signs when it advertises its keys."""
    return prefix("advertise") + context + index(sender) + box_key + mask_key + self_key


def advert_leaf(advert: Advertise) -> bytes:
    """The leaf of one advertisement in the tree of all of them."""
    keys = advert.box_key + advert.mask_key + advert.self_key
    return labelled("leaf", index(advert.sender), keys, advert.signature)


def transcript_of(context: bytes, root: bytes) -> bytes:
    """32 bytes that stand for everything that was advertised; ``root`` is that of the Merkle tree."""
    return labelled("transcript", context, root)


def box_context(session: bytes, sender: int, receiver: int) -> bytes:
    """The associated data of a sealed box: session, sender, receiver, step."""
    return prefix("share") + session + index(sender) + index(receiver)


def share_commitment(transcript: bytes, kind: bytes, owner: int, holder: int, share: bytes, blind: bytes) -> bytes:
    """The commitment to one share and its blind; ``kind`` is ``b"s"`` (self-mask key) or ``b"k"`` (mask key)."""
    return labelled("share-commitment", transcript, kind, index(owner), index(holder), share, blind)


def dealing_statement(transcript: bytes, kind: bytes, owner: int, commitments: bytes) -> bytes:
    """The message of the proof of one dealt key: all commitments of the dealing, so its challenge depends on them."""
    return prefix("dealing") + transcript + kind + index(owner) + labelled("commitments", commitments)


def survivors_statement(transcript: bytes, survivors: bytes) -> bytes:
    """The statement that a client signs for a survivor list; the transcript fixes session, plan and roster."""
    return prefix("agree") + transcript + survivors
