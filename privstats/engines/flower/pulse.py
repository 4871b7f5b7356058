"""Measure a child by its work: a node reports each answered poll to its supervisor over a pipe that only they hold.

A process that runs, a log line and an open connection prove no work. Flower's node can lose its main loop, its
heartbeat or its executor while its process stays alive.
"""

from __future__ import annotations

import importlib
import os
import secrets
import select
import subprocess
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

from privstats.engines.door.connection_limits import BYTES_A_SECOND
from privstats.engines.flower.addresses import MOST_REQUEST
from privstats.engines.network.status_file import SILENT_SECONDS

PULSE = "PRIVSTATS_PULSE"
"""The variable of a child's environment with the number of the pipe to which it writes its signs of work."""

ANSWERED = b"a"
"""The server answered a request of the node's main loop."""

HEARTBEAT = b"h"
"""The server answered a heartbeat."""

WORKING = b"w"
"""The main loop waits for its own task, which the executor runs."""

TRANSFERRING = b"t"
"""A piece of a message is on its way, which takes minutes on the slowest line that the server waits for."""

FAILED = b"f"
"""A request had no answer."""

_HEARTBEAT_PATH, _PIECE_PATHS = "send-node-heartbeat", ("push-object", "pull-object")
_PIECE_SECONDS = MOST_REQUEST / BYTES_A_SECOND
_MOST_BYTES = 1 << 12
_SECRET_BYTES = 32


class Signs:
    """The child's end: writes one byte per sign, and never waits for the reader."""

    def __init__(self, descriptor: int | None) -> None:
        self._descriptor = descriptor
        if descriptor is not None:
            os.set_blocking(descriptor, False)

    @classmethod
    def inherited(cls) -> Signs:
        """Return the end that this process inherited; without one, signs go nowhere."""
        number = os.environ.get(PULSE)
        return cls(None if number is None else int(number))

    def give(self, sign: bytes) -> None:
        """Report signs, if any; a full or closed pipe loses them."""
        if self._descriptor is not None and sign:
            with suppress(OSError):
                os.write(self._descriptor, sign)

    def of_calls(self, call: Callable[..., Any]) -> Callable[..., Any]:
        """Return Flower's method for one request, which reports whether the server answered."""

        def reporting(client: Any, *, path: str, **named: Any) -> Any:
            piece = TRANSFERRING if path.endswith(_PIECE_PATHS) else b""
            self.give(piece)
            try:
                answer = call(client, path=path, **named)
            except Exception:
                self.give(FAILED)
                raise
            self.give(HEARTBEAT if path.endswith(_HEARTBEAT_PATH) else ANSWERED + piece)
            return answer

        return reporting


def retried(send: Callable[..., Any]) -> Callable[..., Any]:
    """Return Flower's method that sends a request, whose failures are retried once the server has answered.

    Flower gives up for good on an error whose text names TLS. After an answer such an error is a fault of the line: it
    gets another text, so that Flower tries again. A coordinator's programs retry inside of a call, nodes around it.
    """
    broken_line = importlib.import_module("httpx").TransportError
    answered = False

    def sending(client: Any, context: Any, **named: Any) -> Any:
        nonlocal answered
        try:
            answer = send(client, context, **named)
        except broken_line as error:
            if answered:
                raise type(error)("the line to the server failed") from error
            raise
        answered = True
        return answer

    return sending


class WatchedExecutor:
    """Replaces ``subprocess`` in Flower's node: remembers the executor, without which no task is ever done.

    Attributes:
        secret: what the executor signs its requests with, so that no other account of this machine takes a task. It is
            drawn anew for each node and reaches the executor over a pipe: no file holds it.
    """

    def __init__(self) -> None:
        self.secret = secrets.token_bytes(_SECRET_BYTES)
        self._executor: subprocess.Popen[bytes] | None = None

    def Popen(self, words: Sequence[str]) -> subprocess.Popen[bytes]:  # its name
        """Start the executor."""
        read, write = os.pipe()
        try:
            os.write(write, self.secret)
            os.close(write)
            given = [*words, "--superexec-auth-secret-file", f"/dev/fd/{read}"]
            self._executor = subprocess.Popen(given, pass_fds=[read])  # noqa: S603  # Flower's own words, no shell
        finally:
            os.close(read)
        return self._executor

    def require(self) -> None:
        """End this node if its executor has ended: the supervisor starts both again."""
        if self._executor is not None and self._executor.poll() is not None:
            raise SystemExit("the node's executor has ended, so the node ends, too")


class Pulse:
    """The supervisor's end: tells from a child's signs whether it works, and since when it does not.

    Args:
        clock: seconds that no change of the time of day moves.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self.began = self._loop = self._heart = clock()
        self._line = self._working = self._transferring = self._failed = False
        self.answers = 0

    def note(self, signs: bytes) -> None:
        """Take signs in their order; none changes nothing."""
        now = self._clock()
        for sign in map(bytes, zip(signs, strict=True)):
            if sign in (ANSWERED, WORKING):
                self._loop, self._working, self._transferring = now, sign == WORKING, False
            self._transferring |= sign == TRANSFERRING
            if sign == HEARTBEAT or (sign == ANSWERED and not self.answers):
                self._heart = now
            if sign in (ANSWERED, HEARTBEAT, FAILED):
                self._line = sign != FAILED
            self._failed |= sign == FAILED
            self.answers += sign == ANSWERED

    @property
    def unanswered(self) -> bool:
        """Whether the child has asked, and had no answer yet."""
        return self._failed and not self.answers

    @property
    def connected(self) -> bool:
        """Whether the server answered the child's last request, and no part of the child has stopped."""
        return self.answers > 0 and self._line and not self.stopped

    @property
    def stopped(self) -> bool:
        """Whether the child has done no work for :data:`SILENT_SECONDS`, or a few minutes more while it sends a piece.

        A task may be long, and the line may be down meanwhile: while the child's own task runs, it needs no answer. A
        piece may fill a slow line, so that heartbeats are late.
        """
        limit = self._clock() - SILENT_SECONDS
        if self._transferring:
            return self._loop < limit - _PIECE_SECONDS
        return self._loop < limit or (self._heart < limit and not self._working)


class PulsePipe:
    """A pipe from a child to its supervisor, read with a limit on time."""

    def __init__(self) -> None:
        self._read, self.given = os.pipe()

    def begun(self) -> None:
        """Close the end that the child now holds."""
        os.close(self.given)

    def wait(self, seconds: float) -> bytes | None:
        """Return the next signs, b"" when the time is up, and None once the child has closed its end."""
        if not select.select([self._read], [], [], seconds)[0]:
            return b""
        return os.read(self._read, _MOST_BYTES) or None

    def close(self) -> None:
        """Close our end."""
        os.close(self._read)
