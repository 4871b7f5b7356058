"""The steps of an upload, and the states of client and leader between messages.

Plain data that can be sealed and resumed. All of a client's secrets are in ``root``; the leader's box key is in
``private``. A helper has no such state: its journal is the list of messages that it received.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

from msgspec import Struct, field

from privstats.secagg.wire import HiddenRepr

StepName: TypeAlias = Literal["report", "check", "reveal", "done", "failed"]

STEPS: tuple[StepName, ...] = ("report", "check", "reveal")
UPLOAD_STEP: StepName = "report"


class ClientState(HiddenRepr, Struct):
    """A client's state: root and vector before its report exists, the report alone afterwards.

    The step is ``"report"`` until :meth:`Client.start`. ``answer`` is the report and ``stated`` its signed statement.
    ``upload`` is the statement's hash, which names the report, and ``uploaded`` is that hash once the report may be
    sent; ``charged`` marks a client that must call ``on_upload`` first.
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


class Head(HiddenRepr, Struct, frozen=True):
    """A report without its body: its fields for the helpers, and the hash of the client's signed statement.

    ``commits`` and ``parts`` are of its proof, and empty where reports carry none.
    """

    enc: bytes
    boxes: bytes
    signature: bytes
    digest: bytes
    commits: bytes = b""
    parts: bytes = b""


class Part(HiddenRepr, Struct):
    """Reports that travel to the helpers together; bodies are stored until all helpers have answered, then added.

    ``bitmaps`` holds the places of the batch that a helper accepts, by the helper's place. ``rho`` determines the coins
    of the reports' proofs from the closing of the part on, and ``answers`` is the sum of the helpers' answers, one row
    per report; both are empty where reports carry no proof.

    A report in a journal has its place in ``places``, and no body here; ``hashes`` has the body's hash where reports
    carry proofs.
    """

    heads: dict[int, Head] = field(default_factory=dict)
    bodies: dict[int, bytearray] = field(default_factory=dict)
    bitmaps: dict[int, bytes] = field(default_factory=dict)
    rho: bytes = b""
    answers: bytes = b""
    places: dict[int, bytes] = field(default_factory=dict)
    hashes: dict[int, bytes] = field(default_factory=dict)


class LeaderState(HiddenRepr, Struct):
    """The leader's state; the running sum is stored separately, and ``total`` is filled in for sealing only.

    ``settled`` holds the parts that are ``listed`` and not in the sum, with the reports of the listed senders alone, if
    the leader ``defers`` sums.

    ``reported`` maps a sender to the hash of its signed statement; ``open`` is the part that is being filled, ``parts``
    are those that have been closed and not settled, by number; ``listed`` maps the clients in the sum to the hashes of
    their signed statements; ``revealed`` has, by helper, the hash of its answer and its signature, which stay.
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
    settled: dict[int, Part] = field(default_factory=dict)
    defers: bool = False
    listed: dict[int, bytes] = field(default_factory=dict)
    answers: dict[int, bytes] = field(default_factory=dict)
    revealed: dict[int, tuple[bytes, bytes]] = field(default_factory=dict)
    heard: dict[int, bytes] = field(default_factory=dict)
    abandoned: dict[int, bytes] = field(default_factory=dict)
    faults: set[tuple[int, str, str, str]] = field(default_factory=set)
    refused: dict[str, int] = field(default_factory=dict)
