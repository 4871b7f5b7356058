"""What a server has to say at the opening of a step, made one message at a time and only when it is taken.

Held all together, the messages of a step would be the largest thing in the server's memory. Between the server machine
and the engine; it sends nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

__all__ = ["Outbox"]


class Outbox:
    """Pairs of a client and its message, in increasing order of clients.

    It has a length, is false when empty, and may be gone through as often as needed: a message is the same bytes every
    time. It belongs to its step; once that has ended, taking a message raises ``LocalProtocolError``.

    Args:
        clients: whom there is a message for.
        make: gives a client's message.
    """

    def __init__(self, clients: Sequence[int] = (), make: Callable[[int], bytes] = lambda _: b"") -> None:
        self.clients, self._make = tuple(clients), make

    def to(self, client: int) -> bytes:
        """The message for one of :attr:`clients`."""
        return self._make(client)

    def __len__(self) -> int:
        return len(self.clients)

    def __getitem__(self, place: int) -> tuple[int, bytes]:
        client = self.clients[place]
        return client, self._make(client)

    def __iter__(self) -> Iterator[tuple[int, bytes]]:
        return ((client, self._make(client)) for client in self.clients)

    def __repr__(self) -> str:
        return f"Outbox({len(self)} messages)"
