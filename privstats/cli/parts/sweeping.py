"""What ``privstats sweep`` does: score heads over axes, show the scores, write tables, pictures and a page."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from privstats.cli.parts.heads import spelled
from privstats.cli.parts.output import prepare
from privstats.cli.parts.terminal import escape, say, terminal
from privstats.errors import DataError
from privstats.files.atomic import atomic_write
from privstats.heads.diagnostics import RARE
from privstats.heads.registry import head_class, named
from privstats.moments import RecordFile, Records
from privstats.moments.code_rows import columns_asked
from privstats.moments.record_files import read_archive
from privstats.plan import Plan
from privstats.schema import predicted
from privstats.workflows import report
from privstats.workflows.rivals import rivals
from privstats.workflows.score import heading
from privstats.workflows.sweep import (
    KEPT,
    Axes,
    Study,
    Sweep,
    behind_means,
    cell,
    drawn,
    means,
    over_epsilon,
    study,
    table,
)
from privstats.workflows.sweep.told_cuts import open_columns

__all__ = ["heads_named", "run"]

_DONE = "sweep.json"
_BALANCED = (
    "balanced accuracy (in brackets where epsilon alone varies) is the mean of the classes' accuracies; far below the "
    f"accuracy it says that rare classes are missed, which the AUC beside it does not depend on: {RARE}"
)
_TOLD = (
    "cut points of {} are open in the plan: here they are quantiles of the records, without noise; what finding them "
    "under the promise costs, `privstats try` shows"
)


def run(
    plan: Path,
    data: RecordFile,
    head: list[str] | None,
    axes: Axes,
    *,
    trained: Sequence[str],
    centred: bool,
    repeats: int,
    seed: int,
    jobs: int,
    with_baselines: bool,
    out: Path | None,
) -> None:
    """Sweep, show, and write where a folder is named; the arguments are the command's.

    Raises:
        DataError: the data set, a head's name or the folder will not do, or no head could be scored.
    """
    subject = Plan.read(plan)
    train, test = _sets(data, subject)
    chosen = heads_named(head, subject)
    chosen |= (behind_means(chosen) if centred else {}) | rivals(*trained)
    if out is not None:
        prepare(out)
        _refuse_overwriting(out)
    found = study(
        subject,
        (train.X, train.y),
        (test.X, test.y),
        chosen,
        axes,
        repeats=repeats,
        seed=seed,
        jobs=jobs,
        with_baselines=with_baselines,
        kept=None if out is None else out / KEPT,
    )
    if not len(found.draws):
        raise DataError("no head could be scored; let the plan's schema send the statistics that a head needs")
    _show(found, open_columns(subject))
    if out is not None:
        _write(found, out, Path(data.path))


def heads_named(names: list[str] | None, plan: Plan) -> dict[str, Callable[[], Any]]:
    """The heads to score; by default every closed-form head for the plan's task.

    Raises:
        DataError: no head has that name.
        SchemaError: no head is built from a release of such a plan.
    """
    usual = named(predicted(plan.schema), trained=False)
    return {name: head_class(name) for name in spelled(names or usual)}


def _sets(data: RecordFile, plan: Plan) -> tuple[Records, Records]:
    """What to learn on and what to score on."""
    if not data.is_table:
        arrays = read_archive(data.path, "X_train y_train X_test y_test", "X y")
        if "X" not in arrays:
            return Records(arrays["X_train"], arrays["y_train"]), Records(arrays["X_test"], arrays["y_test"])
    return data.parts(columns_asked(plan.schema))


def _refuse_overwriting(out: Path) -> None:
    if (out / _DONE).exists():
        raise DataError(f"{out} holds a finished sweep ({_DONE}); name another folder, or move that one away")


def _show(found: Study, found_here: Sequence[str]) -> None:
    console = terminal()
    result = _over_epsilon(found)
    console.print(means(found) if result is None else table(result))
    for name, score in found.baselines.items():
        console.print(f"- {escape(name)}: {escape(found.metric)} {score:.4g}", highlight=False)
    if found_here:
        console.print(f"- {escape(_TOLD.format(', '.join(found_here)))}", highlight=False)
    for note in _notes(found):
        console.print(f"- {escape(note)}", highlight=False)


def _over_epsilon(found: Study) -> Sweep | None:
    """The study as points against epsilon, where nothing else was varied."""
    return None if set(found.axes.varied) - {"epsilon"} else over_epsilon(found)


def _notes(found: Study) -> list[str]:
    """What a reader of the scores must know."""
    least, counted = found.plan.min_count, dict[float, float]()
    for row in found.summary:
        if row["dropped"]:
            epsilon = float("inf") if row["epsilon"] is None else row["epsilon"]
            counted[epsilon] = max(counted.get(epsilon, 0.0), row["dropped"])
    return [
        *([_BALANCED] if found.metric == "accuracy" else []),
        *_of_one_class(found),
        "nothing was charged: scores on private records are for their owner alone, and a plan that is chosen by them "
        "is a leak outside the budget; choose on public data",
        *(
            f"{heading(epsilon)}: min_count={least} dropped {count:.1f} classes per release; the scores count their "
            "records as errors, so set min_count = 0 to see the price of noise alone"
            for epsilon, count in counted.items()
        ),
        *(f"{name}: {rival}" for name, rival in found.rivals.items()),
        *(f"left out {name.partition(' from ')[0]}: {why}" for name, why in found.missing.items()),
    ]


def _of_one_class(found: Study) -> list[str]:
    """Which heads predict one class, at which epsilon, in how many of the draws."""
    told: dict[str, list[str]] = {}
    for row in found.summary:
        if row["one_class"]:
            often = "" if row["one_class"] == 1 else f" in {row['one_class']:.0%} of the draws"
            at = heading(float("inf") if row["epsilon"] is None else row["epsilon"])
            told.setdefault(row["head"], []).append(f"{at}{often}")
    return [
        f"{head}: this head predicts one class for all test records ({', '.join(dict.fromkeys(where))}); its accuracy "
        "is that class's share"
        for head, where in told.items()
    ]


def _write(found: Study, out: Path, data: Path) -> None:
    """Tables, pictures and a page; the JSON last, because it says that the folder is finished."""
    for kind, picture in drawn(found).items():
        atomic_write(out / f"sweep.{kind}", picture, shared=True)
    atomic_write(out / "draws.csv", found.draws.to_csv().encode(), shared=True)
    atomic_write(out / "sweep.csv", found.summary.to_csv().encode(), shared=True)
    result = _over_epsilon(found)
    if result is not None:
        report.write_page(_page(found, result, data), out / "report.html")
    atomic_write(out / _DONE, found.to_json().encode(), shared=True)
    (out / KEPT).unlink(missing_ok=True)
    names = "sweep.json, sweep.csv, draws.csv, figures" + ("" if result is None else " and report.html")
    terminal().print()
    say(f"wrote {names} to {os.fspath(out)}")
    if beside := [name for name in found.axes.varied if name != "epsilon"]:
        why = f"no report.html: a page has the axis epsilon alone, and {', '.join(beside)} varied too"
        terminal().print(escape(why), highlight=False, soft_wrap=True)


def _page(found: Study, result: Sweep, data: Path) -> report.Page:
    private = [epsilon for epsilon in result.epsilons if epsilon != float("inf")]
    curves = [report.Curve(name, [result.at(name, epsilon) for epsilon in private]) for name in result.heads]
    columns = [heading(epsilon) for epsilon in result.epsilons]
    return report.Page(
        title=f"privstats sweep: {data.name}",
        chart=report.Chart(found.metric, curves, lines=tuple(found.baselines.items())),
        header=("head", *columns),
        scores=[
            (name, *(cell(result, result.at(name, epsilon)) for epsilon in result.epsilons)) for name in result.heads
        ],
        facts=[
            f"mean ± standard deviation over {result.repeats} draws of reproducible noise, for experiments only",
            "the budget below is the plan's own; the curves replace its epsilon",
            *_notes(found),
        ],
        plan=result.plan,
    )
