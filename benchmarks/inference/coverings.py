"""Compare every way of making intervals with a known truth: one answer, one row, for all tables here.

The worlds of a table depend on its name and the run alone, so all ways read the same records.
"""

from __future__ import annotations

import importlib.util
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from importlib.metadata import version
from typing import Any, Generic, Literal, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

import privstats as ps
from benchmarks.measuring import Row, Rows
from privstats import inference as inf
from privstats import session
from privstats.errors import ReleaseError
from privstats.inference.inversion import Inversion
from privstats.randomness import Generator, seeded

__all__ = [
    "Answer",
    "Peer",
    "Way",
    "compared",
    "dealt",
    "ends_at",
    "plan_of",
    "promise",
    "ran",
    "seed_of",
    "tallied",
    "textbook",
]

W = TypeVar("W")
Array = NDArray[np.float64]
_Z = 1.959963984540054
_STREAMS = 2**20  # runs of one table that have chance of their own


@dataclass(frozen=True, eq=False)
class Answer:
    """A method's estimates and intervals of the parameters.

    Attributes:
        estimate: ``(m,)``; NaN where it says nothing.
        low, high: ends of 95 % intervals, infinite where they are not reported; None where the way has no intervals.
        truth: what the parameters are, ``(m,)``.
    """

    estimate: Array
    low: Array | None
    high: Array | None
    truth: Array

    @classmethod
    def of(cls, estimate: Array, ends: Array, truth: Array) -> Answer:
        """Build an answer from intervals of shape ``(m, 2)``."""
        return cls(estimate, ends[:, 0], ends[:, 1], truth)


Way: TypeAlias = Callable[[np.random.Generator, Generator], Answer]
"""Draws a world from the first generator and reads it with noise from the second."""


def seed_of(cell: str, run: int) -> int:
    """Return the seed of one run of a cell: another for each name and run."""
    return zlib.crc32(cell.encode()) * _STREAMS + run


def tallied(cell: str, answer: Way, runs: int) -> Row:
    """Reported, reported and missed (of all parameters, and of the worst), half width and error over ``runs`` worlds.

    Args:
        cell: names the worlds: the same name, the same records.
        answer: draws a world from the first generator and reads it with noise from the second.
    """
    answers, refused = [], 0
    for run in range(runs):
        seed = seed_of(cell, run)
        try:
            answers.append(answer(np.random.default_rng(seed), seeded(seed)))
        except ReleaseError:
            refused += 1
    with_ends = [each for each in answers if each.low is not None]
    widths = np.concatenate([(each.high - each.low) / 2 for each in with_ends]) if with_ends else np.zeros(0)  # type: ignore[operator]
    missed = [(each.low > each.truth) | (each.high < each.truth) for each in with_ends]  # type: ignore[operator]
    reported = np.isfinite(widths)
    share = (runs - refused) / runs
    errors = np.concatenate([np.abs(each.estimate - each.truth) for each in answers]) if answers else np.zeros(0)
    return {
        "runs": runs,
        "reported": share * float(reported.mean()) if with_ends else (None if answers else 0.0),
        "reported and missed": share * float(np.mean(missed)) if with_ends else (None if answers else 0.0),
        "worst parameter": share * float(np.mean(missed, axis=0).max()) if with_ends else None,
        "half width": float(np.median(widths[reported])) if reported.any() else None,
        "median error": float(np.nanmedian(errors)) if np.isfinite(errors).any() else None,
    }


@dataclass(frozen=True)
class Peer(Generic[W]):
    """One way of making a table, on one kind of world.

    Attributes:
        name: what it is; published formulas in lines of our own say so.
        package: what it is made with, and must be installed; empty for a few lines here.
        epsilon: of the promise per record; None where none is made.
        bytes: what one party sends.
        discloses: what whoever reads the sums sees of a party's records.
        answer: the way: a world and noise in, an answer out.
    """

    name: str
    package: str
    epsilon: float | None
    bytes: int
    discloses: str
    answer: Callable[[W, Generator], Answer]


def compared(title: str, draw: Callable[[np.random.Generator], W], peers: Sequence[Peer[W]], runs: int) -> Rows:
    """A row for every peer, on the same worlds; a peer whose package is missing says so in its row."""
    return [_row(title, draw, peer, runs) for peer in peers]


def _row(title: str, draw: Callable[[np.random.Generator], W], peer: Peer[W], runs: int) -> Row:
    about = {"peer": peer.name, "version": _version(peer.package), "epsilon": peer.epsilon}
    about |= {"bytes": peer.bytes, "discloses": peer.discloses}
    if peer.package and importlib.util.find_spec(peer.package) is None:
        return {**about, "runs": 0, "not run": f"{peer.package} is not installed"}
    found = tallied(title, lambda chance, rng: peer.answer(draw(chance), rng), runs)
    return {**about, **found}


def _version(package: str) -> str:
    if not package:
        return "own lines"
    return f"{package} {version(package)}" if importlib.util.find_spec(package) else package


def textbook(table: inf.Regression) -> tuple[Array, Array]:
    """The textbook's 95 % intervals from the same noisy sums, as if there were no noise."""
    errors = table.errors
    assert isinstance(errors, Inversion)
    blind = replace(errors.equations, sigma_G=0.0, sigma_h=0.0, sigma_q=0.0)
    return Inversion(blind, errors.contrasts, errors.degrees).interval(0.05)


def ends_at(estimate: Array, error: Array, truth: Array) -> Answer:
    """Wald intervals."""
    return Answer(estimate, estimate - _Z * error, estimate + _Z * error, truth)


def promise(epsilon: float, model: Literal["central", "distributed"] = "central") -> ps.Privacy:
    """Per record at delta 1e-6."""
    return ps.Privacy(model=model, unit="record", adjacency="add-remove", epsilon=epsilon, delta=1e-6)


def plan_of(
    schema: Any, clients: int, records: int, epsilon: float | None, model: Literal["central", "distributed"] = "central"
) -> ps.Plan:
    """A plan with a promise, or without noise where epsilon is None."""
    privacy = ps.NoPrivacy() if epsilon is None else promise(epsilon, model)
    return ps.Plan(schema=schema, cohort=ps.Cohort(clients, clients, 2 * records), privacy=privacy)


def ran(plan: ps.Plan, parts: Sequence[Any], rng: Generator) -> ps.Release:
    """The release of these parties' data: one argument tuple of ``measure`` each."""
    moments = [ps.measure(plan.schema, *part, published=plan.published) for part in parts]
    return session.aggregate_unmasked(plan, moments, rng)


def dealt(X: Any, y: Any, clients: int) -> list[tuple[Any, Any]]:
    """Records in turns to the parties."""
    return [(X[k::clients], y[k::clients]) for k in range(clients)]
