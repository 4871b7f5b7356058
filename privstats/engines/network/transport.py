"""The loop's interface to a carrier of messages: online nodes, a push, a pull; and the deadlines of steps.

Interfaces and values: ``engines.flower.grid`` implements it over Flower, ``local`` over folders of this
machine, the tests over a fake network.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol, TypeAlias, runtime_checkable

from privstats.errors import PlanError

__all__ = ["OK", "Answer", "BatchTransport", "Deadlines", "MessageKind", "Reply", "Transport", "pulled"]

OK = "ok"
"""The code of an answer with a machine's message."""

MessageKind: TypeAlias = Literal["hello", "open", "step", "helper", "over", "round"]
"""Kinds of messages to a node: a request for its place; an opening; a machine's message to a client or to a helper; the
end of the session; an envelope with any of these, of one round of a course (``"round"``; earlier versions said
``"node"``, and each refuses the other's by name)."""

_LEAST_SECONDS = 120.0


@dataclass(frozen=True)
class Answer:
    """A folder's answer: a code of ``status_codes.CODES`` or ``"ok"``, and bytes."""

    code: str
    data: bytes = b""


@dataclass(frozen=True)
class Reply:
    """A received answer.

    Attributes:
        code: ``"ok"``, a code of ``status_codes.CODES``, or ``"error:3"``, ``"error:5"``, ``"error:8"`` for the
            carrier's own.
        data: of the answer.
    """

    code: str
    data: bytes = b""


class Transport(Protocol):
    """Nodes by their numbers; one message down, at most one reply to it."""

    def online(self) -> Sequence[int]:
        """The nodes that are connected now."""
        ...

    def push(self, node: int, kind: MessageKind, data: bytes, *, ttl: float) -> str:
        """Send to a node, for at most ``ttl`` seconds; returns the name of the message."""
        ...

    def pull(self, message: str, most: int) -> Reply | None:
        """The reply to a message, once, if it has at most so many bytes; None while there is none."""
        ...

    def name(self, node: int) -> str:
        """The node's name for people: the one that it is registered under, else its number in decimal."""
        ...


@runtime_checkable
class BatchTransport(Protocol):
    """A transport that asks its carrier for many replies at once."""

    def pull_many(self, messages: Sequence[str], most: int) -> Iterator[tuple[str, Reply]]:
        """The replies that are there, each once, with their messages; it holds a bounded number of bytes at a time."""
        ...


def pulled(transport: Transport, messages: Sequence[str], most: int) -> Iterator[tuple[str, Reply]]:
    """The replies to these messages that are there: in batches where the transport has them, else one by one."""
    if isinstance(transport, BatchTransport):
        yield from transport.pull_many(messages, most)
        return
    for message in messages:
        reply = transport.pull(message, most)
        if reply is not None:
            yield message, reply


@dataclass(frozen=True)
class Deadlines:
    """Seconds until a step is closed with those who have answered.

    Args:
        open_seconds: for the first step: parties start their nodes, and measure.
        step_seconds: for every other. A node that restarts is refused for up to 60 s, polled after 3, and a program
            that died is noticed after 60: less than 120 loses parties that are coming back.
        least: the bound on both, for tests.

    Raises:
        PlanError: fewer seconds.
    """

    open_seconds: float = 3600.0
    step_seconds: float = 600.0
    least: float = _LEAST_SECONDS

    def __post_init__(self) -> None:
        for name in ("open_seconds", "step_seconds"):
            if not getattr(self, name) >= self.least:
                raise PlanError(
                    f"{name.replace('_', '-')} must be at least {self.least:g}, because a node that restarts is away "
                    f"for a minute or two; got {getattr(self, name):g}"
                )
