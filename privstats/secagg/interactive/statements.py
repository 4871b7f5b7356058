"""What is signed, hashed and authenticated: every byte string whose meaning matters, each under its own label.

All fields are of fixed length or come last, so no two statements share an encoding. Pure functions of public values
(commitments excepted); used by both machines, so that they cannot disagree.
"""

from __future__ import annotations

from privstats.secagg.interactive.graph import Graph
from privstats.secagg.interactive.messages import Advertise
from privstats.secagg.labels import index, labelled, prefix

__all__ = [
    "abort_statement",
    "advert_leaf",
    "advert_statement",
    "box_context",
    "context_of",
    "open_statement",
    "seed_commitment",
    "share_commitment",
    "share_commitments",
    "survivors_statement",
    "transcript_of",
]


def context_of(graph: Graph, session: bytes, server_key: bytes) -> bytes:
    """32 bytes that stand for suite, plan, parameters, roster, session and the server's session key."""
    return labelled("context", graph.parameters.digest, graph.roster.digest, session, server_key)


def open_statement(context: bytes) -> bytes:
    """What the server signs when it opens a session; the context fixes suite, plan, roster, session and its key."""
    return prefix("open") + context


def abort_statement(context: bytes, code: int) -> bytes:
    """What the server signs when it ends a session early."""
    return prefix("abort") + context + bytes([code])


def advert_statement(context: bytes, sender: int, box_key: bytes, mask_key: bytes, commitment: bytes) -> bytes:
    """What a client signs when it advertises its keys."""
    return prefix("advertise") + context + index(sender) + box_key + mask_key + commitment


def advert_leaf(advert: Advertise) -> bytes:
    """The leaf of one advertisement in the tree of all of them."""
    keys = advert.box_key + advert.mask_key + advert.commitment
    return labelled("leaf", index(advert.sender), keys, advert.signature)


def transcript_of(context: bytes, root: bytes) -> bytes:
    """32 bytes that stand for everything that was advertised; ``root`` is that of the Merkle tree."""
    return labelled("transcript", context, root)


def box_context(session: bytes, sender: int, receiver: int) -> bytes:
    """The associated data of a sealed box: session, sender, receiver, step."""
    return prefix("share") + session + index(sender) + index(receiver)


def seed_commitment(session: bytes, owner: int, seed: bytes) -> bytes:
    """The commitment to a self-mask seed; hides it because the seed is 32 uniform bytes."""
    return labelled("seed-commitment", session, index(owner), seed)


def share_commitment(transcript: bytes, kind: bytes, owner: int, holder: int, share: bytes) -> bytes:
    """The commitment to one share; ``kind`` is ``b"s"`` (self-mask seed) or ``b"k"`` (mask key)."""
    return labelled("share-commitment", transcript, kind, index(owner), index(holder), share)


def share_commitments(transcript: bytes, owner: int, holder: int, shares: bytes) -> bytes:
    """The commitments to both of a holder's shares, 64 bytes each way: the seed's, then the mask key's."""
    half = len(shares) // 2
    return share_commitment(transcript, b"s", owner, holder, shares[:half]) + share_commitment(
        transcript, b"k", owner, holder, shares[half:]
    )


def survivors_statement(transcript: bytes, survivors: bytes) -> bytes:
    """What a client signs when it agrees to a survivor list; the transcript fixes session, plan and roster."""
    return prefix("agree") + transcript + survivors
