"""Receive a report for the journal: early refusals, one buffer of its exact length, one verdict.

The signature is verified over the first bytes, before more is read and before any answer shows that the sender has a
stored report.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress

from privstats.contrib.http.exchange import CODES, Refused, Request
from privstats.contrib.http.folders import Manifest, named
from privstats.contrib.http.limits import BrokenOff, BytesInFlight, Openings, Penalties, one_at_a_time
from privstats.contrib.http.owner import CONFIRMED, Verdict
from privstats.contrib.http.settings import Limits
from privstats.engines.carriers import peer_of
from privstats.secagg.upload.checks import EarlyCheck
from privstats.secagg.wire import SIGNATURE_BYTES, Refusal

REPORT = "application/vnd.privstats.report"
SIGNATURE = "privstats-signature"
_SMALL = 64 << 10
"""Bytes of a body that is read before its signature is known, and of what is dropped after a refusal."""
_SECONDS, _BYTES_PER_SECOND = 30.0, 64 << 10
_DRAIN_SECONDS = 2.0
_PART_OF_AGAIN = 4
_HEX = re.compile(r"[0-9a-f]{128}")
_DIGITS = re.compile(r"[0-9]{1,12}")


def length_of(request: Request) -> int:
    """Return the declared length; raise ``Refused`` without one, as for a chunked body."""
    text = request.headers.get("content-length", "")
    if not text or "transfer-encoding" in request.headers:
        raise Refused("length_required")
    if not _DIGITS.fullmatch(text):
        raise Refused("bad_request")
    return int(text)


def deadline(length: int) -> asyncio.Timeout:
    """Return an absolute time limit, which slow bytes do not extend."""
    return asyncio.timeout(_SECONDS + length / _BYTES_PER_SECOND)


async def drained(request: Request) -> bool:
    """Briefly drop the remaining body, so that the client sees the answer; return whether it has ended."""
    dropped = 0
    with suppress(TimeoutError):
        async with asyncio.timeout(_DRAIN_SECONDS):
            while dropped < _SMALL:
                piece = await request.chunks()
                if not piece:
                    return True
                dropped += len(piece)
    return False


class Intake:
    """Receives reports, and returns a verdict on each.

    Args:
        report: returns the verdict once the data is on the disk.
        heard: returns the name of a sender's stored report (``folders.named``), or None.
        full: whether the disk has no room for another report.
        clock: monotonic seconds.

    Attributes:
        flight: bodies being received.
        again: bodies, at most a quarter, from senders with a stored report, or a failed one within the hour.
        penalties: bad signatures, by address.
    """

    def __init__(
        self,
        report: Callable[[int, bytearray], Awaitable[Verdict]],
        heard: Callable[[int], bytes | None],
        limits: Limits,
        *,
        full: Callable[[], bool] = lambda: False,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._report, self._heard, self._limits, self._full = report, heard, limits, full
        most = limits.in_flight_mib << 20
        self.flight, self.again = BytesInFlight(most), BytesInFlight(most // _PART_OF_AGAIN)
        self.penalties, self._openings = Penalties(limits.bad_signatures, clock), Openings(clock)
        self._broken = BrokenOff(clock)
        self._sending: set[int] = set()

    def peer(self, request: Request) -> str:
        """Return the address charged for bad signatures."""
        return peer_of(request.address, request.headers, self._limits.proxies)

    async def take(self, manifest: Manifest, sender: int, request: Request) -> Verdict:
        """Return the verdict on a request's report; raises ``Refused`` or ``Gone``."""
        early = manifest.early
        length = _checked_length(request, early.report_bytes(sender))
        signature = _named_signature(request, length)
        try:
            async with deadline(length):
                head = await _first(request, length if signature is None else early.head_bytes(sender))
                peer = self.peer(request)
                shown = bytes(head[-SIGNATURE_BYTES:]) if signature is None else signature
                self._verify(early, sender, head, shown, peer)
                request.proved(b"sender %d" % sender)
                return await self._rest(sender, request, head, length, shown, peer)
        except TimeoutError:
            raise Refused("slow") from None

    def _verify(self, early: EarlyCheck, sender: int, head: bytes, signature: bytes, peer: str) -> None:
        try:
            early.check(sender, head, signature)
        except Refusal as refusal:
            code = refusal.code if refusal.code in CODES else "malformed"
            raise Refused(code, self.penalties.add(peer)) from None

    async def _rest(
        self, sender: int, request: Request, head: bytes, length: int, signature: bytes, peer: str
    ) -> Verdict:
        self._openings.check(sender)
        earlier = self._heard(sender)
        if earlier not in (None, named(signature)):
            raise Refused("already_here")
        with one_at_a_time(self._sending, sender):
            if self._full():
                raise Refused("busy")
            async with self._room(sender, length, again=earlier is not None or self._broken.lately(sender)):
                body = await _body(request, head, length)
                if bytes(body[-SIGNATURE_BYTES:]) != signature:
                    raise Refused("bad_signature", self.penalties.add(peer))
                verdict = await self._report(sender, body)
                if verdict == "bad_body":
                    self._openings.add(sender)
                if verdict not in CONFIRMED:
                    raise Refused(verdict)
                return verdict

    @asynccontextmanager
    async def _room(self, sender: int, length: int, *, again: bool) -> AsyncIterator[None]:
        rooms = (self.again, self.flight) if again else (self.flight,)
        reserved: list[BytesInFlight] = []
        try:
            for room in rooms:
                await room.take(length)
                reserved.append(room)
            with self._broken.counting(sender):
                yield
        finally:
            for room in reserved:
                room.give_back(length)


def _checked_length(request: Request, wanted: int) -> int:
    if request.headers.get("content-type", "") != REPORT or "content-encoding" in request.headers:
        raise Refused("wrong_media")
    length = length_of(request)
    if length != wanted:
        raise Refused("too_large" if length > wanted else "wrong_length")
    return length


def _named_signature(request: Request, length: int) -> bytes | None:
    signature = request.headers.get(SIGNATURE)
    if signature is None and length <= _SMALL:
        return None
    if signature is None or not _HEX.fullmatch(signature):
        raise Refused("bad_signature")
    return bytes.fromhex(signature)


async def _first(request: Request, size: int) -> bytes:
    pieces, have = [], 0
    while have < size:
        piece = await request.chunks()
        if not piece:
            raise Refused("wrong_length")
        pieces.append(piece)
        have += len(piece)
    return b"".join(pieces)


async def _body(request: Request, head: bytes, length: int) -> bytearray:
    body = bytearray(length)
    end = 0
    piece = head
    while piece:
        if end + len(piece) > length:
            raise Refused("wrong_length")
        body[end : end + len(piece)] = piece
        end += len(piece)
        piece = await request.chunks()
    if end != length:
        raise Refused("wrong_length")
    return body
