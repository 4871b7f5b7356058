"""A client after its last answer: it repeats that answer to the same message and refuses any other.

It holds no key, share or vector, only the last answer and the hash of the answered message. A server that was killed
while last answers were in transit asks again, and without the repeats its session and all its vectors would be lost.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from hashlib import sha256
from typing import ClassVar, NoReturn

from privstats.errors import LocalProtocolError, RemoteProtocolError
from privstats.secagg import wire
from privstats.secagg.machines import Masking
from privstats.secagg.protocols import protocol_of
from privstats.secagg.wire import members

__all__ = ["FinishedClient"]

_SERVER = "server"


@dataclass(frozen=True, repr=False)
class FinishedClient:
    """A client after its end, as a :class:`~privstats.secagg.machines.Peer`.

    Attributes:
        parameters: the public parameters that all parties agreed on.
        index: its place on the roster.
        question: SHA-256 of the message that was answered last.
        answer: the answer, as it was sealed for the server.
        receipt: identifies its upload.
        agreement: by signer, the list that it is on and the signature.
    """

    parameters: Masking
    index: int
    question: bytes
    answer: bytes
    receipt: bytes = b""
    agreement: dict[int, bytes] = field(default_factory=dict)

    step: ClassVar[str] = "done"
    faults: ClassVar[tuple[RemoteProtocolError, ...]] = ()
    ended: ClassVar[str] = ""
    charged: ClassVar[bool] = False
    upload: ClassVar[bytes] = b""

    @property
    def agreed(self) -> tuple[int, ...]:
        """The survivors whose sum it helped to unmask; empty for a protocol without lists."""
        lists = [said[: -wire.SIGNATURE_BYTES] for said in self.agreement.values()]
        return tuple(sorted(members(lists[0], self.parameters.clients))) if lists else ()

    def start(self) -> list[tuple[str, bytes]]:
        """Return an empty list: it has sent all its messages."""
        return []

    def receive(self, data: bytes | bytearray | memoryview) -> list[tuple[str, bytes]]:
        """Repeat the answer to the message that it answered.

        Raises:
            RemoteProtocolError: any other message.
        """
        view = wire.view_of(data)
        fits = len(view) <= protocol_of(self.parameters).machines.largest_request(self.parameters)
        if fits and sha256(view).digest() == self.question:
            return [(_SERVER, self.answer)]
        detail = "this client has ended, and only repeats its last answer"
        raise RemoteProtocolError(_SERVER, self.step, "not_expected", detail, proven=False)

    def export(self, key: bytes) -> NoReturn:  # noqa: ARG002
        """Refuse: its journal holds the whole state.

        Raises:
            LocalProtocolError: always.
        """
        raise LocalProtocolError("this client has ended: there is no state to save")

    def discard(self) -> None:
        """Do nothing; the journal removes the answer."""
