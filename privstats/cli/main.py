"""The entry point: one typer app, with errors as one sentence.

Every other module of this package is a command, by its name and its ``app``; a Python keyword ends in ``_``. Other
packages' commands are entry points of the group ``privstats.commands``, so that the library never imports its attacker.
Commands are imported when requested, because a shell lists them at every press of the tab key.
"""

from __future__ import annotations

import os
import pkgutil
import sys
import traceback
import warnings
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Annotated, Any, cast

import click
import typer
from typer.core import TyperGroup

from privstats.cli.parts.group import LISTED, command_of, sentence_of
from privstats.cli.parts.options import COMPLETION, HELP
from privstats.cli.parts.terminal import escape, say, terminal
from privstats.doors import Door
from privstats.errors import PrivstatsError
from privstats.plug_ins import failed_in, one_line
from privstats.printable import printable
from privstats.progress import speaking
from privstats.row_fields import RowError, shown
from privstats.tables import LazyRows
from privstats.version import __version__

_FAILED = 2
_PACKAGE = "privstats.cli"
_LONGEST = 1_000
_PANELS = ("Begin", "Plan", "Run", "Read", "Audit", "Attack", "Keep", "More")  # purposes of users, in this order
_BEGIN = """\
One-shot private learning from sufficient statistics. Most people begin with:

  privstats try --example --target ill --epsilon 3  two hospitals: files to a page
  privstats plan init                               write a plan, question by question
  privstats plan check plan.toml                    what it costs, and who reads what
  privstats look FILE --plan plan.toml              how a file of yours fits the plan
  privstats table RELEASE                           estimates with intervals

All commands: privstats --help. Options of one: privstats COMMAND --help."""
# Idle threads of OpenBLAS sleep after 2**16 ticks, some 25 microseconds on x86-64: spinning costs processor time.
_BLAS_WAIT = "OPENBLAS_THREAD_TIMEOUT", "16"


def _own() -> dict[str, str]:
    rooms = [room.name for room in pkgutil.iter_modules([str(Path(__file__).parent)]) if not room.ispkg]
    return {room.rstrip("_"): f"{_PACKAGE}.{room}:app" for room in rooms if f"{_PACKAGE}.{room}" != __name__}


def _is_app(row: Any, _: str) -> bool:
    if not isinstance(row, typer.Typer):
        raise RowError(f"it is {shown(row)}, and must be a typer.Typer")
    if not row.registered_commands:
        raise RowError("it has no command: decorate a function with its command()")
    return True


COMMANDS: Door[typer.Typer] = Door("privstats.commands", "command", PrivstatsError, _is_app, LazyRows(_own))
"""The commands by name: this package's modules, then those that packages and ``privstats.contrib`` announce."""


_WORDS = {"version": "--version", "help": "--help"}
"""Commands that people try, and the options that answer them."""


class _Commands(TyperGroup):
    def __init__(self, **terms: Any) -> None:
        super().__init__(**terms)
        self.commands = cast("dict[str, click.Command]", COMMANDS)  # names alone, for a mistyped one

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Read ``privstats help plan`` as ``privstats plan --help``."""
        if args and args[0] in _WORDS and args[0] not in COMMANDS:
            args = [*args[1:], _WORDS[args[0]]]
        return super().parse_args(ctx, args)

    def list_commands(self, ctx: Any) -> list[str]:  # noqa: ARG002 - click's signature
        return list(COMMANDS)

    def format_help(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Options are built only for a command that is requested."""
        ctx.meta[LISTED] = True
        super().format_help(ctx, formatter)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        rows = {panel: list[tuple[str, str]]() for panel in _PANELS}
        for name, own in COMMANDS.rows().items():
            panel = own.rich_help_panel
            sentence = cast("click.Command", self.get_command(ctx, name)).get_short_help_str(_LONGEST)
            rows[panel if panel in rows else _PANELS[-1]].append((name, sentence))
        width = max(map(len, COMMANDS))
        for panel, listed in rows.items():
            if listed:
                with formatter.section(panel):
                    formatter.write_dl([(name.ljust(width), sentence) for name, sentence in listed])

    def get_command(self, ctx: click.Context | None, cmd_name: str) -> Any:
        own = COMMANDS.get(cmd_name)
        if own is None:
            return None
        if ctx is not None and ctx.meta.get(LISTED):
            return click.Command(cmd_name, short_help=sentence_of(own))
        command = command_of(own, cmd_name)
        command.name = cmd_name
        command.params = [each for each in command.params if each.name not in COMPLETION]  # once, for all commands
        return command


app = typer.Typer(
    name="privstats",
    cls=_Commands,
    help="One-shot private learning from sufficient statistics.",
    invoke_without_command=True,
    context_settings={"help_option_names": list(HELP), "max_content_width": 120},
    rich_markup_mode=None,  # lists are plain: typer loads a parser of Markdown for its boxes, for a third of the time
    pretty_exceptions_enable=False,
)


def _print_version(wanted: bool) -> None:
    if wanted:
        say(f"privstats {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    context: typer.Context,
    version: Annotated[  # noqa: ARG001 - its callback is all
        bool, typer.Option("--version", "-V", help="Print the version.", callback=_print_version, is_eager=True)
    ] = False,
) -> None:
    """One-shot private learning from sufficient statistics."""
    if context.invoked_subcommand is None:
        for line in _BEGIN.splitlines():
            say(line)


def main() -> None:
    """Run the command line and exit with its code.

    0: done. 1: a claim is contradicted, by an audit, an attack or a verification; or noise hides every row of a table.
    2: any error, with one sentence on standard error. 130: interrupted.
    """
    os.environ.setdefault(*_BLAS_WAIT)  # read when numpy and scipy load, which no import above does
    warnings.showwarning = _Remarks()
    with speaking(partial(say, err=True)):
        code = _run()
    sys.exit(_flushed(code))


def _flushed(code: int) -> int:
    """The interpreter would end a failed write with code 120 and no sentence."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError as error:
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())  # the interpreter flushes once more
            quiet = stream is sys.stderr or isinstance(error, BrokenPipeError)
            code = _FAILED if quiet else _failed(_of_the_system(error))
    return code


class _Remarks:
    def __init__(self) -> None:
        self._usual, self._shown = warnings.showwarning, set[str]()

    def __call__(
        self,
        message: Warning | str,
        category: type[Warning],
        filename: str,
        lineno: int,
        file: Any = None,
        line: Any = None,
    ) -> None:
        if not _is_ours(category):
            self._usual(message, category, filename, lineno, file, line)
        elif str(message) not in self._shown:
            self._shown.add(str(message))
            with suppress(OSError):
                say(f"warning: {message}", err=True)


def _is_ours(category: type[Warning]) -> bool:
    return category.__module__.partition(".")[0] == "privstats"


def _run() -> int:
    try:
        app()
    except SystemExit as ending:
        return _code(ending)
    except PrivstatsError as error:
        return _failed(str(error))
    except MemoryError:
        return _failed("there is not enough memory for this; pass fewer records, classes or features")
    except OSError as error:
        if error.errno is None:  # raised by a library and not by the system
            return _bug()
        return _failed(_of_the_system(error))
    except Warning as warning:  # a user turned it into an error, as ``python -W error`` does
        return _failed(str(warning)) if _is_ours(type(warning)) else _bug()
    except Exception:  # last resort: a traceback alone would exit with the code of a contradicted claim
        return _bug()
    return 0


def _bug() -> int:
    fault = sys.exception()
    if fault is not None and (package := failed_in(fault)):
        return _failed(
            f"the code of {package} failed with {type(fault).__name__}: {one_line(fault)}; report it to its authors, "
            "or uninstall that package"
        )
    traceback.print_exc()
    return _failed("this is a bug in privstats; please report it with the lines above")


def _of_the_system(error: OSError) -> str:
    if error.filename is None:
        return f"cannot read or write: {error.strerror}; check the output's destination and its free space"
    name = os.fsdecode(error.filename) if isinstance(error.filename, str | bytes) else str(error.filename)
    return f"cannot use {name}: {error.strerror}; name another path"


def _code(ending: SystemExit) -> int:
    """Frameworks also use code 1, for an abort or a closed pipe; only a command's own choice counts."""
    code = ending.code if isinstance(ending.code, int) else int(ending.code is not None)
    return _FAILED if code == 1 and not isinstance(ending.__context__, typer.Exit) else code


def _failed(why: str) -> int:
    with suppress(OSError):  # standard error may be full too; the exit code still reports it
        terminal(errors=True).print(f"[bold red]error:[/] {escape(printable(why))}", soft_wrap=True)
    return _FAILED
