"""Measure how far probabilities can be trusted, before and after a course's calibration.

    python -m benchmarks.refinement.calibration --save
    python -m benchmarks.refinement.calibration --plot docs/images/reliability.png

Central model, record level, add-remove, delta 1e-5, the library's noise, as many rounds as the library takes. The
expected calibration error is that of 15 bins; the calibrated course pays for its last sum out of the same budget.
"""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import privstats as ps
from benchmarks.data import Split, agnews, private_tasks
from benchmarks.measuring import RESULTS, Rows, Tables, command, results
from benchmarks.peers.story import SOURCE
from benchmarks.refinement.library import CENTRAL, Records, course_of, played
from benchmarks.refinement.models import DELTA, one_shot_plan
from benchmarks.refinement.story import digest
from benchmarks.refinement_tables import DATA
from privstats import heads
from privstats.randomness import seeded

EPSILONS = (0.1, 0.3, 1.0, 3.0, 8.0)
TASKS = ("digits", "banking77", "banking77 whole", "cifar10", "fmnist", "mnist5k", "letter", "agnews")
BEFORE, AFTER = "refined", "refined, calibrated"
SHOWN, BINS = 1.0, 15
TITLE, DIAGRAM = "calibration: ", "reliability: "


def options(parser: argparse.ArgumentParser) -> None:
    """Add the benchmark's options."""
    parser.add_argument("--draws", type=int, default=10)
    parser.add_argument("--tasks", nargs="+", choices=TASKS, default=TASKS)
    parser.add_argument("--keep", action="store_true", help="keep saved tables that this run does not measure")
    parser.add_argument("--plot", type=Path, help="draw the saved results, and stop where nothing is to be saved")


def tables(options: argparse.Namespace) -> Tables:
    """Per data set a row per epsilon and head, then the bins of a reliability diagram."""
    if options.plot is not None and not (options.save or options.json):
        plot(RESULTS / "refinement.calibration.json", options.plot)
        return
    kept = results("refinement.calibration") if options.keep else {}
    epsilons, draws = ((SHOWN,), 1) if options.quick else (EPSILONS, options.draws)
    for task in chain(private_tasks(bundled_only=options.quick), () if options.quick else agnews()):
        if task.name in options.tasks:
            yield from measured(task.name, task.transformed(), epsilons, draws)
        else:
            titles = (title + task.name for title in (TITLE, DIAGRAM))
            yield from ((title, kept[title]) for title in titles if title in kept)
    if options.plot is not None and options.json is not None:
        plot(options.json, options.plot)


def measured(name: str, split: Split, epsilons: Sequence[float], draws: int) -> Iterator[tuple[str, Rows]]:
    """The two tables of one data set."""
    X, X_test, y, y_test = split
    records, rows, diagram = Records(X, y, CENTRAL.clients), [], []
    for epsilon in epsilons:
        found: dict[str, list[Mapping[str, float]]] = {}
        for seed in range(draws):
            for model, head in fitted(split, epsilon, seed, records).items():
                found.setdefault(model, []).append(scores(head, X_test, y_test))
                if epsilon == SHOWN and seed == 0 and model != "LDA":
                    diagram += [{"model": model, **row} for row in reliability(head, X_test, y_test)]
        rows += [{"epsilon": epsilon, "model": model, **averaged(each)} for model, each in found.items()]
    yield TITLE + name, rows
    yield DIAGRAM + name, diagram


def fitted(split: Split, epsilon: float, seed: int, records: Records) -> dict[str, Any]:
    """LDA of one release, and the ends of two courses."""
    X, _, y, _ = split
    plan = one_shot_plan(split, "NAB", epsilon, None)
    parts = [records.measured(plan, k) for k in range(CENTRAL.clients)]
    found = {"LDA": heads.LDA().fit_release(ps.session.aggregate_unmasked(plan, parts, seeded(seed)))}
    for model in (BEFORE, AFTER):
        course = course_of(split, epsilon, DELTA, calibrated=model == AFTER)
        found[model] = heads.RefinedSoftmax().fit_releases(played(course, X, y, CENTRAL, seed, records))
    return found


def scores(head: Any, X: NDArray[Any], y: NDArray[Any]) -> dict[str, float]:
    """Accuracy, mean confidence and calibration error in percent, log-likelihood per record, and the temperature."""
    return {
        "accuracy": 100 * head.score(X, y),
        "mean confidence": 100 * float(head.predict_proba(X).max(axis=1).mean()),
        "calibration error": 100 * heads.expected_calibration_error(head, X, y),
        "log-likelihood": heads.log_likelihood(head, X, y),
        "temperature": getattr(head, "temperature_", 1.0),
    }


def reliability(head: Any, X: NDArray[Any], y: NDArray[Any]) -> Rows:
    """Mean confidence, share of hits and records of every bin that is not empty."""
    p = head.predict_proba(X)
    sure, hits = p.max(axis=1), head.predict(X) == y
    place = np.minimum((sure * BINS).astype(int), BINS - 1)
    return [
        {"confidence": float(sure[bin_].mean()), "hits": float(hits[bin_].mean()), "records": int(bin_.sum())}
        for bin_ in (place == k for k in range(BINS))
        if bin_.any()
    ]


def averaged(found: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """Means of :func:`scores` over draws, and the standard error of the calibration error."""
    means = {name: float(np.mean([each[name] for each in found])) for name in found[0]}
    errors = [each["calibration error"] for each in found]
    return {**means, "se": float(np.std(errors, ddof=1) / math.sqrt(len(errors))) if len(errors) > 1 else math.nan}


def plot(results: Path, path: Path) -> None:
    """Hits against confidence, a panel per data set; the area of a point is the share of its records."""
    from matplotlib.figure import Figure

    found = diagrams(json.loads(results.read_text()))
    across = min(3, len(found))
    down = -(-len(found) // across)
    figure = Figure(figsize=(3.2 * across, 3.1 * down), layout="constrained")
    panels = figure.subplots(down, across, squeeze=False).ravel()
    for axes in panels[len(found) :]:
        axes.remove()
    for axes, (name, rows) in zip(panels, found.items(), strict=False):
        axes.plot([0, 1], [0, 1], color="grey", linewidth=0.8)
        for model, colour in ((BEFORE, "tab:orange"), (AFTER, "tab:blue")):
            chosen = [row for row in rows if row["model"] == model]
            sure, hits, records = (np.array([row[key] for row in chosen]) for key in ("confidence", "hits", "records"))
            axes.plot(sure, hits, color=colour, linewidth=1, label=model)
            axes.scatter(sure, hits, 120 * records / max(records.sum(), 1), color=colour)
        axes.set(title=DATA[name], xlabel="confidence", ylabel="share of hits", xlim=(0, 1), ylim=(0, 1))
    figure.axes[0].legend(fontsize="x-small")
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=120, metadata={SOURCE: digest([found])})


def diagrams(document: Mapping[str, Any]) -> dict[str, Rows]:
    """The bins of every data set by its name."""
    return {title.removeprefix(DIAGRAM): rows for title, rows in document.items() if title.startswith(DIAGRAM)}


if __name__ == "__main__":
    command("refinement.calibration", __doc__, tables, options)
