"""The leader's end of the exchange with helpers: offers, and one message for each signed reply.

A reply signs one of the last two nonces, so a client that cannot sign learns nothing: a batch shows who took part.
"""

from __future__ import annotations

import os
import re
from collections import deque
from collections.abc import Callable
from functools import partial
from hashlib import sha256

from privstats import domains
from privstats.contrib.http.exchange import Answer, Refused, Request
from privstats.contrib.http.folders import End
from privstats.contrib.http.intake import Intake, deadline, length_of
from privstats.contrib.http.limits import one_at_a_time
from privstats.contrib.http.owner import Owner
from privstats.contrib.http.run import LeaderRun
from privstats.engines.carriers import OK, REPLY_HEAD_BYTES, RoundFolder

OFFER, REPLY = "application/vnd.privstats.offer", "application/vnd.privstats.reply"
MESSAGE, END = "application/vnd.privstats.message", "application/vnd.privstats.end"
NONCE, PAYLOAD = "privstats-nonce", "privstats-payload"
_NONCE_BYTES, _NONCES = 32, 2
_MOST_OFFER, _SMALL = 2 << 10, 64 << 10
_POLL_SECONDS = 1
_HASH = re.compile(r"[0-9a-f]{64}")


def question_of(folder: RoundFolder, nonce: bytes) -> bytes:
    """Return what a reply signs: run and nonce."""
    return domains.HELPER_QUESTION + folder.header.encode() + nonce


class HelperDesk:
    """Answers helpers; ``heard`` has Unix times of their last signed replies."""

    def __init__(self, run: LeaderRun, owner: Owner, intake: Intake, now: Callable[[], float]) -> None:
        self._run, self._owner, self._intake, self._now = run, owner, intake, now
        self._places = range(1, 1 + run.folder.plan.helpers)
        self._most = run.folder.max_reply_bytes
        self._nonces: dict[int, deque[bytes]] = {
            place: deque([os.urandom(_NONCE_BYTES)], maxlen=_NONCES) for place in self._places
        }
        self._reading: set[int] = set()
        self.heard: dict[int, float] = {}

    async def offer(self, request: Request, place: int) -> Answer:
        """Store a helper's offer; a repeat costs the journal nothing."""
        data = await _body(request, OFFER, _MOST_OFFER)
        if self._run.ended is not None:
            raise Refused("over")
        if place not in self._places:
            raise Refused("stranger")
        stored, peer = self._run.offered(place), self._intake.peer(request)
        if stored is not None and stored != data:
            raise Refused("other_offer")
        if stored is None:
            try:
                await self._owner.call(partial(self._run.take_offer, place, data))
            except Refused as refused:
                raise Refused(refused.code, self._intake.penalties.add(peer)) from None
        return Answer(201 if stored is None else 200)

    async def exchange(self, request: Request, place: int) -> Answer:
        """Accept a reply; answer with the next message."""
        if place not in self._places:
            raise Refused("stranger")
        payload = await self._replied(request, place)
        self.heard[place] = self._now()
        request.proved(b"helper %d" % place)
        following = await self._owner.call(partial(self._run.exchange, place, payload))
        self._nonces[place].append(os.urandom(_NONCE_BYTES))
        if following is None:
            return Answer(204, headers={**self._nonce(place), "retry-after": str(_POLL_SECONDS)})
        if isinstance(following, End):
            return Answer(200, following.data, END, self._nonce(place))
        return Answer(200, following, MESSAGE, self._nonce(place))

    async def _replied(self, request: Request, place: int) -> bytes:
        """Verify the signature over the first bytes and the payload's hash, before more is read."""
        length, hashed = _length(request, REPLY, self._most), request.headers.get(PAYLOAD, "")
        if not length:
            raise Refused("stale_nonce", self._nonce(place))
        peer = self._intake.peer(request)
        if length > _SMALL and not _HASH.fullmatch(hashed):
            raise Refused("too_large")
        try:
            async with deadline(length):
                data = bytearray()
                while len(data) < REPLY_HEAD_BYTES and (piece := await request.chunks()):
                    data += piece
                if length <= _SMALL:
                    await _rest(request, data, length)
                    hashed = sha256(data[REPLY_HEAD_BYTES:]).hexdigest()
                if not self._signed(bytes(data[:REPLY_HEAD_BYTES]), bytes.fromhex(hashed), place):
                    raise Refused("stale_nonce", {**self._nonce(place), **self._intake.penalties.add(peer)})
                if length > _SMALL:
                    await self._large(request, data, length, place)
        except TimeoutError:
            raise Refused("slow") from None
        payload = bytes(data[REPLY_HEAD_BYTES:])
        if sha256(payload).hexdigest() != hashed:
            raise Refused("bad_signature")
        return payload

    async def _large(self, request: Request, data: bytearray, length: int, place: int) -> None:
        with one_at_a_time(self._reading, place):
            await self._intake.flight.take(length)
            try:
                await _rest(request, data, length)
            finally:
                self._intake.flight.give_back(length)

    def _signed(self, head: bytes, payload: bytes, place: int) -> bool:
        folder = self._run.folder
        peer = len(folder.roster) + place - 1
        for nonce in self._nonces[place]:
            question = sha256(question_of(folder, nonce)).digest()
            if folder.reply_signer(head, payload, question, OK) == peer:
                return True
        return False

    def _nonce(self, place: int) -> dict[str, str]:
        """Create no nonce for a refusal, or strangers could use up the helper's."""
        return {NONCE: self._nonces[place][-1].hex()}


def _length(request: Request, media: str, most: int) -> int:
    if request.headers.get("content-type", "") != media or "content-encoding" in request.headers:
        raise Refused("wrong_media")
    length = length_of(request)
    if length > most:
        raise Refused("too_large")
    return length


async def _rest(request: Request, data: bytearray, length: int) -> None:
    while len(data) <= length and (piece := await request.chunks()):
        data += piece
    if len(data) != length:
        raise Refused("wrong_length")


async def _body(request: Request, media: str, most: int) -> bytes:
    length, data = _length(request, media, most), bytearray()
    try:
        async with deadline(length):
            await _rest(request, data, length)
    except TimeoutError:
        raise Refused("slow") from None
    return bytes(data)
