"""What a few public records per class are worth to refinement rounds, and beside one release with the same records.

    python -m benchmarks.refinement.public --save

Central model, record level, add-remove, delta 1e-5. In every draw other training records are the public ones, as in
``benchmarks.heads.public``, and the course is played over the rest. They enter the discriminant that the weights are
moved to at the end, and no round.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence

import privstats as ps
from benchmarks.data import Split
from benchmarks.heads.gains import public_options, public_tables
from benchmarks.heads.public import chosen_and_rest
from benchmarks.measuring import Tables, command
from benchmarks.refinement.library import CENTRAL, Records, course_of, played
from benchmarks.refinement.models import DELTA, one_shot_plan
from privstats import heads
from privstats.randomness import seeded

EPSILONS = (0.1, 0.3, 1.0)
MODELS = ("refined", "refined, with public records", "LDA, with public records")


def tables(options: argparse.Namespace) -> Tables:
    """A table per data set and number of public records."""
    return public_tables("refinement.public", scores, MODELS, EPSILONS, options)


def scores(split: Split, count: int, epsilons: Sequence[float], seed: int) -> Iterator[tuple[float, ...]]:
    """Accuracies in percent of one draw, one per model, for each epsilon."""
    X, X_test, y, y_test = split
    chosen, rest = chosen_and_rest(y, count, seed)
    public, held = (X[chosen], y[chosen]), (X[rest], X_test, y[rest], y_test)
    records = Records(X[rest], y[rest], CENTRAL.clients)
    for epsilon in epsilons:
        releases = played(course_of(held, epsilon, DELTA), X[rest], y[rest], CENTRAL, seed, records)
        plan = one_shot_plan(held, "NAB", epsilon, None)
        parts = [records.measured(plan, k) for k in range(CENTRAL.clients)]
        one = ps.session.aggregate_unmasked(plan, parts, seeded(seed))
        models = (
            heads.RefinedSoftmax().fit_releases(releases),
            heads.RefinedSoftmax().fit_releases(releases, public=public),
            heads.LDA().fit_release(one, public=public),
        )
        yield tuple(100 * model.score(X_test, y_test) for model in models)


if __name__ == "__main__":
    command("refinement.public", __doc__, tables, public_options)
