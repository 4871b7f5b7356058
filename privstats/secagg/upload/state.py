"""The steps of an upload, and the sealable states of client and leader between messages.

``root`` is a client's only stored key, ``vector`` its contribution; the leader's box key is in ``private``.
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

    ``stated`` is the report's signed statement, ``upload`` that statement's hash. ``uploaded`` is the hash once the
    report may be sent; ``charged`` requires ``on_upload`` first.
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
    """A report without its body; ``digest`` hashes the client's signed statement.

    ``commits`` and ``parts`` are its proof's, empty without one.
    """

    boxes: bytes
    signature: bytes
    digest: bytes
    commits: bytes = b""
    parts: bytes = b""


class Part(HiddenRepr, Struct):
    """One batch of reports; bodies are stored until all helpers have answered.

    ``bitmaps`` maps a helper's place to the reports that it accepts. ``rho`` are the proofs' coins, set when the part
    closes; ``answers`` sums the helpers' answers, one row per report. ``places`` has a journal's locations of
    reports without an entry in ``bodies``; ``hashes`` has the hashes of those bodies if they carry proofs.
    """

    heads: dict[int, Head] = field(default_factory=dict)
    bodies: dict[int, bytearray] = field(default_factory=dict)
    bitmaps: dict[int, bytes] = field(default_factory=dict)
    rho: bytes = b""
    answers: bytes = b""
    places: dict[int, bytes] = field(default_factory=dict)
    hashes: dict[int, bytes] = field(default_factory=dict)


class LeaderState(HiddenRepr, Struct):
    """The leader's state; ``total`` is filled in for sealing only.

    ``reported`` maps a sender to its statement's hash, and ``listed`` the clients in the sum to theirs. ``open`` is the
    part being filled. ``parts`` has closed parts that await answers, by number. ``settled`` has answered parts not yet
    added, if the leader ``defers`` sums. ``revealed`` has each helper's answer hash and signature.
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
