"""A contribution: one party's vector, which may be sent once.

It records only its own use; whether a data set was released before is in the ledger. Between the noise and the
protocol.
"""

from __future__ import annotations

import os
from threading import Lock
from typing import Any, NoReturn

from privstats.encoding import RingVector
from privstats.errors import DataError, LocalProtocolError

__all__ = ["Contribution"]

_USED = (
    "this contribution was used before and serves one session only: make a new one, with new noise, under a new run "
    "name"
)


class Contribution:
    """One party's exact sums and its share of the noise, in the ring; for one client.

    Two sums that hold the same noisy vector differ by the *other* clients' noise only: with one client absent from the
    second, the difference is that client's vector under one share of noise instead of all clients'. So a session that
    aborted after the masked vector was sent counts as released, and a retry needs a new contribution. It cannot be
    copied or pickled, and its repr shows nothing. Only the process that made it may use it: after a fork, each child
    would have it once.

    Args:
        plan: the digest of the plan that it was made under.
        vector: the vector.
        reproducible: it holds noise that others may know.
        noise_root: what opens the layers of its noise, 32 secret bytes; empty where it has none.

    Example:
        >>> schema = ps.ClassSchema(2, 2, "NA", clip_norm=1.0)
        >>> plan = ps.Plan(schema=schema, cohort=ps.Cohort(2, 2, 10), privacy=ps.NoPrivacy())
        >>> contribution = ps.session.contribution(plan, ps.measure(schema, [[0.1, 0.2]], [0]))
        >>> _ = contribution.take()
        >>> contribution.take()
        Traceback (most recent call last):
            ...
        privstats.errors.LocalProtocolError: this contribution was used before and serves one session only: make a
        new one, with new noise, under a new run name
    """

    __slots__ = ("_lock", "_noise_root", "_plan", "_process", "_reproducible", "_used", "_vector")

    def __init__(self, plan: str, vector: RingVector, *, reproducible: bool = False, noise_root: bytes = b"") -> None:
        self._vector, self._reproducible, self._noise_root = vector, reproducible, noise_root
        self._plan, self._used, self._lock, self._process = plan, False, Lock(), os.getpid()

    @property
    def vector(self) -> RingVector:
        """The vector, for inspection; sending it makes it a release."""
        return self._vector

    @property
    def noise_root(self) -> bytes:
        """What opens all layers of its noise: for the machine that sends the vector, and for nobody else."""
        return self._noise_root

    @property
    def reproducible(self) -> bool:
        """Whether its noise came from a generator that others may know, so that it gives no privacy."""
        return self._reproducible

    def check(self, plan: str) -> None:
        """Verify that it was made under the plan with this digest and was not used, before anything is spent.

        Raises:
            DataError: it was made under another plan.
            LocalProtocolError: it was taken before.
        """
        if self._plan != plan:
            raise DataError("the contribution was made under another plan; make one with session.contribution")
        if self._used:
            raise LocalProtocolError(_USED)

    def take(self) -> RingVector:
        """The vector, once.

        Raises:
            LocalProtocolError: it was taken before, or made before a fork.
        """
        if os.getpid() != self._process:
            raise LocalProtocolError(
                "this contribution was made before a fork, and every process would send the same noise: make it in the "
                "process that sends it"
            )
        with self._lock:
            if self._used:
                raise LocalProtocolError(_USED)
            self._used = True
        return self._vector

    def __repr__(self) -> str:
        return "Contribution(<one party's vector>)"

    def __copy__(self) -> NoReturn:
        raise LocalProtocolError("a contribution is sent once, so it is never copied: make another from the moments")

    def __deepcopy__(self, memo: dict[int, Any]) -> NoReturn:
        self.__copy__()

    def __reduce_ex__(self, protocol: Any) -> NoReturn:
        self.__copy__()
