"""Test another package's module of rounds or protocol."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from math import inf
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from privstats.engines.carriers import MessageKind, Reply
from privstats.errors import LocalProtocolError
from privstats.schema.modules import Ints, module_of
from privstats.schema.public_values import VALUE_BITS, Values

_ROWS = 40
_EXPONENTS = (-8, 0, 12, 20, 64)  # of published weights: from 2**27 to 2**-64 in size


def check_module(word: str, *, features: int = 5, classes: int = 3, grid_bits: int = 12, seed: int = 0) -> None:
    """Search for rows that break a module's sensitivity bound.

    The module must return integer vectors of its declared size and norm, whatever other records are present. The search
    proves nothing; the proof belongs in the module's docstring.

    Args:
        word: the module's name in plans.
        features, classes: d and C of the rows.
        grid_bits: f, from 2 to 13.

    Raises:
        AssertionError: the module breaks its contract.

    Example:
        >>> ps.testing.check_module("perceptron/4")
        Traceback (most recent call last):
        ...
        privstats.errors.SchemaError: module = 'perceptron/4' needs the module 'perceptron', which no installed ...
    """
    module, rng = module_of(word), np.random.default_rng(seed)
    units, labels = _units(features, grid_bits, rng), rng.integers(0, classes, _ROWS)
    for weights in _published(module.values(features, classes), rng):
        norm = float(rng.choice([module.norm, 0.1]))

        def of(index: NDArray[np.intp], weights: Values = weights, norm: float = norm) -> tuple[Ints, Ints]:
            return module.gradients(
                units[index], labels[index], weights, classes=classes, norm=norm, grid_bits=grid_bits
            )

        _check_one(word, module.weights(features, classes), grid_bits, of(np.arange(_ROWS)))
        _check_company(word, of)


def _units(features: int, grid_bits: int, rng: np.random.Generator) -> Ints:
    steps = float(1 << grid_bits)
    rows = rng.normal(size=(_ROWS, features + 1))
    rows[:5] = 0.0
    rows[5:10] = np.eye(features + 1)[rng.integers(0, features + 1, 5)]
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    units = np.divide(rows, lengths, out=np.zeros_like(rows), where=lengths > 0)
    return np.asarray(np.trunc(units * (steps * (1 - 2.0**-40))))


def _published(size: int, rng: np.random.Generator) -> Iterator[Values]:
    most = (1 << (VALUE_BITS - 1)) - 1
    for exponent in _EXPONENTS:
        yield Values(rng.integers(-most, most + 1, size), exponent)
    yield Values(np.full(size, most), 0)
    yield Values(np.zeros(size, np.int64), 0)


def _check_one(word: str, size: int, grid_bits: int, arrays: tuple[Ints, Ints]) -> None:
    gradients, kappa = arrays
    steps = 1 << grid_bits
    if (np.shape(gradients), np.shape(kappa)) != ((_ROWS, size), (_ROWS,)):
        raise AssertionError(f"{word} gives arrays of shapes {np.shape(gradients)} and {np.shape(kappa)}")
    if not ((gradients == np.trunc(gradients)).all() and (kappa == np.trunc(kappa)).all()):
        raise AssertionError(f"{word} gives numbers that are not whole, which count as zero")
    if not (np.vecdot(gradients, gradients) <= float(steps) ** 4).all():
        raise AssertionError(f"{word} gives rows longer than 4**{grid_bits}, which count as zero")
    if not ((kappa >= 0) & (kappa <= steps)).all():
        raise AssertionError(f"{word} gives a kappa outside 0..2**{grid_bits}, which counts as zero")


def _check_company(word: str, of: Callable[[NDArray[np.intp]], tuple[Ints, Ints]]) -> None:
    together = of(np.arange(_ROWS))
    orders = [np.arange(_ROWS)[::-1], *np.split(np.arange(_ROWS), [7, 20]), *np.arange(_ROWS)[:, None]]
    for order in orders:
        alone = of(order)
        if any(not np.array_equal(part, every[order]) for part, every in zip(alone, together, strict=True)):
            raise AssertionError(f"{word} gives a record other numbers among other records: no bound covers that")


Answering: TypeAlias = Callable[[int, MessageKind, bytes], Reply]


class MockTransport:
    """A transport in memory: a function answers each message at once, and the clock moves only in ``sleep``.

    Attributes:
        comes, goes: by node, when it comes online or goes offline.
        pushed: all messages sent: node, kind and data.

    Example:
        >>> from privstats.engines.network.transport import Reply
        >>> net = ps.testing.MockTransport(lambda node, kind, data: Reply("ok", data), nodes=[1, 2])
        >>> net.pull(net.push(1, "hello", b"who are you?", ttl=60), most=100)
        Reply(code='ok', data=b'who are you?')
        >>> net.goes[2] = 30.0
        >>> net.sleep(45)
        >>> net.online()
        [1]
    """

    def __init__(self, answer: Answering, nodes: Iterable[int]) -> None:
        self.nodes = list(nodes)
        self.now = 0.0
        self.comes: dict[int, float] = {}
        self.goes: dict[int, float] = {}
        self.pushed: list[tuple[int, MessageKind, bytes]] = []
        self.waiting: dict[str, list[Reply]] = {}
        self._answer = answer

    def online(self) -> list[int]:
        """Return the connected nodes."""
        return [node for node in self.nodes if self.comes.get(node, 0.0) <= self.now < self.goes.get(node, inf)]

    def name(self, node: int) -> str:
        """Return the node's name for people."""
        return f"node-{node}"

    def push(self, node: int, kind: MessageKind, data: bytes, *, ttl: float) -> str:
        """Send a message, which is answered at once; return an empty name if the node is offline."""
        if not ttl >= 1:
            raise LocalProtocolError(f"a message must live for at least 1 second, got ttl={ttl}")
        if node not in self.online():
            return ""
        self.pushed.append((node, kind, data))
        name = f"message {len(self.pushed)}"
        self.waiting[name] = list(self.replies(node, kind, data))
        return name

    def replies(self, node: int, kind: MessageKind, data: bytes) -> Iterable[Reply]:
        """Return the replies to a message; a subclass may lose, repeat or damage them."""
        return [self._answer(node, kind, data)]

    def pull(self, message: str, most: int) -> Reply | None:
        """Return the next reply to a message; a larger one becomes the code ``too_large``."""
        if not self.waiting.get(message):
            return None
        reply = self.waiting[message].pop(0)
        return reply if len(reply.data) <= most else Reply("too_large")

    def sleep(self, seconds: float) -> None:
        """Let time pass."""
        self.now += seconds

    def clock(self) -> float:
        """Return seconds since the start."""
        return self.now
