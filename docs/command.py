"""The command line as one click command, for the reference that is made from the code."""

from typing import cast

import click
import typer.main

from privstats.cli.main import app

command = typer.main.get_command(app)


def _built(group: click.Group) -> None:
    """Build every command of a group: the reference has what the lists of `--help` leave out, too."""
    context = click.Context(group)
    built = [group.get_command(context, name) for name in group.list_commands(context)]
    group.commands = {each.name: each for each in built if each is not None and each.name is not None}
    for each in group.commands.values():
        each.hidden = False
        if isinstance(each, click.Group):
            _built(each)


_built(cast("click.Group", command))
