"""The entry point: one typer app, commands of other packages plugged in, errors as one sentence.

Commands outside this package (``audit`` comes with ``threat_models``) are found through the entry-point
group ``privstats.commands``, so that the library never imports its attacker.
"""

from __future__ import annotations

import sys
from importlib.metadata import entry_points
from typing import Annotated

import typer
from rich.console import Console

from privstats.cli.demo import demo
from privstats.cli.plan import app as plan_app
from privstats.cli.suggest import suggest
from privstats.cli.sweep import sweep
from privstats.errors import PrivstatsError
from privstats.version import __version__

__all__ = ["app", "main"]

app = typer.Typer(
    name="privstats",
    help="One-shot private learning from sufficient statistics.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)
app.command()(demo)
app.command()(sweep)
plan_app.command()(suggest)
app.add_typer(plan_app, name="plan")
for _plugin in entry_points(group="privstats.commands"):
    app.add_typer(_plugin.load(), name=_plugin.name)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"privstats {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version.", callback=_print_version, is_eager=True)
    ] = False,
) -> None:
    """One-shot private learning from sufficient statistics."""


def main() -> None:
    """Run the command line; bad input ends with one sentence on standard error and exit code 2."""
    try:
        app()
    except PrivstatsError as error:
        Console(stderr=True).print(f"[bold red]error:[/] {_plain(error)}", highlight=False, soft_wrap=True)
        sys.exit(2)


def _plain(error: PrivstatsError) -> str:
    return str(error).replace("[", r"\[")
