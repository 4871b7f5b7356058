"""Whole parties protected: one direction of each, or two rounds, against DP-FedAvg, with and without a site's rows.

    python -m benchmarks.peers.parties [--quick] --save [--keep] [--ours] [--tasks cifar10 agnews]

DP-FedAvg is tuned **on the test rows**, per cell and at no charge: 96 recipes (clips, rates, local steps, one or three
rounds) are tried on the first draw, the best six and eight rounds of the best three on the first three. Ours has
nothing to tune. "Centred": scores of ``x - m`` without an intercept, m the mean of the test rows, whose labels nobody
reads; a site that serves a model has its rows. "Site's rows": what our head does with them, for DP-FedAvg at the recipe
that is best where it is centred. Ours is the library's own measurement, noise and release (central noise, which the
server would add after unmasking); masks are left out, because they cancel. `se` is the standard error over the draws,
of the partition and of all that is drawn. FedAvg without noise or clip, of as many rounds as DP-FedAvg has at most,
says what could be reached without a promise. With ``--ours`` the saved recipes of DP-FedAvg are used, and its saved
rows stay where they have as many draws.
"""

from __future__ import annotations

import argparse
import itertools
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

import privstats as ps
from benchmarks.data import Split, agnews, private_tasks
from benchmarks.measuring import Row, Tables, command, results, standard_error
from benchmarks.peers import softmax
from benchmarks.peers.dp_fedavg import DPFedAvg
from benchmarks.peers.interface import DELTA, Shards, dealt
from privstats import session
from privstats.contrib.heads.party_discriminant import site_weights
from privstats.course import Round
from privstats.randomness import seeded

__all__ = ["ALPHAS", "EPSILONS", "PARTIES", "TASKS", "TITLE", "Descent", "Draw", "rows_of"]

TASKS = ("cifar10", "agnews", "fmnist", "digits")
TITLE = "whole parties protected, accuracy in %: "
PARTIES, ALPHAS, EPSILONS, DRAWS = (20, 100), (0.1, 0.5), (1.0, 3.0, 8.0), 10
_CLIPS, _ROUNDS, _RATES, _LOCAL, _MANY = (0.3, 1.0, 3.0, 10.0), (1, 3), (4.0, 16.0, 64.0, 256.0), (5, 20, 80), 8
_ONE, _CENTRED, _SITE = "DP-FedAvg, one round", ", centred", ", site's rows"
_PLAIN = "FedAvg, no promise"
_SECOND_SEED = 1_000

Array = NDArray[np.float32]


@dataclass(frozen=True)
class Descent:
    """DP-FedAvg over all parties at once: what ``dp_fedavg`` does through Flower, in stacked arrays.

    Attributes:
        shards: the parties.
    """

    shards: Shards
    _first: dict[tuple[float, int], Array] = field(default_factory=dict, repr=False)

    @cached_property
    def _rows(self) -> Array:
        return softmax.with_bias(self.shards.pooled[0])

    def weights(self, peer: DPFedAvg, noise: np.random.Generator | None) -> Array:
        """The weights after all rounds, ``(d + 1, C)``; without noise where there is no generator."""
        W = softmax.blank(self.shards.features, self.shards.classes)
        for turn in range(1, peer.rounds + 1):
            moved = self._from_zero(peer) if turn == 1 else self._locally(W, peer.rate, peer.local, turn)
            lengths = np.sqrt(np.square(moved).sum(axis=(1, 2)))
            clipped = moved * np.minimum(1.0, peer.clip / np.maximum(lengths, 1e-30))[:, None, None]
            W = np.asarray(W + clipped.mean(axis=0), np.float32)
            if noise is not None:
                spread = peer.multiplier * peer.clip / len(self.shards.parts)
                W += np.float32(spread) * noise.standard_normal(W.shape, np.float32)
        return W

    def _from_zero(self, peer: DPFedAvg) -> Array:
        """The first round's updates, which no clip and no noise changes."""
        key = (peer.rate, peer.local)
        if key not in self._first:
            W = softmax.blank(self.shards.features, self.shards.classes)
            self._first[key] = self._locally(W, peer.rate, peer.local, 1)
        return self._first[key]

    def _locally(self, W: Array, rate: float, count: int, turn: int) -> Array:
        """What every party moves the weights by in one round, ``(K, d + 1, C)``."""
        sizes = [len(y) for _, y in self.shards.parts]
        batches = np.stack([
            start + np.random.default_rng((self.shards.seed, turn, place)).integers(0, n, (count, softmax.BATCH))
            for place, (start, n) in enumerate(zip(np.cumsum([0, *sizes]), sizes, strict=False))
        ])  # fmt: skip
        own, labels = np.repeat(W[None], len(sizes), axis=0), self.shards.pooled[1]
        places = np.ix_(range(len(sizes)), range(softmax.BATCH))
        for step in range(count):
            rows = self._rows[batches[:, step]]
            p = rows @ own
            p -= p.max(axis=2, keepdims=True)
            np.exp(p, out=p)
            p /= p.sum(axis=2, keepdims=True)
            p[(*places, labels[batches[:, step]])] -= 1
            own -= np.float32(rate / softmax.BATCH) * (rows.transpose(0, 2, 1) @ p)
        return np.asarray(own - W)


@dataclass(frozen=True)
class Draw:
    """One draw of a cell: the partition, what every party sends, and DP-FedAvg on the same rows."""

    shards: Shards
    _weights: dict[tuple[DPFedAvg, int], Array] = field(default_factory=dict, repr=False)
    _rounds: dict[float, list[ps.Release | None]] = field(default_factory=dict, repr=False)

    @cached_property
    def descent(self) -> Descent:
        """DP-FedAvg."""
        return Descent(self.shards)

    @cached_property
    def directions(self) -> tuple[ps.PartySchema, list[Any]]:
        """The schema, and every party's direction."""
        schema = ps.PartySchema(self.shards.classes, self.shards.features)
        return schema, [ps.measure(schema, X, y) for X, y in self.shards.parts]

    def ours(self, epsilon: float, view: str, *, twice: bool = False) -> float:
        """The score of the library's head, of one release or two, with the site's rows or without."""
        (schema, parts), shards = self.directions, self.shards
        promise: Any = {"epsilon": epsilon, "delta": DELTA, "adjacency": "add-remove", "max_records_per_client": 1}
        privacy = ps.Privacy(model="central", unit="client", **promise)
        plan = ps.Plan(schema=schema, cohort=ps.Cohort(*(len(parts),) * 3), privacy=privacy)
        if twice and epsilon not in self._rounds:
            self._rounds[epsilon] = ps.course.run(ps.PartyRounds.within(plan), self._released)
        made_from: Any = self._rounds[epsilon] if twice else self._released(Round(0, plan, b""))
        head = ps.heads.PartyDiscriminant().fit_release(made_from, X_site=shards.X_test if view else None)
        return 100 * float(head.score(shards.X_test.astype(np.float64), shards.y_test))

    def _released(self, round_: Round) -> ps.Release:
        plan, parts = round_.plan, self.directions[1]
        if plan.published is not None:
            parts = [ps.measure(plan.schema, X, y, published=plan.published) for X, y in self.shards.parts]
        return session.aggregate_unmasked(plan, parts, seeded(self.shards.seed + _SECOND_SEED * round_.place))

    def theirs(self, peer: DPFedAvg, view: str, draw: int = 0) -> float:
        """The score of DP-FedAvg, whose weights are the same however the site's rows are used; without noise where it
        promises nothing."""
        shards, promised = self.shards, math.isfinite(peer.epsilon)
        key = (peer, draw if promised else 0)
        if key not in self._weights:
            noise = np.random.default_rng((shards.seed, draw, 7)) if promised else None
            self._weights[key] = self.descent.weights(peer, noise)
        W = self._weights[key]
        if not view:
            return shards.accuracy(softmax.scores(W, shards.X_test))
        rows, weights = self._centred, W[:-1].T.astype(np.float64)
        if view == _SITE:
            spread = peer.multiplier * peer.clip / len(shards.parts) * math.sqrt(peer.rounds)
            weights = site_weights(weights, spread, rows)
        return shards.accuracy(rows @ weights.T)

    @cached_property
    def _centred(self) -> NDArray[np.float64]:
        rows: NDArray[np.float64] = self.shards.X_test.astype(np.float64)
        return np.asarray(rows - rows.mean(axis=0))


Recipe: TypeAlias = tuple[float, int, float, int]
"""Clip, rounds, rate and local steps of DP-FedAvg."""
GRID: Sequence[Recipe] = tuple(itertools.product(_CLIPS, _ROUNDS, _RATES, _LOCAL))


def rows_of(draws: Sequence[Draw], grid: Sequence[Recipe], saved: Iterable[Row] = ()) -> Iterator[Row]:
    """A row per system, with and without the site's rows; DP-FedAvg once more with one round, as ours has.

    Rows of DP-FedAvg are those of ``saved`` where it has them with as many draws, and have its recipes where it has
    others.
    """
    kept = {row["system"]: row for row in saved}
    for view in (_CENTRED, ""):
        theirs = [
            _kept(draws, view, kept.get(f"{name}{view}"))
            or {"system": f"{name}{view}", **_descended(draws, grid, view, rounds)}
            for name, rounds in ((_ONE, 1), ("DP-FedAvg", _MANY))
        ]
        site = _SITE if view else ""
        for sent, twice in (("one direction", False), ("two rounds", True)):
            ours = {e: [draw.ours(e, site, twice=twice) for draw in draws] for e in EPSILONS}
            yield {"system": f"privstats, {sent}{site}", **_summed(ours)}
        if site:
            yield {"system": f"{_ONE}{site}", **_scored(draws, _recipes(theirs[0]), site)}
        yield from theirs
        if site:
            plain = kept.get(f"{_PLAIN}{view}", {"draws": 0})
            yield plain if plain["draws"] == len(draws) else _unprotected(draws, grid, view)


def _kept(draws: Sequence[Draw], view: str, row: Row | None) -> Row | None:
    """A saved row of DP-FedAvg, or one of its recipes where it has another number of draws."""
    if row is None or row["draws"] == len(draws):
        return row
    return {"system": row["system"], **_scored(draws, _recipes(row), view)}


def _unprotected(draws: Sequence[Draw], grid: Sequence[Recipe], view: str) -> Row:
    """FedAvg without clip and noise, tuned on the first draw: one number, whatever the epsilon."""
    tried = dict.fromkeys(DPFedAvg(math.inf, math.inf, _MANY, rate, local) for _, _, rate, local in grid)
    peer = max(tried, key=lambda peer: draws[0].theirs(peer, view))
    return {"system": f"{_PLAIN}{view}", **_scored(draws, dict.fromkeys(EPSILONS, peer), view)}


def _descended(draws: Sequence[Draw], grid: Sequence[Recipe], view: str, rounds: int) -> Row:
    """DP-FedAvg tuned per epsilon, with at most so many rounds."""
    few = [recipe for recipe in grid if recipe[1] <= rounds]
    return _scored(
        draws, {e: _tuned(draws[:3], [DPFedAvg(e, *recipe) for recipe in few], view, rounds) for e in EPSILONS}, view
    )


def _scored(draws: Sequence[Draw], peers: Mapping[float, DPFedAvg], view: str) -> Row:
    """The scores of DP-FedAvg, and its recipes."""
    scores = {e: [draw.theirs(peer, view) for draw in draws] for e, peer in peers.items()}
    return {**_summed(scores), **{f"recipe {e:g}": str(peer) for e, peer in peers.items()}}


def _recipes(row: Row) -> Mapping[float, DPFedAvg]:
    """What a row was scored with, by epsilon."""
    return {epsilon: DPFedAvg(epsilon, *_recipe(row[f"recipe {epsilon:g}"])) for epsilon in EPSILONS}


def _recipe(text: str) -> Recipe:
    """The recipe that a peer printed."""
    clip, rounds, rate, local = re.findall(r"[\d.]+", text)
    return float(clip), int(rounds), float(rate), int(local)


def _tuned(draws: Sequence[Draw], recipes: Sequence[DPFedAvg], view: str, rounds: int) -> DPFedAvg:
    """The best recipe on the test rows, with other noise than it is scored with."""
    ranked = sorted(recipes, key=lambda peer: -draws[0].theirs(peer, view, 1))[:6]
    longer = [replace(peer, rounds=rounds) for peer in ranked[:3] if rounds == _MANY]
    return max((*ranked, *longer), key=lambda peer: sum(draw.theirs(peer, view, 2) for draw in draws))


def _summed(scores: Mapping[float, Sequence[float]]) -> dict[str, float]:
    """Mean and standard error per epsilon."""
    found: dict[str, float] = {}
    for epsilon, values in scores.items():
        found[f"eps {epsilon:g}"] = float(np.mean(values))
        found[f"se {epsilon:g}"] = standard_error(values)
    return {**found, "draws": len(values)}


def options(parser: argparse.ArgumentParser) -> None:
    """What to compare."""
    parser.add_argument("--tasks", nargs="+", choices=TASKS, default=list(TASKS), help="all if omitted")
    parser.add_argument("--parties", nargs="+", type=int, choices=PARTIES, default=list(PARTIES))
    parser.add_argument("--alphas", nargs="+", type=float, choices=ALPHAS, default=list(ALPHAS))
    parser.add_argument("--draws", type=int, default=DRAWS)
    parser.add_argument("--keep", action="store_true", help="keep saved tables that this run does not measure")
    parser.add_argument("--ours", action="store_true", help="keep the saved recipes of DP-FedAvg, and its rows")


def tables(options: argparse.Namespace) -> Tables:
    """A table per data set, number of parties and partition."""
    found = dict(results("peers.parties")) if options.keep or options.ours else {}
    kept, few = dict(found) if options.keep else {}, options.quick
    for (name, split), parties, alpha in itertools.product(_splits(options), options.parties, options.alphas):
        draws = [Draw(dealt(split, parties, alpha, seed)) for seed in range(2 if few else options.draws)]
        title = f"{TITLE}{name}, {parties} parties, alpha {alpha:g}"
        kept.pop(title, None)
        yield title, list(rows_of(draws, GRID[:2] if few else GRID, found.get(title, ()) if options.ours else ()))
        if few:
            return
    yield from ((title, rows) for title, rows in kept.items() if title != "machine")


def _splits(options: argparse.Namespace) -> Iterator[tuple[str, Split]]:
    names = ("digits",) if options.quick else options.tasks
    for task in (*private_tasks(bundled_only=options.quick), *(() if options.quick else agnews())):
        if task.name in names:
            yield task.name, task.transformed()


if __name__ == "__main__":
    command("peers.parties", __doc__, tables, options)
