"""A device in Python: it seals one report, and sends identical bytes until they are stored.

Before a secret is generated it verifies run, plan and roster by the pinned digest, the panel by the plan, and each
offer's signature over parameters computed here.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

import msgspec

from privstats import session
from privstats.contrib.http.dial import MOST_MANIFEST, Dial, UnreachableError
from privstats.contrib.http.intake import REPORT, SIGNATURE
from privstats.contrib.http.invitations import study_of
from privstats.errors import LocalProtocolError, PrivstatsError
from privstats.extend.support import from_json
from privstats.moments import Moments
from privstats.plan import Plan
from privstats.secagg import Identity, Offer, Panel
from privstats.secagg.protocols import protocol_of
from privstats.secagg.wire import SIGNATURE_BYTES

_TRIES, _PAUSE, _MOST_PAUSE = 30, 1.0, 60.0


class RefusedError(LocalProtocolError):
    """A leader's final refusal; ``code`` is the problem's."""

    def __init__(self, code: str) -> None:
        self.code = code
        super().__init__(f"the leader refuses: {code or 'without a reason'}")


class _Manifest(msgspec.Struct):
    plan: str
    roster: str
    offers: tuple[str, ...]


@dataclass(frozen=True)
class DeviceRun:
    """A verified run: name in hex, plan, roster's digest, and the panel's sealing keys."""

    name: str
    plan: Plan
    roster: bytes
    panel: Panel

    @classmethod
    def open(cls, dial: Dial, name: str, study: str) -> DeviceRun:
        """Read and verify the manifest of a run.

        Args:
            name: in hex.
            study: 64 hex digits that pin run, plan and roster; never from the leader.

        Raises:
            RefusedError: the run is unknown, ended or incomplete.
            UnreachableError: the leader does not answer.
            LocalProtocolError: another plan, roster or panel.
        """
        reply = dial.ask("GET", f"/v1/runs/{name}", most=MOST_MANIFEST)
        if reply.status != 200:
            raise RefusedError(reply.code)
        try:
            manifest = from_json(reply.body, _Manifest)
            roster, offers = (
                bytes.fromhex(manifest.roster),
                [Offer.decode(bytes.fromhex(each)) for each in manifest.offers],
            )
            digest, run = sha256(manifest.plan.encode()).digest(), bytes.fromhex(name)
        except (msgspec.DecodeError, ValueError):
            raise LocalProtocolError("the manifest does not parse: the leader runs another version") from None
        if study_of(run, digest, roster) != study:
            raise LocalProtocolError("the leader shows another plan or roster than the page names: nothing is sent")
        plan = _plan_of(manifest.plan, digest)
        panel = Panel(tuple(bytes.fromhex(key) for key in plan.panel), tuple(offers))
        parameters: Any = plan.masking
        panel.context(parameters, roster)
        panel.require_open()
        return cls(name, plan, roster, panel)

    def report(self, moments: Moments, index: int, identity: Identity) -> bytes:
        """Seal one report; store it before sending, and repeat only identical bytes.

        Args:
            identity: the key at this roster index.
        """
        part = session.contribution(self.plan, moments, index=index).take()
        make, place = protocol_of(self.plan.masking).machines.client, {"index": index, "identity": identity}
        ((_, data),) = make(self.plan.masking, part, roster=self.roster, panel=self.panel, **place).start()
        return data

    def send(
        self, dial: Dial, index: int, report: bytes, *, tries: int = _TRIES, sleep: Callable[[float], None] = time.sleep
    ) -> int:
        """Send a report until it is on the leader's disk; return 201, or 200 for a stored one.

        Raises:
            RefusedError: the leader will never accept these bytes.
            UnreachableError: ``tries`` attempts failed; nothing is lost.
        """
        path = f"/v1/runs/{self.name}/reports/{index}"
        headers = {"content-type": REPORT, SIGNATURE: report[-SIGNATURE_BYTES:].hex()}
        pause = _PAUSE
        for _ in range(tries):
            after = 0.0
            try:
                reply = dial.ask("PUT", path, report, headers)
            except UnreachableError:
                pass
            else:
                if reply.status in (200, 201):
                    return reply.status
                if not reply.retry:
                    raise RefusedError(reply.code)
                after = reply.after
            sleep(max(after, pause))
            pause = min(2 * pause, _MOST_PAUSE)
        raise UnreachableError(
            f"the leader has not taken the report in {tries} tries: the same bytes may be sent later"
        )


def _plan_of(text: str, digest: bytes) -> Plan:
    try:
        plan = Plan.from_tables(from_json(text, dict))
    except (msgspec.DecodeError, AttributeError, TypeError):
        raise LocalProtocolError("the plan in the manifest does not parse: the leader runs another version") from None
    except PrivstatsError as error:
        raise LocalProtocolError(f"the plan in the manifest is refused: {error}") from None
    if bytes.fromhex(plan.digest) != digest:
        raise LocalProtocolError("the plan in the manifest is not in its canonical form: nothing is sent")
    return plan
