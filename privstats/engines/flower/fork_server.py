"""A fork server for Flower's client or server program: loaded once, it forks for each message or run.

The server opens no folder, holds no key or connection, and makes no generator; only the child does, and ends with its
task.
"""

from __future__ import annotations

import atexit
import gc
import json
import multiprocessing
import socket
import subprocess
import threading
from collections.abc import Callable, Sequence
from typing import Any, BinaryIO

from privstats.errors import PrivstatsError

OPTION = "--fork-server"
"""The first option of a program that waits for tasks, followed by the number of the socket that it reads."""

PROGRAM = "PRIVSTATS_FORKED"
"""The variable of the executor's environment that names the one forked program; others are started anew."""

_MOST_BYTES = 1 << 16


class ForkedPrograms:
    """Replaces ``subprocess`` in Flower's executor: it forks one program and starts any other.

    The fork server starts at once, and once more if it has died.
    """

    DEVNULL = subprocess.DEVNULL

    def __init__(self, program: str) -> None:
        self._program = program
        self._requests = self._start()

    def Popen(self, words: Sequence[str], **options: Any) -> subprocess.Popen[bytes] | None:  # its name
        """Send the arguments to the fork server, or start another program as ``subprocess`` does."""
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
        """End the fork server; its forked tasks continue."""
        self._requests.close()

    def _start(self) -> socket.socket:
        ours, theirs = socket.socketpair()
        with theirs:
            number = theirs.fileno()
            subprocess.Popen([self._program, OPTION, str(number)], pass_fds=[number])  # noqa: S603  # no shell
        return ours


def run_tasks(requests: int, program: Callable[[list[str]], object]) -> None:
    """Run each task in a fork of this process, until the executor has closed its end of the socket.

    To save time, loaded objects are frozen for the collector, and children end without freeing them. No thread may run:
    a child would not have it.
    """
    if threading.active_count() > 1:
        raise PrivstatsError("a program with threads is not forked: what they hold would stay held in each child")
    gc.freeze()
    fork = multiprocessing.get_context("fork")
    with socket.socket(fileno=requests) as connection:
        lines = connection.makefile("rb")
    with lines:
        while line := lines.readline(_MOST_BYTES):
            fork.Process(target=_task, args=(lines, line, program)).start()


def _task(lines: BinaryIO, line: bytes, program: Callable[[list[str]], object]) -> None:
    """The child leaves the socket to its parent: if that dies, the executor must see it.

    Exit functions remove a party's temporary folder of records.
    """
    lines.close()
    try:
        program(_words(line))
    finally:
        atexit._run_exitfuncs()


def _words(line: bytes) -> list[str]:
    words = json.loads(line)
    if not isinstance(words, list) or not all(isinstance(word, str) for word in words):
        raise PrivstatsError("a task is a list of words")
    return words
