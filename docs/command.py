"""The command line as one click command, for the reference that is made from the code."""

import typer.main

from privstats.cli.main import app

command = typer.main.get_command(app)
