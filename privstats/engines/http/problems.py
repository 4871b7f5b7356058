"""Problem documents (RFC 9457): the codes of refusals, their statuses, and whether the same request may be sent again.

Codes of the machines keep their names. A document holds nothing of the request.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import msgspec

__all__ = ["CODES", "MEDIA", "Problem", "Refused", "problem_of"]

MEDIA = "application/problem+json"
_TYPE = "urn:privstats:http:"


@dataclass(frozen=True)
class Problem:
    """One row.

    Attributes:
        status: of HTTP.
        title: a sentence for people.
        retry: whether the same request may succeed later.
        after: seconds for ``Retry-After``; None leaves the header out.
    """

    status: int
    title: str
    retry: bool = False
    after: int | None = None


CODES: Mapping[str, Problem] = {
    "bad_request": Problem(400, "The request is no valid HTTP or names no valid length."),
    "stale_nonce": Problem(403, "The reply signs an older nonce: sign the one in this answer.", retry=True),
    "unknown_run": Problem(404, "No such run is here."),
    "no_resource": Problem(404, "No such resource is here."),
    "stranger": Problem(404, "This place is not on the roster."),
    "wrong_session": Problem(404, "The report is of another run, plan, roster or panel."),
    "not_yet": Problem(404, "The run has not ended.", retry=True),
    "wrong_method": Problem(405, "The resource has no such method."),
    "slow": Problem(408, "The request came too slowly.", retry=True),
    "already_here": Problem(409, "Another report of this sender is on disk."),
    "other_offer": Problem(409, "Another offer for this place is on disk."),
    "in_progress": Problem(409, "A report of this sender is being sent.", retry=True, after=5),
    "closed": Problem(410, "Reports are no longer taken."),
    "over": Problem(410, "The run has ended."),
    "length_required": Problem(411, "A report needs Content-Length."),
    "too_large": Problem(413, "The body is larger than such a message can be."),
    "wrong_media": Problem(415, "The resource takes another content-type, and no content-encoding."),
    "bad_signature": Problem(422, "The sender on the roster did not sign this."),
    "bad_offer": Problem(422, "This is no offer of the plan's member for this run."),
    "bad_parts": Problem(422, "The body is not the one that its sender signed."),
    "bad_body": Problem(422, "The body does not open: it was damaged on its way.", retry=True),
    "malformed": Problem(422, "The message does not parse."),
    "wrong_length": Problem(422, "The message has another length than its sender's has."),
    "wrong_sender": Problem(422, "The message names another sender than the address."),
    "wrong_type": Problem(422, "The message is of another type."),
    "wrong_version": Problem(422, "The message is of another version."),
    "rate": Problem(429, "Too many refused requests came from there.", retry=True, after=10),
    "busy": Problem(503, "No further report can be taken now.", retry=True, after=30),
    "no_panel": Problem(503, "Some helpers have not offered their keys.", retry=True, after=60),
    "restarting": Problem(503, "The leader restarts: nothing that it confirmed is lost.", retry=True, after=10),
}
"""All codes, in the order of their statuses."""


class Refused(Exception):  # noqa: N818 - an answer that the application turns into a document at once
    """A refusal with its code in :data:`CODES`."""

    def __init__(self, code: str) -> None:
        self.code = code
        super().__init__(code)


def problem_of(code: str, **members: str) -> bytes:
    """The document of a code, with further members.

    Example:
        >>> from privstats.engines.http.problems import problem_of
        >>> problem_of("closed").decode()[:61]
        '{"type":"urn:privstats:http:closed","title":"Reports are no l'
    """
    row = CODES[code]
    told = {"type": _TYPE + code, "title": row.title, "status": row.status, "code": code, "retry": row.retry}
    return msgspec.json.encode(told | members)
