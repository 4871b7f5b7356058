"""Render the command that comes next, with the options of the command that runs.

A command states what differs; every option that both commands have keeps the value that was typed, so a file's
separator, its target and its ids are never typed twice.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any

import click
from click.core import ParameterSource

from privstats.printable.command_line import command_line

ONCE = frozenset({"force", "yes", "as_json", "example", "out"})
"""Options of one call, which no later command repeats."""


def next_command(*words: object, without: Collection[str] = (), **options: object) -> str:
    """Return a command line of ``privstats``, built from this call's options.

    Args:
        words: the command, then its arguments.
        without: parameters of this call that the next command does not repeat.
        options: further values by the next command's parameter; None omits a carried one.

    A required option without a value is shown as its placeholder.

    Raises:
        ValueError: there is no such command, or it has no such parameter.

    Example:
        >>> from privstats.cli.parts.next_command import next_command
        >>> next_command("head", "predict", "model.head", "new.csv", out="new predictions.csv", keep=["id"])
        "privstats head predict model.head new.csv --out 'new predictions.csv' --keep id"
    """
    return _line(words, ONCE.union(without), options)


def this_command(without: Collection[str] = (), **options: object) -> str:
    """Return this call's own command line, with some options changed.

    Args:
        without: parameters to omit.
        options: values by parameter; None omits one.
    """
    context = click.get_current_context()
    words: list[object] = [*context.command_path.split()[1:]]
    for each in context.command.params:
        if isinstance(each, click.Argument) and (value := context.params.get(each.name or "")) is not None:
            words += value if isinstance(value, list | tuple) else [value]
    return _line(words, without, options)


def _line(words: Collection[object], without: Collection[str], options: dict[str, object]) -> str:
    command, typed, flags = _command(*map(str, words)), list(_typed(without)), dict[str, object]()
    for each in command.params:
        if isinstance(each, click.Option):
            carried = next((value for opts, value in typed if set(opts) & set(each.opts)), None)
            value = options.pop(each.name or "", carried)
            needed = each.metavar or (each.name or "").upper() if each.required else None
            flags[max(each.opts, key=len)] = needed if value is None else value
    if options:
        raise ValueError(f"{command.name} has no parameter {', '.join(options)}")
    return command_line(*words, options=flags)


def _typed(without: Collection[str]) -> Iterator[tuple[list[str], Any]]:
    """Yield flags and value of each option that a person typed in this call."""
    context = click.get_current_context(silent=True)
    for each in () if context is None else context.command.params:
        name = each.name or ""
        if isinstance(each, click.Option) and name not in without:
            assert context is not None  # noqa: S101  it has parameters
            if context.get_parameter_source(name) is ParameterSource.COMMANDLINE:
                yield each.opts, context.params.get(name)


def _command(name: str, *words: str) -> click.Command:
    """Return the command that the first words name."""
    from privstats.cli.main import COMMANDS
    from privstats.cli.parts.group import command_of

    own = COMMANDS.get(name)
    if own is None:
        raise ValueError(f"privstats has no command {name!r}")
    command = command_of(own, name)
    if not isinstance(command, click.Group):
        return command
    inside = command.get_command(click.Context(command), words[0])
    if inside is None:
        raise ValueError(f"privstats {name} has no command {words[0]!r}")
    return inside
