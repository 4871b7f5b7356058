"""Charges a session to a ledger: asked before noise is drawn, and told before anything is sent.

The meeting of plan, run name and ledger; no arithmetic (``dp`` has it) and no bytes. Under ``session``, which every
client and every release goes through.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import Final, Literal, TypeAlias, TypeVar

from privstats import dp, secagg
from privstats.dp import NoPrivacy
from privstats.errors import AggregationError, LedgerError, LocalProtocolError
from privstats.moments import Moments
from privstats.plan import Plan
from privstats.secagg.machines import Peer
from privstats.secagg.protocols import protocol_of

__all__ = [
    "CHARGED_BEFORE",
    "Charge",
    "Charging",
    "NodeCharge",
    "Told",
    "charge_of",
    "charged",
    "free",
    "on_upload",
    "prove_excluded_upload",
    "register_run",
    "spend",
    "withdraw",
    "withdraw_run",
]

_FRESH_RUN_BYTES = 16
_Made = TypeVar("_Made")


@dataclass(frozen=True)
class Charge:
    """The account that records a release before its noise is drawn.

    Attributes:
        ledger: the durable record.
        dataset: the account in it; every release of the same records uses the same name.
        allow_second_exact_release: for plans without DP: release exact sums of this data set again. With one client
            absent, the difference of the two releases is that client's exact vector.

    Raises:
        LedgerError: what is given as ledger is none, or the allowance is no truth value.

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

    def __post_init__(self) -> None:
        if not isinstance(self.ledger, dp.Ledger):
            raise LedgerError(
                f"Charge takes a privstats.dp.Ledger, got {type(self.ledger).__name__}: open the file with Ledger.open"
            )
        if not isinstance(self.allow_second_exact_release, bool):  # "no" is true
            raise LedgerError(
                "allow_second_exact_release must be True or False, got "
                f"{type(self.allow_second_exact_release).__name__}: leave it out"
            )

    def spend(self, plan: Plan, run: bytes) -> dp.Spend:
        """Write a session down, or find it where it was begun before; as :func:`spend`."""
        return self.ledger.spend(
            self.dataset,
            plan=plan.digest,
            run=run,
            schema=plan.schema,
            privacy=plan.privacy,
            noise=plan.noise,
            masking_failure=plan.masking.failure,
            allow_second_exact_release=self.allow_second_exact_release,
        )

    def finish(self, plan: Plan, run: bytes, upload: bytes) -> None:
        """Note that what was spent has left."""
        self.ledger.finish(_spend_of(plan, self, run), upload)

    def withdraw(self, plan: Plan, run: bytes) -> None:
        """Give back what was spent, where nothing has left; else nothing."""
        entry = _spend_of(plan, self, run)
        if entry.waiting:
            self.ledger.withdraw(entry)


@dataclass(frozen=True)
class NodeCharge:
    """The mark of one node of a course, made before its noise is drawn; the course was spent before its first node.

    :func:`privstats.course.authorize` makes one, after it has verified that the plan is the node's.

    Attributes:
        ledger: the durable record.
        entry: what the course was spent under.
        node: the place of the session in the course.
        plan: digest of the node's plan.

    Guarantee:
        A node draws noise once, whatever plan stands there and however often a server asks: its mark is on the disk
        before, is never taken back, and holds none of the plan's values. A crash after the mark loses the node.

    Example:
        >>> plan = ps.Plan(schema=ps.ClassSchema(2, 2, "NA", 1.0), cohort=ps.Cohort(2, 2, 10), privacy=ps.NoPrivacy())
        >>> course, ledger = ps.course.Single(plan), ps.dp.Ledger.create("ledger.sqlite")
        >>> entry = ps.course.spend(course, ledger, "clinic", run=os.urandom(16))
        >>> ps.course.authorize(course, plan, [], ledger, entry).node
        0
    """

    ledger: dp.Ledger
    entry: dp.Spend
    node: int
    plan: str

    def spend(self, plan: Plan, run: bytes) -> dp.Spend:  # noqa: ARG002  a node has no name but its place
        """Mark the node, once.

        Raises:
            LedgerError: it has begun before, or its price rests on a registry, whose ``RecordRegistry.charge`` gives
                the charge; nothing may be drawn or sent then.
        """
        self._check(plan)
        self.ledger.begin(self.entry, self.node)
        return self.entry

    def finish(self, plan: Plan, run: bytes, upload: bytes) -> None:  # noqa: ARG002
        """Nothing to note: the mark was final.

        Raises:
            LedgerError: there is no mark.
        """
        self._check(plan)
        entries = (entry for account in self.ledger.accounts() for entry in account.entries)
        if not any(entry.id == self.entry.id and self.node in entry.begun for entry in entries):
            raise LedgerError(
                f"node {self.node} of this course has no mark in the ledger; give the ledger it was made with"
            )

    def check_moments(self, moments: Moments) -> None:
        """Refuse moments that this charge is not about; any are welcome where no registry notes their records."""

    def withdraw(self, plan: Plan, run: bytes) -> None:
        """Nothing: a node's mark is never taken back."""

    def _check(self, plan: Plan) -> None:
        if plan.digest != self.plan:
            raise LedgerError(f"this charge is for another plan at node {self.node} of the course; enter the node anew")


Charging: TypeAlias = Charge | NodeCharge | Literal["uncharged"] | None
"""The account to charge; None is for plans without DP."""

CHARGED_BEFORE: Final = "uncharged"
"""Said of a release that a ledger holds already, because its node was marked, or it is charged around the call."""


def charge_of(plan: Plan, charge: Charging) -> Charge | NodeCharge | None:
    """The account to charge; None for ``"uncharged"``, and for a plan without DP that names no account.

    Raises:
        LedgerError: no account for a plan with DP, or a value of another kind.
    """
    if isinstance(charge, Charge | NodeCharge):
        return charge
    if charge is None and not isinstance(plan.privacy, NoPrivacy):
        raise LedgerError(
            "this plan spends privacy and nothing says where that is recorded: give "
            "charge=Charge(ledger, dataset), or the word charge='uncharged' where nobody has to remember it"
        )
    if charge is not None and not (isinstance(charge, str) and charge == "uncharged"):
        got = f"the text {charge!r}" if isinstance(charge, str) else f"a {type(charge).__name__}"
        raise LedgerError(
            f"charge must be Charge(ledger, dataset) or the word 'uncharged', got {got}: "
            "open a ledger with privstats.dp.Ledger.open(path) and name the data set in it"
        )
    return None


def register_run(plan: Plan, charge: Charge | NodeCharge, roster: secagg.Roster) -> dp.Spend:
    """Write down that a party takes part in a run; its number is checked before anything is spent.

    Raises:
        LedgerError: the run's number is not the next one for its members, or as for :func:`spend`.
    """
    if roster.counter is not None:
        charge.ledger.accept_counter(roster.members, roster.counter, roster.run)
    return spend(plan, charge, roster.run)


def spend(plan: Plan, charge: Charge | NodeCharge, run: bytes) -> dp.Spend:
    """Write a session down in the ledger, or find it there where it was begun before.

    Raises:
        LedgerError: the run has no name, its name is used up, or the cap would be passed; nothing is spent then.
    """
    return charge.spend(plan, run)


def charged(plan: Plan, charge: Charge | NodeCharge | None, run: bytes, make: Callable[[], _Made]) -> _Made:
    """Spend first, then ``make``, which draws the noise; a crash between loses a release, never the memory of one.

    An abort is finished like a release, because it depends on the noise drawn: repeated under one spend, it would be an
    oracle with fresh noise at every question. Calls that run at once share the spend and draw each their own noise; the
    first to end is the release, and the others are refused.

    Raises:
        LedgerError: as for :func:`spend`; or another call has ended under the same spend, or it was withdrawn. The
            release or abort that was made is dropped then, and the error does not carry it.
        AggregationError: as ``make``, once the ledger has recorded it.
    """
    if charge is None:
        return make()
    entry = spend(plan, charge, run or os.urandom(_FRESH_RUN_BYTES))
    if isinstance(charge, NodeCharge):
        return make()
    made: _Made | AggregationError
    try:
        made = make()
    except AggregationError as abort:
        made = abort
    charge.ledger.finish(entry, os.urandom(_FRESH_RUN_BYTES))  # outside the handler, or its error would carry the abort
    if isinstance(made, AggregationError):
        raise made
    return made


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

    The spend stays on record as freed, and the run's name stays used up: a retry takes a new run, with new noise.

    Args:
        plan: the plan all parties agreed on.
        report: ``client.receipt`` of what left: it must be what the ledger was told of.
        statements: by place. With helpers: what each helper signed at the end of the run, that it gave no answer or
            over which list, from the leader's ``statements``. In the interactive protocol: the survivor lists that
            clients signed, from ``client.agreement`` of a survivor. Any party may deliver them.
        roster: the roster of the run.
        panel: where the plan names one, the panel that the report was made for.
        charge: the party's own ledger and its data set there.

    Guarantee: if one *helper* is honest, the report stays uniform for ever to all other parties together, so it costs
    nothing. An honest leader alone is not enough: helpers that all lie could have answered first. In the interactive
    protocol, complete graph, the same holds with at most ``colluders`` dishonest clients, because no second list of
    survivors can gather enough signatures.

    Raises:
        LocalProtocolError: a statement is missing, forged, or of another run or panel; or the report is.
        LedgerError: the protocol has no such proof, or the ledger holds no such spend, or another upload left under it.

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
    charge.ledger.free(_spend_of(plan, charge, roster.run), upload=upload, proof=proof)


def prove_excluded_upload(
    plan: Plan,
    report: bytes,
    statements: Mapping[int, bytes],
    *,
    roster: secagg.Roster,
    panel: secagg.Panel | None = None,
) -> bytes:
    """The name of an upload that is in no sum and never can be, as a ledger was told it; arguments as of :func:`free`.

    Raises:
        LocalProtocolError: a statement is missing, forged, or of another run or panel; or the report is.
        LedgerError: the protocol has no such proof.
    """
    protocol = protocol_of(plan.masking)
    if protocol.prove_excluded is None:
        raise LedgerError(
            f"protocol={plan.protocol!r} has no proof that an upload is in no sum: a retry is a second release"
        )
    if not isinstance(roster, secagg.Roster) or not isinstance(statements, Mapping):
        raise LocalProtocolError("give roster=Roster of the run, and the statements by place: {1: ...}")
    if protocol.has_panel and not isinstance(panel, secagg.Panel):
        raise LocalProtocolError("give panel=Panel of the run, for which the report was made")
    if tuple(identity.hex() for identity in (panel.identities if panel else ())) != plan.panel:
        raise LocalProtocolError("this is not the panel that the plan names, so anybody could speak for its helpers")
    return protocol.prove_excluded(plan.masking, report, statements, roster=roster, panel=panel)


def withdraw(client: Peer) -> None:
    """Wipe a party's machine that has sent no upload, journaled or not, and give back what its session cost.

    ``client.discard()``, which the end of a session calls, does the same but raises nothing once the upload is sent.

    Raises:
        LedgerError: the upload was sent, so the spend stays and nothing was changed; or the ledger could not be
            written, and the client is wiped all the same.
        LocalProtocolError: not a client.

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
            "the upload of this client has left, so its spend stays; it comes back only with a proof that the upload "
            "is in no sum (session.free)"
        )
    client.discard()


def withdraw_run(plan: Plan, *, roster: secagg.Roster, charge: Charge) -> None:
    """Give back what a party spent for a session in which it sends no upload, now or later.

    For a client whose process died before :func:`withdraw` could wipe it: remove its state first, then call this. A
    second call changes nothing.

    Args:
        plan: the plan all parties agreed on.
        roster: the roster of the run, whose name is used up.
        charge: the party's own ledger and its data set there.

    Guarantee: no upload is sent under this run from here on, by the client, a copy of its journal or its contribution:
    the ledger is asked before an upload is sent and refuses, in one transaction with this record.

    Raises:
        LedgerError: the upload has left, the ledger holds no such spend, or it is a course's.

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
    charge.ledger.withdraw(_spend_of(plan, charge, roster.run))


@dataclass(frozen=True)
class Told:
    """What a client's machine reports to the ledger: that it sends its upload, or that it never will.

    Attributes:
        plan: the plan all parties agreed on.
        charge: where the session is written down.
        run: its name.
    """

    plan: Plan
    charge: Charge | NodeCharge
    run: bytes

    def __call__(self, upload: bytes) -> None:
        """Note that the upload leaves.

        Raises:
            LedgerError: the run is not in the ledger, was withdrawn, or another upload of it has left.
        """
        self.charge.finish(self.plan, self.run, upload)

    def withdraw(self) -> None:
        """Give back what was spent, if nothing was sent; a machine calls it once it is wiped.

        Raises:
            LedgerError: the run is not in the ledger, or the file failed.
        """
        self.charge.withdraw(self.plan, self.run)


def on_upload(plan: Plan, charge: Charge | NodeCharge, run: bytes) -> Told:
    """Reports to the ledger that an upload of this run is sent, for a client that was resumed from its journal."""
    return Told(plan, charge, run)


def _spend_of(plan: Plan, charge: Charge, run: bytes) -> dp.Spend:
    entry = charge.ledger.account(charge.dataset).of_run(run)
    if entry is None or entry.plan != plan.digest:
        raise LedgerError("the ledger knows no such run under this plan: give the charge that the client was made with")
    return entry
