"""Folders of parties that answer in processes of their own, each with a state folder of its own, as on its own machine.

    python -P -m tests.engines.network.courses.processes HOME

answers messages of a course from standard input until that ends. A message, and each part of an answer, is its length
in four bytes and then its bytes. All noise is zeros, as in the process that carries the messages.
"""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import BinaryIO

import pytest

from privstats.engines.network import party
from privstats.engines.network.transport import Reply
from tests.engines.network.courses.study import CourseStudy, silence
from tests.engines.network.fake import FolderNet
from tests.watchdog import watch

ROOT = Path(__file__).parents[4]
_LENGTH_BYTES = 4

Tell = Callable[[bytes], Reply]
"""What a party answers to a message."""


class ProcessNet(FolderNet):
    """Nodes that are folders; those in ``apart`` answer in processes of their own."""

    def __init__(self, study: CourseStudy, apart: Mapping[int, Tell]) -> None:
        super().__init__(study)
        self.apart = apart

    def told(self, node: int, message: bytes) -> Reply:
        tell = self.apart.get(node)
        return super().told(node, message) if tell is None else tell(message)


@contextmanager
def own_processes(study: CourseStudy, parties: int) -> Iterator[dict[int, Tell]]:
    """Start a process for each of the first parties, which ends with the block; return what each answers, by node."""
    watch()
    with ExitStack() as stack:
        yield {100 + peer: stack.enter_context(_process(study.home(peer))) for peer in range(parties)}


@contextmanager
def _process(home: Path) -> Iterator[Tell]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "XDG_STATE_HOME": str(home / "state")}
    command = [sys.executable, "-P", "-m", __name__, str(home)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment) as process:
        asked, said = process.stdin, process.stdout
        assert asked is not None
        assert said is not None

        def tell(message: bytes) -> Reply:
            _write(asked, message)
            return Reply(_read(said).decode(), _read(said))

        yield tell


def _write(stream: BinaryIO, data: bytes) -> None:
    stream.write(len(data).to_bytes(_LENGTH_BYTES, "big") + data)
    stream.flush()


def _read(stream: BinaryIO) -> bytes:
    """The next bytes; ends this process, or fails its test, where the other one has ended."""
    length = stream.read(_LENGTH_BYTES)
    if not length:
        raise EOFError("the other process has ended")
    return stream.read(int.from_bytes(length, "big"))


def main(home: str) -> None:
    """Answer until the carrier ends."""
    silence(pytest.MonkeyPatch())
    asked, said = sys.stdin.buffer, sys.stdout.buffer
    while True:
        try:
            message = _read(asked)
        except EOFError:
            return
        answer = party.answer(home, "round", message, simulated=False)
        _write(said, answer.code.encode())
        _write(said, answer.data)


if __name__ == "__main__":
    main(*sys.argv[1:])
