"""Charge a session or a course's round to an account of the ledger, and give a spend back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import ClassVar

from privstats import dp, secagg
from privstats.errors import LedgerError, LocalProtocolError
from privstats.moments import Moments
from privstats.plan import Plan
from privstats.secagg.machines import Peer
from privstats.secagg.protocols import protocol_of
from privstats.secagg.roster import run_of_round
from privstats.session.accounting import Chargeable, Number


@dataclass(frozen=True)
class Charge(Chargeable):
    """The account that records a release before its noise is sampled.

    Attributes:
        allow_second_exact_release: without DP: as for :meth:`privstats.dp.Ledger.spend`.
        multiplicity: as for :meth:`privstats.dp.Ledger.spend` (:meth:`~privstats.dp.Cost.repeated`).

    Example:
        >>> charge = ps.session.Charge(ps.dp.Ledger.create("ledger.sqlite"), "clinic")
        >>> charge.ledger.set_cap("clinic", unit="record", adjacency="add-remove", epsilon=2.0, delta=1e-5)
        >>> privacy = ps.Privacy(model="central", unit="record", adjacency="add-remove", epsilon=1.0, delta=1e-5)
        >>> _ = ps.private_release(ps.ClassSchema(2, 2, "NA", clip_norm=1.0), privacy, [[0.1, 0.2]], [0], ledger=charge)
        >>> round(charge.ledger.account("clinic").spent, 3)
        1.0
    """

    ledger: dp.Ledger
    dataset: str
    allow_second_exact_release: bool = False
    multiplicity: int = 1

    def __post_init__(self) -> None:
        dp.Cost.repeated(self.multiplicity)
        if not isinstance(self.ledger, dp.Ledger):
            raise LedgerError(
                f"Charge takes a privstats.dp.Ledger, got {type(self.ledger).__name__}: open the file with Ledger.open"
            )
        if not isinstance(self.allow_second_exact_release, bool):  # "no" is true
            raise LedgerError(
                "allow_second_exact_release must be True or False, got "
                f"{type(self.allow_second_exact_release).__name__}: leave it out"
            )

    def spend(self, plan: Plan, run: bytes, number: Number = None) -> dp.Spend:
        """Spend a session, or return its entry if it was spent before."""
        return self.ledger.spend(
            self.dataset,
            plan=plan.digest,
            run=run,
            schema=plan.schema,
            privacy=plan.privacy,
            noise=plan.noise,
            masking_failure=plan.masking.failure,
            condition=plan.condition,
            allow_second_exact_release=self.allow_second_exact_release,
            multiplicity=self.multiplicity,
            number=number,
        )

    def entry_of(self, plan: Plan, run: bytes) -> dp.Spend:
        """Return the ledger's entry for a run of this plan."""
        entry = self.ledger.account(self.dataset).of_run(run)
        if entry is None or entry.plan != plan.digest:
            raise LedgerError(
                "the ledger knows no such run under this plan: give the charge that the client was made with"
            )
        return entry

    def finish(self, plan: Plan, run: bytes, upload: bytes) -> None:
        """Record that the upload is sent."""
        self.ledger.finish(self.entry_of(plan, run), upload)

    def withdraw(self, plan: Plan, run: bytes) -> None:
        """Give the spend back if nothing was sent; otherwise do nothing."""
        entry = self.entry_of(plan, run)
        if entry.waiting:
            self.ledger.withdraw(entry)


@dataclass(frozen=True)
class RoundCharge(Chargeable):
    """The mark of one round of a course, written before its noise is sampled.

    :func:`privstats.course.authorize` returns one for a verified plan.

    Guarantee:
        A round samples noise once, whatever its plan and however often a server requests it: its mark is on disk
        before, is never undone, and depends on none of the plan's values. A crash between mark and journal loses
        the round. One mark pays for one upload: the ledger stores the digest of the first and refuses another, so a
        machine that is put back to before its upload cannot add a second sum to the round.

    Example:
        >>> plan = ps.Plan(schema=ps.ClassSchema(2, 2, "NA", 1.0), cohort=ps.Cohort(2, 2, 10), privacy=ps.NoPrivacy())
        >>> course, ledger = ps.course.Single(plan), ps.dp.Ledger.create("ledger.sqlite")
        >>> entry = ps.course.spend(course, ledger, "clinic", run=os.urandom(16))
        >>> ps.course.authorize(course, plan, [], ledger, entry).place
        0
    """

    per_round: ClassVar[bool] = True

    ledger: dp.Ledger
    entry: dp.Spend
    place: int
    plan: str

    def spend(self, plan: Plan, run: bytes, number: Number = None) -> dp.Spend:  # noqa: ARG002  its place is its name
        """Mark the round, once.

        Raises:
            LedgerError: the round has started before, or its price needs a registry's ``RecordRegistry.charge``;
                nothing may be sampled or sent.
        """
        self._check(plan)
        self.ledger.mark_started(self.entry, self.place)
        return self.entry

    def finish(self, plan: Plan, run: bytes, upload: bytes) -> None:  # noqa: ARG002
        """Record that the round's upload is sent.

        Raises:
            LedgerError: the round has no mark, or another upload of it was sent.
        """
        self._check(plan)
        self.ledger.finish_round(self.entry, self.place, upload)

    def check_round(self, run: bytes) -> None:
        """Refuse the run name of another round or course, and a course whose number the ledger has not accepted.

        Each place of a counted course has one random graph.

        Raises:
            LedgerError: the name is not that of ``roster.of_round(place)``, with the roster of the entry's run.
        """
        self.ledger.require_counted(self.entry.run)
        if run != run_of_round(self.entry.run, self.place):
            raise LedgerError(
                f"the roster is not that of round {self.place} of the course that was charged: give "
                f"roster.of_round({self.place}), with the roster that course.spend charged"
            )

    def check_moments(self, moments: Moments) -> None:
        """Accept all moments."""

    def withdraw(self, plan: Plan, run: bytes) -> None:
        """Do nothing: a round's mark is never undone."""

    def _check(self, plan: Plan) -> None:
        if plan.digest != self.plan:
            raise LedgerError(f"this charge is for another plan at round {self.place} of the course; authorize it anew")


@dataclass(frozen=True)
class ReleaseCharge(RoundCharge):
    """The mark of one round of a course in the ledger of a server, which has no records.

    A server repeats its release, so a marked round stays payable. Its digest keeps a journal that was put back from
    releasing another sum.

    Example:
        >>> plan = ps.Plan(schema=ps.ClassSchema(2, 2, "NA", 1.0), cohort=ps.Cohort(2, 2, 10), privacy=ps.NoPrivacy())
        >>> course, ledger = ps.course.Single(plan), ps.dp.Ledger.create("ledger.sqlite")
        >>> entry = ps.course.spend(course, ledger, "clinic", run=os.urandom(16), sums_only=True)
        >>> charge = ps.session.ReleaseCharge(ledger, entry, 0, plan.digest)
        >>> charge.spend(plan, entry.run) == charge.spend(plan, entry.run)
        True
    """

    def spend(self, plan: Plan, run: bytes, number: Number = None) -> dp.Spend:  # noqa: ARG002  its place is its name
        """Mark the round unless it is marked."""
        self._check(plan)
        if self.place not in self.ledger.entry(self.entry).begun:
            self.ledger.mark_started(self.entry, self.place, sums_only=True)
        return self.entry


def free(
    plan: Plan,
    report: bytes,
    statements: Mapping[int, bytes],
    *,
    roster: secagg.Roster,
    panel: secagg.Panel | None = None,
    charge: Charge,
) -> None:
    """Give a client's spend back, given signed proof that its upload is in no sum and never can be.

    The spend stays on record, and the run's name stays used up: a retry needs a new run, with new noise.

    Args:
        report: ``client.receipt`` of the upload; the ledger must have its digest.
        statements: by place. With helpers: each helper's signed statement at the end of the run, that it did not answer
            or over which list it did (the leader's ``statements``). In the interactive protocol: the survivor lists
            that clients signed (a survivor's ``client.agreement``). Any party may deliver them.

    Guarantee: if one *helper* is honest, the report stays uniform to all other parties together, so it costs nothing.
    An honest leader alone is not enough: if all helpers lie, they could have answered before. In the interactive
    protocol the same holds with at most ``colluders`` dishonest clients, because no second list of survivors can get
    enough signatures. On a random graph that fails with the masking's probability, which stays charged to delta.
    Statements have no time limit, so Ed25519 must be unbroken when this is called.

    Raises:
        LocalProtocolError: a statement or the report is missing, forged, or of another run or panel.
        LedgerError: the protocol has no such proof, the ledger no such spend, or another upload was sent.

    Example:
        >>> plan = ps.Plan(schema=ps.ClassSchema(2, 2, "NA", 1.0), cohort=ps.Cohort(2, 2, 10), privacy=ps.NoPrivacy())
        >>> ulm, bonn, server = (ps.secagg.Identity.generate(os.urandom).public for _ in range(3))
        >>> roster = ps.secagg.Roster((ulm, bonn), server=server, run=b"hips in May")
        >>> charge = ps.session.Charge(ps.dp.Ledger.create("ledger.sqlite"), "clinic")
        >>> ps.session.free(plan, b"no receipt", {}, roster=roster, charge=charge)
        Traceback (most recent call last):
            ...
        privstats.errors.LocalProtocolError: a receipt of this protocol has 68 bytes: give client.receipt of the one
        that uploaded
    """
    if not isinstance(charge, Charge):
        raise LedgerError(f"charge must be the Charge(ledger, dataset) to give back to, got {type(charge).__name__}")
    upload = prove_excluded_upload(plan, report, statements, roster=roster, panel=panel)
    proof = sha256(b"".join(bytes(statements[place]) for place in sorted(statements))).digest()
    charge.ledger.free(charge.entry_of(plan, roster.run), upload=upload, proof=proof)


def prove_excluded_upload(
    plan: Plan,
    report: bytes,
    statements: Mapping[int, bytes],
    *,
    roster: secagg.Roster,
    panel: secagg.Panel | None = None,
) -> bytes:
    """Verify that an upload is in no sum and never can be, as for :func:`free`, and return its digest."""
    protocol = protocol_of(plan.masking)
    prove_excluded = protocol.machines.prove_excluded
    if prove_excluded is None:
        raise LedgerError(
            f"protocol={plan.protocol!r} has no proof that an upload is in no sum: a retry is a second release"
        )
    if not isinstance(roster, secagg.Roster) or not isinstance(statements, Mapping):
        raise LocalProtocolError("give roster=Roster of the run, and the statements by place: {1: ...}")
    if protocol.has_panel and not isinstance(panel, secagg.Panel):
        raise LocalProtocolError("give panel=Panel of the run, for which the report was made")
    if tuple(identity.hex() for identity in (panel.identities if panel else ())) != plan.panel:
        raise LocalProtocolError("this is not the panel that the plan names, so any party could sign for its helpers")
    return prove_excluded(plan.masking, report, statements, roster=roster, panel=panel)


def withdraw(client: Peer) -> None:
    """Wipe a party's machine that has sent no upload, journaled or not, and give back its session's cost.

    On a random graph the failure probability of its masking stays charged, as for :func:`withdraw_run`.

    Raises:
        LedgerError: the upload was sent, so nothing was changed; or the ledger could not be written, and the client is
            wiped all the same.

    Example:
        >>> plan = ps.Plan(schema=ps.ClassSchema(2, 2, "NA", 1.0), cohort=ps.Cohort(2, 2, 10), privacy=ps.NoPrivacy())
        >>> client = ps.session.local_parties(plan, [ps.measure(plan.schema, [[0.1, 0.2]], [0])] * 2).clients[0]
        >>> ps.session.withdraw(client)
        >>> client.step
        'failed'
    """
    if not isinstance(getattr(client, "upload", None), bytes):
        raise LocalProtocolError(f"client must be the machine of a party, got {type(client).__name__}")
    if client.upload:
        raise LedgerError(
            "the upload of this client was sent, so its spend stays; it comes back only with a proof that the upload "
            "is in no sum (session.free)"
        )
    client.discard()


def withdraw_run(plan: Plan, *, roster: secagg.Roster, charge: Charge) -> None:
    """Return a party's spend for a session in which it sends no upload, now or later.

    If a client's process ended before :func:`withdraw`, remove its state and call this.

    Guarantee: no upload is sent under this run afterwards, by the client, a copy of its journal or its contribution:
    every machine checks the ledger before it sends, and the ledger refuses once this record is written. On a random
    graph the failure probability of the run's masking stays charged to delta: the server has seen the graph.

    Raises:
        LedgerError: the upload was sent, the ledger holds no such spend, or it is a course's.

    Example:
        >>> plan = ps.Plan(schema=ps.ClassSchema(2, 2, "NA", 1.0), cohort=ps.Cohort(2, 2, 10), privacy=ps.NoPrivacy())
        >>> ulm, bonn, server = (ps.secagg.Identity.generate(os.urandom).public for _ in range(3))
        >>> roster = ps.secagg.Roster((ulm, bonn), server=server, run=b"hips in May")
        >>> charge = ps.session.Charge(ps.dp.Ledger.create("ledger.sqlite"), "clinic")
        >>> _ = charge.spend(plan, roster.run)  # session.client does this
        >>> ps.session.withdraw_run(plan, roster=roster, charge=charge)
        >>> charge.ledger.account("clinic").counted
        ()
    """
    if not isinstance(charge, Charge):
        raise LedgerError(f"charge must be the Charge(ledger, dataset) to give back to, got {type(charge).__name__}")
    charge.ledger.withdraw(charge.entry_of(plan, roster.run))
