"""The public parameters of one upload, bound into every signature and key by their digest."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Any, ClassVar

import msgspec

from privstats import domains
from privstats.encoding.ring import Group, Ring
from privstats.errors import LocalProtocolError, PlanError
from privstats.secagg.machines import check_clients, working_with
from privstats.secagg.roster import Roster
from privstats.secagg.statements import Claim
from privstats.secagg.upload.state import STEPS, UPLOAD_STEP
from privstats.secagg.upload.suite import NAME, PROVED_NAME
from privstats.secagg.wire import TAG_BYTES

MAX_CLIENTS = 1 << 24
MAX_HELPERS = 255
MAX_PART = 1024
"""Maximum number of reports in one batch."""

_ANSWERS = 1 << 25  # bytes of answers to one batch
_RUN_BYTES = 16
_MAX_BODY = (1 << 31) - 17  # the limit of one call of AES-GCM


def check_run(roster: Roster) -> None:
    """Require a run name of 16 to 32 bytes: runs with one name would share offers."""
    if not _RUN_BYTES <= len(roster.run) <= 2 * _RUN_BYTES:
        raise LocalProtocolError("an upload's run is named by 16 to 32 bytes: Roster.numbered, or run=os.urandom(16)")


@dataclass(frozen=True)
class UploadParameters:
    """The public parameters of one upload; build them with :meth:`solve`.

    Attributes:
        clients: parties on the roster, n.
        min_survivors: minimum number of clients in a revealed sum.
        colluders: clients *of the full roster* that may work with leader and helpers; silent ones count, as the leader
            picks the reports.
        helpers: parties in addition to the leader, h.
        tolerated: helpers that may work with the leader: all but one.
        protocol: always ``"split"``.
        plan_digest: 32-byte digest of everything else agreed on.
        noisy_helpers: every helper adds noise, so no party sees the exact sum.
        claim: what every report proves, or None.

    Raises:
        PlanError: the numbers contradict each other, or a body exceeds one AES-GCM call.

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

    def __post_init__(self) -> None:
        if self.protocol != "split":
            raise PlanError(f"the protocol of an upload is 'split', got {self.protocol!r}")
        if not 2 <= self.clients <= MAX_CLIENTS:
            raise PlanError(f"clients must be between 2 and {MAX_CLIENTS}, got {self.clients}")
        if not 1 <= self.helpers <= MAX_HELPERS:
            raise PlanError(f"helpers must be between 1 and {MAX_HELPERS}, got {self.helpers}: name them in the panel")
        if self.tolerated != self.helpers - 1:
            raise PlanError(f"split tolerates all helpers but one, {self.helpers - 1}, got {self.tolerated}")
        self._check_cohort()
        if isinstance(self.ring, Ring) != (self.claim is None) or (self.claim and self.claim.size != self.ring.size):
            raise PlanError(f"ring and claim must be one plan's, got {type(self.ring).__name__}: give plan.ring")
        if self.upload_bytes > _MAX_BODY:
            raise PlanError(f"a packed vector may have at most {_MAX_BODY} bytes, got {self.upload_bytes}")
        if len(self.plan_digest) != 32:
            raise PlanError(f"plan_digest must be 32 bytes, got {len(self.plan_digest)}")

    def _check_cohort(self) -> None:
        if self.colluders < 0 or self.min_survivors - self.colluders < 2:
            raise PlanError(
                f"min_survivors - colluders must be at least 2, or one honest client is alone in the sum, got "
                f"{self.min_survivors} - {self.colluders}; colluders counts the full roster, because the leader "
                "picks the reports"
            )
        if self.min_survivors > self.clients:
            raise PlanError(f"min_survivors must be at most clients {self.clients}, got {self.min_survivors}")

    def check_roster(self, roster: Roster) -> None:
        """Refuse a roster of another size, or a run name of another length than 16 to 32 bytes.

        Raises:
            LocalProtocolError: the roster does not fit.
        """
        check_clients(self, roster)
        check_run(roster)

    @property
    def min_listed(self) -> int:
        """The minimum number of listed reports: ``min_survivors``."""
        return self.min_survivors

    @property
    def digest(self) -> bytes:
        """32-byte digest of these parameters, the plan and the cryptographic suite."""
        numbers = (self.clients, self.min_survivors, self.colluders, self.helpers, self.tolerated)
        suite = NAME if self.claim is None else PROVED_NAME
        stated: tuple[object, ...] = (suite, self.protocol, numbers, self.ring.segments, self.plan_digest)
        if self.noisy_helpers:
            stated = (*stated, domains.NOISY_HELPERS)
        if self.claim is not None:
            stated = (*stated, *self.claim.stated_in(self.ring))
        encoded = msgspec.msgpack.encode(stated)
        return hashlib.sha256(domains.UPLOAD_PARAMETERS + encoded).digest()

    @property
    def members(self) -> int:
        """Number of members of the panel, each with a box in each report."""
        return self.helpers + 1

    @property
    def body_bytes(self) -> int:
        """Size of a sealed body on the wire."""
        return self.upload_bytes + TAG_BYTES

    @property
    def statement(self) -> Any:
        """The statement that every report proves; None without proofs."""
        return None if self.claim is None else self.claim.statement

    @property
    def upload_bytes(self) -> int:
        """Size of a client's masked vector, with its proof."""
        return self.ring.wire_bytes if self.claim is None else self.claim.upload_bytes

    @property
    def answer_bytes(self) -> int:
        """Bytes of a helper's answer to one proof; 0 without proofs."""
        return 0 if self.claim is None else self.claim.answer_bytes

    @property
    def max_in_part(self) -> int:
        """Maximum number of reports in a batch: 1,024, or fewer if their answers exceed 32 MiB; at least 1."""
        return MAX_PART if not self.answer_bytes else min(MAX_PART, max(1, _ANSWERS // self.answer_bytes))

    @property
    def failure_basis(self) -> dict[str, int]:
        """Empty: this masking never fails."""
        return {}

    @property
    def condition(self) -> str:
        """The promise's assumption: a clause that follows "while"."""
        return f"leader and helpers do not all work together and {working_with(self.colluders, self.clients)} them"

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
    ) -> UploadParameters:
        """Return the parameters of ``split`` for this cohort.

        Raises:
            PlanError: as for the class; or a graph other than ``"auto"``.

        Guarantee: see ``docs/wire/one_upload.md``. Leader, all helpers but one, and ``colluders`` clients of the roster
        together learn only one sum over at least ``min_survivors`` clients. At least two of these are honest.
        """
        if graph != "auto":
            raise PlanError(f"clients of an upload do not mask with each other: leave graph at 'auto', got {graph!r}")
        sizes = (clients, min_survivors, colluders, helpers, helpers - 1)
        return cls(*sizes, "split", ring, plan_digest, noisy_helpers, claim)
