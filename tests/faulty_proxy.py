"""A line that fails on demand: it flips a bit, closes, cuts, half-closes, swallows, or delays.

It forwards to one port of 127.0.0.1 and listens on another. It carries at most :data:`MOST_CONNECTIONS` at once, and
ends with its block.
"""

import select
import socket
import struct
import threading
import time
from contextlib import suppress
from typing import Literal, Self, get_args

from tests.threads import join

Fault = Literal["none", "flip", "flip-request", "close", "cut", "half-close", "swallow", "delay"]
"""Flips spoil one bit, once; every other fault lasts until it is healed.

- ``flip`` spoils an answer of the server, ``flip-request`` a request.
- ``close`` accepts, reads a greeting and closes, as a proxy does whose backend restarts, and closes what is open.
- ``cut`` resets what is open, and ends what comes in the middle of its handshake.
- ``half-close`` ends the direction to the server and leaves the other open.
- ``swallow`` takes all bytes and forwards none.
- ``delay`` forwards each piece :attr:`FaultyProxy.delay_seconds` late.

A fault can wait until the proxy has forwarded a number of bytes, and then strikes in the middle of a large message.
"""

FAULTS = tuple(fault for fault in get_args(Fault) if fault != "none")
MOST_CONNECTIONS = 256
_PIECE = 1 << 16
_LOOK_SECONDS = 0.1


class FaultyProxy:
    """A proxy before ``127.0.0.1:port``; its ``address`` is given to whoever is to suffer.

    Args:
        port: where the server listens.
        delay_seconds: what ``delay`` waits before each piece.
    """

    def __init__(self, port: int, delay_seconds: float = 2.0) -> None:
        self._target, self.delay_seconds = ("127.0.0.1", port), delay_seconds
        self._asked: Fault = "none"
        self._left = 0  # bytes until the fault begins
        self.struck = threading.Event()  # the fault has met a byte, or a connection
        self._ended = threading.Event()
        self._open: set[threading.Thread] = set()
        self.accepted = 0

    def __enter__(self) -> Self:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._listener.settimeout(_LOOK_SECONDS)
        self.address = f"127.0.0.1:{self._listener.getsockname()[1]}"
        self._thread = threading.Thread(target=self._accept)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        join(self._thread)
        self._listener.close()
        join(*self._open)

    def begin(self, fault: Fault, after: int = 0) -> None:
        """Fail so once ``after`` more bytes were forwarded; :attr:`struck` is set once that has met anything."""
        self.struck.clear()
        self._left = after
        self._asked = fault

    @property
    def _fault(self) -> Fault:
        return self._asked if self._left <= 0 else "none"

    def heal(self) -> None:
        """Carry everything from now on, as before."""
        self._asked = "none"

    def _accept(self) -> None:
        while not self._ended.is_set():
            try:
                near, _ = self._listener.accept()
            except TimeoutError:
                continue
            self._open = {thread for thread in self._open if thread.is_alive()}
            if len(self._open) >= MOST_CONNECTIONS:
                near.close()
                continue
            self.accepted += 1
            thread = threading.Thread(target=self._carry, args=(near,))
            self._open.add(thread)
            thread.start()

    def _carry(self, near: socket.socket) -> None:
        with near, suppress(OSError):
            if self._fault == "close":
                near.settimeout(1.0)
                near.recv(_PIECE)  # what is unread when it closes would be a reset
                self._strike(near)
                return
            with socket.create_connection(self._target, 10) as far:
                if self._fault == "cut":
                    near.settimeout(1.0)
                    far.sendall(near.recv(_PIECE))
                    self.struck.set()
                    return
                self._pump(near, far)

    def _pump(self, near: socket.socket, far: socket.socket) -> None:
        """Until both ends are done, a fault ends it, or the block ends."""
        other, open_ends = {near: far, far: near}, {near, far}
        while open_ends and not self._ended.is_set():
            ready = select.select([*open_ends], [], [], _LOOK_SECONDS)[0]
            if self._fault in ("close", "cut"):
                self._strike(near, far)
                return
            if self._fault == "half-close" and near in open_ends:
                self.struck.set()
                open_ends.remove(near)
                far.shutdown(socket.SHUT_WR)
                ready = [end for end in ready if end is not near]
            for end in ready:
                piece = end.recv(_PIECE)
                if piece:
                    self._forward(piece, other[end], "flip" if end is far else "flip-request")
                else:
                    open_ends.remove(end)
                    other[end].shutdown(socket.SHUT_WR)

    def _forward(self, piece: bytes, end: socket.socket, flip: Fault) -> None:
        self._left -= len(piece)
        if self._fault == "swallow":
            self.struck.set()
            return
        if self._fault == "delay":
            self.struck.set()
            self._ended.wait(self.delay_seconds)
        if self._fault == flip:
            self.heal()
            piece = piece[:-1] + bytes([piece[-1] ^ 1])  # in the last record's tag, so that its length stays
            self.struck.set()
        end.sendall(piece)

    def _strike(self, *ends: socket.socket) -> None:
        self.struck.set()
        for end in ends:
            if self._fault == "cut":
                end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            end.close()


def seconds_until(holds: object, most: float) -> float:
    """Return the seconds until a condition holds; infinity if it does not within ``most``."""
    began = time.monotonic()
    while not holds():  # type: ignore[operator]
        if time.monotonic() - began > most:
            return float("inf")
        time.sleep(0.2)
    return time.monotonic() - began
