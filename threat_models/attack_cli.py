"""The ``privstats attack`` commands; plugged into the library's command line through an entry point.

Reads a plan and data, runs attacks, prints the report. JSON alone on standard output.
"""

from __future__ import annotations

import json as jsons
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

import privstats as ps
from privstats.cli.parts.terminal import new_table, terminal
from privstats.errors import DataError
from threat_models.axes import AXES

if TYPE_CHECKING:
    from privstats.course import Course
    from threat_models.attack import AnyAttack

attack = typer.Typer(
    help="Attack a plan and measure what it gives away.", no_args_is_help=True, rich_help_panel="Attack"
)

PlanFile = Annotated[Path, typer.Argument(help="The plan document.", metavar="PLAN.TOML")]
PlanOrCourse = Annotated[
    Path, typer.Argument(help="The plan document, or that of a course of synthetic rows.", metavar="PLAN.TOML")
]
MaybePlan = Annotated[
    Path | None,
    typer.Argument(
        help="A plan document, or that of a course of synthetic rows, to show which attacks apply to it.",
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
    """List every attack: its number, its goal and who runs it; with a plan, what each attack reads of it."""
    from threat_models.attack import attacks

    target = None if path is None else _target(path)
    if json:
        known = [{"name": each.name, "number": each.number, "goal": each.goal} for each in attacks()]
        read = [{} if target is None else _read_of(each, target) for each in attacks()]
        typer.echo(jsons.dumps([row | more for row, more in zip(known, read, strict=True)], indent=2))
        return
    table = new_table()
    for heading in ("#", "attack", "goal", _heading(target)):
        table.add_column(heading)
    for each in attacks():
        last = each.needs.describe() if target is None else _in_words(_read_of(each, target))
        table.add_row(str(each.number), each.name, each.goal, last)
    terminal().print(table)


def _in_words(read: Mapping[str, str | None]) -> str:
    return read["reads"] or f"nothing: {read['does not apply']}"


def _heading(target: ps.Plan | Course | None) -> str:
    if target is None:
        return "an attacker who"
    return "reads of this plan" if isinstance(target, ps.Plan) else "reads of this course"


def _read_of(each: AnyAttack, target: ps.Plan | Course) -> dict[str, str | None]:
    """Return the statistics of a plan, or what is drawn from a course, that an attack reads, or why it does not."""
    if isinstance(target, ps.Plan):
        refusal, reads = each.refusal(target), each.letters
        return {"reads": "" if refusal else reads(target), "does not apply": refusal}
    from privstats.course.kinds import course_kind

    refusal = each.refusal_of(target)
    return {"reads": "" if refusal else course_kind(target).draws, "does not apply": refusal}


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

    target, chosen = _target(path), attacks_named(attack_ or ())
    with attack_runs.bar(evaluation.steps(target, chosen, evaluation.Effort(trials=trials)), quiet=json) as pace:
        effort = attack_runs.effort_of(trials, records, seed, out, pace)
        if isinstance(target, ps.Plan):
            pool, what = attack_runs.pool_of(target, data, seed)
            report = evaluation.evaluate(target, chosen, pool, effort)
        elif data is not None:
            raise DataError("--data is for a plan: a course is attacked over made-up records; omit --data")
        else:
            report, what = evaluation.evaluate_course(target, chosen, effort), "made-up records"
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
        len(value) * evaluation.steps(plan, chosen, evaluation.Effort(trials=trials)), quiet=json
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


def _target(path: Path) -> ps.Plan | Course:
    """Read a plan, or a course from whose releases something is drawn.

    Raises:
        PlanError: a course of another kind.
    """
    from privstats.course.document import is_course
    from privstats.course.kinds import course_kind

    if not is_course(path):
        return ps.Plan.read(path)
    course: Course = ps.course.read(path)
    return course if course_kind(course).draws else _plan(path)


def _plan(path: Path) -> ps.Plan:
    from privstats.course.document import is_course

    if is_course(path):
        raise ps.PlanError(
            f"{path} is a course, and attacks play against one plan: `privstats course next` writes a session's plan, "
            f"and `privstats audit course {path}` plays all sessions"
        )
    return ps.Plan.read(path)
