"""The public ASGI application of a leader: routes, sizes and statuses.

No answer echoes a request; each carries the requesting origin, so that a page can read refusals.
"""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, TypeAlias

from privstats.contrib.http.exchange import (
    CLOSE,
    CODES,
    NO_HEADERS,
    Answer,
    Gone,
    Receive,
    Refused,
    Request,
    Scope,
    Send,
    problem,
)
from privstats.contrib.http.helper_desk import END, HelperDesk
from privstats.contrib.http.intake import SIGNATURE, Intake, drained
from privstats.contrib.http.owner import AGAIN, TAKEN, Owner
from privstats.contrib.http.run import LeaderRun
from privstats.engines.carriers import WarningLine, reason_of

_MANIFEST_SECONDS = 60
_NUMBER = r"(0|[1-9][0-9]{0,8})"
_RUN = r"/v1/runs/([0-9a-f]{32,128})"
_ROUTES = {
    "run": ("GET", re.compile(_RUN)),
    "report": ("PUT", re.compile(rf"{_RUN}/reports/{_NUMBER}")),
    "end": ("GET", re.compile(rf"{_RUN}/end")),
    "offer": ("POST", re.compile(rf"{_RUN}/offers/{_NUMBER}")),
    "helper": ("POST", re.compile(rf"{_RUN}/helpers/{_NUMBER}")),
}
_FOR_PAGES = frozenset({"run", "report", "end"})
_STATUS = {TAKEN: 201, AGAIN: 200}
Handler: TypeAlias = Callable[[Request, int], Awaitable[Answer]]


@dataclass
class Seen:
    """Answers by status, refusals by code, and bytes of bodies."""

    answers: Counter[int] = field(default_factory=Counter)
    refused: Counter[str] = field(default_factory=Counter)
    received: int = 0
    sent: int = 0


class Leader:
    """The application; ``clock`` is monotonic, ``now`` in Unix seconds.

    Args:
        run: only ``owner`` calls its journal.
    """

    def __init__(
        self,
        run: LeaderRun,
        owner: Owner,
        *,
        full: Callable[[], bool] = lambda: False,
        clock: Callable[[], float] = time.monotonic,
        now: Callable[[], float] = time.time,
    ) -> None:
        self._run, self._name = run, run.folder.roster.run.hex()
        self._origins = run.settings.origins
        self.seen, self.taking = Seen(), True
        self.intake = Intake(owner.report, run.heard, run.settings.limits, full=full, clock=clock)
        self.helpers = HelperDesk(run, owner, self.intake, now)
        self._handlers: Mapping[str, Handler] = {
            "run": self._manifest,
            "report": self._report,
            "end": self._end,
            "offer": self.helpers.offer,
            "helper": self.helpers.exchange,
        }

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            return
        request = Request.of(scope, partial(self._counted, receive))
        try:
            answer = await self._answered(request)
        except Gone:
            return
        except Exception as error:
            self._run.say(WarningLine(f"a request failed: {reason_of(error)}"))
            answer = problem("restarting")
        self.seen.answers[answer.status] += 1
        self.seen.sent += len(answer.body)
        if answer.code:
            self.seen.refused[answer.code] += 1
        await answer.send(send, self._shared(request))

    async def _counted(self, receive: Receive) -> Mapping[str, Any]:
        message = await receive()
        self.seen.received += len(message.get("body", b""))
        return message

    async def _answered(self, request: Request) -> Answer:
        name, run, number = _routed(request.path)
        if request.method == "OPTIONS":
            return self._preflight(request, name)
        try:
            if not name:
                raise Refused("no_resource")
            if request.method != _ROUTES[name][0]:
                raise Refused("wrong_method")
            if run != self._name:
                raise Refused("unknown_run")
            return await self._handlers[name](request, number)
        except Refused as refused:
            answer = problem(refused.code)
            read = refused.code != "slow" and await drained(request)
            return replace(answer, headers={**answer.headers, **refused.headers, **(NO_HEADERS if read else CLOSE)})

    async def _manifest(self, request: Request, _: int) -> Answer:
        if self._run.ended is not None and (end := self._run.end) is not None:
            return problem("over", end=end.data.hex())
        manifest = self._run.manifest
        if manifest is None:
            raise Refused("no_panel")
        headers = {"etag": manifest.etag, "cache-control": f"public, max-age={_MANIFEST_SECONDS}"}
        if request.headers.get("if-none-match") == manifest.etag:
            return Answer(304, headers=headers)
        return Answer(200, manifest.body, "application/json", headers)

    async def _report(self, request: Request, sender: int) -> Answer:
        manifest, ended = self._run.manifest, self._run.ended is not None
        if manifest is None:
            raise Refused("over" if ended else "no_panel")
        if not self.taking:
            raise Refused("restarting")
        try:
            if sender >= len(self._run.folder.roster):
                raise Refused("stranger")
            verdict = await self.intake.take(manifest, sender, request)
        except Refused as refused:
            raise _after_the_end(refused) if ended else refused from None
        return Answer(_STATUS[verdict])

    async def _end(self, _request: Request, _: int) -> Answer:
        end = self._run.end
        if end is None:
            raise Refused("not_yet")
        return Answer(200, end.data, END)

    def _shared(self, request: Request) -> dict[str, str]:
        origin = request.headers.get("origin", "")
        if not origin or not (self._origins == ("*",) or origin in self._origins):
            return {"vary": "Origin"}
        return {
            "access-control-allow-origin": "*" if self._origins == ("*",) else origin,
            "access-control-expose-headers": "Date, ETag, Retry-After",
            "vary": "Origin",
        }

    def _preflight(self, request: Request, name: str) -> Answer:
        if name not in _FOR_PAGES or "access-control-allow-origin" not in self._shared(request):
            return Answer(204)
        allowed = {
            "access-control-allow-methods": "GET, PUT",
            "access-control-allow-headers": f"content-type, {SIGNATURE}, if-none-match",
            "access-control-max-age": "86400",
        }
        return Answer(204, headers=allowed)


def _after_the_end(refused: Refused) -> Refused:
    """Do not let the answer depend on who has reported."""
    return refused if CODES[refused.code].retry else Refused("over", refused.headers)


def _routed(path: str) -> tuple[str, str, int]:
    for name, (_, form) in _ROUTES.items():
        if match := form.fullmatch(path):
            run, *number = match.groups()
            return name, run, int(number[0]) if number else 0
    return "", "", 0
