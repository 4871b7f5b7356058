"""Options that several commands share, with their help."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import MISSING, dataclass, fields, is_dataclass, make_dataclass
from functools import cached_property, partial, update_wrapper
from inspect import Parameter, Signature, signature
from itertools import chain
from pathlib import Path
from types import FunctionType
from typing import TYPE_CHECKING, Annotated, Any, Protocol, TypeAlias, TypeVar, get_type_hints

import typer

from privstats.doors import Door
from privstats.errors import DataError, PlanError
from privstats.row_fields import option_hints
from privstats.row_options import Option, RowOptions, default_of, flag_of, given, left_out, option_in

if TYPE_CHECKING:
    from privstats.moments import RecordFile

TABLE = "a CSV, Parquet or other table's file, a folder or quoted pattern of such files, or FILE/TABLE of a data base"
"""The kinds of path that hold records, for the help of every command that reads them (``intake.table_sources``)."""
HELP = ("-h", "--help")
"""The options that print the help of any command."""
COMPLETION = ("install_completion", "show_completion")
"""The options of a shell's completion, which ``typer`` adds to any command."""
_DIALECT = "How a CSV file is written"  # a list of its own in the help of every command that reads one

THOUSANDS = "Its sign between groups of three digits: . , ' or a blank."
LINES = "Each line is one record, whatever its quotes."
QUOTED = "Its program doubles quotes within quotes, so quoted texts may span any lines."


def option(help: str, metavar: str | None = None, *, flag: str = "", panel: str | None = None, **how: Any) -> Any:
    """Return an option; ``flag`` is its name if not the parameter's."""
    return typer.Option(*([flag] if flag else []), help=help, metavar=metavar, rich_help_panel=panel, **how)


def argument(help: str, metavar: str | None = None) -> Any:
    """Return an argument."""
    return typer.Argument(help=help, metavar=metavar)


Force: TypeAlias = Annotated[bool, option("Replace existing files.", flag="--force")]
Json: TypeAlias = Annotated[bool, option("Print JSON instead of a table.", flag="--json")]
SignedBy: TypeAlias = Annotated[str | None, option("The public key that must have signed it: hex or a file.", "KEY")]
Split: TypeAlias = Annotated[
    float | None, option("For X and y, or a table: the share of the records to score on, 0 to 1.")
]
Target: TypeAlias = Annotated[str | None, option("The target column of a table.", "COLUMN")]
Yes: TypeAlias = Annotated[bool, option("Do not ask.", flag="--yes")]


@dataclass(frozen=True)
class Dialect:
    """How a CSV file is written."""

    encoding: Annotated[str, option("Its text encoding, such as cp1252.", panel=_DIALECT)] = "utf-8"
    separator: Annotated[str, option("Its field separator, one of , ; | : or tab.", "CHARACTER", panel=_DIALECT)] = ","
    decimal: Annotated[str, option("Its decimal mark, . or ,.", "CHARACTER", panel=_DIALECT)] = "."
    thousands: Annotated[str, option(THOUSANDS, "CHARACTER", panel=_DIALECT)] = ""
    lines: Annotated[bool, option(LINES, flag="--lines", panel=_DIALECT)] = False
    quoted: Annotated[bool, option(QUOTED, flag="--quoted", panel=_DIALECT)] = False

    def file(self, path: Path, target: Any = None, **how: Any) -> RecordFile:
        """Return a file of records in this dialect."""
        from privstats.moments import RecordFile

        return RecordFile(path, target, **vars(self), **how)


_FOUND = "detected in each file if omitted."


@dataclass(frozen=True)
class Detected:
    """How CSV files of several parties are written: each in its own form, unless an option states one for all."""

    encoding: Annotated[str | None, option(f"Text encoding, such as cp1252; {_FOUND}", panel=_DIALECT)] = None
    separator: Annotated[
        str | None, option(f"Field separator, one of , ; | : or tab; {_FOUND}", "CHARACTER", panel=_DIALECT)
    ] = None
    decimal: Annotated[str | None, option(f"Decimal mark, . or ,; {_FOUND}", "CHARACTER", panel=_DIALECT)] = None
    thousands: Annotated[
        str | None, option(f"Thousands sign, one of . , ' or a blank; {_FOUND}", "CHARACTER", panel=_DIALECT)
    ] = None
    lines: Annotated[bool, option(LINES, flag="--lines", panel=_DIALECT)] = False
    quoted: Annotated[bool, option(QUOTED, flag="--quoted", panel=_DIALECT)] = False

    def file(self, path: Path, target: Any = None, **how: Any) -> RecordFile:
        """Return a file of records in its own form."""
        from privstats.moments import RecordFile
        from privstats.workflows.rehearsal import written_as

        return written_as(RecordFile(path, target, **how), vars(self))


class _Expanded:
    """A command whose options are listed when a person asks for the command: rows of a door may bring some."""

    def __init__(self, command: Callable[..., None]) -> None:
        update_wrapper(self, command)
        del vars(self)["__wrapped__"]  # so that inspect.signature returns the one below
        self._command = command
        self.__annotations__ = {}  # typer takes them from the signature

    @property
    def _bundles(self) -> dict[str, Any]:
        """Return each parameter that stands for several options, as the dataclass of these.

        No option of another package's row hides one of the command, or of a row of ours in another parameter.
        """
        found = {name: bundle for name, hint in self._hints.items() if (bundle := _bundle_in(hint)) is not None}
        rows = {name: each for name, each in found.items() if isinstance(each, RowOptions)}
        taken = _words_in(self._options({name: None if name in rows else each for name, each in found.items()}))
        for name, each in rows.items():
            others = (other.ours for other in rows.values() if other is not each)
            found[name] = each.joined(taken.union(*others))
            taken |= _words_in(_fields_of(found[name]))
        return found

    @cached_property
    def _hints(self) -> dict[str, Any]:
        return get_type_hints(self._command, include_extras=True)

    def _options(self, bundles: Mapping[str, Any]) -> list[Parameter]:
        """Return the command's options, each a keyword; of a parameter whose bundle is None there is none."""
        options = list[Parameter]()
        for name, each in signature(self._command).parameters.items():
            if name not in bundles:
                options.append(each.replace(annotation=self._hints[name], kind=Parameter.KEYWORD_ONLY))
            elif bundles[name] is not None:
                options += _fields_of(bundles[name])
        return options

    @property
    def __signature__(self) -> Signature:
        return Signature(self._options(self._bundles))

    def __call__(self, **given: Any) -> None:
        built = {
            name: bundle(**{field.name: given.pop(field.name) for field in fields(bundle)})
            for name, bundle in self._bundles.items()
        }
        self._command(**given, **built)


def expanded(command: Callable[..., None]) -> Callable[..., None]:
    """Return the command with the fields of each dataclass that it accepts as options.

    A dataclass made at run time is annotated as ``Annotated[..., dataclass]``, and one that is made only for a person
    who asks for the command as ``Annotated[..., function]``. Where rows of a door add options, that function returns
    ``DOOR.options("terms")``.
    """
    return _Expanded(command)


class _Named(Protocol):
    @property
    def name(self) -> str: ...


Named = TypeVar("Named", bound=_Named)


def switches(door: Door[Any], rows: Iterable[Any]) -> RowOptions:
    """Return flags, one for each row of a door, by the row's ``name`` and ``help``."""
    parts = {
        row.name: make_dataclass("Switch", [(_field(row.name), Annotated[bool, _switch(row)], False)]) for row in rows
    }
    return RowOptions(parts, door.origin, door.noun)


def _switch(row: Any) -> Option:
    return Option(row.help, flag=f"--{row.name}")


def switched(flags: Any, rows: Iterable[Named]) -> list[Named]:
    """Return the rows whose flag in :func:`switches` is given."""
    return [row for row in rows if row.name not in left_out(flags) and getattr(flags, _field(row.name))]


def _field(name: str) -> str:
    return name.replace("-", "_")


def _words_in(options: list[Parameter]) -> frozenset[str]:
    """Return names and flags of options, as ``typer`` builds them, and those that it adds to any command."""

    def shown(**_: Any) -> None: ...

    shown.__signature__ = Signature(options)  # type: ignore[attr-defined]
    shown.__annotations__ = {}
    built, *_ = typer.main.get_params_convertors_ctx_param_name_from_function(shown)
    words = ((each.name or "", *each.opts, *each.secondary_opts) for each in built)
    added = ((name, f"--{name.replace('_', '-')}") for name in COMPLETION)
    return frozenset(chain(HELP, *added, *words))


def _bundle_in(hint: Any) -> Any:
    for each in (hint, *getattr(hint, "__metadata__", ())):
        if isinstance(each, type) and is_dataclass(each):
            return each
        if isinstance(each, FunctionType | partial):
            return each()
    return None


def _fields_of(bundle: Any) -> list[Parameter]:
    hints = option_hints(bundle)
    return [
        Parameter(
            each.name,
            Parameter.KEYWORD_ONLY,
            default=Parameter.empty if (default := default_of(each)) is MISSING else default,
            annotation=_shown(hints[each.name]),
        )
        for each in fields(bundle)
    ]


def _shown(hint: Any) -> Any:
    """Return a field's annotation with its :class:`~privstats.row_options.Option` as typer's."""
    stated = option_in(hint)
    if stated is None:
        return hint
    return Annotated[hint.__origin__, option(stated.help, stated.metavar, flag=stated.flag or "")]


def flags_of(names: Iterable[str], options: type[Any] = object) -> str:
    """Return options as people type them, with the flags that a dataclass of options states."""
    return ", ".join(flag_of(options, name) for name in names)


def flags_given(options: Any) -> list[str]:
    """Return the options whose values differ from their defaults, as people type them."""
    return [flag_of(type(options), name) for name in given(options)]


def targets_of(course: Any, text: str | None) -> str | tuple[str, ...] | None:
    """Return the outcomes that a course's plan names, or else ``text``, the value of ``--target``."""
    plans = getattr(course, "priced", (course,))
    exposure: str | None = getattr(plans[-1].schema, "exposure", None)
    if exposure is not None and text is not None:
        if text == exposure:
            raise PlanError(f"--target names the plan's exposure, {text!r}: name the column of counts")
        return text, exposure
    named: tuple[str, ...] = getattr(plans[-1].schema, "outcome_names", None) or ()
    if not named or (text is not None and len(named) == 1):
        return text
    if text is not None:
        raise PlanError(f"omit --target: the plan names its outcomes itself, {', '.join(named)}")
    return named[0] if len(named) == 1 else named


def heads_spelled(names: Iterable[str]) -> tuple[str, ...]:
    """Return heads' registered names, each once, from names in any case."""
    from privstats.heads.registry import HEADS

    return _spelled(names, HEADS, f"--head {{}} is unknown; the heads are {', '.join(HEADS)}")


def readers_completed(incomplete: str) -> list[str]:
    """Return names of heads and of ``privstats table`` readers for a shell that completes one."""
    return [name for name in _readers() if name.lower().startswith(incomplete.lower())]


def readers_spelled(names: Iterable[str]) -> tuple[str, ...]:
    """Return names of heads and of ``privstats table`` readers likewise."""
    return _spelled(names, _readers(), f"--for {{}} is unknown; the readers are {', '.join(_readers())}")


def for_readers(about: str, *, several: bool) -> type[Any]:
    """Return the option ``--for``, whose help lists the names of table readers and heads of this installation."""
    listed = option(
        f"{about} Names: {', '.join(_readers())}.", "READER", flag="--for", autocompletion=readers_completed
    )
    return make_dataclass("For", [("readers", Annotated[list[str] | None if several else str | None, listed], None)])


def _readers() -> tuple[str, ...]:
    from privstats.heads.registry import HEADS
    from privstats.workflows.tables.rows import READERS

    return *READERS, *HEADS


def _spelled(names: Iterable[str], every: Iterable[str], refusal: str) -> tuple[str, ...]:
    known, names = {name.lower(): name for name in every}, tuple(names)
    if unknown := [name for name in names if name.lower() not in known]:
        raise DataError(refusal.format(unknown[0]))
    return tuple(dict.fromkeys(known[name.lower()] for name in names))
