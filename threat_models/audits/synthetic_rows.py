"""Attack synthetic rows: is this record among those that were counted, and what is its hidden attribute?

Attackers see rows alone, as many as they like. They know the plan, every other record and how rows are drawn, and
choose a target that is as visible as a record can be. The ceiling is the promise of the whole course.

Sources: shadow worlds with counting queries (Houssiau et al., TAPAS, 2022), densities of measured tables at the target
(Golob et al., Privacy vulnerabilities in marginals-based synthetic data, 2024), and closest rows (Yao et al. 2025).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

import privstats as ps
from privstats.contrib.synthetic.course import Synthetic
from privstats.dp import Guarantee
from privstats.randomness import Generator, uniform
from threat_models.audits.canary import GROUP_MU, lower_bounds
from threat_models.bounds import Interval, clopper_pearson
from threat_models.ceilings import reconstruction
from threat_models.drawn_rows import ROWS_PER_RECORD, Codes, DrawnRows, cells_of

Records = Mapping[str, Sequence[Any]]
Features = NDArray[np.float64]

SHADOW, DENSITY, CLOSEST = "shadow worlds", "density of measured tables", "closest rows"


@dataclass(frozen=True)
class Membership:
    """Success in distinguishing rows with a group of copies of one record from rows without.

    Attributes:
        attack: name of the score.
        copies: records in the group.
        claimed: the promise of the course, mu of one record.
        least: lower bound on mu of one record, at the stated confidence.
        auc: how often rows with the group score higher; .5 is guessing.
    """

    attack: str
    copies: int
    claimed: float
    least: float
    auc: float

    @property
    def violated(self) -> bool:
        """Whether the promise is contradicted."""
        return self.least > self.claimed


@dataclass(frozen=True)
class Inference:
    """Success in guessing the hidden attribute of a record from the rows.

    Attributes:
        guessed: share of worlds.
        interval: of the share.
        baseline: the share that the prior alone gives.
        ceiling: the maximum that the promise allows.
    """

    guessed: float
    interval: Interval
    baseline: float
    ceiling: float

    @property
    def violated(self) -> bool:
        """Whether the promise is contradicted."""
        return self.interval[0] > self.ceiling


def membership(
    course: Synthetic,
    records: Records,
    target: Mapping[str, Any],
    rng: Generator,
    *,
    trials: int,
    confidence: float = 0.95,
) -> tuple[Membership, ...]:
    """Distinguish rows made with copies of a target from rows made without, by three scores, and bound mu from below.

    Args:
        course: its sessions are released by one curator, with noise from ``rng``.
        records: all others, as its count tables read them.
        target: a value of each column.
        rng: of the worlds; seeded in tests.
        trials: worlds of each kind; the first half fits the discriminant of shadow worlds.
        confidence: of all bounds together.
    """
    copies = max(1, round(GROUP_MU / course.mu))
    own, others = cells_of(course, {name: [value] for name, value in target.items()})[0], cells_of(course, records)
    worlds = [[_world(course, _joined(records, target, k), rng) for _ in range(trials)] for k in (0, copies)]
    half = trials // 2
    out, present = (np.array([_agreement(world.rows, own) for world in kind]) for kind in worlds)
    learner = LinearDiscriminantAnalysis(solver="lsqr", shrinkage="auto")
    learner.fit(np.vstack([out[:half], present[:half]]), np.repeat([0, 1], half))
    densities = [np.array([_density(world, own, others) for world in kind]) for kind in worlds]
    closest = [np.array([world.nearness(own) for world in kind]) for kind in worlds]
    scores = {
        SHADOW: [np.asarray(learner.decision_function(each[half:]), np.float64) for each in (out, present)],
        DENSITY: densities,
        CLOSEST: closest,
    }
    delta = 0.0 if course.promise is None else course.promise.delta
    level = 1 - (1 - confidence) / len(scores)
    return tuple(
        Membership(
            name,
            copies,
            course.mu,
            lower_bounds(without, inside, level, delta).mu / copies,
            float((inside[:, None] > without[None]).mean()),
        )
        for name, (without, inside) in scores.items()
    )


def inference(
    course: Synthetic,
    records: Records,
    target: Mapping[str, Any],
    hidden: str,
    values: Sequence[Any],
    rng: Generator,
    *,
    trials: int,
    confidence: float = 0.95,
) -> Inference:
    """Guess an attribute of the target that is drawn evenly, so that nothing but its own record reveals it.

    A code in a column of ``Hashed`` is attacked by a dictionary: ``values`` are then the buckets of all its codes.

    Args:
        course, records, target, rng, confidence: as in :func:`membership`.
        hidden: the attribute; its value in ``target`` is replaced.
        values: those that it may have.
        trials: worlds; the first half learns how rows differ where a value is the target's.
    """
    truth = (uniform(trials, rng) * len(values)).astype(int)
    owns = [cells_of(course, {name: [value] for name, value in {**target, hidden: each}.items()})[0] for each in values]
    place = [variable.name for variable in course.schema.variables].index(hidden)
    features = np.empty((trials, len(values), len(owns[0])))
    for at, value in enumerate(truth):
        world = _world(course, _joined(records, {**target, hidden: values[value]}, 1), rng)
        features[at] = [_with_hidden(world.rows, own, place) for own in owns]
    half = trials // 2
    features -= features[:half].mean(axis=0)
    features /= features[:half].std(axis=0) + 1e-9
    right = truth[:, None] == np.arange(len(values))
    learner = LinearDiscriminantAnalysis(solver="lsqr", shrinkage="auto")
    learner.fit(features[:half].reshape(-1, features.shape[2]), right[:half].ravel())
    scores = learner.decision_function(features[half:].reshape(-1, features.shape[2]))
    guesses = scores.reshape(-1, len(values)).argmax(axis=1)
    hits = int((guesses == truth[half:]).sum())
    blind = 1 / len(values)
    ceiling = reconstruction(Guarantee(course.mu), blind)
    return Inference(hits / (trials - half), clopper_pearson(hits, trials - half, confidence), blind, ceiling)


def _world(course: Synthetic, records: Records, rng: Generator) -> DrawnRows:
    releases = ps.private_releases(course, records, ledger="uncharged", rng=rng, allow_reproducible=True)
    return DrawnRows.of(course, releases, ROWS_PER_RECORD * len(next(iter(records.values()))), rng)


def _joined(records: Records, target: Mapping[str, Any], times: int) -> dict[str, list[Any]]:
    return {name: [*values, *[target[name]] * times] for name, values in records.items()}


def _agreement(rows: Codes, own: Codes) -> Features:
    """Return the shares of rows that agree with a record in each column, in each pair of columns, and in all."""
    same = (rows == own).astype(np.float64)
    pairs = [(same[:, a] * same[:, b]).mean() for a, b in combinations(range(same.shape[1]), 2)]
    return np.array([*same.mean(axis=0), *pairs, same.prod(axis=1).mean()])


def _with_hidden(rows: Codes, own: Codes, hidden: int) -> Features:
    """Return the shares of rows that agree in the hidden column, alone and together with each other column."""
    same = (rows == own).astype(np.float64)
    return np.asarray((same * same[:, [hidden]]).mean(axis=0))


def _density(world: DrawnRows, own: Codes, others: Codes) -> float:
    """Return the mean ratio, over measured pairs, of the density at the target in the rows and in the other records."""
    ratios = []
    for pair in world.pairs:
        rows, known = ((each[:, list(pair)] == own[list(pair)]).all(axis=1).mean() for each in (world.rows, others))
        ratios.append(rows / (known + 1 / len(others)))
    return float(np.mean(ratios))
