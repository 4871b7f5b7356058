"""Carry out ``privstats sweep``, and write tables, pictures and a page."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.markup import escape

from privstats.cli.parts.options import heads_spelled
from privstats.cli.parts.terminal import folder_for
from privstats.contrib.sweep import (
    KEPT,
    Axes,
    Frame,
    Study,
    Sweep,
    behind_means,
    drawn,
    latex,
    means,
    over_epsilon,
    study,
    table,
)
from privstats.contrib.sweep.axes import open_columns, plan_at
from privstats.contrib.sweep.data_sets import adapts, archives_in, fitted
from privstats.contrib.sweep.grid import cell_at
from privstats.contrib.sweep.points import heading
from privstats.contrib.sweep.refusals import all_at_once
from privstats.contrib.sweep.rivals import rivals
from privstats.dp import Privacy
from privstats.errors import DataError
from privstats.extend.commands import say, terminal
from privstats.extend.heads import HEADS
from privstats.extend.support import atomic_write
from privstats.heads.diagnostics import RARE
from privstats.moments import RecordFile, Records
from privstats.plan import Plan
from privstats.schema import predicted
from privstats.transforms import input_features
from privstats.workflows import report

if TYPE_CHECKING:
    from privstats.contrib.sweep.command import Draws, Scored

_DONE = "sweep.json"
_ONLY = ""
"""Name of the data set of one file, whose results are in the named folder itself."""
_BALANCED = (
    "balanced accuracy (in brackets where epsilon alone varies) is the mean of the classes' accuracies; far below "
    f"the accuracy it shows that rare classes are missed, on which the AUC next to it does not depend: {RARE}. "
    'Sensitivity and specificity are those of threshold="prevalence"'
)
_LEAST_REPEATS = 2
_SPREAD = "± is one standard deviation over {} replicates of noise and partition; the test records are the same in each"
_INTERVALS = (
    "deviation is one standard deviation over {} replicates of noise and partition, and the interval is of their mean; "
    "the test records are the same in each"
)
_TOLD = (
    "cut points of {} are open in the plan: here they are quantiles of the records, without noise; `privstats try` "
    "shows the cost of estimating them under the promise"
)


def run(plan: Path, data: RecordFile, axes: Axes, scored: Scored, draws: Draws, out: Path | None) -> None:
    """Carry out the command, on each data set of a folder of npz files; write where a folder is named."""
    subject = Plan.read(plan)
    files = {path.stem: replace(data, path=path) for path in archives_in(data.path)} or {_ONLY: data}
    chosen, sets, *_ = all_at_once(
        partial(heads_named, scored.head, subject, on_device=draws.device is not None),
        lambda: {name: _sets(file, subject) for name, file in files.items()},
        partial(rivals, *(scored.baseline or ())),
        partial(_check_axes, subject, axes, draws),
        partial(_prepare, out, list(files)),
    )
    plans = {name: _plan_of(subject, name, files[name], *both) for name, both in sets.items()}
    chosen |= behind_means(chosen) if scored.centred else {}
    found: dict[str, Study] = {}
    for name, (train, test) in sets.items():
        folder = None if out is None else out / name
        if folder is not None:
            folder_for(folder)
        result = study(
            plans[name],
            (train.X, train.y),
            (test.X, test.y),
            chosen,
            axes,
            **vars(draws),
            with_baselines=scored.baselines,
            baselines=scored.baseline or (),
            kept=None if folder is None else folder / KEPT,
        )
        if not len(result.draws):
            raise DataError("no head could be scored; let the plan's schema send the statistics that a head needs")
        if name != _ONLY:
            terminal().print(f"{escape(name)}: {result.sizes['train']} records to train on")
        _show(result, open_columns(subject))
        found[name] = result
    if out is not None:
        for name, result in found.items():
            _write(result, out / name, Path(files[name].path))
        if _ONLY not in found:
            _write_together(found, out)


def _check_axes(plan: Plan, axes: Axes, draws: Draws) -> None:
    """Refuse values of the axes with which no plan follows."""
    if draws.repeats < _LEAST_REPEATS:
        raise DataError(f"--repeats must be at least {_LEAST_REPEATS}, got {draws.repeats}")
    inputs = input_features(plan.schema.transform, plan.schema.features)
    for deal in () if axes.dimension or open_columns(plan) else axes.deals(plan):  # these depend on the records
        for point in axes.points(plan, deal):
            plan_at(plan, point, inputs, axes.records_per_client)


def _prepare(out: Path | None, names: Sequence[str]) -> None:
    if out is not None:
        report.require_extra()
        folder_for(out)
        _refuse_overwriting(out, names)


def _plan_of(plan: Plan, name: str, file: RecordFile, train: Records, test: Records) -> Plan:
    """Return a data set's plan: arrays state features and classes, unless the plan names columns or fits already."""
    if name != _ONLY:
        return fitted(plan, name, train, test)
    return plan if file.is_table or not adapts(plan, train, test) else fitted(plan, Path(file.path).name, train, test)


def heads_named(names: list[str] | None, plan: Plan, *, on_device: bool = False) -> dict[str, Callable[[], Any]]:
    """Return the heads; by default every closed-form one, with ``on_device`` every one that fits there."""
    task = predicted(plan.schema)
    usual = [name for name in HEADS.of_task(task, trained=False) if HEADS[name].on_device or not on_device]
    if not (names or usual):
        raise DataError("no head of this plan is fitted on a device; omit --device")
    return {name: HEADS.class_of(name) for name in heads_spelled(names or usual)}


def _sets(data: RecordFile, plan: Plan) -> tuple[Records, Records]:
    if not data.is_table:
        arrays = data.arrays("X_train y_train X_test y_test", "X y")
        if "X" not in arrays:
            return Records(arrays["X_train"], arrays["y_train"]), Records(arrays["X_test"], arrays["y_test"])
    return data.parts(plan.schema.reading.source, words=plan.schema.reading.words)


def _refuse_overwriting(out: Path, names: Sequence[str]) -> None:
    for folder in (out / name for name in names):
        if (folder / _DONE).exists():
            raise DataError(f"{folder} holds a finished sweep ({_DONE}); name another folder, or move that one away")


def _show(outcome: Study, heads_here: Sequence[str]) -> None:
    console = terminal()
    result = _over_epsilon(outcome)
    console.print(means(outcome) if result is None else table(result))
    console.print(f"- {escape((_INTERVALS if result is None else _SPREAD).format(outcome.repeats))}")
    for name, score in outcome.baselines.items():
        console.print(f"- {escape(name)}: {escape(outcome.metric)} {score:.4g}")
    if heads_here:
        console.print(f"- {escape(_TOLD.format(', '.join(heads_here)))}")
    for note in _notes(outcome):
        console.print(f"- {escape(note)}")


def _over_epsilon(result: Study) -> Sweep | None:
    return None if set(result.axes.varied) - {"epsilon"} else over_epsilon(result)


def _notes(result: Study) -> list[str]:
    least, counted = result.plan.min_count, dict[float, float]()
    for row in result.summary:
        if row["dropped"]:
            epsilon = float("inf") if row["epsilon"] is None else row["epsilon"]
            counted[epsilon] = max(counted.get(epsilon, 0.0), row["dropped"])
    return [
        *([_BALANCED] if result.metric == "accuracy" else []),
        *_of_one_class(result),
        "nothing was charged: scores on private records are for their owner alone, and a plan chosen by them is a "
        "leak outside the budget; choose on public data",
        *(
            f"{heading(epsilon)}: min_count={least} dropped {count:.1f} classes per release; the scores count their "
            "records as errors, so set min_count = 0 to see the price of noise alone"
            for epsilon, count in counted.items()
        ),
        *(f"{name}: {rival}" for name, rival in result.rivals.items()),
        *(f"excluded {name.partition(' from ')[0]}: {why}" for name, why in result.missing.items()),
    ]


def _of_one_class(result: Study) -> list[str]:
    heads_of: dict[str, list[str]] = {}
    for row in result.summary:
        if row["one_class"]:
            often = "" if row["one_class"] == 1 else f" in {row['one_class']:.0%} of the draws"
            at = heading(float("inf") if row["epsilon"] is None else row["epsilon"])
            heads_of.setdefault(row["head"], []).append(f"{at}{often}")
    return [
        f"{head}: this head predicts one class for all test records ({', '.join(dict.fromkeys(where))}); its accuracy "
        "is that class's share"
        for head, where in heads_of.items()
    ]


def _write(outcome: Study, out: Path, data: Path) -> None:
    """Write the JSON last, because its presence marks the folder as finished."""
    pictures = drawn(outcome)
    for kind, picture in pictures.items():
        atomic_write(out / f"sweep.{kind}", picture, shared=True)
    atomic_write(out / "draws.csv", outcome.draws.to_csv().encode(), shared=True)
    atomic_write(out / "sweep.csv", outcome.summary.to_csv().encode(), shared=True)
    atomic_write(out / "sweep.tex", latex(outcome).encode(), shared=True)
    result = _over_epsilon(outcome)
    if result is not None:
        report.write_page(_page(outcome, result, data, pictures["png"]), out / "report.html")
    atomic_write(out / _DONE, outcome.to_json().encode(), shared=True)
    (out / KEPT).unlink(missing_ok=True)
    names = "sweep.json, sweep.csv, sweep.tex, draws.csv, figures" + ("" if result is None else " and report.html")
    terminal().print()
    say(f"wrote {names} to {os.fspath(out)}")
    if beside := [name for name in outcome.axes.varied if name != "epsilon"]:
        why = f"no report.html: a page has the axis epsilon alone, and {', '.join(beside)} varied too"
        terminal().print(escape(why), soft_wrap=True)


def _write_together(studies: Mapping[str, Study], out: Path) -> None:
    """Write the tables of all data sets: one for a paper, and one with every number."""
    summaries = {name: result.summary for name, result in studies.items()}
    columns = ("data", *next(iter(summaries.values())).columns)
    rows = [{"data": name, **row} for name, summary in summaries.items() for row in summary]
    atomic_write(out / "sweep.csv", Frame.of(columns, rows).to_csv().encode(), shared=True)
    atomic_write(out / "sweep.tex", latex(studies).encode(), shared=True)
    say(f"wrote sweep.csv and sweep.tex of all data sets to {os.fspath(out)}")


def _page(outcome: Study, result: Sweep, data: Path, png: bytes) -> report.Page:
    columns = [heading(epsilon) for epsilon in result.epsilons]
    title = f"{outcome.metric} against epsilon"
    return report.Page(
        title=f"privstats sweep: {data.name}",
        metric=outcome.metric,
        chart=report.Figure.of_png(title, _caption(outcome), png),
        header=("head", *columns),
        scores=[(name, *(cell_at(result, name, epsilon) for epsilon in result.epsilons)) for name in result.heads],
        facts=[
            f"{_SPREAD.format(outcome.repeats)}; the noise is reproducible, for experiments only",
            "the costs of statistics are those of the plan's own epsilon",
            *_notes(outcome),
        ],
        plan=result.plan,
    )


def _caption(outcome: Study) -> str:
    """Return what a picture's points, bars and lines are, and who adds the noise."""
    privacy = outcome.plan.privacy
    noise = f"{privacy.model} noise, one {privacy.unit}, {privacy.adjacency}. " if isinstance(privacy, Privacy) else ""
    return (
        f"{noise[:1].upper()}{noise[1:]}Points: mean {outcome.metric} over {outcome.repeats} replicates of noise and "
        "partition. Bars: the 95 % interval of that mean. Dashed lines: without privacy."
    )
