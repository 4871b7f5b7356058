"""``privstats plan init | check | show``."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from privstats.cli.suggest import suggest
from privstats.errors import PlanError
from privstats.files import write_whole
from privstats.plain import json_text
from privstats.plan import Budget, Plan, facts

__all__ = ["app"]

app = typer.Typer(help="Write, check and show the plan that governs an aggregation.", no_args_is_help=True)
app.command()(suggest)

PlanFile = Annotated[Path, typer.Argument(help="The plan document.", metavar="PLAN.TOML")]


@app.command()
def init(
    path: PlanFile = Path("plan.toml"),
    force: Annotated[bool, typer.Option("--force", help="Replace an existing file.")] = False,
) -> None:
    """Write a commented example plan to edit."""
    if path.exists() and not force:
        raise PlanError(f"{path} exists; name another file, or pass --force to replace it")
    write_whole(path, files(__package__).joinpath("plan.toml").read_bytes())
    typer.echo(f"wrote {path}; edit it, then run: privstats plan check {path}")


@app.command()
def check(
    path: PlanFile,
    crosscheck: Annotated[
        str | None, typer.Option(help="Ask another accountant too: opacus, opacus-rdp, dp-accounting, zcdp.")
    ] = None,
) -> None:
    """Validate a plan and print its budget, what its masking needs and what dropouts change."""
    plan = Plan.read(path)
    console = Console()
    console.print(plan.budget(crosscheck=crosscheck))  # type: ignore[arg-type]  # an unknown name is refused by name
    console.print()
    for line in facts(plan):
        console.print(f"- {line}", highlight=False)
    console.print(f"\ndigest: {plan.digest}", highlight=False, soft_wrap=True)
    console.print(f"{path} holds together.", highlight=False, soft_wrap=True)


@app.command()
def show(path: PlanFile) -> None:
    """Print a plan, its budget and what follows from it as JSON."""
    plan = Plan.read(path)
    document = {
        "digest": plan.digest,
        "plan": plan.tables,
        "budget": _budget(plan.budget()),
        "masking": plan.masking.numbers(),
        "upload_bytes": plan.masking.upload_bytes,
    }
    typer.echo(json_text(document))


def _budget(budget: Budget) -> dict[str, Any]:
    whole = {name: getattr(budget, name) for name in ("mu", "epsilon", "delta", "masking_failure", "promise")}
    return {**whole, "rows": [vars(row) for row in budget.rows]}
