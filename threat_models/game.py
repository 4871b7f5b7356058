"""Playing an attack: draw worlds, show it what its adversary may see, and score its guesses against the truth.

Owns all scoring. A membership game draws pairs of independent worlds, so that members and strangers are compared as a
real attacker would meet them: in different releases.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from privstats.errors import DataError
from privstats.randomness import Generator
from privstats.schema import ClassSchema
from threat_models import bounds, ceilings
from threat_models.adversary import Adversary, View
from threat_models.attack import Attack
from threat_models.chance import named
from threat_models.report import Example, Row, judge
from threat_models.world import Pool, Setting, World, draw

__all__ = ["RATES", "Game", "Trials"]

RATES = (0.01, 0.001)
"""False positive rates at which a membership attack is measured."""

_NEAR = 0.05
_SHOWN = 6


@dataclass(frozen=True)
class Trials:
    """Scores of members and strangers, ``(worlds, each)``, with the release and without."""

    inside: NDArray[np.float64]
    outside: NDArray[np.float64]
    blind_inside: NDArray[np.float64]
    blind_outside: NDArray[np.float64]


@dataclass(frozen=True)
class Game:
    """One attack against one plan.

    Attributes:
        pool: where worlds get their records.
        setting: plan, records per class, candidates, dropouts.
        trials: independent pairs of worlds (membership), or worlds.
        seed: reproduces every byte; None for the operating system's randomness.
        confidence: of the row's verdict.
        tick: called after each trial.
    """

    pool: Pool
    setting: Setting
    trials: int = 400
    seed: int | None = None
    confidence: float = 0.95
    tick: Callable[[], None] = field(default=lambda: None)

    def play(self, attack: Attack, adversary: Adversary | None = None) -> Row:
        """Measure one attack.

        Raises:
            DataError: the pool or the plan cannot host the game.
        """
        who = adversary or attack.adversary(self.setting.plan)
        scorers = {"membership": self._membership, "reconstruction": self._reconstruction, "inference": self._inference}
        return scorers[attack.goal](attack, who)

    def trial_scores(self, attack: Attack, adversary: Adversary) -> Trials:
        """Raw scores of a membership game, for those who want more than a row."""
        chance, guess = self._streams(attack, adversary)
        sums = adversary.view(self._world(attack, adversary, -1, False, chance)).sums
        rows: list[tuple[NDArray[np.float64], ...]] = []
        for trial in range(self.trials):
            scores = []
            for member in (True, False):
                world = self._world(attack, adversary, trial, member, chance)
                view, asked = adversary.view(world), world.members if self._many(adversary) else slice(None)
                if not member and self._many(adversary):
                    asked = ~world.members
                scores.append((_scores(attack, view, guess)[asked], _scores(attack, view.instead(sums), guess)[asked]))
                del world
            sums = view.sums
            rows.append((scores[0][0], scores[1][0], scores[0][1], scores[1][1]))
            self.tick()
        return Trials(*(np.stack(column) for column in zip(*rows, strict=True)))

    def _membership(self, attack: Attack, adversary: Adversary) -> Row:
        trials = self.trial_scores(attack, adversary)
        mu = ceilings.guaranteed_mu(self.setting.plan, adversary)
        coin = named(self.seed, "ties", attack.name)
        each = 1 - (1 - self.confidence) / (1 + len(RATES))
        won = np.array([bounds.wins(*pair, coin) for pair in zip(trials.inside, trials.outside, strict=True)])
        blind = np.array(
            [bounds.wins(*pair, coin) for pair in zip(trials.blind_inside, trials.blind_outside, strict=True)]
        )
        interval, ceiling = bounds.proportion(won, each), None if mu is None else ceilings.auc(mu)
        found = (bounds.operating_point(trials.inside, trials.outside, rate, each) for rate in RATES)
        points = tuple(point for point in found if point is not None)
        return self._row(
            attack,
            adversary,
            metric="AUC",
            measured=float(won.mean()),
            interval=interval,
            baseline=float(blind.mean()),
            ceiling=ceiling,
            verdict=judge(interval, bounds.proportion(blind, each), ceiling, points, mu),
            mu=mu,
            points=points,
            roc=bounds.roc(trials.inside, trials.outside, self.confidence),
        )

    def _reconstruction(self, attack: Attack, adversary: Adversary) -> Row:
        chance, guess = self._streams(attack, adversary)
        rates, misses, prior = [], [], _Prior()
        example = None
        for trial in range(self.trials):
            world = self._world(attack, adversary, trial, True, chance)
            view = adversary.view(world)
            rows = np.atleast_2d(attack.run(view, guess))[: len(world.truth)]
            error, nearest = _errors(world.truth, rows)
            rates.append(float((error <= _NEAR).mean()))
            misses.append(float(np.median(error)))
            prior.add(world)
            example = example or _example(world, view, nearest)
            self.tick()
        mu = ceilings.guaranteed_mu(self.setting.plan, adversary)
        interval = bounds.proportion(np.array(rates), self.confidence)
        kappa = prior.interval(self.confidence)
        ceiling = None if mu is None else ceilings.reconstruction(mu, kappa[1])
        return self._row(
            attack,
            adversary,
            metric="records within 5 %",
            measured=float(np.mean(rates)),
            interval=interval,
            baseline=prior.rate,
            ceiling=ceiling,
            verdict=judge(interval, kappa, ceiling),
            mu=mu,
            note=f"median relative error {np.median(misses):.3g}",
            example=example,
        )

    def _inference(self, attack: Attack, adversary: Adversary) -> Row:
        """Labels of the candidates; the baseline is the most frequent one."""
        chance, guess = self._streams(attack, adversary)
        right, usual = [], []
        for trial in range(self.trials):
            world = self._world(attack, adversary, trial, True, chance)
            view = adversary.view(world)
            hidden = world.labels[world.members] if len(world.members) else world.labels
            found = np.atleast_1d(attack.run(view, guess))[: len(hidden)]
            right.append(float((found == hidden).mean()))
            values, counts = np.unique(world.public[1], return_counts=True)
            usual.append(float((hidden == values[np.argmax(counts)]).mean()))
            self.tick()
        mu = ceilings.guaranteed_mu(self.setting.plan, adversary)
        interval, kappa = (bounds.proportion(np.array(values), self.confidence) for values in (right, usual))
        ceiling = None if mu is None else ceilings.reconstruction(mu, kappa[1])
        return self._row(
            attack,
            adversary,
            metric="labels guessed",
            measured=float(np.mean(right)),
            interval=interval,
            baseline=float(np.mean(usual)),
            ceiling=ceiling,
            verdict=judge(interval, kappa, ceiling),
            mu=mu,
        )

    def _world(self, attack: Attack, adversary: Adversary, trial: int, member: bool, rng: Generator) -> World:
        labels = _playable(self.pool, self._sized(attack))
        return draw(self.pool, self._sized(attack), adversary, labels[trial % len(labels)], member, rng)

    def _sized(self, attack: Attack) -> Setting:
        wanted = {"membership": self.setting.candidates, "reconstruction": 0, "inference": self.setting.candidates}
        records = attack.records or self.setting.records
        return Setting(self.setting.plan, records, min(records, wanted[attack.goal]), self.setting.dropouts)

    def _streams(self, attack: Attack, adversary: Adversary) -> tuple[Generator, Generator]:
        """The world's randomness and the attack's: no bit of one tells anything of the other."""
        key = (self.setting.plan.digest, self.setting.records, self.setting.dropouts, attack.name, adversary)
        return named(self.seed, "worlds", *key), named(self.seed, "attack", *key)

    def _many(self, adversary: Adversary) -> bool:
        return adversary.knows != "all-but-one"

    def _row(self, attack: Attack, adversary: Adversary, **numbers: object) -> Row:
        known = {"attack": attack.name, "number": attack.number, "goal": attack.goal, "sees": adversary.sees}
        return Row(**known, adversary=adversary.describe(), worlds=self.trials, **numbers)  # type: ignore[arg-type]


def _scores(attack: Attack, view: View, rng: Generator) -> NDArray[np.float64]:
    scores = np.asarray(attack.run(view, rng), np.float64).reshape(-1)
    if len(scores) != len(view.candidates):
        raise DataError(f"the attack {attack.name} gave {len(scores)} scores for {len(view.candidates)} candidates")
    return np.nan_to_num(scores, nan=0.0)


def _playable(pool: Pool, setting: Setting) -> NDArray[np.int64]:
    """Classes with enough private records for the game; the first one anyway, so that its refusal is said."""
    if not isinstance(setting.plan.schema, ClassSchema):
        return np.zeros(1, np.int64)
    counts = np.bincount(pool.y.astype(np.int64), minlength=setting.plan.schema.classes)
    enough = np.flatnonzero(counts >= setting.records + max(1, setting.candidates))
    return enough if len(enough) else np.array([int(np.argmax(counts))])


def _errors(truth: NDArray[np.float64], guesses: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Relative error of the nearest guess for each true record, and that guess; infinite without guesses."""
    if not guesses.size:
        return np.full(len(truth), np.inf), np.zeros_like(truth)
    gaps = np.linalg.norm(truth[:, None, :] - guesses[None, :, :], axis=2)
    best = gaps.argmin(axis=1)
    return gaps.min(axis=1) / np.maximum(np.linalg.norm(truth, axis=1), 1e-12), guesses[best]


class _Prior:
    """How often the best single guess without a release hits a record: the public mean or any public record."""

    def __init__(self) -> None:
        self._hits = np.zeros(0)
        self._seen = 0

    def add(self, world: World) -> None:
        X = world.public[0]
        guesses = np.vstack([X.mean(axis=0, keepdims=True), X])
        gaps = np.linalg.norm(world.truth[:, None, :] - guesses[None, :, :], axis=2)
        near = (gaps <= _NEAR * np.linalg.norm(world.truth, axis=1)[:, None]).sum(axis=0)
        self._hits = near if not self._seen else self._hits + near
        self._seen += len(world.truth)

    @property
    def rate(self) -> float:
        return float(self._hits.max() / self._seen)

    def interval(self, confidence: float) -> bounds.Interval:
        return bounds.clopper_pearson(float(self._hits.max()), self._seen, confidence)


def _example(world: World, view: View, nearest: NDArray[np.float64]) -> Example | None:
    if "A" not in view.sums[0] or not isinstance(world.plan.schema, ClassSchema):
        return None
    label = int(world.labels[0])
    X, y = world.public
    mine = X[y == label] if (y == label).any() else X
    mean = mine.mean(axis=0)
    prior = mine[np.linalg.norm(mine - mean, axis=1).argmin()]
    raw = view.sums[0]["A"][label] / max(1.0, view.sums[0]["N"][label] if "N" in view.sums[0] else view.records)
    shown = min(_SHOWN, len(world.truth))
    return Example(
        truth=_plain(world.truth[:shown]),
        raw=_plain(np.tile(raw, (shown, 1))),
        attack=_plain(nearest[:shown]),
        mean=_plain(np.tile(mean, (shown, 1))),
        prior=_plain(np.tile(prior, (shown, 1))),
    )


def _plain(rows: NDArray[np.float64]) -> tuple[tuple[float, ...], ...]:
    return tuple(tuple(float(f"{value:.4g}") for value in row) for row in rows)
