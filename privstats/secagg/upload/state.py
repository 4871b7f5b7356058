"""The steps of an upload, and what client and leader keep between messages.

Plain data that can be sealed and resumed. A client's secrets are all in ``root``; the leader's box key is in
``private``. A helper has no such state: its journal is the list of what it was sent.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

from msgspec import Struct, field

from privstats.secagg.wire import Unshown

__all__ = ["STEPS", "UPLOAD_STEP", "ClientState", "Head", "LeaderState", "Part", "StepName"]

StepName: TypeAlias = Literal["report", "check", "reveal", "done", "failed"]

STEPS: tuple[StepName, ...] = ("report", "check", "reveal")
UPLOAD_STEP: StepName = "report"


class ClientState(Unshown, Struct):
    """A client's memory: root and vector before its report exists, the report alone afterwards.

    ``answer`` is the report, ``stated`` what its signature covers, ``upload`` the hash of that, the report's name, and
    ``uploaded`` the same once it may leave; ``charged`` says that somebody must be told before.
    """

    root: bytearray
    offers: tuple[bytes, ...]
    vector: bytes = b""
    step: StepName = "report"
    answer: bytes = field(default=b"", name="report")
    stated: bytes = b""
    upload: bytes = b""
    uploaded: bytes = b""
    charged: bool = False


class Head(Unshown, Struct, frozen=True):
    """A report without its body: what the helpers are sent of it, and the hash of what the client signed."""

    enc: bytes
    boxes: bytes
    signature: bytes
    digest: bytes


class Part(Unshown, Struct):
    """Reports that travel to the helpers together; bodies are kept until all helpers have answered, then added.

    ``bitmaps`` holds the places of the batch that a helper accepts, by the helper's place.
    """

    heads: dict[int, Head] = field(default_factory=dict)
    bodies: dict[int, bytes] = field(default_factory=dict)
    bitmaps: dict[int, bytes] = field(default_factory=dict)


class LeaderState(Unshown, Struct):
    """The leader's memory; the running sum is apart, ``total`` is filled in for sealing only.

    ``reported`` maps a sender to the hash of its whole report; ``open`` is the part that is being filled, ``parts``
    those that have been closed and not settled, by number; ``listed`` maps those in the sum to what they signed;
    ``revealed`` has, by helper, the hash of its answer and its signature, which stay.
    """

    private: bytearray
    offers: tuple[bytes, ...]
    step: StepName = "report"
    noise_due: bool = False
    total: bytes = b""
    reported: dict[int, bytes] = field(default_factory=dict)
    open: Part = field(default_factory=Part)
    parts: dict[int, Part] = field(default_factory=dict)
    closed: int = 0
    listed: dict[int, bytes] = field(default_factory=dict)
    answers: dict[int, bytes] = field(default_factory=dict)
    revealed: dict[int, tuple[bytes, bytes]] = field(default_factory=dict)
    heard: dict[int, bytes] = field(default_factory=dict)
    abandoned: dict[int, bytes] = field(default_factory=dict)
    faults: set[tuple[int, str, str, str]] = field(default_factory=set)
    refused: dict[str, int] = field(default_factory=dict)
