"""The target of audits of streams: every node's release by the real path, and the epochs it covers by definition.

The matrices are the auditor's own and share no formula with ``contrib.streams.mechanisms``, so a wrong coefficient or
span in the library shows. ``target`` is the counterpart for one node.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from privstats.contrib.streams import Stream
from privstats.contrib.streams.stream import weighed_release
from privstats.encoding import RingVector
from privstats.errors import PlanError
from privstats.randomness import SEED_BYTES, Generator
from privstats.release import Release
from threat_models.audits.promise import AuditedPromise, promise_of
from threat_models.audits.target import Target, target_of

Integers = NDArray[np.int64]
Reals = NDArray[np.float64]


@dataclass(frozen=True)
class StreamTarget:
    """A stream under audit, each of its nodes in the session that is worst for privacy."""

    stream: Stream

    @cached_property
    def node(self) -> Target:
        """One node."""
        return target_of(self.stream.first)

    @property
    def promise(self) -> AuditedPromise:
        """The promise of the stream's own plan for all epochs together, from its document."""
        return promise_of(target_of(self.stream.plan).privacy)

    @property
    def correlated(self) -> bool:
        """Whether a release weighs earlier epochs. Read from the mechanism's name, not from the library's table."""
        return self.stream.mechanism == "square-root"

    @cached_property
    def columns(self) -> Reals:
        """Contribution to every node of a record that enters at an epoch and stays, ``(nodes, epochs)``."""
        epochs = self.stream.epochs
        if self.correlated:
            root = [math.comb(2 * k, k) / 4**k for k in range(epochs)]
            return np.array([[root[t - s] if s <= t else 0.0 for s in range(epochs)] for t in range(epochs)])
        return np.array(
            [[float(at.epoch - 2**at.level < s <= at.epoch) for s in range(epochs)] for at in self.stream.nodes]
        )

    def moved(self, stands: Sequence[int]) -> Reals:
        """The multiplicity of a record in every node's release, ``(nodes,)``, from its multiplicity in the nodes'
        sums."""
        return self.columns @ stands if self.correlated else np.asarray(stands, np.float64)

    def levels(self) -> Reals:
        """Declared deviation of every entry of a node, in grid steps, ``(size,)``."""
        return self.node.levels()

    def seen(self, sums: Sequence[Integers | None], rng: Generator) -> Integers:
        """The releases of all nodes over these sums, by the real path, ``(nodes, size)``; None is a sum of nothing.

        Raises:
            PlanError: a node aborts, so that nothing can be seen of its noise.
        """
        result = self._weighed(sums, rng) if self.correlated else [self._summed(each, rng) for each in sums]
        released = [each.vector for each in result if isinstance(each, Release)]
        if len(released) < len(result):
            raise PlanError("a node of this stream aborts although its sums are small: rebuild the plan")
        return np.stack(released)

    def _weighed(self, sums: Sequence[Integers | None], rng: Generator) -> list[Release]:
        seed, survivors = rng.bytes(SEED_BYTES), tuple(range(self.node.min_survivors))
        history = [(self._in_ring(each), survivors) for each in sums]
        return [
            weighed_release(self.stream, seed, history[: node + 1], reproducible=True) for node in range(len(history))
        ]

    def _summed(self, integers: Integers | None, rng: Generator) -> Release | str:
        total = self._in_ring(integers)
        total.add(self.node.sum_of([self.node.empty] * self.node.worst_noise, rng))
        return self.node.seen(total, rng)

    def _in_ring(self, integers: Integers | None) -> RingVector:
        ring = self.stream.first.ring
        return ring.zeros() if integers is None else ring.encode(integers)


def stream_target(stream: Stream) -> StreamTarget:
    """The target that a stream describes.

    Raises:
        PlanError: it promises nothing, so there is nothing to falsify.
    """
    target = StreamTarget(stream)
    _ = target.promise
    return target
