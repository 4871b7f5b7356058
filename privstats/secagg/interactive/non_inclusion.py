"""Prove that an upload is in no sum, so that a second upload of its data is no second release.

The proof is a survivor list without the client, signed by enough clients.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from privstats.errors import LocalProtocolError
from privstats.files.signing import verify
from privstats.secagg import wire
from privstats.secagg.interactive.graph import Graph
from privstats.secagg.interactive.messages import survivors_statement
from privstats.secagg.interactive.parameters import Parameters
from privstats.secagg.roster import Roster
from privstats.secagg.wire import members

_INDEX_BYTES = 4
_RECEIPT_BYTES = 2 * wire.HASH_BYTES + _INDEX_BYTES
_PLACE_BYTES = 2 * wire.HASH_BYTES


@dataclass(frozen=True)
class Receipt:
    """The identification of a client's own upload after the session.

    Attributes:
        transcript: hash of session and advertisements.
        index: the client's roster index.
        upload: the masked-vector message's SHA-256.
        place: on a random graph the digests of parameters and roster (``Graph.place``), which fix the number of
            signatures and the committee; empty on the complete graph.
    """

    transcript: bytes
    index: int
    upload: bytes
    place: bytes = b""

    @classmethod
    def decode(cls, data: bytes, *, complete: bool = True) -> Receipt:
        """Parse a receipt, or raise ``LocalProtocolError``."""
        size = _RECEIPT_BYTES + (0 if complete else _PLACE_BYTES)
        if not isinstance(data, bytes) or len(data) != size:
            raise LocalProtocolError(
                f"a receipt of this protocol has {size} bytes: give client.receipt of the one that uploaded"
            )
        transcript, rest, place = data[: wire.HASH_BYTES], data[wire.HASH_BYTES : _RECEIPT_BYTES], data[_RECEIPT_BYTES:]
        return cls(transcript, int.from_bytes(rest[:_INDEX_BYTES], "big"), rest[_INDEX_BYTES:], place)

    def encode(self) -> bytes:
        """Return the bytes that :meth:`decode` parses."""
        return self.transcript + self.index.to_bytes(_INDEX_BYTES, "big") + self.upload + self.place


def prove_excluded(
    parameters: Parameters, report: bytes, statements: Mapping[int, bytes], *, roster: Roster, panel: None = None
) -> bytes:
    """Return the name of an upload that is in no sum and never can be: its SHA-256.

    Args:
        report: the client's own ``client.receipt``.
        statements: by client, its signed list and signature (``client.agreement``), from any source.

    Raises:
        LocalProtocolError: the statements do not prove it.

    Guarantee: a client opens its masks only for a list with so many signatures that no second list can have as many,
    since an honest client signs one list. Suppose that so many clients signed a list without this client. Then its
    self-mask is never removed, and its vector stays uniform to all others together while the key agreement is unbroken
    (docs/proofs/masking.md, 2 and 7; random_graph.md, 8). This is certain in the complete graph, and holds on a random
    graph except with the probability ``parameters.failure``, which stays charged to delta. A list is believed at any
    time after the session, so Ed25519 must be unbroken when this is called: a party that breaks it forges a list
    without a listed client.
    """
    del panel
    graph, lists = Graph(parameters, roster), set[bytes]()
    receipt = Receipt.decode(report, complete=parameters.complete)
    if not parameters.complete and receipt.place != graph.place:  # another committee, or another rule
        raise LocalProtocolError(
            "the receipt is of a session under other parameters or another roster: count the session as a release"
        )
    for signer, signed in sorted(statements.items()):
        bitmap, signature = signed[: -wire.SIGNATURE_BYTES], signed[-wire.SIGNATURE_BYTES :]
        listed = _members(bitmap, parameters)
        statement = survivors_statement(receipt.transcript, bitmap)
        if signer not in listed or not verify(roster.publics[signer], signature, statement):
            raise LocalProtocolError(
                f"the statement of client {signer} is not its signed list of survivors of this session: count the "
                "session as a release"
            )
        lists.add(bitmap)
    count = len(graph.committee.intersection(statements))
    if len(lists) != 1 or count < parameters.signatures:
        raise LocalProtocolError(
            f"{count} clients have signed {len(lists)} lists of this session, and {parameters.signatures} on one list "
            "are needed: count it as a release"
        )
    if receipt.index in _members(lists.pop(), parameters):
        raise LocalProtocolError("the signed list has this client, so its upload is in the sum: count it as a release")
    return receipt.upload


def _members(bitmap: bytes, parameters: Parameters) -> frozenset[int]:
    try:
        return members(bitmap, parameters.clients)
    except ValueError:
        return frozenset()
