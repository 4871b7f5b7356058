"""The ``privstats attack`` commands; plugged into the library's command line through an entry point.

Reads a plan and data, runs attacks, prints the report. JSON alone on standard output.
"""

from __future__ import annotations

import json as jsons
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

import privstats as ps
from privstats.cli.parts.terminal import new_table, terminal
from privstats.cli.parts.verifying import read_expected
from privstats.errors import DataError
from privstats.printable.command_line import command_line
from threat_models.axes import AXES

if TYPE_CHECKING:
    from privstats.course import Course
    from threat_models.attack import AnyAttack

attack = typer.Typer(
    help="Attack a plan and measure what it gives away.", no_args_is_help=True, rich_help_panel="Attack"
)

PlanFile = Annotated[Path, typer.Argument(help="The plan document.", metavar="PLAN.TOML")]
PlanOrCourse = Annotated[Path, typer.Argument(help="The plan document, or a course's.", metavar="PLAN.TOML")]
MaybePlan = Annotated[
    Path | None,
    typer.Argument(
        help="A plan document, or a course's, to show which attacks apply to it.",
        metavar="PLAN.TOML",
    ),
]
Names = Annotated[list[str] | None, typer.Option("--attack", help="An attack by name; repeat for more. Default: all.")]
Data = Annotated[
    Path | None, typer.Option(help="Records as npz with X and y (or X_train, y_train). Default: bundled ones.")
]
Out = Annotated[Path | None, typer.Option(help="A folder for report.json, report.md, report.html and pictures.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]
Seed = Annotated[int | None, typer.Option(help="Reproduce a run, and continue a stopped one; needs --out for that.")]
Trials = Annotated[int, typer.Option(min=8, help="Worlds drawn per attack, with and without the target.")]
Records = Annotated[int, typer.Option(min=1, help="Records per class in a world.")]


@attack.callback()
def _attack() -> None:
    """Attack a plan and measure what it gives away; exit code 1 when more than the plan allows."""


@attack.command("list")
def list_(path: MaybePlan = None, json: Json = False) -> None:
    """List every attack: its number, its goal and who runs it; with a plan or a course, what each reads of it."""
    from threat_models.attack import attacks

    target = None if path is None else read_expected(path)
    sessions = _sessions(target)
    if json:
        known = [{"name": each.name, "number": each.number, "goal": each.goal} for each in attacks()]
        read = [{} if target is None else _read_of(each, target, sessions) for each in attacks()]
        typer.echo(jsons.dumps([row | more for row, more in zip(known, read, strict=True)], indent=2))
        return
    table = new_table()
    for heading in ("#", "attack", "goal", _heading(target)):
        table.add_column(heading)
    for each in attacks():
        last = each.needs.describe() if target is None else _in_words(_read_of(each, target, sessions))
        table.add_row(str(each.number), each.name, each.goal, last)
    terminal().print(table)


def _in_words(read: Mapping[str, str | None]) -> str:
    return read["reads"] or f"nothing: {read['does not apply']}"


def _heading(target: ps.Plan | Course | None) -> str:
    if target is None:
        return "an attacker who"
    return "reads of this plan" if isinstance(target, ps.Plan) else "reads of this course"


def _sessions(target: ps.Plan | Course | None) -> list[ps.Plan]:
    """Return a plan, or the plans of a course's sessions, with values that follow from invented releases."""
    from threat_models.evaluate import sessions_of

    if target is None or isinstance(target, ps.Plan):
        return [target] if target is not None else []
    return list(sessions_of(target, 0).values())


def _read_of(attack: AnyAttack, target: ps.Plan | Course, sessions: Sequence[ps.Plan]) -> dict[str, str | None]:
    """Return what an attack reads: statistics of these plans or rows that are drawn; or why it does not apply."""
    from privstats.course.kinds import course_kind

    reads = "" if isinstance(target, ps.Plan) or attack.refusal_of(target) else course_kind(target).draws
    letters = (attack.letters(plan) for plan in sessions if attack.refusal(plan) is None)
    reads = reads or "".join(dict.fromkeys("".join(letters)))
    return {"reads": reads, "does not apply": None if reads else attack.refusal(sessions[0])}


@attack.command()
def run(
    path: PlanOrCourse,
    attack_: Names = None,
    data: Data = None,
    out: Out = None,
    records: Records = 30,
    trials: Trials = 200,
    seed: Seed = None,
    json: Json = False,
) -> None:
    """Run attacks against a plan, each compared with the same attacker without the release and with the ceiling."""
    from threat_models import attack_runs
    from threat_models import evaluate as evaluation
    from threat_models.attack import attacks_named

    target, chosen = read_expected(path), attacks_named(attack_ or ())
    plan = target if isinstance(target, ps.Plan) else None
    if plan is None and data is not None:
        raise DataError("--data is for a plan: a course is attacked over bundled or made-up records; omit --data")
    total = None if plan is None else evaluation.trial_count(plan, chosen, evaluation.Effort(trials=trials))
    with attack_runs.bar(total, quiet=json) as pace:
        effort = attack_runs.effort_of(trials, records, seed, out, pace)
        if isinstance(target, ps.Plan):
            _require_values(path, target)
            pool, what = attack_runs.pool_of(target, data, seed)
            report = evaluation.evaluate(target, chosen, pool, effort)
        else:
            what = "bundled or made-up records"
            pools = partial(attack_runs.records_of, seed=seed)
            report = evaluation.evaluate_course(target, chosen, pools, effort)
    attack_runs.finish(report, what, out, json, pace)


@attack.command()
def sweep(
    path: PlanFile,
    over: Annotated[str, typer.Option(help=f"What to vary: {', '.join(AXES)}.")],
    value: Annotated[list[float], typer.Option(help="A value of the setting; repeat for more.")],
    attack_: Names = None,
    data: Data = None,
    out: Out = None,
    records: Records = 30,
    trials: Trials = 200,
    seed: Seed = None,
    json: Json = False,
) -> None:
    """Run attacks over a range of one setting, for a curve."""
    from threat_models import attack_runs
    from threat_models import evaluate as evaluation
    from threat_models.attack import attacks_named

    plan, chosen = _plan(path), attacks_named(attack_ or ())
    if over not in AXES:
        raise DataError(f"--over must be one of {', '.join(AXES)}, got {over}")
    pool, what = attack_runs.pool_of(plan, data, seed)
    with attack_runs.bar(
        len(value) * evaluation.trial_count(plan, chosen, evaluation.Effort(trials=trials)), quiet=json
    ) as pace:
        effort = attack_runs.effort_of(trials, records, seed, out, pace)
        report = evaluation.sweep(plan, chosen, pool, over, value, effort)
    attack_runs.finish(report, what, out, json, pace)


@attack.command()
def matrix(
    path: PlanFile,
    attack_: Names = None,
    data: Data = None,
    out: Out = None,
    records: Records = 30,
    trials: Trials = 40,
    seed: Seed = None,
    json: Json = False,
) -> None:
    """Show who learns what: every attack by everybody who could run it, from the public to the server itself."""
    from threat_models import attack_runs
    from threat_models import evaluate as evaluation
    from threat_models.attack import attacks_named

    plan, chosen = _plan(path), attacks_named(attack_ or ())
    pool, what = attack_runs.pool_of(plan, data, seed)
    with attack_runs.bar(None, quiet=json) as pace:
        report = evaluation.matrix(plan, chosen, pool, attack_runs.effort_of(trials, records, seed, out, pace))
    attack_runs.finish(report, what, out, json, pace)


def _require_values(path: Path, plan: ps.Plan) -> None:
    if plan.published is not None and plan.published.values is None:
        divided = command_line("course", "init", "COURSE.TOML", options={"--plan": path})
        raise ps.PlanError(
            f"{path} publishes values of an earlier session, and no file next to it holds them: `{divided}` divides "
            "its promise, and `privstats attack run COURSE.TOML` plays all sessions"
        )


def _plan(path: Path) -> ps.Plan:
    from privstats.course.document import is_course

    if is_course(path):
        raise ps.PlanError(
            f"{path} is a course, and this command plays against one plan: `privstats course next` writes a session's "
            f"plan, and `{command_line('attack', 'run', path)}` and `{command_line('audit', 'course', path)}` play all "
            "sessions"
        )
    return ps.Plan.read(path)
