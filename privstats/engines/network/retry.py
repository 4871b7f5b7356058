"""Who has been asked what, and when to ask again: the patience of the loop.

One question per node at a time; asking again is safe, because a repeat gets the same answer. It knows no protocol and
reads no answer. Under the loop.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from hashlib import sha256

from privstats.engines.network.status_codes import CODES, SILENT, SOON, code_of
from privstats.engines.network.transport import OK, Kind, Reply, Transport

__all__ = ["Request", "RequestQueue"]

_CARRIER = "error:"  # how the carrier's own errors begin: no word of the party's


@dataclass
class Request:
    """One question to one node.

    Attributes:
        kind: what kind of message it is.
        digest: SHA-256 of the message.
        again: the time from which on it is asked again; None for never.
        messages: the names of those that have no reply yet.
    """

    kind: Kind
    digest: bytes
    again: float | None
    messages: list[str] = field(default_factory=list)

    @property
    def final(self) -> bool:
        """Whether the node has said that asking again changes nothing."""
        return self.again is None


class RequestQueue:
    """The questions of one step.

    Args:
        transport: who carries them.
        clock: seconds, of a clock that only goes forward.
        until: when the step ends, on that clock.
        most: bytes that are taken of one reply.

    Attributes:
        sent: bytes that were pushed.
        received: bytes that were pulled.
    """

    def __init__(self, transport: Transport, clock: Callable[[], float], until: float, most: int) -> None:
        self._transport, self._clock, self._until, self._most = transport, clock, until, most
        self._asked: dict[int, Request] = {}
        self.sent = self.received = 0

    def ask(self, node: int, kind: Kind, make: Callable[[], bytes]) -> None:
        """Send what ``make`` gives, unless the node has that question and it is not time to ask again."""
        asked, now = self._asked.get(node), self._clock()
        if asked is not None and (asked.again is None or now < asked.again):
            return
        data = make()
        if asked is None:
            asked = self._asked[node] = Request(kind, sha256(data).digest(), None)
        asked.again = now + SILENT
        name = self._transport.push(node, kind, data, ttl=max(1.0, self._until - now))
        self.sent += len(data)
        if name:
            asked.messages.append(name)

    def replies(self) -> Iterator[tuple[int, Request, Reply]]:
        """What has come, node by node, one at a time; the carrier's own errors are seen to here."""
        for node, asked in list(self._asked.items()):
            for name in list(asked.messages):
                reply = self._transport.pull(name, self._most)
                if reply is None:
                    continue
                asked.messages.remove(name)
                self.received += len(reply.data)
                if reply.code.startswith(_CARRIER):
                    asked.again = self._soon(asked)
                elif self._asked.get(node) is asked:
                    if reply.code != OK:
                        self._note(asked, reply.code)
                    yield node, asked, reply

    def _soon(self, asked: Request) -> float | None:
        return None if asked.again is None else min(asked.again, self._clock() + SOON)

    def _note(self, asked: Request, code: str) -> None:
        wait = CODES[code_of(code)].again
        asked.again = None if wait is None else self._clock() + wait

    def done(self, node: int) -> None:
        """The node's question is answered; another one may be asked."""
        self._asked.pop(node, None)

    def later(self, node: int, seconds: float) -> None:
        """What came is no answer: ask again after so long."""
        self._asked[node].again = self._clock() + seconds

    def returns(self, node: int) -> None:
        """The node has gone, perhaps with its question: ask again as soon as it is back."""
        asked = self._asked.get(node)
        if asked is not None and asked.again is not None:
            asked.again = self._clock()

    def never(self, node: int) -> None:
        """Ask this node nothing more in this step."""
        self._asked[node].again = None

    def final(self, node: int) -> bool:
        """Whether asking this node again changes nothing."""
        return node in self._asked and self._asked[node].final
