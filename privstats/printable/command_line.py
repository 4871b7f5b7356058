"""Render a command of ``privstats`` that a person can paste: the one place that writes one with values in it."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from pathlib import PurePath
from types import MappingProxyType


def command_line(*words: object, options: Mapping[str, object] = MappingProxyType({})) -> str:
    """Return a command line, each value quoted for a POSIX shell.

    Args:
        words: the command, then its arguments.
        options: values by flag. None and False omit a flag, True states it alone, and a list repeats it.

    Example:
        >>> from privstats.printable.command_line import command_line
        >>> command_line("look", "north ward.csv", options={"--plan": "plan.toml", "--separator": ";", "--lines": True})
        "privstats look 'north ward.csv' --plan plan.toml --separator ';' --lines"
    """
    named = (word for flag, value in options.items() for word in _option(flag, value))
    return shlex.join(["privstats", *map(_argument, words), *named])


def _argument(word: object) -> str:
    """A path that begins with a dash would be read as an option."""
    text = _text(word)
    return f"./{text}" if text.startswith("-") else text


def _option(flag: str, value: object) -> Iterator[str]:
    if value is True:
        yield flag
    elif isinstance(value, list | tuple):
        for each in value:
            yield from (flag, _text(each))
    elif value is not None and value is not False:
        yield from (flag, _text(value))


def _text(value: object) -> str:
    if isinstance(value, PurePath):
        return str(value)
    return repr(value) if isinstance(value, float) else str(value)
