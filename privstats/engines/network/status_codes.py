"""Status codes: the only thing that a party sends about an error, and the server's sentence for each.

The reason stays in the party's own log. The loop and both folders use the codes and the error that carries one.

Only codes leave a party. An exception's text can hold a value of a record, and Flower sends it to the server. The
server builds the sentence from the code.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from privstats.errors import PrivstatsError

__all__ = ["CODES", "FAILED", "NODES", "SILENT", "SOON", "VERSION", "Code", "Declined", "code_of", "short"]

SOON = 5.0
"""Seconds until a party is asked again that is briefly busy."""
SILENT = 60.0
"""Seconds until a party is asked again that has not answered, or has to work first."""
_SHOWN = 8


@dataclass(frozen=True)
class Code:
    """A code's meaning for the server.

    Attributes:
        sentence: the text after the party's name; ``{plan}`` is the beginning of the server's own plan digest.
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
    "behind": Code("lacks releases or values of earlier rounds, and could not take them", SILENT),
    "not_next": Code(
        "refuses a round that does not follow from the course and its releases: its operator has the reason"
    ),
    "begun": Code("has begun this round before and lost it, and sits it out"),
    "restored": Code("was put back from a backup or copied, and sits this session out: its operator has the reason"),
    "lost": Code("knows nothing of this session any more: its folder was replaced"),
    "version": Code("runs another version of privstats: install the same version on both machines", SILENT),
    "failed": Code("has failed: its operator has the reason"),
}
"""All codes beside ``"ok"``."""

FAILED = "failed"
VERSION = "version"
NODES = frozenset({"wrong_plan", "wrong_course", "wrong_roster", "stranger", VERSION})
"""Codes about a node, by its name at the carrier: it may be no party of this session."""


class Declined(PrivstatsError):  # noqa: N818 - an answer, not a mistake
    """A refusal, with the code for the server and the reason, which stays with the party."""

    def __init__(self, code: str, why: str) -> None:
        self.code = code
        super().__init__(why)


def code_of(code: str) -> str:
    """The code itself, or ``"failed"`` for an unknown one."""
    return code if code in CODES else FAILED


def short(digest: str) -> str:
    """The beginning of a digest in hex, for people who compare two."""
    return f"{digest[:_SHOWN]}..."
