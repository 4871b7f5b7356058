"""Proof that an upload is in no sum, so that a second upload of the same data is no second release.

The proof is a list of survivors without the client, signed by enough clients. It serves a client that vanished,
between two sessions, and reads the statements that the survivors publish; ``session.free`` records the result.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from privstats.errors import LocalProtocolError
from privstats.files.signing import verify
from privstats.secagg import wire
from privstats.secagg.interactive.messages import Agreement, survivors_statement
from privstats.secagg.interactive.parameters import Parameters
from privstats.secagg.roster import Roster
from privstats.secagg.wire import members

_INDEX_BYTES = 4
_RECEIPT_BYTES = 2 * wire.HASH_BYTES + _INDEX_BYTES


@dataclass(frozen=True)
class Receipt:
    """Identifies a client's own upload after the session.

    Attributes:
        transcript: hash of the session and everything that was advertised in it.
        index: the client's index on the roster.
        upload: SHA-256 of the masked-vector message, as a ledger recorded it.
    """

    transcript: bytes
    index: int
    upload: bytes

    def encode(self) -> bytes:
        """68 bytes."""
        return self.transcript + self.index.to_bytes(_INDEX_BYTES, "big") + self.upload

    @classmethod
    def decode(cls, data: bytes) -> Receipt:
        """Return the receipt in ``data``.

        Raises:
            LocalProtocolError: there is none.
        """
        if not isinstance(data, bytes) or len(data) != _RECEIPT_BYTES:
            raise LocalProtocolError(
                f"a receipt of this protocol has {_RECEIPT_BYTES} bytes: give client.receipt of the one that uploaded"
            )
        transcript, rest = data[: wire.HASH_BYTES], data[wire.HASH_BYTES :]
        return cls(transcript, int.from_bytes(rest[:_INDEX_BYTES], "big"), rest[_INDEX_BYTES:])


def words_of(listed: bytes, agreement: Agreement, own: Mapping[int, bytes]) -> dict[int, bytes]:
    """Return the list and its signature by signer, in order: those of a verified agreement, and the client's own.

    Args:
        listed: the list, as a bitmap.
        agreement: the message.
        own: further signatures by client.
    """
    size = wire.SIGNATURE_BYTES
    cut = {signer: agreement.signatures[place * size :][:size] for place, signer in enumerate(agreement.signers)}
    return {signer: listed + signature for signer, signature in sorted({**cut, **own}.items())}


def prove_excluded(
    parameters: Parameters, report: bytes, statements: Mapping[int, bytes], *, roster: Roster, panel: None = None
) -> bytes:
    """Return the name of an upload that is in no sum and never can be: its SHA-256, as a ledger recorded it.

    Args:
        parameters: of the session.
        report: ``client.receipt`` of the client's own machine there.
        statements: by client, the list that it signed there and its signature, as ``client.agreement`` of a survivor
            holds them; any party may deliver them.
        roster: of the session.
        panel: None, because this protocol has none.

    Raises:
        LocalProtocolError: the statements do not prove it, or the graph is not complete.

    Guarantee: a sum is unmasked over a list that t clients have signed, and an honest client signs one list. In the
    complete graph 2 t > n + c, so with at most c colluders no second list can gather t signatures: if t clients
    signed one without this client, its self-mask is never removed and its vector stays uniform to the rest, for ever.
    In a sparse graph neighbourhoods may sign different lists, so a list proves nothing about another one.
    """
    del panel
    if not parameters.complete:
        raise LocalProtocolError(
            "in a graph that is not complete two lists may be signed, so none proves that an upload is in no "
            "sum: count it as a release"
        )
    receipt, lists = Receipt.decode(report), set[bytes]()
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
    if len(lists) != 1 or len(statements) < parameters.threshold:
        raise LocalProtocolError(
            f"{len(statements)} clients have signed {len(lists)} lists of this session, and {parameters.threshold} on "
            "one list are needed: count it as a release"
        )
    if receipt.index in _members(lists.pop(), parameters):
        raise LocalProtocolError("the list that was signed has this client in it: its upload is in the sum")
    return receipt.upload


def _members(bitmap: bytes, parameters: Parameters) -> frozenset[int]:
    try:
        return members(bitmap, parameters.clients)
    except ValueError:
        return frozenset()
