"""Attack synthetic rows: is this record among those that they were made of, and what is its hidden attribute?

Both attackers see the rows alone, know the plan, every other record and the way rows are made, and choose the target
to be as visible as a record can be. Their scores are those of query-based shadow attacks (Houssiau et al., TAPAS, 2022;
Meeus et al. 2023): the shares of rows that agree with the target in one and in two columns, weighed by a discriminant
that is fitted to worlds with and without the target. The ceiling is the promise of the whole course.
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
from privstats.contrib.synthetic.rows import fit_of
from privstats.dp import Guarantee
from privstats.intake.columns import read
from privstats.moments.cells import cells_in
from privstats.randomness import Generator, uniform
from threat_models.audits.canary import GROUP_MU, lower_bounds
from threat_models.bounds import Interval, clopper_pearson
from threat_models.ceilings import reconstruction

Records = Mapping[str, Sequence[Any]]
Codes = NDArray[np.intp]


@dataclass(frozen=True)
class Membership:
    """Success in distinguishing rows with a group of copies of one record from rows without.

    Attributes:
        copies: records in the group.
        claimed: the promise of the course, mu of one record.
        least: lower bound on mu of one record, at the stated confidence.
        auc: how often rows with the group score higher.
    """

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
        guessed: share of worlds, with its interval.
        interval: of the share.
        baseline: the share that the prior alone gives.
        ceiling: the most that the promise allows.
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
) -> Membership:
    """Distinguish rows made with copies of a target from rows made without, and bound mu from below.

    Args:
        course: whose sessions one curator releases, drawn from ``rng``.
        records: all others, as its count tables read them.
        target: a value of each column.
        rng: of the worlds; seeded in tests.
        trials: worlds of each kind; half of them fit the discriminant.
        confidence: of the bound.
    """
    copies = max(1, round(GROUP_MU / course.mu))
    own = _cells(course, {name: [value] for name, value in target.items()})[0]
    out, present = (
        np.array([_agreement(_rows(course, _joined(records, target, times), rng), own) for _ in range(trials)])
        for times in (0, copies)
    )
    half = trials // 2
    learner = LinearDiscriminantAnalysis(solver="lsqr", shrinkage="auto")
    learner.fit(np.vstack([out[:half], present[:half]]), np.repeat([0, 1], half))
    scores, inside = (np.asarray(learner.decision_function(each[half:]), np.float64) for each in (out, present))
    delta = 0.0 if course.promise is None else course.promise.delta
    least = lower_bounds(scores, inside, confidence, delta).mu / copies
    return Membership(copies, course.mu, least, float((inside[:, None] > scores[None]).mean()))


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
    """Guess an attribute of the target that is drawn evenly, so that nothing but its own record tells it.

    Args:
        course, records, target, rng, confidence: as in :func:`membership`.
        hidden: the attribute; its value in ``target`` is replaced.
        values: those that it may have.
        trials: worlds; a first half learns what rows look like for each value.
    """
    truth = (uniform(trials, rng) * len(values)).astype(int)
    owns = [_cells(course, {name: [value] for name, value in {**target, hidden: each}.items()})[0] for each in values]
    scores = np.array(
        [
            np.concatenate([_agreement(rows, own) for own in owns])
            for value in truth
            for rows in [_rows(course, _joined(records, {**target, hidden: values[value]}, 1), rng)]
        ]
    )
    half = trials // 2
    learner = LinearDiscriminantAnalysis(solver="lsqr", shrinkage="auto").fit(scores[:half], truth[:half])
    right = int((learner.predict(scores[half:]) == truth[half:]).sum())
    blind = 1 / len(values)
    ceiling = reconstruction(Guarantee(course.mu), blind)
    return Inference(right / (trials - half), clopper_pearson(right, trials - half, confidence), blind, ceiling)


def _joined(records: Records, target: Mapping[str, Any], times: int) -> dict[str, list[Any]]:
    return {name: [*values, *[target[name]] * times] for name, values in records.items()}


def _rows(course: Synthetic, records: Records, rng: Generator) -> Codes:
    """Return as many synthetic rows as there are records, in fine cells."""
    releases = ps.private_releases(course, records, ledger="uncharged", rng=rng, allow_reproducible=True)
    fit = fit_of(course, releases)
    own = np.random.default_rng(int(uniform(1, rng)[0] * 2**53))
    rows = len(next(iter(records.values())))
    return fit.fine_cells(fit.model.draw(rows, own), own)


def _cells(course: Synthetic, records: Records) -> Codes:
    return np.column_stack([cells_in(each, read(records[each.name])) for each in course.schema.variables])


def _agreement(rows: Codes, own: Codes) -> NDArray[np.float64]:
    """Return the shares of rows that agree with a record in each column and in each pair of columns."""
    same = (rows == own).astype(np.float64)
    pairs = [(same[:, a] * same[:, b]).mean() for a, b in combinations(range(same.shape[1]), 2)]
    return np.array([*same.mean(axis=0), *pairs])
