"""The loop's interface to a carrier of messages; deadlines of steps, and status codes.

Only codes leave a party that declines or fails, because an exception's text can hold a value of a record.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol, TypeAlias, runtime_checkable

from privstats.errors import PlanError, PrivstatsError

OK = "ok"
"""The code of an answer with a machine's message."""

ARRIVING: Literal["arriving"] = "arriving"
"""The carrier's code for an answer of which more has arrived, and which is not complete: it is yielded again."""

MessageKind: TypeAlias = Literal["hello", "open", "step", "helper", "over", "round"]
"""Kinds of messages to a node: a request for its place; an opening; a machine's message to a client or to a helper; the
end of the session; an envelope with any of these, of one round of a course (``"round"``)."""

_LEAST_SECONDS, _MOST_SECONDS = 120.0, 366 * 86_400.0

SOON = 5.0
"""Seconds until a party is asked again that is briefly busy."""
SILENT = 60.0
"""Seconds until a party is asked again that has not answered, or has to work first."""
_SHOWN = 8


@dataclass(frozen=True)
class Answer:
    """A folder's answer: a code of ``CODES`` or ``"ok"``, and bytes.

    Example:
        >>> from privstats.engines.carriers import CODES, FAILED, Answer
        >>> CODES[Answer(FAILED).code].sentence
        'has failed: its operator has the reason'
    """

    code: str
    data: bytes = b""


@dataclass(frozen=True)
class Reply:
    """A received answer.

    Attributes:
        code: ``"ok"``, a code of ``CODES``, or the carrier's ``"arriving"``, or ``"error:"`` and its number.

    Example:
        >>> from privstats.engines.carriers import Answer, Reply
        >>> answer = Answer("ok", b"bytes of a machine")
        >>> Reply(answer.code, answer.data).data
        b'bytes of a machine'
    """

    code: str
    data: bytes = b""


class Transport(Protocol):
    """Nodes by their numbers; one message down, at most one reply to it."""

    def online(self) -> Sequence[int]:
        """Return the nodes that are connected now."""
        ...

    def push(self, node: int, kind: MessageKind, data: bytes, *, ttl: float) -> str:
        """Send to a node, for at most ``ttl`` seconds; return the message's name."""
        ...

    def pull(self, message: str, most: int) -> Reply | None:
        """Return a message's reply, once, of at most ``most`` bytes; else None."""
        ...

    def name(self, node: int) -> str:
        """Return the node's registered name, else its number."""
        ...


@runtime_checkable
class BatchTransport(Protocol):
    """A transport that asks its carrier for many replies at once."""

    def pull_many(self, messages: Sequence[str], most: int) -> Iterator[tuple[str, Reply]]:
        """Yield available replies, each once, in bounded memory, and ``arriving`` for those that make progress."""
        ...


def pulled(transport: Transport, messages: Sequence[str], most: int) -> Iterator[tuple[str, Reply]]:
    """Yield the available replies, in batches if possible."""
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
        step_seconds: for others. Below 120 s, restarting parties are lost.
        least: the bound on both, for tests.

    Raises:
        PlanError: a number is below ``least``, or above a year.

    Example:
        >>> from privstats.engines.carriers import Deadlines
        >>> Deadlines(step_seconds=5)
        Traceback (most recent call last):
        ...
        privstats.errors.PlanError: step-seconds must be at least 120, because a node that restarts is away for a ...
    """

    open_seconds: float = 3600.0
    step_seconds: float = 600.0
    least: float = _LEAST_SECONDS

    def __post_init__(self) -> None:
        for name in ("open_seconds", "step_seconds"):
            if getattr(self, name) > _MOST_SECONDS:
                raise PlanError(
                    f"{name.replace('_', '-')} must be at most {_MOST_SECONDS:.0f}, a year, got "
                    f"{getattr(self, name):g}; choose a shorter time"
                )
            if not getattr(self, name) >= self.least:
                raise PlanError(
                    f"{name.replace('_', '-')} must be at least {self.least:g}, because a node that restarts is away "
                    f"for a minute or two; got {getattr(self, name):g}"
                )


@dataclass(frozen=True)
class Code:
    """A code's meaning for the server.

    Attributes:
        sentence: the text after the party's name; ``{plan}`` begins the server's plan digest.
        again: seconds until asking again; None where that is useless.
    """

    sentence: str
    again: float | None = None


CODES: Mapping[str, Code] = {
    "wrong_plan": Code('runs another plan: compare "privstats plan show" digests, here {plan}'),
    "wrong_roster": Code('runs another roster: compare "privstats roster show"'),
    "wrong_course": Code('runs another course: compare "privstats course show" digests'),
    "stranger": Code("is no party of this roster"),
    "no_data": Code("cannot measure its records: its operator has the reason"),
    "disk": Code("cannot read or write its files: its operator has the reason", SILENT),
    "ledger": Code("has no budget left"),
    "clock": Code("has a clock by which the key of this session has ended: its operator has the reason", SILENT),
    "over": Code('has ended this session: start a new one with a new run name ("privstats roster renew")'),
    "busy": Code("is busy", SOON),
    "damaged": Code("got a message that was damaged on its way", SOON),
    "refused": Code("has caught a message that no honest server sends, and has left: its operator has the reason"),
    "behind": Code("lacks releases or values of earlier rounds, and could not take them", SILENT),
    "not_next": Code(
        "refuses a round that does not follow from the course and its releases: its operator has the reason"
    ),
    "begun": Code("has begun this round before and lost it, and sits it out"),
    "restored": Code("was put back from a backup or copied, and sits this session out: its operator has the reason"),
    "lost": Code("knows nothing of this session any more: its folder was replaced"),
    "malformed": Code("sent an answer that no version of privstats sends: does another program run there?", SILENT),
    "too_large": Code("sent an answer that is larger than its plan allows", SILENT),
    "version": Code("runs another version of privstats: install the same version on both machines", SILENT),
    "failed": Code("has failed: its operator has the reason"),
}
"""All codes other than ``"ok"``."""

FAILED = "failed"
VERSION = "version"
NODES = frozenset({"wrong_plan", "wrong_course", "wrong_roster", "stranger", VERSION})
"""Codes about a node, by its name at the carrier: it may be no party of this session."""


class Declined(PrivstatsError):  # noqa: N818 - an answer, not a mistake
    """A refusal: the code for the server, and the reason, which stays with the party."""

    def __init__(self, code: str, why: str) -> None:
        self.code = code
        super().__init__(why)


def code_of(code: str) -> str:
    """Return the code, or ``"failed"`` for an unknown one."""
    return code if code in CODES else FAILED


def short(digest: str) -> str:
    """Return the beginning of a hex digest, for comparison by people."""
    return f"{digest[:_SHOWN]}..."
