"""Requests to nodes, and when to repeat them.

One request per node at a time; repeating it is safe, because a machine gives the same answer again. The loop uses it;
it reads no answer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from hashlib import sha256

from privstats.engines.network.status_codes import CODES, SILENT, SOON, code_of
from privstats.engines.network.transport import OK, MessageKind, Reply, Transport, pulled

__all__ = ["Request", "RequestQueue"]

_POLL_SECONDS, _SLOWEST_SECONDS, _LEAST_SECONDS = 0.5, 2.0, 0.01
_QUIETER = 20.0  # so that a reply is found later by at most a twentieth of the time that it took
_CARRIER = "error:"  # prefix of the carrier's own errors, which no party sent


@dataclass
class Request:
    """One request to one node.

    Attributes:
        kind: of the message.
        digest: SHA-256 of the message.
        again: the time from which it is repeated; None for never.
        messages: names of messages without a reply yet.
        code: of its last refusal; empty where there was none.
    """

    kind: MessageKind
    digest: bytes
    again: float | None
    messages: list[str] = field(default_factory=list)
    code: str = ""

    @property
    def final(self) -> bool:
        """Whether the node's refusal is final."""
        return self.again is None


class RequestQueue:
    """The requests of one step.

    Args:
        transport: carries them.
        clock: monotonic seconds.
        until: the step's deadline, on that clock.
        most: most bytes of one reply.

    Attributes:
        sent: bytes that were pushed.
        received: bytes that were pulled.
    """

    def __init__(self, transport: Transport, clock: Callable[[], float], until: float, most: int) -> None:
        self._transport, self._clock, self._until, self._most = transport, clock, until, most
        self._asked: dict[int, Request] = {}
        self.sent = self.received = 0
        self._heard = clock()

    def ask(self, node: int, kind: MessageKind, make: Callable[[], bytes]) -> None:
        """Send the result of ``make``, unless the node has that request already and it is too early to repeat it."""
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
        """Replies, node by node, one at a time; the carrier's own errors are handled here."""
        waiting = {name: (node, asked) for node, asked in self._asked.items() for name in asked.messages}
        for name, reply in pulled(self._transport, list(waiting), self._most):
            node, asked = waiting[name]
            asked.messages.remove(name)
            self.received += len(reply.data)
            self._heard = self._clock()
            if reply.code.startswith(_CARRIER):
                asked.again = self._soon(asked)
            elif self._asked.get(node) is asked:
                if reply.code != OK:
                    self._note(asked, reply.code)
                yield node, asked, reply

    @property
    def pause(self) -> float:
        """Seconds until the next poll, at most until the deadline: longer, the longer nothing has come."""
        now = self._clock()
        quiet = min(max(_POLL_SECONDS, (now - self._heard) / _QUIETER), _SLOWEST_SECONDS)
        return min(quiet, max(self._until - now, _LEAST_SECONDS))

    def _soon(self, asked: Request) -> float | None:
        return None if asked.again is None else min(asked.again, self._clock() + SOON)

    def _note(self, asked: Request, code: str) -> None:
        asked.code = code_of(code)
        wait = CODES[asked.code].again
        asked.again = None if wait is None else self._clock() + wait

    def done(self, node: int) -> None:
        """The node's request is answered; another one may be sent."""
        self._asked.pop(node, None)

    def later(self, node: int, seconds: float) -> None:
        """The reply is no answer: repeat the request after some seconds."""
        self._asked[node].again = self._clock() + seconds

    def returns(self, node: int) -> None:
        """The node went offline, perhaps with its request: repeat it as soon as the node is back."""
        asked = self._asked.get(node)
        if asked is not None and asked.again is not None:
            asked.again = self._clock()

    def never(self, node: int) -> None:
        """Send this node no more requests in this step."""
        self._asked[node].again = None

    def refusal(self, node: int) -> str:
        """The code of the node's last refusal; empty where it has sent none to the current request."""
        return self._asked[node].code if node in self._asked else ""

    def final(self, node: int) -> bool:
        """Whether the node's refusal is final."""
        return node in self._asked and self._asked[node].final
