"""The public parameters of one upload: clients, helpers and ring, agreed before it starts.

Frozen and digested; the digest is bound into every signature and key, so parties with different parameters cannot talk.
The plan builds them; they do not depend on moments or noise.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Any, ClassVar

import msgspec

from privstats.encoding.ring import Group, Ring
from privstats.errors import PlanError
from privstats.secagg.keys import CLASSICAL, KEY_AGREEMENTS
from privstats.secagg.statements import Claim
from privstats.secagg.upload.state import STEPS, UPLOAD_STEP
from privstats.secagg.upload.suites import SUITES, Suite
from privstats.secagg.wire import TAG_BYTES

MAX_CLIENTS = 1 << 24
MAX_HELPERS = 255
MAX_PART = 1024
"""The most reports in one batch."""

_MANY = 10_000
"""Number of clients from which a plan states the total size of their reports."""
_ANSWERS = 1 << 25  # bytes of answers to one batch
_NOISY = "noisy helpers"  # a further element of the digest's input, if helpers add noise
_MAX_BODY = (1 << 31) - 17  # the limit of one call of AES-GCM


@dataclass(frozen=True)
class UploadParameters:
    """The public parameters of one upload; build them with :meth:`solve`.

    Attributes:
        clients: parties on the roster, n.
        min_survivors: the minimum number of clients in a revealed sum.
        colluders: clients *of the whole roster* that may work with the leader and with helpers; the leader chooses
            which reports to accept, so silent clients count too.
        helpers: number of parties in addition to the leader, h.
        tolerated: helpers that may work with the leader; all but one.
        protocol: the masking scheme; always ``"split"``.
        ring: the ring of the summed vectors.
        plan_digest: 32 bytes that identify everything else the parties agreed on.
        noisy_helpers: every helper adds separate noise to its answer, so that no party sees the exact sum.
        claim: the claim that every report proves of its vector; None where reports carry no proof.
        key_agreement: ``"x25519"`` or ``"mlkem768-x25519"``, under which boxes are sealed.

    Raises:
        PlanError: the numbers contradict each other, or a body is larger than one call of AES-GCM takes.

    Example:
        >>> cohort = {"clients": 10, "min_survivors": 8, "colluders": 2, "ring": ps.encoding.Ring(((4, 16),))}
        >>> parameters = ps.secagg.UploadParameters.solve(**cohort, helpers=2, plan_digest=bytes(32))
        >>> parameters.steps, parameters.tolerated
        (('report', 'check', 'reveal'), 1)
    """

    steps: ClassVar[tuple[str, ...]] = STEPS
    upload_step: ClassVar[str] = UPLOAD_STEP
    failure: ClassVar[float] = 0.0
    remedy: ClassVar[str] = "name a helper that the others trust"

    clients: int
    min_survivors: int
    colluders: int
    helpers: int
    tolerated: int
    protocol: str
    ring: Group
    plan_digest: bytes
    noisy_helpers: bool = False
    claim: Claim | None = None
    key_agreement: str = CLASSICAL

    def __post_init__(self) -> None:
        if self.protocol != "split":
            raise PlanError(f"the protocol of an upload is 'split', got {self.protocol!r}")
        if self.key_agreement not in SUITES:
            raise PlanError(f"key_agreement of an upload is one of {', '.join(SUITES)}, got {self.key_agreement!r}")
        if not 2 <= self.clients <= MAX_CLIENTS:
            raise PlanError(f"clients must be between 2 and {MAX_CLIENTS}, got {self.clients}")
        if not 1 <= self.helpers <= MAX_HELPERS:
            raise PlanError(f"helpers must be between 1 and {MAX_HELPERS}, got {self.helpers}: name them in the panel")
        if self.tolerated != self.helpers - 1:
            raise PlanError(f"split tolerates all helpers but one, {self.helpers - 1}, got {self.tolerated}")
        self._check_cohort()
        if isinstance(self.ring, Ring) != (self.claim is None) or (self.claim and self.claim.size != self.ring.size):
            raise PlanError("reports carry a proof in the prime group of their statement, and in no other group")
        if self.upload_bytes > _MAX_BODY:
            raise PlanError(f"a packed vector may have at most {_MAX_BODY} bytes, got {self.upload_bytes}")
        if len(self.plan_digest) != 32:
            raise PlanError(f"plan_digest must be 32 bytes, got {len(self.plan_digest)}")

    def _check_cohort(self) -> None:
        if self.colluders < 0 or self.min_survivors - self.colluders < 2:
            raise PlanError(
                f"min_survivors - colluders must be at least 2, or one honest client stands alone in the sum, got "
                f"{self.min_survivors} - {self.colluders}; colluders counts the whole roster, because the leader "
                "picks the reports"
            )
        if self.min_survivors > self.clients:
            raise PlanError(f"min_survivors must be at most clients {self.clients}, got {self.min_survivors}")

    @property
    def fewest_listed(self) -> int:
        """The minimum number of reports on a list: here the same as in a sum."""
        return self.min_survivors

    @property
    def digest(self) -> bytes:
        """32 bytes that stand for these parameters, the plan and the cryptographic suite."""
        numbers = (self.clients, self.min_survivors, self.colluders, self.helpers, self.tolerated)
        suite = self.suite.names[self.claim is not None]
        stated: tuple[object, ...] = (suite, self.protocol, numbers, self.ring.segments, self.plan_digest)
        if self.noisy_helpers:
            stated = (*stated, _NOISY)
        if self.claim is not None:
            stated = (*stated, *self.claim.stated_in(self.ring))
        encoded = msgspec.msgpack.encode(stated)
        return hashlib.sha256(b"privstats/upload/parameters" + encoded).digest()

    @property
    def suite(self) -> Suite:
        """The suite under which boxes and bodies are sealed."""
        return SUITES[self.key_agreement]

    @property
    def boxed(self) -> range:
        """The places of the panel that a report has a box for."""
        return range(self.suite.first, self.helpers + 1)

    @property
    def body_bytes(self) -> int:
        """Size of a sealed body on the wire."""
        return self.suite.head_bytes + self.upload_bytes + TAG_BYTES

    @property
    def statement(self) -> Any:
        """The statement that every report proves, as the proof reads it; None where reports carry no proof."""
        return None if self.claim is None else self.claim.statement

    @property
    def upload_bytes(self) -> int:
        """Size of a client's masked vector on the wire, with its proof."""
        return self.ring.wire_bytes if self.claim is None else self.claim.upload_bytes

    @property
    def answer_bytes(self) -> int:
        """Bytes of a helper's answer to one report's proof; 0 where there is none."""
        return 0 if self.claim is None else self.claim.answer_bytes

    @property
    def most_in_part(self) -> int:
        """The most reports in one batch: what helpers answer to it is at most 32 MiB, or one answer."""
        return MAX_PART if not self.answer_bytes else min(MAX_PART, max(1, _ANSWERS // self.answer_bytes))

    @property
    def condition(self) -> str:
        """The assumption behind the promise."""
        return "unless the leader and all helpers work together"

    def facts(self) -> list[str]:
        """Return the trusted parties, the consequences of collusion, and the power of a poisoner, in sentences."""
        return facts(self)

    def numbers(self) -> dict[str, Any]:
        """Return the facts for scripts."""
        names = ("helpers", "tolerated", "min_survivors", "colluders")
        return {name: getattr(self, name) for name in names}

    @classmethod
    def solve(
        cls,
        *,
        clients: int,
        min_survivors: int,
        colluders: int,
        ring: Group,
        plan_digest: bytes,
        graph: str = "auto",
        helpers: int = 1,
        noisy_helpers: bool = False,
        claim: Claim | None = None,
        key_agreement: str = CLASSICAL,
    ) -> UploadParameters:
        """Return the parameters of ``split`` for this cohort and number of helpers.

        Raises:
            PlanError: as for the class; or a graph other than ``"auto"``: an upload has none.

        Guarantee: see ``docs/one_upload.md``. Leader, all helpers but one, and ``colluders`` clients of the roster
        together learn one sum over at least ``min_survivors`` clients, at least two of them honest.
        """
        if graph != "auto":
            raise PlanError(f"clients of an upload do not mask with each other: leave graph at 'auto', got {graph!r}")
        sizes = (clients, min_survivors, colluders, helpers, helpers - 1)
        return cls(*sizes, "split", ring, plan_digest, noisy_helpers, claim, key_agreement)


def facts(parameters: UploadParameters) -> list[str]:
    """Return one sentence per fact, for the person who reviews a plan."""
    n, h, least = parameters.clients, parameters.helpers, parameters.min_survivors
    one = "the helper is" if h == 1 else "one of them is"
    return [
        f"{n} clients send one message each and are gone; a leader and {_number(h)} that the plan names make the sum",
        f"it trusts that not all of the panel work together: enough that the leader or {one} honest",
        _learned(parameters.noisy_helpers),
        KEY_AGREEMENTS[parameters.key_agreement],
        f"{n - least} clients may stay silent, which costs nothing; every helper must answer, or there is no sum",
        f"{parameters.colluders} clients of the whole roster may help, because the leader picks the reports",
        *_bytes(parameters),
        *_inputs(parameters.claim is not None),
        "a run that is said to have failed may have succeeded for who runs it: a second run over the same data is a "
        "second release",
    ]


def _bytes(parameters: UploadParameters) -> list[str]:
    """Return a fact on the traffic and disk space of many reports, which are the bottleneck: see docs/how_big.md."""
    if parameters.clients < _MANY:
        return []
    proof_bytes = 0 if parameters.claim is None else 64 + 32 * parameters.helpers
    report = parameters.body_bytes + 120 + parameters.suite.box_bytes * len(parameters.boxed) + proof_bytes
    total = parameters.clients * report
    return [
        f"{parameters.clients:,} reports of {report:,} bytes are {_size(total)} for the leader to receive, "
        f"{_time(8 * total / 1e9)} of a line of 1 Gbit/s, and at most {_size(1.15 * total)} of its disk"
    ]


def _size(size: float) -> str:
    unit, name = next(pair for pair in ((1e12, "TB"), (1e9, "GB"), (1e6, "MB")) if size >= pair[0] or pair[0] == 1e6)
    return f"{size / unit:.3g} {name}"


def _time(seconds: float) -> str:
    unit, name = (3600, "hours") if seconds >= 7200 else (60, "minutes") if seconds >= 120 else (1, "seconds")
    return f"{seconds / unit:.2g} {name}"


def _inputs(proved: bool) -> list[str]:
    """Return facts on how a dishonest party can change the sum."""
    if not proved:
        return [
            "one client that sends false data, or the leader, or any one helper, can shift the sum by anything in the "
            "ring, undetected: masking proves nothing about inputs, and split has no proof of the sum"
        ]
    return [
        "the leader, or any one helper, can shift the sum by anything in the group, undetected: each report is proved, "
        "and split has no proof of the sum; a report is proved only if leader and all helpers follow the protocol",
        "any one of leader and helpers can make the proof of any honest client fail, and no message shows which of "
        "them lied, or whether the client did; a refused client is not told, and may free its spend with the signed "
        "lists of all helpers",
    ]


def _learned(noisy: bool) -> str:
    all_of_them = "if leader and all helpers work together they read every client's vector, and "
    if noisy:
        return (
            f"{all_of_them}nothing protects it then; any fewer of them learn the sum with the noise of the others in "
            "it, and nothing else: no party sees the exact sum"
        )
    return (
        f"{all_of_them}only noise that the client added itself protects it then; any fewer of them learn the sum and "
        "nothing else"
    )


def _number(helpers: int) -> str:
    return "1 helper" if helpers == 1 else f"{helpers} helpers"
