"""A helper that dials out: it offers its key, then answers the leader's messages until the end.

It opens no port, trusts only its own plan and roster, and survives a kill.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any

import msgspec

from privstats.contrib.http.dial import MOST_MANIFEST, Dial, Reply, UnreachableError
from privstats.contrib.http.folders import helper_place
from privstats.contrib.http.helper_desk import END, MESSAGE, NONCE, OFFER, PAYLOAD, REPLY, question_of
from privstats.contrib.http.settings import Settings
from privstats.engines.carriers import OK, PARTY, HelperRole, JournaledHelper, RoundFolder, UnconfirmedEndError
from privstats.errors import LocalProtocolError, RemoteProtocolError
from privstats.extend.support import from_json
from privstats.secagg import Offer, Panel
from privstats.secagg.protocols import protocol_of

_PAUSE, _MOST_PAUSE = 1.0, 60.0


class _Manifest(msgspec.Struct):
    offers: tuple[str, ...]


@dataclass
class Dialler:
    """One helper of one run.

    Attributes:
        connected: called with whether the leader answers.
        pause: seconds between two polls.
    """

    folder: RoundFolder
    settings: Settings
    root_certificates: str | None = None
    sleep: Callable[[float], None] = time.sleep
    say: Callable[[str], None] = PARTY.info
    connected: Callable[[bool], None] = lambda _: None
    pause: float = _PAUSE
    connect: Callable[[str, str | None], Dial] = Dial
    _printed: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self._place = helper_place(self.folder)
        self._parameters: Any = self.folder.plan.masking
        self._role = HelperRole(self.folder, self._parameters.clients + self._place - 1)
        self._path = f"/v1/runs/{self.folder.roster.run.hex()}"
        self._most = protocol_of(self._parameters).machines.largest_request(self._parameters)
        self._nonce = b""
        self._waits = 0.0

    def run(self) -> str:
        """Serve or resume the run until its end; return a sentence."""
        with self.connect(self.settings.address, self.root_certificates) as dial:
            with self._role.machine(self.settings.box_keys_end) as helper:
                if not helper.is_over:
                    self._offered(dial, helper)
                    self._bound(dial, helper)
                end = self._served(dial, helper)
            return self._ended(dial, end)

    def _offered(self, dial: Dial, helper: JournaledHelper) -> None:
        while True:
            reply = self._answered(dial, "POST", f"{self._path}/offers/{self._place}", helper.offered.encode(), OFFER)
            if reply.status in (200, 201) or reply.code == "over":
                return
            if reply.code in ("other_offer", "bad_offer", "unknown_run", "stranger"):
                raise LocalProtocolError(f"the leader refuses this helper's offer: {reply.code}, and keeps to it")
            self._wait(reply.after)

    def _bound(self, dial: Dial, helper: JournaledHelper) -> None:
        while True:
            reply = self._answered(dial, "GET", self._path, most=MOST_MANIFEST)
            if reply.status == 200:
                helper.bind(self._panel(reply.body))
                return
            if reply.code == "over":
                return
            self._wait(reply.after)

    def _panel(self, manifest: bytes) -> Panel:
        try:
            offers = from_json(manifest, _Manifest).offers
            decoded = tuple(Offer.decode(bytes.fromhex(offer)) for offer in offers)
        except (msgspec.DecodeError, ValueError):
            raise LocalProtocolError("the leader's manifest does not parse: it runs another version") from None
        return Panel(tuple(bytes.fromhex(key) for key in self.folder.plan.panel), decoded)

    def _served(self, dial: Dial, helper: JournaledHelper) -> bytes:
        payload = helper.answer if helper.is_over else b""
        while True:
            reply = self._exchanged(dial, payload)
            media = reply.headers.get("content-type", "")
            if reply.status == 200 and media == END:
                beside = self.folder.read_end(reply.body)
                if beside is not None:
                    return beside
                self._once("the leader's end is not signed by the server on the roster")
            if reply.status == 200 and media == MESSAGE:
                payload = self._answer(helper, reply.body)
            elif reply.status in (200, 204):
                payload = b""
                self._wait(reply.after)
            else:
                self._once(f"the leader answers {reply.status} {reply.code}")
                self.sleep(max(reply.after, self._slower()))

    def _answer(self, helper: JournaledHelper, message: bytes) -> bytes:
        """Answer a refused message with nothing, more and more slowly."""
        try:
            answers = helper.receive(message)
        except RemoteProtocolError as refusal:
            self._once(f"a message of the leader is refused: {refusal}")
            self._note(helper.step, "refused", len(message), 0)
            self.sleep(self._slower())
            return b""
        except UnconfirmedEndError as error:
            self._once(str(error))
            self._note(helper.step, "clock", len(message), 0)
            self.sleep(self._slower())
            return b""
        payload = answers[0][1] if answers else b""
        self._note(helper.step, OK, len(message), len(payload))
        return payload

    def _exchanged(self, dial: Dial, payload: bytes) -> Reply:
        stale = False
        while True:
            question = question_of(self.folder, self._nonce)
            signed = self.folder.sign_reply(self._role.place, question, OK, payload) if self._nonce else b""
            path, headers = f"{self._path}/helpers/{self._place}", {PAYLOAD: sha256(payload).hexdigest()}
            reply = self._answered(dial, "POST", path, signed, REPLY, most=self._most, headers=headers)
            with suppress(ValueError):
                self._nonce = bytes.fromhex(reply.headers.get(NONCE, self._nonce.hex()))
            if reply.code != "stale_nonce":
                return reply
            if stale:
                self._once("the leader takes no reply of this helper: identity.pem, plan or roster differ from its own")
                self.sleep(self._slower())
            stale = True

    def _answered(
        self,
        dial: Dial,
        method: str,
        path: str,
        body: bytes = b"",
        media: str = "",
        most: int = 0,
        headers: Mapping[str, str] | None = None,
    ) -> Reply:
        named = {**(headers or {}), **({"content-type": media} if media else {})}
        while True:
            try:
                reply = dial.ask(method, path, body, named, most=most)
            except UnreachableError as error:
                self.connected(False)
                self._once(str(error))
                self.sleep(self._slower())
            else:
                self.connected(True)
                if reply.status < 400:
                    self._waits = 0.0
                return reply

    def _ended(self, dial: Dial, beside: bytes) -> str:
        statement = self._role.session_ended(beside)
        if statement:
            self._exchanged(dial, statement)
        self._note("", OK, 0, len(statement), kind="over")
        return "the run has ended" + (" without a sum, and this helper has answered nothing" if statement else "")

    def _wait(self, seconds: float) -> None:
        self.sleep(min(seconds, self.pause) or self.pause)

    def _slower(self) -> float:
        self._waits = min(max(self.pause, 2 * self._waits), _MOST_PAUSE)
        return self._waits

    def _once(self, line: str) -> None:
        if line not in self._printed:
            self._printed.add(line)
            self.say(line)

    def _note(self, step: str, code: str, received: int, sent: int, kind: str = "helper") -> None:
        self.folder.above.note(0, kind, code, step=step, received=received, sent=sent)
