"""When a second run over the same data is no second release: every helper has signed that the first can have no sum.

For a client, between two runs. It reads what helpers said; ``session.free`` tells the ledger. Beside the machines.
"""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import sha256

from privstats.errors import LocalProtocolError
from privstats.secagg import wire
from privstats.secagg.roster import Roster
from privstats.secagg.upload import checks, messages
from privstats.secagg.upload import statements as said
from privstats.secagg.upload.panel import Panel
from privstats.secagg.upload.parameters import UploadParameters

__all__ = ["check_abandoned_by_all", "uncounted"]

_RECEIPT_BYTES = 256
"""More than a receipt has, and less than a report."""


def check_abandoned_by_all(
    statements: Mapping[int, bytes], *, parameters: UploadParameters, roster: Roster | bytes, panel: Panel
) -> None:
    """Find a statement of every helper that it destroyed its box key for this run and gave no answer.

    Args:
        statements: the ``Abandoned`` messages by the helper's place, as :attr:`Leader.abandoned` holds them.
        parameters: of the run that failed.
        roster: of that run, or its digest.
        panel: the one that the client's own report was made for, :attr:`Client.panel`, and no other.

    Raises:
        LocalProtocolError: a helper's statement is missing, or is not its word on this run.

    Guarantee: where it returns and one helper is honest, a report of this run stays uniform to the rest of the world
    together, for ever: that helper's stream is gone. Fewer statements say nothing, because nobody knows who is honest.
    """
    context = panel.context(parameters, roster)
    for place in range(1, parameters.helpers + 1):
        if place not in statements:
            raise LocalProtocolError(f"helper {place} has not said that it abandoned the run: count it as a release")
        view = wire.view_of(statements[place])
        try:
            message = messages.decode(view, messages.Abandoned, parameters, context)
            checks.check_abandoned(message, panel.identities[place], place)
        except wire.Refusal as refusal:
            raise LocalProtocolError(
                f"what is said to be helper {place}'s word that it abandoned this run is not ({refusal.code}): count "
                "the run as a release"
            ) from None


def uncounted(
    parameters: UploadParameters,
    report: bytes,
    statements: Mapping[int, bytes],
    *,
    roster: Roster | bytes,
    panel: Panel,
) -> bytes:
    """The name of a report that is in no sum and never can be: what a ledger was told when it left.

    The name is a hash over the run's context, so a report of another panel than the one that was abandoned has
    another: who abandons one panel cannot free what left for a second one.

    Args:
        parameters, statements, roster, panel: as for :func:`check_abandoned_by_all`.
        report: of the client's own, ``client.receipt``, or the whole of it.

    Raises:
        LocalProtocolError: the statements do not prove it, or the report is not of this run and panel.
    """
    check_abandoned_by_all(statements, parameters=parameters, roster=roster, panel=panel)
    view = wire.view_of(report)
    if bytes(view[:_RECEIPT_BYTES]).startswith(said.prefix("report") + panel.context(parameters, roster)):
        return sha256(view).digest()  # what was signed of it; another upload than the ledger's is found out there
    try:
        message = messages.decode(view, messages.Report, parameters, panel.context(parameters, roster))
        return sha256(checks.stated(message, parameters)).digest()
    except wire.Refusal as refusal:
        raise LocalProtocolError(
            f"what is given as the report is none of this run and panel ({refusal.code}): give client.receipt"
        ) from None
