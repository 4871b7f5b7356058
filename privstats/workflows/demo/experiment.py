"""The demo's measurements: one exact run without DP, then noisy runs at each epsilon.

Pure apart from the simulation it drives; showing the numbers is ``show``'s work.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from statistics import mean

from privstats.plan import Plan
from privstats.randomness import seeded
from privstats.release import Release
from privstats.workflows.demo.tasks import Settings, Task
from privstats.workflows.score import EPSILONS, WITHOUT_NOISE, Point, noise_draw, scored
from privstats.workflows.simulate import Run, run

__all__ = ["SHOWN_EPSILON", "Demo", "run_demo"]

SHOWN_EPSILON = 1.0


@dataclass(frozen=True)
class Demo:
    """Everything the demo found.

    Attributes:
        plan: the plan at ``SHOWN_EPSILON``, whose budget is shown and which ``--out`` writes.
        release: one release under that plan.
        peer: score of the centralised scikit-learn model on all training records.
        peer_survivors: the same model on the survivors' records only, the fair comparison.
        without_dp: our score from the unmasked sums without noise.
        points: our scores with noise.
        exact: every run's unmasked total equalled its survivors' sum.
        runs: how many runs that was.
        survivors: clients in the total.
        records: training records, and those of the survivors.
        bytes_sent: bytes each client sent.
        seconds: mean wall time per stage of one run.
    """

    task: Task
    settings: Settings
    plan: Plan
    release: Release
    peer: float
    peer_survivors: float
    without_dp: float
    points: tuple[Point, ...]
    exact: bool
    runs: int
    survivors: tuple[int, ...]
    records: tuple[int, int]
    bytes_sent: tuple[int, ...]
    seconds: Mapping[str, float]


def run_demo(task: Task, settings: Settings, tick: Callable[[], None]) -> Demo:
    """Run the demo; ``tick`` is called after each of ``1 + len(EPSILONS) * repeats`` runs."""
    X_train, X_test, y_train, y_test = task.load(settings.seed)
    rows = task.shards(settings, y_train, seeded(settings.seed))
    shards = [(X_train[index], y_train[index]) for index in rows]
    records = len(y_train)

    def once(epsilon: float, repeat: int) -> Run:
        rng = noise_draw(settings.seed, repeat)
        plan = task.plan(settings, records, epsilon)
        done = run(plan, shards, settings.dropouts(plan), rng)
        tick()
        return done

    def score(done: Run) -> float:
        return float(task.head().fit_release(done.release).score(X_test, y_test))

    open_run = once(WITHOUT_NOISE, 0)
    noisy = {epsilon: [once(epsilon, repeat) for repeat in range(settings.repeats)] for epsilon in EPSILONS}
    runs = [open_run, *(done for group in noisy.values() for done in group)]
    survivors = open_run.release.survivors
    mine = [i for index in survivors for i in rows[index]]
    return Demo(
        task=task,
        settings=settings,
        plan=noisy[SHOWN_EPSILON][0].release.plan,
        release=noisy[SHOWN_EPSILON][0].release,
        peer=float(task.fit_peer(X_train, y_train).score(X_test, y_test)),
        peer_survivors=float(task.fit_peer(X_train[mine], y_train[mine]).score(X_test, y_test)),
        without_dp=score(open_run),
        points=tuple(scored(task.name, epsilon, [score(done) for done in group]) for epsilon, group in noisy.items()),
        exact=all(done.exact for done in runs),
        runs=len(runs),
        survivors=survivors,
        records=(records, len(mine)),
        bytes_sent=open_run.bytes_sent,
        seconds={stage: mean(done.seconds[stage] for done in runs) for stage in open_run.seconds},
    )
