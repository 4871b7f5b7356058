"""Playing attacks: draw worlds, show the adversary its view, and score the guesses against the truth.

All scoring is here. A membership game draws pairs of independent worlds, so that members and non-members are compared
as a real attacker would meet them: in different releases. Attacks with the same sight are shown the same worlds.

"Without the release" means with the release of an independent world. The baseline is the same attacker on its sums,
which needs no second code path in any attack; for reconstructions it is the single guess that would have hit most.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from privstats.errors import DataError
from privstats.kinds import of_records
from privstats.randomness import Generator
from threat_models import bounds, ceilings
from threat_models.adversary import Adversary, Knows, Sums, View
from threat_models.attack import Attack
from threat_models.chance import named
from threat_models.membership import Trials, compared
from threat_models.reconstruction import SCORES, Prior, example
from threat_models.report import Row, judge, stated
from threat_models.world import Field, Setting, World, draw


@dataclass(frozen=True)
class Game:
    """Attacks against one plan, all by adversaries that see the same.

    Attributes:
        records: where worlds get their records.
        setting: plan, records per class, candidates, dropouts.
        trials: independent pairs of worlds (membership), or worlds.
        seed: reproduces every byte; None for the operating system's randomness.
        confidence: of each row's verdict.
        tick: called after each trial of each attack.
    """

    records: Field
    setting: Setting
    trials: int = 200
    seed: int | None = None
    confidence: float = 0.95
    tick: Callable[[], None] = field(default=lambda: None)

    def play(self, attacks: Sequence[Attack], adversary: Adversary) -> tuple[Row, ...]:
        """One row per attack; all of one goal, and alike (see :func:`alike`).

        Raises:
            DataError: the records or the plan cannot host the game, or an attack's guess has the wrong size.
        """
        if attacks[0].goal == "membership":
            scores = self.scores(attacks, adversary)
            return tuple(self._membership(*pair, adversary) for pair in zip(attacks, scores, strict=True))
        scorer = self._reconstruction if attacks[0].goal == "reconstruction" else self._inference
        return tuple(scorer(attack, adversary) for attack in attacks)

    def scores(self, attacks: Sequence[Attack], adversary: Adversary) -> tuple[Trials, ...]:
        """Raw scores of membership attacks on the same worlds, for those who want more than rows."""
        chance = self._chance("worlds", adversary)
        players = [_Player(attack, replace(adversary, knows=attack.needs.knows), self) for attack in attacks]
        foreign: dict[str, tuple[Sums, ...]] = {}
        stranger = self._world(-1, False, adversary, chance)
        for player in players:
            foreign[player.attack.name] = player.adversary.view(stranger).sums
        for trial in range(self.trials):
            pair = [self._world(trial, member, adversary, chance) for member in (True, False)]
            for player in players:
                foreign[player.attack.name] = player.meet(pair[0], pair[1], foreign[player.attack.name])
                self.tick()
        return tuple(player.trials() for player in players)

    def _membership(self, attack: Attack, trials: Trials, adversary: Adversary) -> Row:
        promised = ceilings.guaranteed(self.setting.plan, adversary)
        coin = named(self.seed, "ties", attack.name)
        return self._row(attack, adversary, metric="AUC", **compared(trials, promised, self.confidence, coin))

    def _reconstruction(self, attack: Attack, adversary: Adversary) -> Row:
        chance, guess = self._chance("worlds", adversary), self._chance("attack", attack.name, adversary)
        who = replace(adversary, knows=attack.needs.knows)
        score = SCORES[attack.scored]
        rates, prior, shown = [], Prior(score), None
        for trial in range(self.trials):
            world = self._world(trial, True, who, chance)
            view = who.view(world)
            rows = np.atleast_2d(attack.run(view, guess))[: len(world.truth)]
            rates.append(score.rate(score.truth(world), rows))
            prior.add(world)
            shown = shown or (example(world, view, rows) if attack.scored == "records" else None)
            self.tick()
        return self._rated(
            attack,
            adversary,
            np.array(rates),
            prior.rate,
            prior.interval(self.confidence),
            group=score.group,
            metric=score.metric,
            example=shown,
        )

    def _inference(self, attack: Attack, adversary: Adversary) -> Row:
        """Labels of the members; the baseline is the most frequent one."""
        chance, guess = self._chance("worlds", adversary), self._chance("attack", attack.name, adversary)
        who = replace(adversary, knows=attack.needs.knows)
        values, counts = np.unique(self.records.public[1], return_counts=True)
        right, usual = [], []
        for trial in range(self.trials):
            world = self._world(trial, True, who, chance)
            result = np.atleast_1d(attack.run(who.view(world), guess))[: len(world.secret)]
            right.append(float((result == world.secret).mean()))
            usual.append(float((world.secret == values[np.argmax(counts)]).mean()))
            self.tick()
        kappa = bounds.proportion(np.array(usual), self.confidence)
        return self._rated(attack, adversary, np.array(right), float(np.mean(usual)), kappa, metric="guessed")

    def _rated(
        self,
        attack: Attack,
        adversary: Adversary,
        rates: NDArray[np.float64],
        baseline: float,
        kappa: bounds.Interval,
        group: int = 1,
        **more: object,
    ) -> Row:
        """A row of success rates, held against the best guess without a release; ``group`` records a success."""
        promised = ceilings.guaranteed(self.setting.plan, adversary)
        promised = None if promised is None else promised.of_group(group)
        interval = bounds.proportion(rates, self.confidence)
        ceiling = None if promised is None else ceilings.reconstruction(promised, kappa[1])
        return self._row(
            attack,
            adversary,
            measured=float(rates.mean()),
            interval=interval,
            baseline=baseline,
            ceiling=ceiling,
            verdict=judge(interval, kappa, ceiling),
            **stated(promised),
            **more,
        )

    def _world(self, trial: int, member: bool, adversary: Adversary, rng: Generator) -> World:
        label = self._labels[trial % len(self._labels)]
        return draw(self.records, self.setting, adversary, int(label), member, rng)

    @cached_property
    def _labels(self) -> NDArray[np.int64]:
        """Classes with enough private records; the largest anyway, so that its refusal is said."""
        classes = of_records(self.setting.plan.schema).sizes.get("class")
        if classes is None:
            return np.zeros(1, np.int64)
        counts = np.bincount(self.records.y.astype(np.int64), minlength=classes)
        enough = np.flatnonzero(counts >= self.setting.records + max(1, self.setting.candidates))
        return enough if len(enough) else np.array([int(np.argmax(counts))])

    def _chance(self, *purpose: object) -> Generator:
        """Worlds and attacks have generators of their own, which are independent of each other."""
        setting = (self.setting.plan.digest, self.setting.records, self.setting.candidates, self.setting.dropouts)
        return named(self.seed, *setting, *purpose)

    def _row(self, attack: Attack, adversary: Adversary, **numbers: object) -> Row:
        who = replace(adversary, knows=attack.needs.knows)
        known = {"attack": attack.name, "number": attack.number, "goal": attack.goal, "sees": who.sees}
        return Row(**known, adversary=who.describe(), worlds=self.trials, **numbers)  # type: ignore[arg-type]


def alike(attack: Attack, adversary: Adversary) -> tuple[object, ...]:
    """The settings that two attacks must share to be shown the same worlds."""
    knows: Knows = "all-but-one" if adversary.knows == "all-but-one" else "public"
    return attack.goal, attack.records, attack.effort, replace(adversary, knows=knows)


class _Player:
    """One attack in a membership game, and the scores it has given so far."""

    def __init__(self, attack: Attack, adversary: Adversary, game: Game) -> None:
        self.attack, self.adversary = attack, adversary
        self._guess = game._chance("attack", attack.name, adversary)
        self._rows: list[tuple[NDArray[np.float64], ...]] = []

    def meet(self, inside: World, outside: World, foreign: tuple[Sums, ...]) -> tuple[Sums, ...]:
        """Score the members of one world and the strangers of the other; gives the sums that the next pair is blind by.

        Without the release means with sums of an independent world, and the same attacker otherwise.
        """
        member, stranger = self.adversary.view(inside), self.adversary.view(outside)
        asked = inside.members, ~outside.members
        seen = [self._score(view)[rows] for view, rows in zip((member, stranger), asked, strict=True)]
        views = (member.instead(foreign), stranger.instead(foreign))
        blind = [self._score(view)[rows] for view, rows in zip(views, asked, strict=True)]
        self._rows.append((*seen, *blind))
        return stranger.sums

    def trials(self) -> Trials:
        return Trials(*(np.stack(column) for column in zip(*self._rows, strict=True)))

    def _score(self, view: View) -> NDArray[np.float64]:
        scores = np.asarray(self.attack.run(view, self._guess), np.float64).reshape(-1)
        if len(scores) != len(view.candidates):
            raise DataError(f"{self.attack.name} gave {len(scores)} scores for {len(view.candidates)} candidates")
        return np.nan_to_num(scores, nan=0.0)
