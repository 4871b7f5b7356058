"""A search of settings by successive halving, which goes on where it was stopped. Test rows decide every stage."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.ensemble import RandomForestRegressor

from benchmarks.measuring import Row, standard_error
from benchmarks.peers.descents import MANY, STEPS, Records, accuracies, seed_of, setting_of, steps_of

__all__ = ["AT_RANDOM", "LARGE", "REPEATS", "Rung", "Search", "best", "going_on", "promising", "rungs_of"]

AT_RANDOM = 700
"""Settings that all train, before a forest chooses."""
_GENERATION, _PROMISING = 2_100, 105  # settings that a forest compares at once, and those of them that train
REPEATS = 10
"""Draws of noise by which a winner is judged."""
_AGAIN = 6  # draws that choose it


@dataclass(frozen=True)
class Rung:
    """One stage of a search.

    Attributes:
        part: share of the records that settings train on; their noise is that of all records.
        go_on: number of settings, the best by the test rows, that reach the next stage.
    """

    part: float
    go_on: int


LARGE = 1_000_000
"""Records times classes from which on a search is too long to repeat on other divisions of the records."""
_STAGES = {
    LARGE: (Rung(1 / 15, 60), Rung(1 / 4, 15), Rung(1.0, 3)),
    20_000: (Rung(1 / 10, 400), Rung(1.0, 20)),
    0: (Rung(1.0, 20),),
}
"""The stages of a search by the number of records times classes from which on a set has them."""


Scores: TypeAlias = Mapping[int, Sequence[float]]
"""Accuracies by the number of their setting."""


@dataclass(frozen=True)
class Search:
    """One search so far, by the test rows.

    Attributes:
        settings: number of settings that were considered.
        stages: scores of each rung's best settings, then those of finalists and those of winners, on fresh noise.
        seconds: of all runs together.
        trained: number of settings that the first rung trained; all of them, where no forest chose.
    """

    settings: int
    stages: tuple[Scores, ...]
    seconds: float = 0.0
    trained: int = 0

    @classmethod
    def of(cls, rungs: Sequence[Rung], row: Row | None) -> Search:
        """Return the search of a saved row. One by other stages begins anew, with what it scored on all records."""
        names = _names(rungs)
        if row is None or not row.keys() >= {*names}:
            known = {} if row is None else {names.index(each): _read(row[each]) for each in names[1:-2] if each in row}
            return cls(0, tuple(known.get(stage, {}) for stage in range(len(names))))
        stages = tuple(_read(row[name]) for name in names)
        return cls(row["settings"], stages, row["seconds"], row.get("trained", row["settings"]))

    def row(self, rungs: Sequence[Rung]) -> Row:
        """Return what :meth:`of` reads: each stage as ``setting:score,score`` in words."""
        stages = zip(_names(rungs), self.stages, strict=True)
        return {
            "settings": self.settings,
            "trained": self.trained,
            **{name: _written(scores) for name, scores in stages},
            "seconds": self.seconds,
        }

    @property
    def winner(self) -> int:
        """The setting of the best mean among the finalists."""
        return _best(self.stages[-2], 1)[0]

    def with_scores(self, stage: int, found: Scores, seconds: float) -> Search:
        """Return the search after further scores of one stage."""
        stages = [*self.stages]
        stages[stage] = {**stages[stage], **found}
        return replace(self, stages=tuple(stages), seconds=self.seconds + seconds)


def _names(rungs: Sequence[Rung]) -> list[str]:
    return [*(f"on {rung.part:.2g} of the records" for rung in rungs), "finalists", "winners"]


def _written(scores: Scores) -> str:
    return " ".join(f"{each}:{','.join(f'{score:.7g}' for score in of)}" for each, of in scores.items())


def _read(text: str) -> Scores:
    pairs = (word.split(":") for word in text.split())
    return {int(each): [float(score) for score in of.split(",")] for each, of in pairs}


def _best(scores: Scores, count: int) -> list[int]:
    """Return the settings of the best mean scores; of equal ones the first."""
    return sorted(scores, key=lambda each: (-float(np.mean(scores[each])), each))[:count]


def rungs_of(records: Records) -> Sequence[Rung]:
    """Return the stages of a set's search, by its size alone."""
    return next(rungs for least, rungs in _STAGES.items() if records.size >= least)


def going_on(
    records: Records, mu: float, search: Search, count: int, *, preconditioned: bool = False, forest: bool = False
) -> Iterator[Search]:
    """Yield a search after each batch of runs, until ``count`` settings were considered and the winner was repeated."""
    rungs = rungs_of(records)
    parts = [records.part(rung.part) for rung in rungs]

    def scored(stage: int, settings: Sequence[int], draws: Sequence[int]) -> tuple[Scores, float]:
        began = time.perf_counter()
        runs = [(each, draw) for each in settings for draw in draws]
        drawn = torch.stack([setting_of(each, preconditioned) for each, _ in runs])
        part = parts[min(stage, len(parts) - 1)]
        found = iter(accuracies(part, drawn, steps_of(settings[0]), mu, [seed_of(*run) for run in runs]))
        return {each: [next(found) for _ in draws] for each in settings}, time.perf_counter() - began

    while search.settings < count:
        chosen = forest and search.settings >= AT_RANDOM
        begun = range(search.settings, min(count, search.settings + (_GENERATION if chosen else MANY)))
        todo = promising(search.stages[0], begun) if chosen else begun
        for batch in _side_by_side(todo, records.width if chosen else MANY):
            search = search.with_scores(0, *scored(0, batch, [0]))
        kept = {each: search.stages[0][each] for each in _best(search.stages[0], rungs[0].go_on)}
        stages, trained = (kept, *search.stages[1:]), search.trained + len(todo)
        search = replace(search, settings=begun.stop, stages=stages, trained=trained)
        yield search
    fresh = 0
    numbers = [rung.go_on for rung in rungs] + [1]
    for stage, number in enumerate(numbers, 1):
        # No draw of noise serves two stages.
        draws = range(fresh + 1, fresh + 1 + (1 if stage < len(rungs) else _AGAIN if stage == len(rungs) else REPEATS))
        fresh = draws[-1]
        todo = [each for each in _best(search.stages[stage - 1], number) if each not in search.stages[stage]]
        for batch in _side_by_side(todo, max(1, records.width // len(draws))):
            search = search.with_scores(stage, *scored(stage, batch, draws))
            yield search


def promising(kept: Scores, begun: Sequence[int]) -> list[int]:
    """Return the settings for which a random forest expects the best scores, as SMAC does (Hutter et al. 2011).

    It learns from the scores that were kept, and from the first settings without one: those have the lowest of them.
    """
    lowest = min(score for (score,) in kept.values())
    known = sorted({*range(AT_RANDOM), *kept})
    scores = [kept[each][0] if each in kept else lowest for each in known]
    forest = RandomForestRegressor(random_state=0).fit(_coordinates(known), scores)
    order = np.argsort(-forest.predict(_coordinates(begun)), kind="stable")
    return [begun[at] for at in order[:_PROMISING]]


def _coordinates(settings: Sequence[int]) -> NDArray[Any]:
    """Return the numbers by which a forest compares settings, ``(R, 6)``; the last is the length of all steps."""
    drawn = np.array([setting_of(each, False)[:4].tolist() for each in settings])
    steps = np.array([steps_of(each) for each in settings])
    rate, clip, momentum, tail = drawn.T
    columns = [np.log(rate), np.log(clip), momentum, tail, np.log(steps), np.log(rate * clip * steps / (1 - momentum))]
    return np.stack(columns, axis=1)


def _side_by_side(settings: Sequence[int], limit: int) -> Iterator[list[int]]:
    """Yield settings of equal steps, at most as many as ``limit`` at a time."""
    for steps in STEPS:
        equal = [each for each in settings if steps_of(each) == steps]
        for at in range(0, len(equal), limit):
            yield equal[at : at + limit]


def best(records: Records, search: Search, *, preconditioned: bool = False) -> Row:
    """Return the row of a search that has ended: the winner's scores, and the same setting's on fresh noise.

    One noisy score chooses the luckiest noise, not the best setting. So finalists are scored six times again, and the
    best mean of these wins.
    """
    rungs = rungs_of(records)
    *stages, finalists, winners = search.stages
    winner = search.winner
    repeated = winners[winner]
    chosen = 100 * float(np.mean(finalists[winner]))
    rate, clip, momentum, tail, share, damping = setting_of(winner, preconditioned).tolist()
    return {
        "settings": search.settings,
        "trained": search.trained,
        "on all records": search.trained if len(rungs) == 1 else len(stages[-1]),
        "best of one score": 100 * max(score for (score,) in stages[-1].values()),
        "chosen": chosen,
        "repeated": 100 * float(np.mean(repeated)),
        "se": 100 * standard_error(repeated),
        "selection's gain": chosen - 100 * float(np.mean(repeated)),
        "winner": f"rate {rate:.3g}, clip {clip:.2g}, momentum {momentum:g}, tail {tail:g}, {steps_of(winner)} steps"
        + (f", share {share:.2g}, damping {damping:.2g}" if preconditioned else ""),
        "seconds": search.seconds,
    }
