"""Codes: all that a party tells the server of what went wrong with it, and the sentence that is made of one there.

Only the code travels; the reason stays in the party's own log. Values, words, and the error that carries both. Under
the loop and both folders.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from privstats.errors import PrivstatsError

__all__ = ["CODES", "FAILED", "NODES", "SILENT", "SOON", "VERSION", "Code", "Declined", "code_of", "short"]

SOON = 5.0
"""Seconds until somebody is asked again who will answer once something small has passed."""
SILENT = 60.0
"""Seconds until somebody is asked again who has not answered, or has work to do first."""
_SHOWN = 8


@dataclass(frozen=True)
class Code:
    """What a code means to the server.

    Attributes:
        sentence: what stands behind the party's name; ``{plan}`` is the beginning of the server's own plan digest.
        again: seconds until the party is asked again; None where asking again in this run changes nothing.
    """

    sentence: str
    again: float | None = None


CODES: Mapping[str, Code] = {
    "wrong_plan": Code('runs another plan: compare "privstats plan show" digests, here {plan}'),
    "wrong_roster": Code('runs another roster: compare "privstats roster show"'),
    "wrong_course": Code('runs another course: compare "privstats course show" digests'),
    "stranger": Code("is no party of this roster"),
    "no_data": Code("cannot measure its records: its operator has the reason"),
    "disk": Code("cannot save its state", SILENT),
    "ledger": Code("has no budget left"),
    "over": Code('has ended this session: start a new one with a new run name ("privstats roster renew")'),
    "busy": Code("is busy", SOON),
    "damaged": Code("got a message that was damaged on its way", SOON),
    "refused": Code("has caught a message that no honest server sends, and has left: its operator has the reason"),
    "behind": Code("lacks releases of earlier nodes, and could not take them", SILENT),
    "not_next": Code(
        "refuses a node that does not follow from the course and its releases: its operator has the reason"
    ),
    "begun": Code("has begun this node before and lost it, and sits it out"),
    "restored": Code("was put back from a backup or copied, and sits this session out: its operator has the reason"),
    "lost": Code("knows nothing of this session any more: its folder was replaced"),
    "version": Code("runs another version of privstats: install the same version on both machines", SILENT),
    "failed": Code("has failed: its operator has the reason"),
}
"""Everything that a party can answer beside ``"ok"``."""

FAILED = "failed"
VERSION = "version"
NODES = frozenset({"wrong_plan", "wrong_course", "wrong_roster", "stranger", VERSION})
"""What the operator is told of a node, by its name at the SuperLink: it may be no party of this session."""


class Declined(PrivstatsError):  # noqa: N818 - an answer, not a mistake
    """What a party does not do, with the code that the server is told and the reason that stays here."""

    def __init__(self, code: str, why: str) -> None:
        self.code = code
        super().__init__(why)


def code_of(code: str) -> str:
    """The code itself, or ``"failed"`` where a party says something that is none."""
    return code if code in CODES else FAILED


def short(digest: str) -> str:
    """The beginning of a digest in hex, for people who compare two."""
    return f"{digest[:_SHOWN]}..."
