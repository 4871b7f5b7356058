"""The command line as one click command, for the reference that is made from the code."""

import click
import typer.main

from privstats.cli.main import app

command = typer.main.get_command(app)
_listed = command.get_command


def _whole(context: click.Context, name: str) -> click.Command | None:
    """A command with everything in it: the reference has what the lists of `--help` leave out, too."""
    found = _listed(context, name)
    for each in getattr(found, "commands", {}).values():
        each.hidden = False
    return found


command.get_command = _whole
