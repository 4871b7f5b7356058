"""Add a command, or options of one: declare options, print tables, refuse to replace files.

A command is a function or a typer ``app`` under the entry points ``privstats.commands``, or
``privstats.commands.GROUP``. docs/how_to_add.md has the steps under "A command".
"""

from typing import TYPE_CHECKING

from privstats.lazy_names import lazy_names

if TYPE_CHECKING:
    from privstats.cli.parts.next_command import next_command as next_command
    from privstats.cli.parts.options import Force as Force
    from privstats.cli.parts.options import Json as Json
    from privstats.cli.parts.options import argument as argument
    from privstats.cli.parts.options import expanded as expanded
    from privstats.cli.parts.options import option as option
    from privstats.cli.parts.terminal import say as say
    from privstats.cli.parts.terminal import table_of as table_of
    from privstats.cli.parts.terminal import terminal as terminal
    from privstats.cli.parts.terminal import writable as writable
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "privstats.cli.parts.next_command": ["next_command"],
            "privstats.cli.parts.options": ["Force", "Json", "argument", "expanded", "option"],
            "privstats.cli.parts.terminal": ["say", "table_of", "terminal", "writable"],
        },
    )
