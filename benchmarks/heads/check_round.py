"""Measure what a second session that chooses between three heads is worth: one sum of hits, at 2 % of mu^2.

    python -m benchmarks.heads.check_round --save

Tried, and left out of the library (numbers.md, same folder). A release of (N, A, B) at .98 of mu^2 gives LDA with and
without public records; the third head has public records alone. Every record adds 2 h - 1 for the hits h of the three,
a vector of length sqrt 3 whatever it is, so the noise has sigma = sqrt 3 / mu, and a lead of one head over another in
records is known to within sqrt 1.5 / mu. LDA with public records is taken, unless another leads by more than that. The
first two models have all of mu^2, as they have without a second session.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

import privstats as ps
from benchmarks.data import Split
from benchmarks.heads.gains import public_options, public_tables
from benchmarks.heads.public import EPSILONS, Predict, chosen_and_rest, nearest_mean
from benchmarks.measuring import Tables, command
from benchmarks.refinement.models import DELTA, one_shot_plan
from privstats import heads
from privstats.dp import gaussian_epsilon, gaussian_mu
from privstats.randomness import seeded
from privstats.release import Release

SHARE = 0.02
MODELS = ("LDA", "with public records", "public records alone", "chosen by hits")


def tables(options: argparse.Namespace) -> Tables:
    """A table per data set and number of public records."""
    return public_tables("heads.check_round", scores, MODELS, EPSILONS, options)


def scores(split: Split, count: int, epsilons: Sequence[float], seed: int) -> Iterator[tuple[float, ...]]:
    """Accuracies in percent of one draw, one per model, for each epsilon."""
    X, X_test, y, y_test = split
    chosen, rest = chosen_and_rest(y, count, seed)
    rows, labels, public = X[rest], y[rest], (X[chosen], y[chosen])
    noise = np.random.default_rng(seed)
    plans = [one_shot_plan(split, "NAB", epsilon, None) for epsilon in epsilons]
    parts = [ps.measure(plans[0].schema, rows[k::2], labels[k::2]) for k in range(2)]  # of every plan
    for epsilon, plan in zip(epsilons, plans, strict=True):
        mu = gaussian_mu(epsilon, DELTA)
        less = one_shot_plan(split, "NAB", gaussian_epsilon(mu * math.sqrt(1 - SHARE), DELTA), None)
        whole, divided = (_released(each, parts, seed) for each in (plan, less))
        candidates: list[Predict] = [_lda(divided), _lda(divided, public), nearest_mean(*public)]
        hits = np.array([(predict(rows) == labels).sum() for predict in candidates])
        level = math.sqrt(3 / SHARE) / (2 * mu)
        lead = hits + level * noise.standard_normal(3)
        lead -= lead[1]
        best = candidates[int(lead.argmax()) if lead.max() > math.sqrt(2) * level else 1]
        shown = (_lda(whole), _lda(whole, public), candidates[2], best)
        yield tuple(100 * float((predict(X_test) == y_test).mean()) for predict in shown)


def _released(plan: ps.Plan, parts: Sequence[Any], seed: int) -> Release:
    return ps.session.aggregate_unmasked(plan, parts, seeded(seed))


def _lda(release: Release, public: tuple[Any, Any] | None = None) -> Predict:
    return heads.LDA().fit_release(release, public=public).predict


if __name__ == "__main__":
    command("heads.check_round", __doc__, tables, public_options)
