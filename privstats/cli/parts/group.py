"""Build a group's commands one by one, with further ones that installed packages announce.

A command's options may come from rows of a door, so a command is built when a person asks for it. A list of commands
shows sentences alone.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from copy import copy
from functools import partial
from typing import Any, cast

import click
import typer
from typer.core import TyperCommand, TyperGroup
from typer.models import CommandInfo, TyperInfo

from privstats.cli.parts.options import HELP
from privstats.doors import Door
from privstats.errors import PrivstatsError
from privstats.row_fields import RowError, shown
from privstats.tables import LazyRows

LISTED = f"{__name__}.listed"
"""The key in click's ``Context.meta`` that is set while commands are listed."""
_LONGEST = 1_000
"""click would truncate a sentence longer than a line."""


def command_of(app: typer.Typer, name: str) -> click.Command:
    """Return a command, or a group: its own commands, then those that packages announce for it.

    Args:
        app: of one command, or of a group that holds no group.
        name: the group's; a package announces a function under the entry points ``privstats.commands.<name>``.
    """
    if len(app.registered_commands) == 1:
        (info,) = app.registered_commands
        return _built(info, app)
    shell = copy(app)
    shell.registered_commands = []
    group = cast(
        "_Group",
        typer.main.get_group_from_info(
            TyperInfo(shell, cls=_Group),
            pretty_exceptions_short=app.pretty_exceptions_short,
            rich_markup_mode=None,  # a list is plain text
            suggest_commands=app.suggest_commands,
        ),
    )
    group.fill(app, name)
    return _with_help_options(group)


def sentence_of(app: typer.Typer) -> str:
    """Return an app's sentence for a list, without building a command."""
    return app.info.help or _sentence(app.registered_commands[0].callback)


class _Command(TyperCommand):
    """A command whose help is plain text: boxes cut long names of options on a narrow terminal."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List arguments, then options by their panel."""
        lists = dict[str, list[tuple[str, str]]]()
        for each in self.get_params(ctx):
            if isinstance(each, click.Argument):
                lists.setdefault("Arguments", []).append((each.make_metavar(ctx), getattr(each, "help", None) or ""))
            elif isinstance(each, click.Option) and (record := click.Option.get_help_record(each, ctx)) is not None:
                lists.setdefault(getattr(each, "rich_help_panel", None) or "Options", []).append(record)
        for heading, records in lists.items():
            with formatter.section(heading):
                formatter.write_dl(records)


class _Group(TyperGroup):
    def fill(self, app: typer.Typer, name: str) -> None:
        """List the commands of an app, and those that packages announce; build none."""
        infos = {info.name or _name(info.callback): info for info in app.registered_commands}
        door: Door[Callable[..., None]] = Door(
            f"privstats.commands.{name}",
            f"command of privstats {name}",
            PrivstatsError,
            _is_function,
            {each: cast("Any", info.callback) for each, info in infos.items()},
        )
        self._door = door
        self._hidden = {each for each, info in infos.items() if info.hidden}
        makers = {
            each: partial(_built, infos[each], app) if each in infos else partial(_brought, door, each, app)
            for each in door
        }
        self.commands = cast("dict[str, click.Command]", LazyRows(makers))

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002  click's signature
        return list(self.commands)

    def format_help(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Options are built only for a command that is requested."""
        ctx.meta[LISTED] = True
        super().format_help(ctx, formatter)

    def get_command(self, ctx: click.Context | None, cmd_name: str) -> click.Command | None:
        if ctx is not None and ctx.meta.get(LISTED):
            origin = self._door.origin(cmd_name)  # another's package may load slowly, so a list names it alone
            sentence = f"A command of {origin}." if origin else _sentence(self._door[cmd_name])
            return click.Command(cmd_name, short_help=sentence, hidden=cmd_name in self._hidden)
        return self.commands.get(cmd_name)


def _is_function(row: Any, _: str) -> bool:
    if not inspect.isfunction(row):
        raise RowError(f"it is {shown(row)}, and must be a function")
    return True


def _name(callback: Any) -> str:
    return typer.main.get_command_name(callback.__name__)


def _built(info: CommandInfo, app: typer.Typer) -> click.Command:
    plain = copy(info)
    plain.cls = _Command
    command = typer.main.get_command_from_info(
        plain, pretty_exceptions_short=app.pretty_exceptions_short, rich_markup_mode=None
    )
    command.short_help = command.get_short_help_str(_LONGEST)
    return _with_help_options(command)


def _brought(door: Door[Callable[..., None]], name: str, app: typer.Typer) -> click.Command:
    return _built(CommandInfo(name=name, callback=door[name]), app)


def _sentence(callback: Any) -> str:
    return click.Command(None, help=inspect.getdoc(callback)).get_short_help_str(_LONGEST)


def _with_help_options(command: click.Command) -> click.Command:
    command.context_settings["help_option_names"] = list(HELP)
    return command
