"""Prove by every helper's signed statement that a report is in no sum."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import TypeAlias

from privstats.errors import LocalProtocolError
from privstats.secagg import wire
from privstats.secagg.roster import Roster
from privstats.secagg.upload import checks, messages
from privstats.secagg.upload import signed_statements as statements
from privstats.secagg.upload.panel import Panel
from privstats.secagg.upload.parameters import UploadParameters

_BEGINNING = 256
"""Leading bytes that are compared with a receipt's label and context, which are shorter."""


def check_abandoned_by_all(
    statements: Mapping[int, bytes], *, parameters: UploadParameters, roster: Roster | bytes, panel: Panel
) -> None:
    """Verify that every helper signed that it destroyed its box key and sent no answer.

    Args:
        statements: the ``Abandoned`` messages by helper's place (:attr:`Leader.abandoned`).
        roster: of the failed run, or its digest.
        panel: that of the client's own report, :attr:`Client.panel`, and no other.

    Raises:
        LocalProtocolError: a helper's statement is missing, or is not signed by it for this run.

    Guarantee: if this function returns and one helper is honest, that helper's stream is gone. A report of this run
    then stays uniform to all other parties together, while the key agreement is unbroken. Fewer statements prove
    nothing, because the honest helper is unknown. Ed25519 must be unbroken when this is called.

    Example:
        >>> panel = [ps.secagg.Identity.generate(os.urandom).public.hex() for _ in range(2)]
        >>> protocol = {"privacy": ps.NoPrivacy(), "protocol": "split", "panel": panel}
        >>> plan = ps.Plan(schema=ps.ClassSchema(2, 2, "NA", 1.0), cohort=ps.Cohort(3, 3, 9), **protocol)
        >>> leader = ps.session.local_parties(plan, [ps.measure(plan.schema, [[0.1, 0.2]], [0])] * 3).server
        >>> run = {"parameters": leader.parameters, "roster": leader.roster, "panel": leader.panel}
        >>> ps.secagg.check_abandoned_by_all({}, **run)
        Traceback (most recent call last):
            ...
        privstats.errors.LocalProtocolError: no signed statement was given on how helper 1 ended the run: count the
        run as a release
    """
    run = _Run(parameters, panel.context(parameters, roster), panel)
    for place in range(1, parameters.helpers + 1):
        _read(statements, place, run, _abandoned)


def prove_excluded(
    parameters: UploadParameters,
    report: bytes,
    statements: Mapping[int, bytes],
    *,
    roster: Roster | bytes,
    panel: Panel,
) -> bytes:
    """Return the name of a report that is in no sum and never can be.

    The name is SHA-256 of the signed statement, which names run and panel. So one panel's statements cannot refund a
    report to another panel.

    Args:
        parameters, roster, panel: as for :func:`check_abandoned_by_all`.
        statements: by helper's place, ``Abandoned``, or ``Listed`` of its one answered list
            (:attr:`Leader.statements`).
        report: the client's own ``client.receipt``, or the full report.

    Raises:
        LocalProtocolError: the statements do not prove it, or the report is not of this run and panel.

    No report of the client's index may be on any list: a restored client makes another report of its vector, under
    another name.

    Guarantee: an honest helper answers one list, or signs that it answered none, and destroys its key with that. If
    every helper has done either, and this report is on no list, the honest helper's stream is gone. While the key
    agreement is unbroken, the report then stays uniform to all other parties together. A proof's answers are the
    exception, and reveal nothing of the report. Statements are believed at any time after the run, so Ed25519 must be
    unbroken when this is called: a party that breaks it forges them.
    """
    run = _Run(parameters, panel.context(parameters, roster), panel)
    lists = {place: _read(statements, place, run, _listed) for place in range(1, parameters.helpers + 1)}
    upload, sender = _name_of(report, run)
    for place, listed in lists.items():
        if sender in listed or upload in listed.values():
            raise LocalProtocolError(f"helper {place} answered a list with this client: count the run as a release")
    return upload


@dataclass(frozen=True)
class _Run:
    parameters: UploadParameters
    context: bytes
    panel: Panel


_Reader: TypeAlias = Callable[[memoryview, int, _Run], dict[int, bytes]]


def _read(statements: Mapping[int, bytes], place: int, run: _Run, reader: _Reader) -> dict[int, bytes]:
    if place not in statements:
        raise LocalProtocolError(
            f"no signed statement was given on how helper {place} ended the run: count the run as a release"
        )
    try:
        return reader(wire.view_of(statements[place]), place, run)
    except wire.Refusal as refusal:
        raise LocalProtocolError(
            f"the statement of helper {place} is not its signed statement on the end of this run ({refusal.code}): "
            "count the run as a release"
        ) from None


def _abandoned(view: memoryview, place: int, run: _Run) -> dict[int, bytes]:
    message = messages.decode(view, messages.Abandoned, run.parameters, run.context)
    checks.check_abandoned(message, run.panel.identities[place], place)
    return {}


def _listed(view: memoryview, place: int, run: _Run) -> dict[int, bytes]:
    """Return a helper's one answered list; empty without an answer."""
    if not messages.is_kind(view, messages.Listed):
        return _abandoned(view, place, run)
    message = messages.decode(view, messages.Listed, run.parameters, run.context)
    return checks.check_listed(message, run.panel.identities[place], place, run.parameters)


def _name_of(report: bytes, run: _Run) -> tuple[bytes, int]:
    view = wire.view_of(report)
    signed = "report" if run.parameters.claim is None else "proved-report"
    beginning = statements.prefix(signed) + run.context
    if bytes(view[:_BEGINNING]).startswith(beginning):  # a receipt, the signed statement
        sender = int.from_bytes(view[len(beginning) : len(beginning) + 4], "big")
        return sha256(view).digest(), sender  # the ledger refuses another upload's name
    try:
        message = messages.decode(view, messages.kinds_of(run.parameters).report, run.parameters, run.context)
        return sha256(checks.stated(message, run.parameters)).digest(), message.sender
    except wire.Refusal as refusal:
        raise LocalProtocolError(
            f"the given report is not of this run and panel ({refusal.code}): give client.receipt"
        ) from None
