"""What is left of a client that has given its last answer: the same bytes for the same question, and nothing else.

No key, no share, no vector: a message that was made before, and the hash of what it answered. A server that was killed
while last answers were on their way asks again, and without this its session would be lost with all vectors in it.
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
        parameters: what all parties agreed on.
        index: its place on the roster.
        question: SHA-256 of the message that was answered last.
        answer: the answer, as it was sealed for the server then.
        receipt: what says which upload was its own.
        agreement: who signed the list that it is on.
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
        """The clients over which it helped to unmask the sum; empty for a protocol without lists."""
        lists = [said[: -wire.SIGNATURE_BYTES] for said in self.agreement.values()]
        return tuple(sorted(members(lists[0], self.parameters.clients))) if lists else ()

    def start(self) -> list[tuple[str, bytes]]:
        """Nothing: it has said all that it had to say."""
        return []

    def receive(self, data: bytes | bytearray | memoryview) -> list[tuple[str, bytes]]:
        """The answer, to the question that it was made for.

        Raises:
            RemoteProtocolError: any other message.
        """
        view = wire.view_of(data)
        fits = len(view) <= protocol_of(self.parameters).largest_request(self.parameters)
        if fits and sha256(view).digest() == self.question:
            return [(_SERVER, self.answer)]
        detail = "this client has ended, and only repeats its last answer"
        raise RemoteProtocolError(_SERVER, self.step, "not_expected", detail, proven=False)

    def export(self, key: bytes) -> NoReturn:  # noqa: ARG002
        """Refuse: its journal holds all there is.

        Raises:
            LocalProtocolError: always.
        """
        raise LocalProtocolError("this client has ended: there is no state to save")

    def discard(self) -> None:
        """Nothing here; the journal forgets the answer."""
