"""A program of Flower's that is loaded once and forks for each task, so that a message costs a fork and not a start.

Flower's executor starts a program for each message. Here it sends the words of that program to a fork server instead: a
process that has loaded Flower and this library under the guards of ``entrypoint_guard``. The server opens no folder,
holds no key and no connection, and makes no generator: all of that belongs to the child, which ends with its task.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Sequence
from typing import Any

from privstats.errors import PrivstatsError

__all__ = ["OPTION", "PROGRAM", "ForkedPrograms", "next_task"]

OPTION = "--fork-server"
"""The first option of a program that is to wait for tasks, followed by the number of the socket they come from."""

PROGRAM = "PRIVSTATS_FORKED"
"""Names, in the executor's environment, the one program that is forked; all others are started anew."""

_MOST_BYTES = 1 << 16


class ForkedPrograms:
    """What Flower's executor takes for the module ``subprocess``: one program is forked, any other is started.

    The server is started at once, before there is a task: the first message does not wait for it. One that has died is
    started once more when a task comes.

    Args:
        program: a name that is found on ``PATH``.

    Example:
        >>> programs = ForkedPrograms("flwr-clientapp")  # doctest: +SKIP
        >>> programs.Popen(["flwr-clientapp", "--token", "..."])  # doctest: +SKIP
    """

    DEVNULL = subprocess.DEVNULL

    def __init__(self, program: str) -> None:
        self._program = program
        self._requests = self._start()

    def Popen(self, words: Sequence[str], **options: Any) -> subprocess.Popen[bytes] | None:  # its name
        """Send the words to the fork server, or start another program as ``subprocess`` does.

        Raises:
            PrivstatsError: the fork server ends as often as it is started.
        """
        name, *task = words
        if name != self._program:
            return subprocess.Popen(words, **options)  # noqa: S603  # Flower's own words, found in the one folder of PATH
        line = json.dumps(task).encode() + b"\n"
        if len(line) > _MOST_BYTES:
            raise PrivstatsError(f"the words of a task have {len(line)} bytes; at most {_MOST_BYTES} are taken")
        try:
            self._requests.sendall(line)
        except OSError:
            self.close()
            self._requests = self._start()
            self._send_again(line)
        return None

    def _send_again(self, line: bytes) -> None:
        try:
            self._requests.sendall(line)
        except OSError as error:
            raise PrivstatsError(f"{self._program} does not stay: {error.strerror}; its own words are above") from None

    def close(self) -> None:
        """End the fork server; the tasks that it has forked go on."""
        self._requests.close()

    def _start(self) -> socket.socket:
        ours, theirs = socket.socketpair()
        with theirs:
            number = theirs.fileno()
            subprocess.Popen([self._program, OPTION, str(number)], pass_fds=[number])  # noqa: S603  # no shell
        return ours


def next_task(requests: int) -> list[str]:
    """Fork for each task that comes; returns in the children alone, with the words of their task.

    The process ends when the executor has closed its end.

    Args:
        requests: the number of the socket.

    Raises:
        PrivstatsError: a thread is running, which a child would not have, or the words are none.
    """
    if threading.active_count() > 1:
        raise PrivstatsError("a program with threads is not forked: what they hold would stay held in each child")
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # a child that has ended is forgotten
    with socket.socket(fileno=requests) as connection, connection.makefile("rb") as lines:
        while line := lines.readline(_MOST_BYTES):
            if os.fork() == 0:
                signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                return _words(line)
    sys.exit(0)


def _words(line: bytes) -> list[str]:
    words = json.loads(line)
    if not isinstance(words, list) or not all(isinstance(word, str) for word in words):
        raise PrivstatsError("a task is a list of words")
    return words
