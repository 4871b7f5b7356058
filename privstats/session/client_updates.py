"""Make a client's update of another program's model private before it leaves, round after round.

An update is one record of a :class:`~privstats.kinds.MeanSchema`, with that schema's noise and price.
"""

from __future__ import annotations

import hashlib
import math
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from privstats import domains, dp
from privstats.encoding import Layout, layout_of
from privstats.errors import DataError, LedgerError, PlanError
from privstats.files.text import json_text
from privstats.kinds import MeanSchema
from privstats.moments.grid import feature_grid
from privstats.randomness import Generator, checked
from privstats.session.noise import client_noise

_GRID_BITS = 20
_RUN_BYTES = 16
_UNIT: Final = "client"
_ADJACENCY: Final = "replace-one"


@dataclass(frozen=True)
class ClientUpdates:
    """Noise on one client's updates in several rounds, under one promise for the client.

    Every round costs mu = mu(epsilon, delta) / sqrt(rounds). The noise is *local*: each client adds all of it, no other
    party is trusted, and the mean of n updates has 1 / sqrt(n) of it in every entry.

    Guarantee:
        Unit one client with all its records, adjacency replace-one: its data may be exchanged for any other, also for
        none. An update u becomes integers q of norm at most 2**20 (``moments.grid``), decided in integers, whatever u
        is; so two of them differ by at most 2 C in real units, and q plus rounded Gaussian noise of sigma = 2 C / mu is
        exactly mu-GDP. Rounds compose as sqrt(sum mu_i^2), also where the model of a round depends on the updates
        before. Source: Dong, Roth and Su 2022, theorem 1 and corollary 2; clipping complete updates: McMahan et al.
        2018 (arXiv:1710.06963). Assumes that nothing else of the client's data leaves, and that its ledger is charged
        for everything that does.

    Args:
        shapes: an update's array names and shapes; public.
        clip_norm: C, the maximum norm over all arrays together; public, chosen without data.
        epsilon, delta: promise of all rounds together.

    Raises:
        PlanError: a value out of range, or so little budget per round that only noise would remain.

    Example:
        >>> shapes = {"W": (2, 3), "b": (2,)}
        >>> updates = ps.session.ClientUpdates(shapes, clip_norm=1.0, epsilon=8.0, delta=1e-5, rounds=10)
        >>> round(updates.sigma, 2)
        3.8
        >>> ledger = ps.dp.Ledger.create("ledger")
        >>> ledger.set_cap("fedavg", unit="client", adjacency="replace-one", epsilon=8.0, delta=1e-5)
        >>> sent = updates.released({"W": np.ones((2, 3)), "b": np.zeros(2)}, ledger, "fedavg")
        >>> {name: array.shape for name, array in sent.items()}
        {'W': (2, 3), 'b': (2,)}
        >>> round(ledger.account("fedavg").spent, 2), len(ledger.account("fedavg").entries)
        (2.11, 1)
    """

    shapes: Mapping[str, tuple[int, ...]] = field(hash=False)
    clip_norm: float
    epsilon: float
    delta: float
    rounds: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "shapes", _checked_shapes(self.shapes))
        if isinstance(self.rounds, bool) or not isinstance(self.rounds, int) or self.rounds < 1:
            raise PlanError(f"rounds must be an integer of at least 1, got {self.rounds!r}")
        self.noise  # noqa: B018 - refuses the other values

    @property
    def size(self) -> int:
        """Number of entries of an update."""
        return sum(math.prod(shape) for shape in self.shapes.values())

    @cached_property
    def schema(self) -> MeanSchema:
        """Schema of one update: arrays concatenated in name order."""
        return MeanSchema(self.size, self.clip_norm, _GRID_BITS)

    @cached_property
    def privacy(self) -> dp.Privacy:
        """Promise of one round."""
        total = self._promise(self.epsilon)
        if self.rounds == 1:
            return total
        mu = dp.gaussian_mu(self.epsilon * total.trust.margin, self.delta * total.trust.margin) / math.sqrt(self.rounds)
        return self._promise(dp.gaussian_epsilon(mu, self.delta))

    @cached_property
    def noise(self) -> dp.Noise:
        """Noise of one round."""
        return dp.calibrate(self.schema, self.privacy, honest_shares=1)

    @property
    def sigma(self) -> float:
        """Noise standard deviation, in real units."""
        return self.noise.sigma["x"]

    @property
    def digest(self) -> str:
        """SHA-256 of the public values, in hex."""
        stated = {"shapes": {name: list(shape) for name, shape in self.shapes.items()}, "clip_norm": self.clip_norm}
        stated |= {"epsilon": self.epsilon, "delta": self.delta, "rounds": self.rounds}
        return hashlib.sha256(domains.CLIENT_UPDATES + json_text(stated).encode()).hexdigest()

    def released(
        self,
        update: Mapping[str, Any],
        ledger: dp.Ledger,
        account: str,
        rng: Generator | None = None,
        *,
        allow_reproducible: bool = False,
    ) -> dict[str, NDArray[np.float32]]:
        """Charge the ledger, then return the update clipped, rounded and with noise: the only form that may leave.

        Each call is a separate round and costs its price, even for the same update.

        Args:
            update: arrays by name; one with NaN or infinity counts as zeros.
            account: one with unit ``"client"`` and adjacency ``"replace-one"``.
            rng: None samples from the system.
            allow_reproducible: accept a reproducible ``rng``, for tests.

        Returns:
            float32 arrays by name.

        Raises:
            DataError: other names or shapes; nothing is spent.
            LedgerError: no such account, an account per record, or no room for a round; nothing is spent, and nothing
                may leave.
        """
        row, noise = self._row(update), checked(rng, allow_reproducible=allow_reproducible)
        self._require_account(ledger, account)
        entry = ledger.spend(
            account,
            plan=self.digest,
            run=os.urandom(_RUN_BYTES),
            schema=self.schema,
            privacy=self.privacy,
            noise=self.noise,
            what="update of a model",
        )
        sent = self._noisy(row, noise)
        ledger.finish(entry, hashlib.sha256(b"".join(array.tobytes() for array in sent.values())).digest())
        return sent

    @cached_property
    def _layout(self) -> Layout:
        return layout_of(self.schema)

    def _promise(self, epsilon: float) -> dp.Privacy:
        return dp.Privacy(
            model="local",
            unit=_UNIT,
            adjacency=_ADJACENCY,
            epsilon=epsilon,
            delta=self.delta,
            max_records_per_client=1,
        )

    def _row(self, update: Mapping[str, Any]) -> NDArray[np.float64]:
        if update.keys() != self.shapes.keys():
            raise DataError(
                f"an update has the arrays {', '.join(self.shapes)}, and this one has others: pass the shapes of the "
                "trained model; nothing was spent"
            )
        parts = []
        for name, shape in self.shapes.items():
            array = _numbers(name, update[name])
            if array.shape != shape:
                raise DataError(f"{name} has shape {array.shape} and must have {shape}; nothing was spent")
            parts.append(array.ravel())
        row = np.concatenate(parts)
        return row if np.isfinite(row).all() else np.zeros_like(row)

    def _noisy(self, row: NDArray[np.float64], rng: Generator) -> dict[str, NDArray[np.float32]]:
        drawn, _ = client_noise(self.noise, self._layout, rng)
        return self._arrays((self._quantized(row) + drawn) / self.schema.scale)

    def _quantized(self, row: NDArray[np.float64]) -> NDArray[np.int64]:
        grid = np.empty((1, self.size))
        feature_grid(self.schema).quantize(row[None], grid)
        integers: NDArray[np.int64] = grid[0].astype(np.int64)
        return integers

    def _arrays(self, row: NDArray[np.float64]) -> dict[str, NDArray[np.float32]]:
        ends = np.cumsum([math.prod(shape) for shape in self.shapes.values()])[:-1]
        parts = zip(self.shapes.items(), np.split(row, ends), strict=True)
        return {name: part.reshape(shape).astype(np.float32) for (name, shape), part in parts}

    @staticmethod
    def _require_account(ledger: dp.Ledger, account: str) -> None:
        """Refuse accounts per record: one record may turn the complete update."""
        cap = ledger.account(account).cap
        if cap is None or (cap.unit, cap.adjacency) != (_UNIT, _ADJACENCY):
            raise LedgerError(
                f"account {account!r} must be per client under replace-one, because one record may change the whole "
                "update: open one with `privstats ledger cap LEDGER NAME --unit client --adjacency replace-one "
                "--epsilon E --delta D`; nothing was spent"
            )


def _numbers(name: str, given: Any) -> NDArray[np.float64]:
    refusal = DataError(f"{name} is no array of real numbers; nothing was spent")
    if isinstance(given, np.ma.MaskedArray):
        raise refusal
    try:
        array = np.asarray(given)
    except (TypeError, ValueError, RuntimeError):
        raise refusal from None
    if array.dtype.kind not in "fiub":
        raise refusal
    return array.astype(np.float64)


def _checked_shapes(shapes: Mapping[str, Any]) -> dict[str, tuple[int, ...]]:
    if not isinstance(shapes, Mapping) or not shapes:
        raise PlanError("shapes must name the arrays of an update, for example {'W': (2, 3), 'b': (2,)}")
    checked_shapes = {}
    for name, shape in sorted(shapes.items()):
        sides = tuple(shape) if isinstance(shape, list | tuple) else None
        if not isinstance(name, str) or sides is None or not all(type(side) is int and side > 0 for side in sides):
            raise PlanError(f"shapes[{name!r}] must be a list of integers above 0, got {shape!r:.60}")
        checked_shapes[name] = sides
    return checked_shapes
