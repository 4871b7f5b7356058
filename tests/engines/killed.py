"""A journaled machine in a process of its own that can be killed with SIGKILL and started again."""

import os
import signal
import socket
import struct
from collections.abc import Callable
from typing import Any

import msgspec
import pytest


class Killed:
    """A journaled machine in a process of its own, which SIGKILL ends and ``make`` starts again."""

    def __init__(self, make: Callable[[], Any]) -> None:
        self.make = make
        self.start()

    def start(self) -> None:
        self.socket, child = socket.socketpair()
        for end in (self.socket, child):
            end.settimeout(20)  # a test that fails leaves nobody waiting for ever
        self.pid = os.fork()
        if self.pid == 0:
            try:
                machine = self.make()
                while True:
                    name, arguments = receive(child)
                    send(child, self.call(machine, name, arguments))
            finally:
                os._exit(1)
        child.close()

    @staticmethod
    def call(machine: Any, name: str, arguments: list) -> Any:
        found = getattr(machine, name)
        found = found(*arguments) if callable(found) else found
        if name == "result":
            return found[0].pack(), found[1]
        return [list(each) for each in found] if found is not None and name != "step" else found

    def __call__(self, name: str, *arguments: Any) -> Any:
        self.tell(name, *arguments)
        return receive(self.socket)

    def tell(self, name: str, *arguments: Any) -> None:
        """Call, and wait for nothing."""
        send(self.socket, (name, arguments))

    def kill(self) -> None:
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
        self.socket.close()

    def again(self) -> None:
        self.kill()
        self.start()


def send(channel: socket.socket, item: object) -> None:
    data = msgspec.msgpack.encode(item)
    channel.sendall(struct.pack(">Q", len(data)) + data)


def receive(channel: socket.socket) -> Any:
    (length,) = struct.unpack(">Q", exactly(channel, 8))
    return msgspec.msgpack.decode(exactly(channel, length))


def exactly(channel: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        data += channel.recv(size - len(data)) or pytest.fail("the process ended")
    return data
