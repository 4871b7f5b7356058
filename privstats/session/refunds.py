"""Gives a spend back: by proof that its upload is in no sum, or before any upload was sent.

The ledger records either; this verifies the proof, and wipes the machine first. Under ``session``.
"""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import sha256

from privstats import secagg
from privstats.errors import LedgerError, LocalProtocolError
from privstats.plan import Plan
from privstats.secagg.machines import Peer
from privstats.secagg.protocols import protocol_of
from privstats.session.accounting import spend_of
from privstats.session.charges import Charge

__all__ = ["free", "prove_excluded_upload", "withdraw", "withdraw_run"]


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
        report: ``client.receipt`` of the upload; the ledger must have its digest.
        statements: by place. With helpers: the statement that each helper signed at the end of the run, that it did not
            answer or over which list it did, from the leader's ``statements``. In the interactive protocol: the
            survivor lists that clients signed, from ``client.agreement`` of a survivor. Any party may deliver them.
        roster: the roster of the run.
        panel: where the plan names one, the panel that the report was made for.
        charge: the party's own ledger and its data set there.

    Guarantee: if one *helper* is honest, the report stays uniform to all other parties together, so it costs nothing.
    An honest leader alone is not enough: if all helpers lie, they could have answered before. In the interactive
    protocol, complete graph, the same holds with at most ``colluders`` dishonest clients, because no second list of
    survivors can get enough signatures.

    Raises:
        LocalProtocolError: a statement is missing, forged, or of another run or panel; or the report is.
        LedgerError: the protocol has no such proof, the ledger holds no such spend, or another upload was sent under
            it.

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
    charge.ledger.free(spend_of(plan, charge, roster.run), upload=upload, proof=proof)


def prove_excluded_upload(
    plan: Plan,
    report: bytes,
    statements: Mapping[int, bytes],
    *,
    roster: secagg.Roster,
    panel: secagg.Panel | None = None,
) -> bytes:
    """Verify that an upload is in no sum and never can be, and return its digest; arguments as of :func:`free`.

    Raises:
        LocalProtocolError: a statement is missing, forged, or of another run or panel; or the report is.
        LedgerError: the protocol has no such proof.
    """
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
            "the upload of this client was sent, so its spend stays; it comes back only with a proof that the upload "
            "is in no sum (session.free)"
        )
    client.discard()


def withdraw_run(plan: Plan, *, roster: secagg.Roster, charge: Charge) -> None:
    """Give back a party's spend for a session in which it sends no upload, now or later.

    For a client whose process ended before :func:`withdraw` could wipe it: remove its state first, then call this. A
    second call changes nothing.

    Args:
        plan: the plan all parties agreed on.
        roster: the roster of the run, whose name is used up.
        charge: the party's own ledger and its data set there.

    Guarantee: no upload is sent under this run from here on, by the client, a copy of its journal or its contribution:
    every machine asks the ledger before it sends, and the ledger refuses once this record is written.

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
    charge.ledger.withdraw(spend_of(plan, charge, roster.run))
