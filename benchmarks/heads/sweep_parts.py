"""Processor seconds of each part of a study's fits at the size of papers: what a device takes over, and what is left.

    OMP_NUM_THREADS=1 python -m benchmarks.heads.sweep_parts --save

A study fits LDA to one release per epsilon and replicate. *Algebra* are products and factorisations of matrices, which
``device="cuda"`` computes on a device. Sums, noise, scores and other arithmetic stay on the host. Sums are measured
once per study, as its partition is even.
"""

from __future__ import annotations

import argparse
import cProfile
import pstats
import time
from pathlib import Path
from typing import Any

import numpy as np

import privstats as ps
from benchmarks.measuring import Row, Tables, command
from privstats.contrib.sweep import Axes, study
from privstats.estimates.algebra import Algebra

_EPSILONS, _REPEATS, _TESTS = (1.0, 8.0), 2, 2_000
_PARTS = {
    "algebra": ("algebra.py", tuple(name for name in vars(Algebra) if not name.startswith("_"))),
    "noise": ("local.py", ("aggregate_unmasked",)),
    "scores": ("score.py", ("of",)),
    "sums": ("measurement.py", ("exact_moments",)),
    "study": ("experiment.py", ("study",)),
}
"""The functions of each part: file and names."""


def tables(options: argparse.Namespace) -> Tables:
    """One row for each number of features."""
    sizes = ((20, 16),) if options.quick else ((1_000, 2_048), (1_000, 4_096))
    yield "processor seconds of a study's fit", [_parts(*size) for size in sizes]


def _parts(classes: int, d: int) -> Row:
    rng = np.random.default_rng(0)
    centres = 2 * rng.standard_normal((classes, d), dtype=np.float32)

    def records(n: int) -> tuple[Any, Any]:
        y = np.arange(n) % classes
        X = centres[y] + rng.standard_normal((n, d), dtype=np.float32)
        return X / np.linalg.norm(X, axis=1, keepdims=True), y

    train = records(8 * classes)
    privacy = ps.Privacy(model="central", unit="record", adjacency="add-remove", epsilon=8.0, delta=1e-5)
    plan = ps.Plan(
        schema=ps.ClassSchema(classes, d, "NAB", 1.0), cohort=ps.Cohort(2, 2, len(train[1])), privacy=privacy
    )
    how: dict[str, Any] = {"repeats": _REPEATS, "with_baselines": False}
    profile = cProfile.Profile(time.process_time)
    profile.runcall(study, plan, train, records(_TESTS), {"LDA": ps.heads.LDA}, Axes(epsilon=_EPSILONS), **how)
    seconds = dict.fromkeys(_PARTS, 0.0)
    stats: Any = pstats.Stats(profile)
    for (path, _, function), (_, _, _, spent, _) in stats.stats.items():
        for part, (file, names) in _PARTS.items():
            if Path(path).name == file and function in names:
                seconds[part] += spent
    fits = _REPEATS * len(_EPSILONS) + 1  # one without noise
    other = 2 * seconds["study"] - sum(seconds.values())
    each = {part: seconds[part] / fits for part in ("algebra", "noise", "scores")}
    return {"classes": classes, "features": d, "fits": fits, **each, "other": other / fits, "sums": seconds["sums"]}


if __name__ == "__main__":
    command("heads.sweep_parts", __doc__, tables)
