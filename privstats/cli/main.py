"""The entry point: one typer app, commands of other packages plugged in, errors as one sentence.

Commands outside this package (``audit`` comes with ``threat_models``) are found through the entry-point
group ``privstats.commands``, so that the library never imports its attacker. A command is imported when it is called.
"""

from __future__ import annotations

import sys
from importlib.metadata import EntryPoint, entry_points
from typing import Annotated, Any

import typer
from rich.console import Console
from typer.core import TyperGroup

from privstats.errors import PrivstatsError
from privstats.version import __version__

__all__ = ["app", "main"]

_GROUP = "privstats.commands"
_OWN = tuple(EntryPoint(name, f"privstats.cli.{name}:app", _GROUP) for name in ("demo", "plan", "sweep"))


class _Commands(TyperGroup):
    """The commands by name, each loaded when somebody asks for it."""

    def list_commands(self, ctx: Any) -> list[str]:  # noqa: ARG002 - click's signature
        return [entry.name for entry in _entries()]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:  # noqa: ARG002 - click's signature
        entry = next((entry for entry in _entries() if entry.name == cmd_name), None)
        if entry is None:
            return None
        command = typer.main.get_command(entry.load())
        command.name = cmd_name
        return command


def _entries() -> list[EntryPoint]:
    return [*_OWN, *sorted(entry_points(group=_GROUP), key=lambda entry: entry.name)]


app = typer.Typer(
    name="privstats",
    cls=_Commands,
    help="One-shot private learning from sufficient statistics.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)


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
