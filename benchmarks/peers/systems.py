"""All systems that are compared, and how each is tuned: a name, its candidates, and the sentence that says so.

Candidates are fitted on shards with every fifth record held back, at no charge to any budget; the best is fitted on all
seeds. Nothing is measured here.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any

from benchmarks.peers import ccvr, dp_fedavg, dp_naive_bayes, dp_sgd, fedpft, flower, one_round, ours, pooled, scaffold
from benchmarks.peers.interface import Peer, Shards

__all__ = ["EPSILONS", "FEW_EPSILONS", "Search", "System", "exact", "party_level", "private"]

EPSILONS: Mapping[str, Sequence[float]] = {"record": (0.3, 1.0, 8.0), "party": (0.3, 1.0, 8.0)}
"""Of the small set, by whom they protect."""
FEW_EPSILONS: Mapping[str, Sequence[float]] = {"record": (1.0,), "party": (8.0,)}
"""Of the others; the refinement benchmark has more of them for one record."""
_SCREEN, _FINALISTS = 10, 2


@dataclass(frozen=True)
class Search:
    """Scores on held-out records of one partition, each peer's once.

    Attributes:
        shards: what peers are tuned for; every fifth of their records is held back.
    """

    shards: Shards
    _scores: dict[tuple[Peer, int], float] = field(default_factory=dict, repr=False)

    @cached_property
    def inner(self) -> Shards:
        """Less records, and the held-out ones as the test."""
        return self.shards.held_out()

    def best(self, candidates: Sequence[Peer]) -> Peer:
        """The candidate with the highest score.

        Of many that communicate for many rounds all are tried with ten rounds, and the best two with all. Of many
        that draw noise all are tried once, and the best two with three draws, lest luck should choose.
        """
        if len(candidates) == 1:
            return candidates[0]
        if len(candidates) > _FINALISTS:
            ranked = sorted(candidates, key=lambda each: -self.score(_shorter(each)))
            candidates = ranked[:_FINALISTS] if _shorter(ranked[0]) != ranked[0] or _noisy(ranked[0]) else ranked[:1]
        return max(candidates, key=lambda each: self.score(each, 3 if _noisy(each) else 1))

    def score(self, peer: Peer, draws: int = 1) -> float:
        """Mean over draws, percent."""
        for draw in range(draws):
            if (peer, draw) not in self._scores:
                shards = replace(self.inner, seed=self.inner.seed + draw)
                self._scores[peer, draw] = peer.fit(shards).score
        return sum(self._scores[peer, draw] for draw in range(draws)) / draws


@dataclass(frozen=True)
class System:
    """A row of the comparison.

    Attributes:
        name: as the tables have it.
        search: what is tried, in words.
        candidates: from a search to peers, of which the best is taken.
        everywhere: whether the outcome depends on which party holds what.
        most: seeds, of what is slow or draws nothing; None for all.
        epsilon: of its promise.
    """

    name: str
    search: str
    candidates: Callable[[Search], Sequence[Peer]]
    everywhere: bool = True
    most: int | None = None
    epsilon: float = math.inf

    @property
    def key(self) -> tuple[str, float]:
        """Name and epsilon."""
        return self.name, self.epsilon


def _shorter(peer: Any) -> Peer:
    """The same with at most ten rounds."""
    shorter: Peer = replace(peer, rounds=_SCREEN) if getattr(peer, "rounds", 0) > _SCREEN else peer
    return shorter


def _noisy(peer: Peer) -> bool:
    return math.isfinite(getattr(peer, "epsilon", math.inf))


_LOCAL = "rates 16, 64, 256; 5, 20, 50 local steps on batches of 32"


def exact(rounds: Sequence[int] = (10, 50)) -> Iterator[System]:
    """The systems without differential privacy.

    Args:
        rounds: of the iterative ones.
    """
    yield System("pooled LDA (scikit-learn)", "nothing", _only(pooled.Pooled("LDA")), False, 1)
    search = "C = 10, 100, 1000"
    yield System("pooled logistic regression", search, _always(pooled.logistic_grid()), False, 1)
    for count in rounds:
        yield System(f"FedAvg (Flower), {count} rounds", _LOCAL, _always(flower.federated_grid(rounds=count)))
    most = max(rounds)
    yield System(f"FedProx (Flower), {most} rounds", "as FedAvg, and mu = .0001, .001", _prox(most))
    yield System(f"SCAFFOLD, {most} rounds", _LOCAL, _always(scaffold.scaffold_grid(most)))
    search = "rates 16, 64, 256; 20, 100, 500 steps"
    yield System("O-FedAvg, 1 round", search, _always(flower.one_round_grid()))
    yield System("ensemble", "rates 4, 16, 64; 20, 100, 500 steps; both weightings", _always(one_round.ensemble_grid()))
    search = "K = 5, 10, spherical 10; rates 16, 64"
    yield System("FedPFT, diagonal", search, _always(fedpft.fedpft_grid(full=False)))
    yield System("FedPFT, full", "K = 1; rates 16, 64", _always(fedpft.fedpft_grid(full=True)))
    yield System("CCVR", "100, 1000 features per class; rates 16, 64; after 10 rounds of the best FedAvg", _ccvr)
    for head, (statistics, _) in ours.HEADS.items():
        # the sums are the same integers under every partition; the large ones are not masked for every one
        seeds = 1 if statistics == "NAS" else None
        yield System(f"privstats {head}", "nothing", _only(ours.OneShot(head)), False, seeds)


def private(epsilon: float) -> Iterator[System]:
    """The systems that protect a record, at one epsilon."""
    search = "rates 1 to 128, clips .1 to 1, momenta, schedules, as in the refinement benchmark"
    yield System("DP-SGD (Opacus), pooled", search, partial(_dp_sgd, epsilon), False, epsilon=epsilon)
    peers: dict[str, Peer] = {
        "naive Bayes (diffprivlib), pooled": dp_naive_bayes.DPNaiveBayes(epsilon),
        "privstats LDA": ours.OneShot("LDA", epsilon),
        "privstats refined, T = 4": ours.Refined(epsilon),
    }
    for name, peer in peers.items():  # noise and sums have the same law under every partition
        yield System(name, "nothing", _only(peer), False, epsilon=epsilon)


def party_level(epsilon: float) -> Iterator[System]:
    """The systems that protect a whole party, at one epsilon."""
    search = "clips .3, 1, 3; 1, 3, 10 rounds; rates 4, 16; 5, 20 local steps"
    yield System("DP-FedAvg (Flower), per party", search, _always(dp_fedavg.dp_grid(epsilon)), epsilon=epsilon)
    search = "client_clip 3, 10, 30; two shares of the budget"
    yield System("privstats LDA, per party", search, _always(ours.party_grid(epsilon)), epsilon=epsilon)


def _dp_sgd(epsilon: float, search: Search) -> Sequence[Peer]:
    return dp_sgd.dp_sgd(epsilon, search.shards)


def _only(peer: Peer) -> Callable[[Search], Sequence[Peer]]:
    return _always((peer,))


def _always(peers: Sequence[Peer]) -> Callable[[Search], Sequence[Peer]]:
    return lambda search: peers  # noqa: ARG005 - these do not depend on what they are tuned on


def _prox(rounds: int) -> Callable[[Search], Sequence[Peer]]:
    """Every pull with FedAvg's best."""

    def candidates(search: Search) -> Sequence[Peer]:
        best: Any = search.best(flower.federated_grid(rounds=rounds))
        return [replace(best, pull=pull) for pull in (1e-4, 1e-3)]

    return candidates


def _ccvr(search: Search) -> Sequence[Peer]:
    """Calibration after FedAvg's best."""
    before: Any = search.best(flower.federated_grid(rounds=_SCREEN))
    return ccvr.ccvr_grid(before)
